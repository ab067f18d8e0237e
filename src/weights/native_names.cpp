#include "weights/native_names.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace kilin {

namespace {

// A native name's ending within a layer, and the published one.
struct Renamed {
  std::string_view native;
  std::string_view published;
};

constexpr Renamed kRenamed[] = {
    {"self_attn.forget_gate_down.weight", "self_attn.f_a_proj.weight"},
    {"self_attn.forget_gate_up.weight", "self_attn.f_b_proj.weight"},
    {"self_attn.beta_proj.weight", "self_attn.b_proj.weight"},
    {"self_attn.output_gate_down.weight", "self_attn.g_a_proj.weight"},
    {"self_attn.output_gate_up.weight", "self_attn.g_b_proj.weight"},
    {"mlp.gate.weight", "block_sparse_moe.gate.weight"},
    {"mlp.gate.e_score_correction_bias", "block_sparse_moe.gate.e_score_correction_bias"},
    {"mlp.shared_experts.gate_proj.weight", "block_sparse_moe.shared_experts.gate_proj.weight"},
    {"mlp.shared_experts.up_proj.weight", "block_sparse_moe.shared_experts.up_proj.weight"},
    {"mlp.shared_experts.down_proj.weight", "block_sparse_moe.shared_experts.down_proj.weight"},
};

constexpr std::string_view kConv = "self_attn.conv1d.weight";
constexpr std::string_view kGateUp = "mlp.experts.gate_up_proj";
constexpr std::string_view kDown = "mlp.experts.down_proj";

// "model.layers.12." and what follows; nothing for a tensor of no layer.
bool split_layer(std::string_view name, std::string_view& prefix, std::string_view& rest) {
  constexpr std::string_view kLayers = "model.layers.";
  if (!name.starts_with(kLayers)) return false;
  const size_t dot = name.find('.', kLayers.size());
  if (dot == std::string_view::npos) return false;
  prefix = name.substr(0, dot + 1);
  rest = name.substr(dot + 1);
  return true;
}

// Where a published tensor lies in a native one.
struct Piece {
  std::string native;
  Shape packed = {};                  // its shape, where it must be cut; rank 0 if it is only renamed
  size_t begin = 0, end = 0;          // rows, of the expert if there is one
  std::optional<size_t> expert = {};  // index on the first axis of [experts, rows, cols]
};

class PublishedView final : public TensorStore {
 public:
  PublishedView(std::shared_ptr<const TensorStore> store, const ModelConfig& config) : store_(std::move(store)) {
    for (const std::string& name : store_->names()) enter(name, config);
    names_.reserve(pieces_.size());
    for (const auto& [name, piece] : pieces_) names_.push_back(name);
  }

  const std::vector<std::string>& names() const override { return names_; }
  const std::string& source() const override { return store_->source(); }
  std::vector<std::filesystem::path> files() const override { return store_->files(); }
  std::vector<const MappedFile*> mapped_files() const override { return store_->mapped_files(); }
  void release(std::span<const std::byte> bytes) const override { store_->release(bytes); }
  void ask_for_huge_pages(std::span<const std::byte> bytes) const override { store_->ask_for_huge_pages(bytes); }

  std::optional<StoredTensor> find(std::string_view name) const override {
    const auto at = pieces_.find(name);
    if (at == pieces_.end()) return std::nullopt;
    const Piece& piece = at->second;
    StoredTensor tensor = store_->require(piece.native);
    if (piece.packed.rank() == 0) {
      tensor.name = at->first;
      return tensor;
    }
    if (tensor.shape != piece.packed)
      raise(ErrorCode::Corrupt, "{}: tensor '{}' has shape {}; expected {}", tensor.file, piece.native, to_string(tensor.shape),
            to_string(piece.packed));
    if (piece.expert)
      tensor = tensor.rows(*piece.expert, *piece.expert + 1, piece.native).reshaped({piece.packed[1], piece.packed[2]});
    return tensor.rows(piece.begin, piece.end, at->first);
  }

 private:
  void add(const std::string& published, const Piece& piece) {
    const auto [at, added] = pieces_.try_emplace(published, piece);
    if (!added)
      raise(ErrorCode::Corrupt, "{}: tensor '{}' stands there under two names, '{}' and '{}'", source(), printable(at->first),
            printable(at->second.native), printable(piece.native));
  }

  void enter(const std::string& name, const ModelConfig& c) {
    std::string_view prefix, rest;
    if (!split_layer(name, prefix, rest)) return add(name, {.native = name});
    const std::string layer(prefix);
    const auto renamed =
        std::find_if(std::begin(kRenamed), std::end(kRenamed), [&](const Renamed& r) { return r.native == rest; });
    if (renamed != std::end(kRenamed)) return add(layer + std::string(renamed->published), {.native = name});
    if (rest == kConv) {
      const size_t width = c.kda_width();
      const Shape packed{3 * width, 1, c.short_conv_kernel_size};
      size_t part = 0;
      for (const char* letter : {"q", "k", "v"}) {
        add(layer + "self_attn." + letter + "_conv1d.weight", {name, packed, part * width, (part + 1) * width});
        ++part;
      }
      return;
    }
    if (rest != kGateUp && rest != kDown) return add(name, {.native = name});
    const size_t hidden = c.hidden_size, width = c.moe_intermediate_size;
    for (size_t expert = 0; expert < c.num_experts; ++expert) {
      const std::string published = fmt::format("{}block_sparse_moe.experts.{}.", layer, expert);
      if (rest == kDown) {
        add(published + "w2.weight", {name, {c.num_experts, hidden, width}, 0, hidden, expert});
      } else {
        const Shape packed{c.num_experts, 2 * width, hidden};  // the gate's rows, then up's
        add(published + "w1.weight", {name, packed, 0, width, expert});
        add(published + "w3.weight", {name, packed, width, 2 * width, expert});
      }
    }
  }

  std::shared_ptr<const TensorStore> store_;
  std::map<std::string, Piece, std::less<>> pieces_;  // by published name
  std::vector<std::string> names_;
};

}  // namespace

bool has_native_names(const TensorStore& store) {
  return std::any_of(store.names().begin(), store.names().end(), [](const std::string& name) {
    std::string_view prefix, rest;
    if (!split_layer(name, prefix, rest)) return false;
    return rest == kConv || rest == kGateUp || rest == kDown ||
           std::any_of(std::begin(kRenamed), std::end(kRenamed), [&](const Renamed& r) { return r.native == rest; });
  });
}

std::shared_ptr<const TensorStore> with_published_names(std::shared_ptr<const TensorStore> store, const ModelConfig& config) {
  if (!has_native_names(*store)) return store;
  return std::make_shared<PublishedView>(std::move(store), config);
}

}  // namespace kilin
