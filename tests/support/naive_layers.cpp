#include "support/naive_layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kilin::testing {

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu(double x) { return x * sigmoid(x); }

std::string expert_prefix(const std::string& prefix, size_t e) { return prefix + "experts." + std::to_string(e) + "."; }

// The causal convolution of [T, channels], then SiLU: the last column of the weight meets the current token.
Doubles convolve(const std::vector<float>& weight, size_t channels, const Doubles& x) {
  const size_t width = weight.size() / channels, tokens = x.size() / channels;
  Doubles out(x.size());
  for (size_t t = 0; t < tokens; ++t)
    for (size_t c = 0; c < channels; ++c) {
      double u = 0;
      for (size_t j = 0; j < width; ++j)
        if (t + j + 1 >= width) u += double{weight[c * width + j]} * x[(t + j + 1 - width) * channels + c];
      out[t * channels + c] = silu(u);
    }
  return out;
}

double norm_of(std::span<const double> x, double eps) {
  double sum = 0;
  for (double v : x) sum += v * v;
  return std::sqrt(sum + eps);
}

}  // namespace

Doubles naive_linear(const MadeUpWeights& w, const std::string& name, const Doubles& x) {
  const std::vector<float>& m = w.values(name);
  const size_t out = w.shape(name)[0], in = w.shape(name)[1], tokens = x.size() / in;
  Doubles y(tokens * out);
  for (size_t t = 0; t < tokens; ++t)
    for (size_t r = 0; r < out; ++r)
      for (size_t c = 0; c < in; ++c) y[t * out + r] += x[t * in + c] * double{m[r * in + c]};
  return y;
}

Doubles naive_rms_norm(const MadeUpWeights& w, const std::string& name, double eps, const Doubles& x) {
  const std::vector<float>& weight = w.values(name);
  Doubles y(x.size());
  for (size_t at = 0; at < x.size(); at += weight.size()) {
    const double n = static_cast<double>(weight.size());
    const double norm = norm_of(std::span(x).subspan(at, weight.size()), eps * n) / std::sqrt(n);
    for (size_t i = 0; i < weight.size(); ++i) y[at + i] = x[at + i] / norm * double{weight[i]};
  }
  return y;
}

Doubles naive_kda(const MadeUpWeights& w, const std::string& prefix, const ModelConfig& c, const Doubles& x) {
  const size_t heads = c.kda_num_heads, d = c.kda_head_dim, width = heads * d, tokens = x.size() / c.hidden_size;
  const auto linear = [&](const char* name, const Doubles& in) { return naive_linear(w, prefix + name + ".weight", in); };
  const auto stream = [&](const std::string& s) {
    return convolve(w.values(prefix + s + "_conv1d.weight"), width, linear((s + "_proj").c_str(), x));
  };
  const Doubles q = stream("q"), k = stream("k"), v = stream("v"), b = linear("b_proj", x);
  const Doubles f = linear("f_b_proj", linear("f_a_proj", x)), gate = linear("g_b_proj", linear("g_a_proj", x));
  const std::vector<float>&A_log = w.values(prefix + "A_log"), &dt_bias = w.values(prefix + "dt_bias"),
        &o_norm = w.values(prefix + "o_norm.weight");
  Doubles heads_out(tokens * width);
  for (size_t h = 0; h < heads; ++h) {
    Doubles S(d * d);  // [K, V]
    for (size_t t = 0; t < tokens; ++t) {
      const size_t at = t * width + h * d;
      const double q_norm = norm_of(std::span(q).subspan(at, d), 1e-6) * std::sqrt(static_cast<double>(d));
      const double k_norm = norm_of(std::span(k).subspan(at, d), 1e-6), beta = sigmoid(b[t * heads + h]);
      Doubles r(v.begin() + static_cast<ptrdiff_t>(at), v.begin() + static_cast<ptrdiff_t>(at + d)), o(d);
      for (size_t i = 0; i < d; ++i) {
        const double z = f[at + i] + double{dt_bias[h * d + i]};
        const double decay = std::exp(-std::exp(double{A_log[h]}) * std::log1p(std::exp(z)));
        for (size_t j = 0; j < d; ++j) r[j] -= (S[i * d + j] *= decay) * k[at + i] / k_norm;
      }
      for (size_t i = 0; i < d; ++i)
        for (size_t j = 0; j < d; ++j) o[j] += (S[i * d + j] += k[at + i] / k_norm * beta * r[j]) * q[at + i] / q_norm;
      const double n = static_cast<double>(d), o_rms = norm_of(o, c.rms_norm_eps * n) / std::sqrt(n);
      for (size_t j = 0; j < d; ++j) heads_out[at + j] = o[j] / o_rms * double{o_norm[j]} * sigmoid(gate[at + j]);
    }
  }
  return linear("o_proj", heads_out);
}

Doubles naive_mla(const MadeUpWeights& w, const std::string& prefix, const ModelConfig& c, const Doubles& x) {
  const size_t heads = c.num_attention_heads, nope = c.qk_nope_head_dim, rope = c.qk_rope_head_dim, value = c.v_head_dim,
               rank = c.kv_lora_rank, latent = rank + rope, tokens = x.size() / c.hidden_size;
  const auto linear = [&](const char* name, const Doubles& in) { return naive_linear(w, prefix + name + ".weight", in); };
  const Doubles q = linear("q_proj", x), ckv = linear("kv_a_proj_with_mqa", x);
  Doubles compressed;
  for (size_t t = 0; t < tokens; ++t)
    for (size_t i = 0; i < rank; ++i) compressed.push_back(ckv[t * latent + i]);
  const Doubles kv = linear("kv_b_proj", naive_rms_norm(w, prefix + "kv_a_layernorm.weight", 1e-6, compressed));
  Doubles heads_out(tokens * heads * value);
  for (size_t h = 0; h < heads; ++h)
    for (size_t t = 0; t < tokens; ++t) {
      Doubles p(t + 1);
      for (size_t s = 0; s <= t; ++s) {
        const double *query = &q[(t * heads + h) * (nope + rope)], *key = &kv[(s * heads + h) * (nope + value)];
        for (size_t i = 0; i < nope; ++i) p[s] += query[i] * key[i];
        for (size_t i = 0; i < rope; ++i) p[s] += query[nope + i] * ckv[s * latent + rank + i];  // as it is: no rotation
        p[s] /= std::sqrt(static_cast<double>(nope + rope));
      }
      const double most = *std::ranges::max_element(p);
      double sum = 0;
      for (double& score : p) sum += score = std::exp(score - most);
      for (size_t s = 0; s <= t; ++s)
        for (size_t i = 0; i < value; ++i)
          heads_out[(t * heads + h) * value + i] += p[s] / sum * kv[(s * heads + h) * (nope + value) + nope + i];
    }
  return linear("o_proj", heads_out);
}

Doubles naive_mlp(const MadeUpWeights& w, const std::string& gate, const std::string& up, const std::string& down,
                  const Doubles& x) {
  Doubles h = naive_linear(w, gate, x);
  const Doubles u = naive_linear(w, up, x);
  for (size_t i = 0; i < h.size(); ++i) h[i] = silu(h[i]) * u[i];
  return naive_linear(w, down, h);
}

NaiveRoute naive_route(const ModelConfig& c, std::span<const double> logits, std::span<const float> bias) {
  const size_t experts = logits.size(), in_group = experts / c.num_expert_group;
  Doubles s(experts), choice(experts);
  for (size_t e = 0; e < experts; ++e) choice[e] = (s[e] = sigmoid(logits[e])) + double{bias[e]};
  const auto best_first = [](size_t n, auto score) {  // of equal ones the lower id first
    std::vector<size_t> ids(n);
    std::iota(ids.begin(), ids.end(), size_t{0});
    std::ranges::stable_sort(ids, [&](size_t a, size_t b) { return score(a) > score(b); });
    return ids;
  };
  const std::vector<size_t> groups = best_first(c.num_expert_group, [&](size_t g) {
    Doubles own(choice.begin() + static_cast<ptrdiff_t>(g * in_group),
                choice.begin() + static_cast<ptrdiff_t>((g + 1) * in_group));
    std::ranges::sort(own, std::greater{});
    return own[0] + (in_group > 1 ? own[1] : 0.0);
  });
  for (size_t lost = c.topk_group; lost < groups.size(); ++lost)
    for (size_t i = 0; i < in_group; ++i) choice[groups[lost] * in_group + i] = -std::numeric_limits<double>::infinity();
  NaiveRoute route = {best_first(experts, [&](size_t e) { return choice[e]; }), {}};
  route.experts.resize(c.num_experts_per_token);
  std::ranges::sort(route.experts);
  double sum = 0;
  for (size_t e : route.experts) sum += s[e];
  for (size_t e : route.experts)
    route.weights.push_back((c.moe_renormalize ? s[e] / (sum + 1e-20) : s[e]) * c.routed_scaling_factor);
  return route;
}

Doubles naive_moe(const MadeUpWeights& w, const std::string& prefix, const ModelConfig& c, const Doubles& x) {
  const size_t hidden = c.hidden_size, experts = c.num_experts;
  const Doubles logits = naive_linear(w, prefix + "gate.weight", x);
  Doubles y = naive_mlp(w, prefix + "shared_experts.gate_proj.weight", prefix + "shared_experts.up_proj.weight",
                        prefix + "shared_experts.down_proj.weight", x);
  for (size_t t = 0; t < x.size() / hidden; ++t) {
    const NaiveRoute route =
        naive_route(c, std::span(logits).subspan(t * experts, experts), w.values(prefix + "gate.e_score_correction_bias"));
    const Doubles row(x.begin() + static_cast<ptrdiff_t>(t * hidden), x.begin() + static_cast<ptrdiff_t>((t + 1) * hidden));
    for (size_t k = 0; k < route.experts.size(); ++k) {
      const std::string e = expert_prefix(prefix, route.experts[k]);
      const Doubles out = naive_mlp(w, e + "w1.weight", e + "w3.weight", e + "w2.weight", row);
      for (size_t i = 0; i < hidden; ++i) y[t * hidden + i] += route.weights[k] * out[i];
    }
  }
  return y;
}

Doubles naive_decoder_layer(const MadeUpWeights& w, const ModelConfig& c, size_t layer, const Doubles& x) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".", mlp = prefix + "mlp.";
  const auto sum = [](Doubles a, const Doubles& b) {
    for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  };
  const Doubles attention_input = naive_rms_norm(w, prefix + "input_layernorm.weight", c.rms_norm_eps, x);
  const Doubles h = sum(x, c.is_kda(layer) ? naive_kda(w, prefix + "self_attn.", c, attention_input)
                                           : naive_mla(w, prefix + "self_attn.", c, attention_input));
  const Doubles mlp_input = naive_rms_norm(w, prefix + "post_attention_layernorm.weight", c.rms_norm_eps, h);
  return sum(h, c.is_moe(layer)
                    ? naive_moe(w, prefix + "block_sparse_moe.", c, mlp_input)
                    : naive_mlp(w, mlp + "gate_proj.weight", mlp + "up_proj.weight", mlp + "down_proj.weight", mlp_input));
}

void add_kda(MadeUpWeights& w, const std::string& prefix, const ModelConfig& c) {
  const size_t width = c.kda_width(), d = c.kda_head_dim, hidden = c.hidden_size;
  for (const std::string s : {"q", "k", "v"}) {
    w.add_linear(prefix + s + "_proj.weight", width, hidden);
    w.add(prefix + s + "_conv1d.weight", {width, 1, c.short_conv_kernel_size}, 0.5);
  }
  w.add(prefix + "A_log", {1, 1, c.kda_num_heads, 1}, 1.0, 1.0);
  w.add(prefix + "dt_bias", {width}, 1.5, -4.0);
  for (const std::string s : {"f", "g"}) {
    w.add_linear(prefix + s + "_a_proj.weight", d, hidden);
    w.add_linear(prefix + s + "_b_proj.weight", width, d);
  }
  w.add_linear(prefix + "b_proj.weight", c.kda_num_heads, hidden);
  w.add(prefix + "o_norm.weight", {d}, 0.2, 1.0);
  w.add_linear(prefix + "o_proj.weight", hidden, width);
}

void add_mla(MadeUpWeights& w, const std::string& prefix, const ModelConfig& c) {
  w.add_linear(prefix + "q_proj.weight", c.mla_query_width(), c.hidden_size);
  w.add_linear(prefix + "kv_a_proj_with_mqa.weight", c.mla_latent_width(), c.hidden_size);
  w.add(prefix + "kv_a_layernorm.weight", {c.kv_lora_rank}, 0.2, 1.0);
  w.add_linear(prefix + "kv_b_proj.weight", c.mla_kv_width(), c.kv_lora_rank);
  w.add_linear(prefix + "o_proj.weight", c.hidden_size, c.mla_value_width());
}

void add_mlp(MadeUpWeights& w, const std::string& prefix, size_t hidden, size_t width) {
  w.add_linear(prefix + "gate_proj.weight", width, hidden);
  w.add_linear(prefix + "up_proj.weight", width, hidden);
  w.add_linear(prefix + "down_proj.weight", hidden, width);
}

void add_moe(MadeUpWeights& w, const std::string& prefix, const ModelConfig& c) {
  w.add_linear(prefix + "gate.weight", c.num_experts, c.hidden_size);
  w.add(prefix + "gate.e_score_correction_bias", {c.num_experts}, 0.3);
  for (size_t e = 0; e < c.num_experts; ++e) {
    w.add_linear(expert_prefix(prefix, e) + "w1.weight", c.moe_intermediate_size, c.hidden_size);
    w.add_linear(expert_prefix(prefix, e) + "w3.weight", c.moe_intermediate_size, c.hidden_size);
    w.add_linear(expert_prefix(prefix, e) + "w2.weight", c.hidden_size, c.moe_intermediate_size);
  }
  add_mlp(w, prefix + "shared_experts.", c.hidden_size, c.shared_expert_width());
}

void add_decoder_layer(MadeUpWeights& w, const ModelConfig& c, size_t layer) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  w.add(prefix + "input_layernorm.weight", {c.hidden_size}, 0.2, 1.0);
  w.add(prefix + "post_attention_layernorm.weight", {c.hidden_size}, 0.2, 1.0);
  (c.is_kda(layer) ? add_kda : add_mla)(w, prefix + "self_attn.", c);
  if (c.is_moe(layer))
    add_moe(w, prefix + "block_sparse_moe.", c);
  else
    add_mlp(w, prefix + "mlp.", c.hidden_size, c.intermediate_size);
}

}  // namespace kilin::testing
