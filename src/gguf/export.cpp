#include "gguf/export.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "gguf/keys.h"
#include "gguf/names.h"
#include "weights/encode_row.h"
#include "weights/stored_values.h"
#include "weights/weight_use.h"

namespace kilin {

namespace {

constexpr uint64_t kChunkBytes = uint64_t{8} << 20;  // written at once
constexpr size_t kRowsASlice = 8;                    // what one thread encodes before it looks for more

size_t columns_of(const GgufWriter::Planned& tensor) { return tensor.shape[tensor.shape.rank() - 1]; }

// Tensors of equally many rows, one after the other. `parts` must outlive what it returns.
GgufExport::ReadRow stored_rows(std::span<const StoredTensor> parts, size_t cols) {
  return [parts, cols, rows_per_part = parts[0].elements() / cols](size_t row, float* out) {
    const size_t at = row % rows_per_part * cols;
    read_values(parts[row / rows_per_part], at, at + cols, out);
  };
}

// ssm_a = -exp(A_log), a row of one value.
GgufExport::ReadRow decay_rows(const StoredTensor& A_log) {
  return [&A_log](size_t row, float* out) {
    read_values(A_log, row, row + 1, out);
    *out = static_cast<float>(-std::exp(static_cast<double>(*out)));
  };
}

// The keys' rows of kv_b_proj, which are [nope | v] by head, transposed by head: [heads, rank, nope].
GgufExport::ReadRow key_rows(const ModelConfig& c, const StoredTensor& kv_b) {
  std::vector<float> values(kv_b.elements());  // a row of the result is a column of these
  read_values(kv_b, 0, values.size(), values.data());
  return [values = std::move(values), rank = c.kv_lora_rank, nope = c.qk_nope_head_dim,
          head_rows = c.qk_nope_head_dim + c.v_head_dim](size_t row, float* out) {
    const float* from = values.data() + row / rank * head_rows * rank + row % rank;
    for (size_t n = 0; n < nope; ++n) out[n] = from[n * rank];
  };
}

// The values' rows as they are: [heads, v, rank].
GgufExport::ReadRow value_rows(const ModelConfig& c, const StoredTensor& kv_b) {
  return [&kv_b, rank = c.kv_lora_rank, nope = c.qk_nope_head_dim, v = c.v_head_dim](size_t row, float* out) {
    const size_t at = (row / v * (nope + v) + nope + row % v) * rank;
    read_values(kv_b, at, at + rank, out);
  };
}

// Of this architecture llama.cpp does not heed the key expert_weights_norm.
void require_readable_by_all(const ModelConfig& config, const std::string& source) {
  const bool has_experts =
      std::ranges::find(config.feed_forward_kinds, FeedForwardKind::Moe) != config.feed_forward_kinds.end();
  if (has_experts && !config.moe_renormalize)
    raise(ErrorCode::Unsupported,
          "{}: moe_renormalize is false; expected true: llama.cpp renormalises the experts' weights in any case, so that it "
          "would "
          "run another model (--kilin-only writes the file for Kilin alone)",
          source);
}

}  // namespace

GgufExport::GgufExport(GgufExportSource source, const GgufExportOptions& options)
    : config_(std::move(source.config)), weights_(std::move(source.weights)), rounding_(options.rounding) {
  if (options.readers == GgufReaders::All) require_readable_by_all(config_, weights_->source());
  check_tensors(*weights_, config_);
  keys_ = gguf_keys(config_, options.name, options.type);
  if (source.tokenizer) {
    source.tokenizer->require_vocabulary(config_.vocab_size);
    append_gguf_vocabulary(*source.tokenizer, config_, keys_);
    if (source.chat_template) keys_.add_string("tokenizer.chat_template", source.chat_template->text);
  } else {
    keys_.add_string("tokenizer.ggml.model", "none");
  }
  std::optional<QuantMix> mix;
  if (options.type) mix.emplace(*options.type, config_.num_hidden_layers);
  for (const ExpectedTensor& tensor : expected_tensors(config_)) plan(tensor, tensor.name, mix);
  // llama.cpp does not load a Kimi-Linear model without it.
  if (config_.tie_word_embeddings) plan(lm_head_of(config_), "model.embed_tokens.weight", mix);
}

StorageFormat GgufExport::format_of(const ExpectedTensor& tensor, StorageFormat stored,
                                    const std::optional<QuantMix>& mix) const {
  const WeightUse use = use_of(*tensor.pattern);
  if (use == WeightUse::Parameter || tensor.name.ends_with("block_sparse_moe.gate.weight")) return DType::f32;
  if (mix) {
    if (use == WeightUse::Table)
      if (const auto format = mix->format_of_table(tensor.shape[1])) return *format;
    if (const auto format = mix->format_of(tensor)) return *format;
    return stored;
  }
  return use == WeightUse::Product || use == WeightUse::SensitiveProduct || stored.is_block() ? StorageFormat(DType::bf16)
                                                                                              : stored;
}

void GgufExport::plan(const ExpectedTensor& tensor, const std::string& source, const std::optional<QuantMix>& mix) {
  const std::string name = gguf_name(tensor.name);
  if (!plan_.empty() && plan_.back().name == name) return sources_.back().names.push_back(source);  // the next expert
  const StorageFormat format = format_of(tensor, weights_->require(source).format, mix);
  const Shape& shape = tensor.shape;
  const size_t heads = config_.num_attention_heads, rank = config_.kv_lora_rank;
  if (tensor.pattern->where == Where::Expert) {
    add(name, format, {config_.num_experts, shape[0], shape[1]}, {Form::Stored, {source}});
  } else if (tensor.name.ends_with(".A_log")) {
    add(name, format, {shape.elements(), 1}, {Form::Decays, {source}});
  } else if (use_of(*tensor.pattern) == WeightUse::Dense) {
    add(name, format, {heads, rank, config_.qk_nope_head_dim}, {Form::Keys, {source}});
    add(gguf_value_b_name(name), format, {heads, config_.v_head_dim, rank}, {Form::Values, {source}});
  } else if (shape.rank() == 3) {
    add(name, format, {1, shape[0], 1, shape[2]}, {Form::Stored, {source}});  // a convolution
  } else {
    add(name, format, tensor.pattern->any_shape ? Shape{shape.elements()} : shape, {Form::Stored, {source}});
  }
}

void GgufExport::add(std::string name, StorageFormat format, const Shape& shape, Source source) {
  plan_.push_back({std::move(name), format, shape});
  sources_.push_back(std::move(source));
}

GgufExport::ReadRow GgufExport::rows_of(Form form, std::span<const StoredTensor> parts, size_t cols) const {
  switch (form) {
    case Form::Decays:
      return decay_rows(parts[0]);
    case Form::Keys:
      return key_rows(config_, parts[0]);
    case Form::Values:
      return value_rows(config_, parts[0]);
    case Form::Stored:
      break;
  }
  return stored_rows(parts, cols);
}

void GgufExport::write(const std::filesystem::path& file, ThreadPool& pool, const Progress& progress) const {
  GgufWriter writer(file, keys_, plan_);
  uint64_t done = 0, total = 0;
  for (const auto& tensor : plan_) total += tensor.bytes();
  for (size_t i = 0; i < plan_.size(); ++i) {
    const auto put = [&](std::span<const std::byte> bytes) {
      writer.write(plan_[i].name, bytes);
      done += bytes.size();
      if (progress) progress(done, total);
    };
    std::vector<StoredTensor> parts;
    for (const std::string& name : sources_[i].names) parts.push_back(weights_->require(name));
    // Experts of a folder may be of several formats: each is looked at.
    const bool stands_so = sources_[i].form == Form::Stored &&
                           std::ranges::all_of(parts, [&](const StoredTensor& part) { return part.format == plan_[i].format; });
    if (stands_so)
      copy(parts, put);
    else
      encode(plan_[i], parts, rows_of(sources_[i].form, parts, columns_of(plan_[i])), pool, put);
  }
  writer.commit();
}

void GgufExport::copy(std::span<const StoredTensor> parts, const Put& put) const {
  for (const StoredTensor& part : parts) {
    for (size_t at = 0; at < part.bytes.size(); at += kChunkBytes)
      put(part.bytes.subspan(at, std::min<size_t>(kChunkBytes, part.bytes.size() - at)));
    weights_->release(part.bytes);
  }
}

void GgufExport::encode(const GgufWriter::Planned& tensor, std::span<const StoredTensor> parts, const ReadRow& read_row,
                        ThreadPool& pool, const Put& put) const {
  const size_t cols = columns_of(tensor), rows = tensor.shape.elements() / cols, rows_per_part = rows / parts.size();
  const size_t row_bytes = tensor.format.bytes_of(cols), rows_at_once = std::max<size_t>(1, kChunkBytes / row_bytes);
  std::vector<std::vector<float>> scratch(pool.size(), std::vector<float>(cols));
  std::vector<std::byte> chunk(std::min(rows, rows_at_once) * row_bytes);
  size_t released = 0;  // parts
  for (size_t begin = 0; begin < rows; begin += rows_at_once) {
    const size_t end = std::min(rows, begin + rows_at_once);
    pool.parallel_for(end - begin, kRowsASlice, [&](const Slice& slice) {
      std::vector<float>& values = scratch[slice.worker];
      for (size_t r = slice.begin; r < slice.end; ++r) {
        const size_t row = begin + r;
        read_row(row, values.data());
        encode_row(parts[row / rows_per_part], row % rows_per_part, values, tensor.format, rounding_,
                   chunk.data() + r * row_bytes);
      }
    });
    put(std::span(chunk).first((end - begin) * row_bytes));
    for (; (released + 1) * rows_per_part <= end; ++released) weights_->release(parts[released].bytes);
  }
}

}  // namespace kilin
