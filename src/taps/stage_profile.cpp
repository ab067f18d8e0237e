#include "taps/stage_profile.h"

#include <chrono>

namespace kilin {

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::Embedding:
      return "embedding";
    case Stage::Norms:
      return "norms";
    case Stage::Activations:
      return "activations";
    case Stage::KdaProjections:
      return "kda_projections";
    case Stage::KdaRecurrence:
      return "kda_recurrence";
    case Stage::KdaOutput:
      return "kda_output";
    case Stage::MlaProjections:
      return "mla_projections";
    case Stage::MlaAttention:
      return "mla_attention";
    case Stage::MlaOutput:
      return "mla_output";
    case Stage::Router:
      return "router";
    case Stage::Experts:
      return "experts";
    case Stage::SharedExpert:
      return "shared_expert";
    case Stage::DenseMlp:
      return "dense_mlp";
    case Stage::LmHead:
      return "lm_head";
    case Stage::Sampling:
      return "sampling";
  }
  return "?";
}

StageCost& StageCost::operator+=(const StageCost& other) {
  weight_bytes += other.weight_bytes;
  state_bytes += other.state_bytes;
  latent_bytes += other.latent_bytes;
  int8_operations += other.int8_operations;
  bf16_operations += other.bf16_operations;
  fp32_operations += other.fp32_operations;
  experts += other.experts;
  return *this;
}

StageProfile::Clock StageProfile::steady_clock() {
  return [] {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  };
}

StageProfile::Total StageProfile::sum() const {
  Total all;
  for (size_t stage = 0; stage < kStages; ++stage) {
    all.ns += totals_[stage].ns;
    all.cost += totals_[stage].cost;
  }
  all.cost += totals_[kOutside].cost;
  return all;
}

void StageProfile::add(const StageCost& cost) { totals_[open_].cost += cost; }

void StageProfile::clear() {
  totals_ = {};
  open_ = kOutside;
}

size_t StageProfile::change_to(size_t stage) {
  const size_t before = open_;
  if (clock_) {
    const uint64_t now = clock_();
    if (open_ != kOutside) totals_[open_].ns += now - changed_ns_;
    changed_ns_ = now;
  }
  open_ = stage;
  return before;
}

}  // namespace kilin
