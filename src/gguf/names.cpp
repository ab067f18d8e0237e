#include "gguf/names.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/tensor.h"
#include "weights/stored_values.h"

namespace kilin {

namespace {

// How a published tensor comes out of GGUF's.
enum class Form : uint8_t {
  Plain,     // another name
  Conv,      // [channels, 1, width], which GGUF stores with or without an axis of 1 before or between
  LogDecay,  // A_log of ssm_a = -exp(A_log)
  Expert,    // one of [experts, rows, cols]
  GateUp,    // the same of [experts, gate's rows and then up's, cols]: w1, and w3 besides
  KvB,       // attn_kv_b: rows of nope + v a head; a view unless it is of blocks
  KvBParts,  // attn_k_b [heads, rank, nope] and attn_v_b [heads, v, rank]
};

// GGUF's name and the published one, inside a layer or outside of all. E stands for the expert.
struct Renamed {
  std::string_view gguf;
  std::string_view published;
  Form form = Form::Plain;
};

constexpr Renamed kOutside[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
};

constexpr std::string_view kUp = "block_sparse_moe.experts.E.w3.weight";
constexpr std::string_view kKeyB = "attn_k_b.weight", kValueB = "attn_v_b.weight";

constexpr Renamed kInLayer[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"ssm_conv1d_q.weight", "self_attn.q_conv1d.weight", Form::Conv},
    {"ssm_conv1d_k.weight", "self_attn.k_conv1d.weight", Form::Conv},
    {"ssm_conv1d_v.weight", "self_attn.v_conv1d.weight", Form::Conv},
    {"ssm_a", "self_attn.A_log", Form::LogDecay},
    {"ssm_dt.bias", "self_attn.dt_bias"},
    {"ssm_f_a.weight", "self_attn.f_a_proj.weight"},
    {"ssm_f_b.weight", "self_attn.f_b_proj.weight"},
    {"ssm_beta.weight", "self_attn.b_proj.weight"},
    {"ssm_g_a.weight", "self_attn.g_a_proj.weight"},
    {"ssm_g_b.weight", "self_attn.g_b_proj.weight"},
    {"ssm_norm.weight", "self_attn.o_norm.weight"},
    {"attn_kv_a_mqa.weight", "self_attn.kv_a_proj_with_mqa.weight"},
    {"attn_kv_a_norm.weight", "self_attn.kv_a_layernorm.weight"},
    {kKeyB, "self_attn.kv_b_proj.weight", Form::KvBParts},  // before KvB: what a file without either is told to lack
    {"attn_kv_b.weight", "self_attn.kv_b_proj.weight", Form::KvB},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
    {"ffn_gate_inp.weight", "block_sparse_moe.gate.weight"},
    {"exp_probs_b.bias", "block_sparse_moe.gate.e_score_correction_bias"},
    {"ffn_gate_exps.weight", "block_sparse_moe.experts.E.w1.weight", Form::Expert},
    {"ffn_up_exps.weight", kUp, Form::Expert},
    {"ffn_gate_up_exps.weight", "block_sparse_moe.experts.E.w1.weight", Form::GateUp},
    {"ffn_down_exps.weight", "block_sparse_moe.experts.E.w2.weight", Form::Expert},
    {"ffn_gate_shexp.weight", "block_sparse_moe.shared_experts.gate_proj.weight"},
    {"ffn_up_shexp.weight", "block_sparse_moe.shared_experts.up_proj.weight"},
    {"ffn_down_shexp.weight", "block_sparse_moe.shared_experts.down_proj.weight"},
};

// "blk.12." or "model.layers.12." with `stem`, and what follows; nothing for a name without.
struct InLayer {
  std::string_view layer;  // the number as it stands
  std::string_view rest;
};
std::optional<InLayer> split_layer(std::string_view name, std::string_view stem) {
  if (!name.starts_with(stem)) return std::nullopt;
  name.remove_prefix(stem.size());
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  return InLayer{name.substr(0, dot), name.substr(dot + 1)};
}
constexpr std::string_view kGgufStem = "blk.", kPublishedStem = "model.layers.";

const Renamed* find_in(std::span<const Renamed> table, std::string_view Renamed::*column, std::string_view name) {
  const auto at = std::ranges::find(table, name, column);
  return at == table.end() ? nullptr : &*at;
}

std::string with_expert(std::string_view published, size_t expert) {
  const size_t at = published.find(".E.");
  return fmt::format("{}.{}.{}", published.substr(0, at), expert, published.substr(at + 3));
}

// The inverse: "experts.17.w1.weight" as it stands in the table.
std::string without_expert(std::string_view published) {
  constexpr std::string_view kExperts = "block_sparse_moe.experts.";
  if (!published.starts_with(kExperts)) return std::string(published);
  const size_t dot = published.find('.', kExperts.size());
  if (dot == std::string_view::npos) return std::string(published);
  return std::string(kExperts) + "E" + std::string(published.substr(dot));
}

class GgufView final : public TensorStore {
 public:
  GgufView(std::shared_ptr<const TensorStore> gguf, const ModelConfig& config) : gguf_(std::move(gguf)), config_(config) {
    for (const std::string& name : gguf_->names()) enter(name);
    names_.reserve(pieces_.size());
    for (const auto& [name, piece] : pieces_) names_.push_back(name);
  }

  const std::vector<std::string>& names() const override { return names_; }
  const std::string& source() const override { return gguf_->source(); }
  std::vector<std::filesystem::path> files() const override { return gguf_->files(); }
  std::vector<const MappedFile*> mapped_files() const override { return gguf_->mapped_files(); }
  void release(std::span<const std::byte> bytes) const override { gguf_->release(bytes); }
  void ask_for_huge_pages(std::span<const std::byte> bytes) const override { gguf_->ask_for_huge_pages(bytes); }

  std::string stored_name(std::string_view name) const override {
    if (const auto at = pieces_.find(name); at != pieces_.end()) return at->second.gguf;
    std::string gguf = gguf_name(name);
    // Of two parts the one that is not there.
    return gguf.ends_with(kKeyB) && gguf_->contains(gguf) ? gguf_value_b_name(gguf) : gguf;
  }

  std::optional<StoredTensor> find(std::string_view name) const override {
    const auto at = pieces_.find(name);
    if (at == pieces_.end()) return std::nullopt;
    const Piece& piece = at->second;
    StoredTensor tensor = gguf_->require(piece.gguf);
    switch (piece.form) {
      case Form::Plain:
        break;
      case Form::Conv:
        tensor = conv(tensor);
        break;
      case Form::Expert:
        tensor = expert(tensor, piece.expert);
        break;
      case Form::GateUp:
        tensor = half_of_expert(tensor, piece);
        break;
      case Form::LogDecay:
        tensor = made(at->first, tensor, tensor.shape, &GgufView::make_log_decay);
        break;
      case Form::KvB:
        if (tensor.format.is_block()) tensor = made(at->first, tensor, tensor.shape, &GgufView::dequantize);
        break;
      case Form::KvBParts:
        tensor =
            made(at->first, tensor, {config_.mla_kv_width(), config_.kv_lora_rank}, &GgufView::join_kv_b, kv_b_type(tensor));
        break;
    }
    tensor.name = at->first;
    return tensor;
  }

 private:
  struct Piece {
    std::string gguf;
    Form form = Form::Plain;
    size_t expert = 0;
    size_t half = 0;  // of GateUp: 0 the gate, 1 up
  };

  void add(const std::string& published, const Piece& piece) {
    const auto [at, added] = pieces_.try_emplace(published, piece);
    if (!added)
      raise(ErrorCode::Corrupt, "{}: tensors '{}' and '{}' stand for the same weights; expected one of them", source(),
            printable(at->second.gguf), printable(piece.gguf));
  }

  // Layers that the model does not have keep their names: one of them could bring a tensor for each of many experts.
  bool has_layer(std::string_view number) const {
    size_t layer = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), layer);
    return error == std::errc() && layer < config_.num_hidden_layers && number == std::to_string(layer);
  }

  void enter(const std::string& name) {
    const auto in_layer = split_layer(name, kGgufStem);
    if (in_layer && !has_layer(in_layer->layer)) return add(name, {.gguf = name});
    const Renamed* renamed =
        in_layer ? find_in(kInLayer, &Renamed::gguf, in_layer->rest) : find_in(kOutside, &Renamed::gguf, name);
    const std::string prefix = in_layer ? fmt::format("{}{}.", kPublishedStem, in_layer->layer) : "";
    if (renamed == nullptr) {
      // The other half of kv_b is entered with the first.
      if (in_layer && in_layer->rest == kValueB && gguf_->contains(fmt::format("{}{}.{}", kGgufStem, in_layer->layer, kKeyB)))
        return;
      return add(name, {.gguf = name});
    }
    if (renamed->form == Form::Expert) {
      for (size_t expert = 0; expert < config_.num_experts; ++expert)
        add(prefix + with_expert(renamed->published, expert), {name, Form::Expert, expert});
      return;
    }
    if (renamed->form == Form::GateUp) {
      for (size_t expert = 0; expert < config_.num_experts; ++expert) {
        add(prefix + with_expert(renamed->published, expert), {name, Form::GateUp, expert, 0});
        add(prefix + with_expert(kUp, expert), {name, Form::GateUp, expert, 1});
      }
      return;
    }
    if (renamed->form == Form::KvBParts && !gguf_->contains(gguf_value_b_name(name))) return;  // told as a missing attn_v_b
    add(prefix + std::string(renamed->published), {name, renamed->form});
  }

  StoredTensor conv(const StoredTensor& tensor) const {
    const size_t channels = config_.kda_width(), width = config_.short_conv_kernel_size;
    const bool alike =
        !tensor.format.is_block() && tensor.elements() == channels * width && tensor.shape[tensor.shape.rank() - 1] == width;
    return alike ? tensor.reshaped({channels, 1, width}) : tensor;
  }

  void require_shape(const StoredTensor& tensor, const Shape& expected, std::string_view words) const {
    if (tensor.shape != expected)
      raise(ErrorCode::Corrupt, "{}: tensor '{}' has shape {}; expected {} ({})", tensor.file, tensor.name,
            to_string(tensor.shape), to_string(expected), words);
    if (!has_float_values(tensor.format))
      raise(ErrorCode::Unsupported, "{}: tensor '{}' is stored as {}; expected f32, f16, bf16 or blocks", tensor.file,
            tensor.name, to_string(tensor.format));
  }

  StoredTensor expert(const StoredTensor& tensor, size_t index) const {
    const Shape& shape = tensor.shape;
    if (shape.rank() != 3 || shape[0] != config_.num_experts)
      raise(ErrorCode::Corrupt, "{}: tensor '{}' has shape {}; expected three axes, the first of {} (expert_count)",
            tensor.file, tensor.name, to_string(shape), config_.num_experts);
    return tensor.rows(index, index + 1, tensor.name).reshaped({shape[1], shape[2]});
  }

  StoredTensor half_of_expert(const StoredTensor& tensor, const Piece& piece) const {
    const StoredTensor both = expert(tensor, piece.expert);
    const size_t width = config_.moe_intermediate_size;
    if (both.shape[0] != 2 * width)
      raise(ErrorCode::Corrupt, "{}: tensor '{}' has shape {}; expected {} rows an expert (2 x expert_feed_forward_length)",
            tensor.file, tensor.name, to_string(tensor.shape), 2 * width);
    return both.rows(piece.half * width, (piece.half + 1) * width, tensor.name);
  }

  // A tensor that `make` fills once.
  using Make = void (GgufView::*)(const StoredTensor&, Tensor&) const;
  StoredTensor made(const std::string& published, const StoredTensor& from, const Shape& shape, Make make,
                    DType type = DType::f32) const {
    const std::lock_guard lock(mutex_);
    auto at = made_.find(published);
    if (at == made_.end()) {
      Tensor tensor(type, shape);
      (this->*make)(from, tensor);
      at = made_.emplace(published, std::move(tensor)).first;
    }
    const Tensor& tensor = at->second;
    return {.name = published,
            .format = tensor.dtype(),
            .shape = shape,
            .bytes = {tensor.data(), tensor.bytes()},
            .file = from.file};
  }

  void make_log_decay(const StoredTensor& ssm_a, Tensor& log_decay) const {
    float* out = log_decay.as<float>();
    if (ssm_a.format != DType::f32)
      raise(ErrorCode::Unsupported, "{}: tensor '{}' is stored as {}; expected f32", ssm_a.file, ssm_a.name,
            to_string(ssm_a.format));
    read_values(ssm_a, 0, ssm_a.elements(), out);
    for (size_t i = 0; i < ssm_a.elements(); ++i) {
      if (!(out[i] < 0) || std::isinf(out[i]))
        raise(ErrorCode::Corrupt, "{}: tensor '{}' holds {} at place {}; expected a number below 0, which is -exp(A_log)",
              ssm_a.file, ssm_a.name, out[i], i);
      out[i] = static_cast<float>(std::log(-static_cast<double>(out[i])));
    }
  }

  void dequantize(const StoredTensor& tensor, Tensor& out) const { read_values(tensor, 0, tensor.elements(), out.as<float>()); }

  // The parts' own type if both are bf16: generation reads them once a token. Else fp32, which is exact for all.
  DType kv_b_type(const StoredTensor& key_b) const {
    const StoredTensor value_b = gguf_->require(gguf_value_b_name(key_b.name));
    const bool both_bf16 = key_b.format == StorageFormat(DType::bf16) && value_b.format == StorageFormat(DType::bf16);
    return both_bf16 ? DType::bf16 : DType::f32;
  }

  // Row h (nope + v) + n of kv_b_proj is column n of head h of attn_k_b; then come the head's rows of attn_v_b.
  void join_kv_b(const StoredTensor& key_b, Tensor& kv_b) const {
    const size_t heads = config_.num_attention_heads, nope = config_.qk_nope_head_dim, value = config_.v_head_dim,
                 rank = config_.kv_lora_rank;
    const StoredTensor value_b = gguf_->require(gguf_value_b_name(key_b.name));
    require_shape(key_b, {heads, rank, nope}, "attention.head_count, attention.kv_lora_rank, the length of a key without rope");
    require_shape(value_b, {heads, value, rank}, "attention.head_count, attention.value_length_mla, attention.kv_lora_rank");
    std::vector<float> keys(rank * nope), rows((nope + value) * rank);  // of one head
    for (size_t head = 0; head < heads; ++head) {
      read_values(key_b, head * rank * nope, (head + 1) * rank * nope, keys.data());
      for (size_t r = 0; r < rank; ++r)
        for (size_t n = 0; n < nope; ++n) rows[n * rank + r] = keys[r * nope + n];
      read_values(value_b, head * value * rank, (head + 1) * value * rank, rows.data() + nope * rank);
      if (kv_b.dtype() == DType::bf16)
        std::transform(rows.begin(), rows.end(), kv_b.as<bf16>() + head * rows.size(), to_bf16);  // exact: they were bf16
      else
        std::copy(rows.begin(), rows.end(), kv_b.as<float>() + head * rows.size());
    }
  }

  std::shared_ptr<const TensorStore> gguf_;
  ModelConfig config_;
  std::map<std::string, Piece, std::less<>> pieces_;  // by published name
  std::vector<std::string> names_;
  mutable std::mutex mutex_;  // guards what is made
  mutable std::map<std::string, Tensor, std::less<>> made_;
};

}  // namespace

std::string gguf_name(std::string_view published) {
  if (const Renamed* renamed = find_in(kOutside, &Renamed::published, published)) return std::string(renamed->gguf);
  const auto in_layer = split_layer(published, kPublishedStem);
  const Renamed* renamed = in_layer ? find_in(kInLayer, &Renamed::published, without_expert(in_layer->rest)) : nullptr;
  if (renamed == nullptr) return std::string(published);
  return fmt::format("{}{}.{}", kGgufStem, in_layer->layer, renamed->gguf);
}

std::string gguf_value_b_name(std::string_view key_b) {
  return std::string(key_b.substr(0, key_b.size() - kKeyB.size())) + std::string(kValueB);
}

std::shared_ptr<const TensorStore> gguf_with_published_names(std::shared_ptr<const TensorStore> gguf,
                                                             const ModelConfig& config) {
  return std::make_shared<GgufView>(std::move(gguf), config);
}

}  // namespace kilin
