#include "weights/weight_use.h"

#include <algorithm>
#include <string_view>

namespace kilin {

namespace {

using enum WeightUse;

struct FieldUse {
  std::string_view field;
  WeightUse use;
};

// By the fields of the weight map. What is not here is a parameter.
constexpr FieldUse kUses[] = {
    {"KimiLinearForCausalLM.embed_tokens", Table},
    {"KimiLinearForCausalLM.lm_head", LmHead},
    {"KimiDeltaAttention.q_proj", Product},
    {"KimiDeltaAttention.k_proj", Product},
    {"KimiDeltaAttention.v_proj", SensitiveProduct},
    {"KimiDeltaAttention.f_a_proj", ExactProduct},
    {"KimiDeltaAttention.f_b_proj", ExactProduct},
    {"KimiDeltaAttention.b_proj", ExactProduct},
    {"KimiDeltaAttention.g_a_proj", ExactProduct},
    {"KimiDeltaAttention.g_b_proj", ExactProduct},
    {"KimiDeltaAttention.o_proj", Product},
    {"KimiMlaAttention.q_proj", Product},
    {"KimiMlaAttention.kv_a_proj_with_mqa", Product},
    {"KimiMlaAttention.kv_b_proj", Dense},
    {"KimiMlaAttention.o_proj", Product},
    {"KimiMlp.gate_proj", Product},
    {"KimiMlp.up_proj", Product},
    {"KimiMlp.down_proj", SensitiveProduct},
    {"KimiMoe.gate", ExactProduct},
    {"KimiMoe.experts.w1", Product},
    {"KimiMoe.experts.w3", Product},
    {"KimiMoe.experts.w2", SensitiveProduct},
    {"KimiMoe.shared_experts.gate_proj", Product},
    {"KimiMoe.shared_experts.up_proj", Product},
    {"KimiMoe.shared_experts.down_proj", SensitiveProduct},
};

}  // namespace

WeightUse use_of(const WeightPattern& pattern) {
  const auto at = std::ranges::find(kUses, pattern.field, &FieldUse::field);
  return at == std::end(kUses) ? Parameter : at->use;
}

ExpectedTensor lm_head_of(const ModelConfig& config) {
  const auto patterns = weight_patterns();
  const auto at = std::ranges::find_if(patterns, [](const WeightPattern& p) { return use_of(p) == WeightUse::LmHead; });
  return {std::string(at->pattern), {config.vocab_size, config.hidden_size}, &*at};
}

}  // namespace kilin
