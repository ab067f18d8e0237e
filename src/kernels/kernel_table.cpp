#include "kernels/kernel_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.h"
#include "kernels/isa.h"
#include "kernels/kernel_ops.h"

namespace kilin {

namespace {

std::string known_isas() {
  std::string names;
  for (Isa isa : kIsas) names += fmt::format("{}{}", names.empty() ? "" : ", ", to_string(isa));
  return names;
}

std::string known_ops() {
  std::string names = "all";
  for_each_kernel_op([&](const auto& op) { names += fmt::format(", {}", op.name); });
  return names;
}

void use_naive_forms(std::string_view list, KernelTable& table) {
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view name = list.substr(begin, end - begin);
    begin = end + 1;
    bool known = false;
    for_each_kernel_op([&](const auto& op) {
      if (name != "all" && name != op.name) return;
      table.*op.member = naive_kernels().*op.member;
      known = true;
    });
    if (!known)
      raise(ErrorCode::InvalidArgument, "KILIN_NAIVE: '{}' is not an op; known are {}; all picks the naive form of every op",
            name, known_ops());
  }
}

}  // namespace

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::Scalar:
      return "scalar";
    case Isa::Avx2:
      return "avx2";
    case Isa::Avx2Vnni:
      return "avx2+vnni";
    case Isa::Avx512:
      return "avx512";
    case Isa::Avx512Vnni:
      return "avx512+vnni";
    case Isa::Avx512Bf16:
      return "avx512+bf16";
  }
  return "unknown";
}

KernelChoice KernelChoice::from_environment() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text ? text : "");
  };
  return {value("KILIN_ISA"), value("KILIN_NAIVE")};
}

KernelTable select_kernels(const CpuInfo& cpu, const KernelChoice& choice) {
  Isa isa = Isa::Scalar;
  for (Isa candidate : kIsas)
    if (choice.isa.empty() ? supports(cpu, candidate) : choice.isa == to_string(candidate)) isa = candidate;
  if (!choice.isa.empty() && choice.isa != to_string(isa))
    raise(ErrorCode::InvalidArgument, "KILIN_ISA: '{}' is not an instruction set; known are {}", choice.isa, known_isas());
  if (!supports(cpu, isa)) raise(ErrorCode::Unsupported, "KILIN_ISA: this CPU ({}) has no {}", cpu.name, to_string(isa));

  KernelTable table = *kernels_of(isa);
  use_naive_forms(choice.naive, table);
  return table;
}

std::vector<KernelForm> describe(const KernelTable& table) {
  std::vector<KernelForm> forms;
  for_each_kernel_op([&](const auto& op) {
    const bool naive = table.*op.member == naive_kernels().*op.member;
    forms.push_back({op.name, naive ? "naive" : to_string(table.isa)});
  });
  return forms;
}

}  // namespace kilin
