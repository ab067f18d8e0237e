// The report for programs.
#include <nlohmann/json.hpp>

#include "cli/report/bench_report.h"
#include "core/cpu_info.h"
#include "core/version.h"

namespace kilin::cli {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Spread& spread) { return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}}; }

// Null where the CPU has no such instruction.
Json rate(double per_s) { return per_s > 0 ? Json(per_s) : Json(nullptr); }

Json json_of(const MachinePeaks& peaks) {
  return {{"read_bytes_per_s", rate(peaks.read_bytes_per_s)},
          {"int8_operations_per_s", rate(peaks.int8_operations_per_s)},
          {"fp32_operations_per_s", rate(peaks.fp32_operations_per_s)},
          {"bf16_operations_per_s", rate(peaks.bf16_operations_per_s)}};
}

// Of one step.
Json json_of(const StageCost& cost, const BenchRow& row) {
  return {{"weight_bytes", row.per_step(cost.weight_bytes)},
          {"state_bytes", row.per_step(cost.state_bytes)},
          {"latent_bytes", row.per_step(cost.latent_bytes)},
          {"int8_operations", row.per_step(cost.int8_operations)},
          {"bf16_operations", row.per_step(cost.bf16_operations)},
          {"fp32_operations", row.per_step(cost.fp32_operations)},
          {"experts", row.per_step(cost.experts)}};
}

Json stages_of(const BenchRow& row) {
  Json stages = Json::array();
  double all_s = 0, counted_s = 0;
  for (double seconds : row.seconds) all_s += seconds;
  const double steps = static_cast<double>(row.steps * row.seconds.size());
  for (size_t i = 0; i < kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    const StageProfile::Total& total = row.profile[stage];
    const double seconds = static_cast<double>(total.ns) * 1e-9;
    counted_s += seconds;
    stages.push_back({{"stage", to_string(stage)}, {"seconds_per_step", seconds / steps}, {"time_share", seconds / all_s}});
    stages.back().update(json_of(total.cost, row));
    const double bound_s = stage_bound_s(total.cost, row.peaks());
    stages.back()["bound_share"] = bound_s > 0 && seconds > 0 ? Json(bound_s / seconds) : Json(nullptr);
  }
  stages.push_back(
      {{"stage", "other"}, {"seconds_per_step", (all_s - counted_s) / steps}, {"time_share", (all_s - counted_s) / all_s}});
  return stages;
}

Json json_of(const BenchReport& report, const BenchRow& row) {
  Json json = Json::object();
  const bool is_prompt = row.work == BenchRow::Work::Prompt;
  if (is_prompt)
    json["prompt_tokens"] = row.prompt_tokens;
  else
    json.update({{"sequences", row.sequences}, {"depth_tokens", row.depth}, {"past_by", to_string(row.past)}});
  json["tokens_per_s"] = json_of(row.tokens_per_s());
  json["repeat_seconds"] = row.seconds;
  json["steps_per_repeat"] = row.steps;
  json["seconds_per_step"] = row.seconds_per_step();
  json["cost_per_step"] = json_of(row.total_cost(), row);
  if (is_prompt) {
    const ProductPeak peak = report.product_peak(row);
    const double per_s = row.per_step(row.total_cost().operations()) / row.seconds_per_step();
    json.update({{"operations_per_s", per_s},
                 {"peak", peak.name},
                 {"peak_operations_per_s", peak.operations_per_s},
                 {"peak_share", per_s / peak.operations_per_s}});
  } else {
    const double bound_s = generation_bound_s(row);
    json.update({{"experts_per_layer", report.experts_per_layer(row)},
                 {"bytes_per_s", row.per_step(row.total_cost().bytes()) / row.seconds_per_step()},
                 {"bound_seconds_per_step", bound_s},
                 {"bound_tokens_per_s", static_cast<double>(row.sequences) / bound_s},
                 {"bound_share", bound_s / row.seconds_per_step()}});
  }
  json["peaks_before"] = json_of(row.before);
  json["peaks_after"] = json_of(row.after);
  if (row.profile.has_times()) json["stages"] = stages_of(row);
  return json;
}

}  // namespace

std::string BenchReport::json() const {
  Json tables = {{"prompt", Json::array()}, {"generation", Json::array()}, {"batch", Json::array()}};
  for (const BenchRow& row : rows) {
    const char* table = row.work == BenchRow::Work::Prompt       ? "prompt"
                        : row.work == BenchRow::Work::Generation ? "generation"
                                                                 : "batch";
    tables[table].push_back(json_of(*this, row));
  }
  Json all = {{"version", version()},
              {"cpu", CpuInfo::detect().name},
              {"isa", to_string(engine.kernels().isa)},
              {"threads", engine.threads()},
              {"model", engine.loaded().path().string()},
              {"activations", to_string(engine.activations())},
              {"kv_type", to_string(engine.pools().latents.dimensions().type)},
              {"repeats", plan.repeat},
              {"generated_tokens", plan.generate},
              {"seed", plan.seed},
              {"load_s", load_s},
              {"start_to_first_token_s", first_token_s}};
  all.update(tables);
  all["memory"] = {{"peak_bytes", peak_bytes()},
                   {"probe_bytes", probe_bytes},
                   {"weight_bytes", engine.plan().weights},
                   {"planned_state_bytes", engine.plan().states},
                   {"planned_latent_bytes", engine.plan().latents},
                   {"planned_workspace_bytes", engine.plan().workspace}};
  return all.dump(-1, ' ', false, decltype(all)::error_handler_t::replace);
}

}  // namespace kilin::cli
