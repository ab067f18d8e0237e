// kilin info: what this machine offers and what Kilin makes of it.
#include <CLI/App.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/context.h"
#include "core/cpu_info.h"
#include "core/version.h"
#include "kernels/kernel_table.h"

namespace kilin::cli {

namespace {

using Json = nlohmann::ordered_json;

Json gather() {
  const CpuInfo cpu = CpuInfo::detect();
  const KernelTable kernels = select_kernels(cpu, KernelChoice::from_environment());
  const MemoryInfo memory = MemoryInfo::detect();
  Json forms = Json::object();
  for (const KernelForm& form : describe(kernels)) forms[std::string(form.op)] = form.form;
  Json features = Json::array();
  for (const auto& [name, has] : {std::pair("fma", cpu.fma), std::pair("f16c", cpu.f16c), std::pair("avx2", cpu.avx2),
                                  std::pair("avx_vnni", cpu.avx_vnni), std::pair("avx512", cpu.avx512),
                                  std::pair("avx512_vnni", cpu.avx512_vnni), std::pair("avx512_bf16", cpu.avx512_bf16)})
    if (has) features.push_back(name);
  return {{"version", version()},
          {"cpu", {{"name", cpu.name}, {"features", features}, {"logical_cpus", cpu.logical_cpus}}},
          {"isa", to_string(kernels.isa)},
          {"threads", usable_threads()},
          {"memory", {{"total_bytes", memory.total}, {"available_bytes", memory.available}}},
          {"kernels", forms}};
}

double gib(const Json& bytes) { return bytes.get<double>() / (1u << 30); }

std::string text_of(const Json& info) {
  Page out;
  std::string features;
  for (const Json& feature : info["cpu"]["features"]) features += " " + feature.get<std::string>();
  out.print("kilin    {}\n", info["version"].get<std::string>());
  out.print("CPU      {},{}\n", info["cpu"]["name"].get<std::string>(), features.empty() ? " no vector extensions" : features);
  out.print("threads  {} of {} logical CPUs (--threads sets another number)\n", info["threads"].get<size_t>(),
            info["cpu"]["logical_cpus"].get<size_t>());
  out.print("memory   {:.1f} GiB, {:.1f} GiB of it available\n", gib(info["memory"]["total_bytes"]),
            gib(info["memory"]["available_bytes"]));
  out.print("kernels  {} (KILIN_ISA and KILIN_NAIVE set others)\n", info["isa"].get<std::string>());
  for (const auto& [op, form] : info["kernels"].items()) out.print("         {:<20} {}\n", op, form.get<std::string>());
  return out.text();
}

}  // namespace

void add_info(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("info", "Show CPU, threads, memory and the kernels that were picked");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print one JSON object");
  command->callback([&context, json] {
    context.run = [&context, json] {
      const Json info = gather();
      if (*json)
        context.out.write(info.dump() + "\n");
      else
        context.out.write(text_of(info));
    };
  });
}

}  // namespace kilin::cli
