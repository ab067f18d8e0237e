#include "support/mini_gguf.h"

namespace kilin::testing {

std::vector<float> ramp(size_t n, float first) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = first + static_cast<float>(i) / 8;
  return values;
}

GgufBuilder mini_gguf() {
  GgufBuilder file;
  const std::string p = "kimi-linear.";
  file.key("general.architecture", "kimi-linear").key(p + "vocab_size", 260u).key(p + "context_length", 1000u);
  file.key(p + "embedding_length", 4u).key(p + "block_count", 2u).key(p + "feed_forward_length", 8u);
  file.key(p + "attention.head_count", 2u).key(p + "attention.head_count_kv", std::vector<int32_t>{0, 1});
  file.key(p + "attention.layer_norm_rms_epsilon", 1e-5f).key(p + "attention.kv_lora_rank", 5u);
  file.key(p + "attention.key_length", 7u).key(p + "attention.value_length", 5u);
  file.key(p + "attention.key_length_mla", 5u).key(p + "attention.value_length_mla", 2u).key(p + "rope.dimension_count", 2u);
  file.key(p + "ssm.conv_kernel", 4u).key(p + "kda.head_dim", 3u);
  file.key(p + "expert_count", 3u).key(p + "expert_used_count", 2u).key(p + "expert_shared_count", 1u);
  file.key(p + "expert_feed_forward_length", 6u).key(p + "leading_dense_block_count", 1u);
  file.key(p + "expert_weights_scale", 2.5f).key(p + "expert_weights_norm", true).key(p + "expert_gating_func", 2u);

  const auto add = [&](const std::string& name, const std::vector<uint64_t>& extents) {
    size_t n = 1;
    for (const uint64_t extent : extents) n *= extent;
    file.tensor(name, extents, ramp(n));
  };
  add("token_embd.weight", {4, 260});
  add("output_norm.weight", {4});
  add("output.weight", {4, 260});
  for (const char* layer : {"blk.0.", "blk.1."}) {
    add(std::string(layer) + "attn_norm.weight", {4});
    add(std::string(layer) + "ffn_norm.weight", {4});
  }
  for (const char* letter : {"q", "k", "v"}) {
    add(std::string("blk.0.attn_") + letter + ".weight", {4, 6});
    add(std::string("blk.0.ssm_conv1d_") + letter + ".weight", {4, 1, 6, 1});
  }
  file.tensor("blk.0.ssm_a", {1, 2}, {-1.0f, -2.0f});
  add("blk.0.ssm_dt.bias", {6});
  for (const char* gate : {"f", "g"}) {
    add(std::string("blk.0.ssm_") + gate + "_a.weight", {4, 3});
    add(std::string("blk.0.ssm_") + gate + "_b.weight", {3, 6});
  }
  add("blk.0.ssm_beta.weight", {4, 2});
  add("blk.0.ssm_norm.weight", {3});
  add("blk.0.attn_output.weight", {6, 4});
  add("blk.0.ffn_gate.weight", {4, 8});
  add("blk.0.ffn_up.weight", {4, 8});
  add("blk.0.ffn_down.weight", {8, 4});

  add("blk.1.attn_q.weight", {4, 10});
  add("blk.1.attn_kv_a_mqa.weight", {4, 7});
  add("blk.1.attn_kv_a_norm.weight", {5});
  add("blk.1.attn_k_b.weight", {3, 5, 2});
  add("blk.1.attn_v_b.weight", {5, 2, 2});
  add("blk.1.attn_output.weight", {4, 4});
  add("blk.1.ffn_gate_inp.weight", {4, 3});
  add("blk.1.exp_probs_b.bias", {3});
  add("blk.1.ffn_gate_exps.weight", {4, 6, 3});
  add("blk.1.ffn_up_exps.weight", {4, 6, 3});
  add("blk.1.ffn_down_exps.weight", {6, 4, 3});
  add("blk.1.ffn_gate_shexp.weight", {4, 6});
  add("blk.1.ffn_up_shexp.weight", {4, 6});
  add("blk.1.ffn_down_shexp.weight", {6, 4});
  return file;
}

void add_tokenizer(GgufBuilder& file) {
  const auto as_utf8 = [](int code) {
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    return std::string({static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))});
  };
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  int stand_in = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool visible = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
    tokens.push_back(as_utf8(visible ? byte : stand_in++));
    types.push_back(1);
  }
  tokens.insert(tokens.end(), {"ab", "[EOS]", "<|im_end|>", "[EOT]"});
  types.insert(types.end(), {1, 3, 3, 4});
  file.key("tokenizer.ggml.model", "gpt2").key("tokenizer.ggml.pre", "kimi-k2").key("tokenizer.ggml.tokens", tokens);
  file.key("tokenizer.ggml.token_type", types).key("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  file.key("tokenizer.ggml.eos_token_id", 257u);
}

}  // namespace kilin::testing
