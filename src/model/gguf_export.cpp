#include "model/gguf_export.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "model/gguf_keys.h"
#include "model/gguf_names.h"
#include "model/stored_values.h"
#include "model/weight_use.h"

namespace kilin {

namespace {

constexpr uint64_t kChunkBytes = uint64_t{8} << 20;  // written at once

// Rows of one tensor as fp32, from wherever they stand. Thread-safe.
class RowReader {
 public:
  RowReader(const ModelConfig& config, size_t cols) : config_(config), cols_(cols) {}
  virtual ~RowReader() = default;
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  virtual void read(size_t row, float* out) const = 0;
  /// Where the row's values come from: a tensor, and its row if they are one.
  struct Origin {
    const StoredTensor& tensor;
    std::optional<size_t> row = std::nullopt;
  };
  virtual Origin origin(size_t row) const = 0;

 protected:
  const ModelConfig& config_;
  size_t cols_;
};

// Tensors of equally many rows, one after the other.
class StoredRows final : public RowReader {
 public:
  StoredRows(const ModelConfig& config, size_t cols, std::vector<StoredTensor> parts)
      : RowReader(config, cols), parts_(std::move(parts)), rows_per_part_(parts_[0].elements() / cols) {}
  void read(size_t row, float* out) const override {
    const size_t at = row % rows_per_part_ * cols_;
    read_values(parts_[row / rows_per_part_], at, at + cols_, out);
  }
  Origin origin(size_t row) const override { return {parts_[row / rows_per_part_], row % rows_per_part_}; }

 private:
  std::vector<StoredTensor> parts_;
  size_t rows_per_part_;
};

// ssm_a = -exp(A_log), a row of one value.
class DecayRows final : public RowReader {
 public:
  DecayRows(const ModelConfig& config, StoredTensor A_log) : RowReader(config, 1), A_log_(std::move(A_log)) {}
  void read(size_t row, float* out) const override {
    float value;
    read_values(A_log_, row, row + 1, &value);
    *out = static_cast<float>(-std::exp(static_cast<double>(value)));
  }
  Origin origin(size_t) const override { return {A_log_}; }

 private:
  StoredTensor A_log_;
};

// A part of kv_b_proj, whose rows are [nope | v] by head: keys transposed by head, values as they are.
class KeyRows final : public RowReader {  // [heads, rank, nope]
 public:
  KeyRows(const ModelConfig& config, StoredTensor kv_b)
      : RowReader(config, config.qk_nope_head_dim), source_(std::move(kv_b)), kv_b_(source_.elements()) {
    read_values(source_, 0, kv_b_.size(), kv_b_.data());
  }
  void read(size_t row, float* out) const override {
    const size_t rank = config_.kv_lora_rank, head = row / rank, channel = row % rank;
    const float* from = kv_b_.data() + head * (config_.qk_nope_head_dim + config_.v_head_dim) * rank + channel;
    for (size_t n = 0; n < cols_; ++n) out[n] = from[n * rank];
  }
  Origin origin(size_t) const override { return {source_}; }

 private:
  StoredTensor source_;
  std::vector<float> kv_b_;
};
class ValueRows final : public RowReader {  // [heads, v, rank]
 public:
  ValueRows(const ModelConfig& config, StoredTensor kv_b) : RowReader(config, config.kv_lora_rank), kv_b_(std::move(kv_b)) {}
  void read(size_t row, float* out) const override {
    const size_t nope = config_.qk_nope_head_dim, v = config_.v_head_dim;
    const size_t at = (row / v * (nope + v) + nope + row % v) * cols_;
    read_values(kv_b_, at, at + cols_, out);
  }
  Origin origin(size_t) const override { return {kv_b_}; }

 private:
  StoredTensor kv_b_;
};

void encode_row(StorageFormat format, Rounding rounding, const float* values, size_t n, std::byte* out) {
  if (format.is_block()) return quantize_row(format.block(), rounding, values, n, out);
  if (format == DType::f32) {
    std::copy_n(values, n, reinterpret_cast<float*>(out));
  } else if (format == DType::bf16) {
    std::transform(values, values + n, reinterpret_cast<bf16*>(out), [](float x) { return to_bf16(x); });
  } else {
    std::transform(values, values + n, reinterpret_cast<f16*>(out), [](float x) { return to_f16(x); });
  }
}

// Experts may be stored in several formats.
bool all_stored_as(StorageFormat format, const std::vector<StoredTensor>& parts) {
  return std::ranges::all_of(parts, [&](const StoredTensor& part) { return part.format == format; });
}

}  // namespace

GgufExport::GgufExport(const ModelFiles& files, const GgufExportOptions& options)
    : config_(files.config()), weights_(files.weights(config_)), rounding_(options.rounding) {
  check_tensors(*weights_, config_);
  keys_ = gguf_keys(config_, options.name, options.type);
  if (const auto tokenizer = files.tokenizer()) {
    tokenizer->require_vocabulary(config_.vocab_size);
    append_gguf_vocabulary(*tokenizer, config_, keys_);
    if (const auto chat = files.chat_template()) keys_.add_string("tokenizer.chat_template", chat->text);
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

void GgufExport::write(const std::filesystem::path& file, ThreadPool& pool, const Progress& progress) const {
  GgufWriter writer(file, keys_, plan_);
  uint64_t done = 0, total = 0;
  for (const auto& tensor : plan_) total += tensor.bytes();
  const auto put = [&](const GgufWriter::Planned& tensor, std::span<const std::byte> bytes) {
    writer.write(tensor.name, bytes);
    done += bytes.size();
    if (progress) progress(done, total);
  };
  std::vector<std::byte> chunk;
  std::vector<std::vector<float>> rows(pool.size());
  for (size_t i = 0; i < plan_.size(); ++i) {
    const GgufWriter::Planned& tensor = plan_[i];
    const Source& source = sources_[i];
    std::vector<StoredTensor> parts;
    for (const std::string& name : source.names) parts.push_back(weights_->require(name));
    if (source.form == Form::Stored && all_stored_as(tensor.format, parts)) {
      for (const StoredTensor& part : parts) {
        for (size_t at = 0; at < part.bytes.size(); at += kChunkBytes)
          put(tensor, part.bytes.subspan(at, std::min<size_t>(kChunkBytes, part.bytes.size() - at)));
        weights_->release(part.bytes);
      }
      continue;
    }
    const size_t cols = tensor.shape[tensor.shape.rank() - 1], count = tensor.shape.elements() / cols;
    const size_t row_bytes = tensor.format.bytes_of(cols);
    std::unique_ptr<const RowReader> reader;
    switch (source.form) {
      case Form::Stored:
        reader = std::make_unique<StoredRows>(config_, cols, parts);
        break;
      case Form::Decays:
        reader = std::make_unique<DecayRows>(config_, parts[0]);
        break;
      case Form::Keys:
        reader = std::make_unique<KeyRows>(config_, parts[0]);
        break;
      case Form::Values:
        reader = std::make_unique<ValueRows>(config_, parts[0]);
        break;
    }
    const size_t rows_at_once = std::max<size_t>(1, kChunkBytes / row_bytes);
    for (size_t begin = 0; begin < count; begin += rows_at_once) {
      const size_t end = std::min(count, begin + rows_at_once);
      chunk.resize((end - begin) * row_bytes);
      pool.parallel_for(end - begin, 8, [&](const Slice& slice) {
        std::vector<float>& row = rows[slice.worker];
        row.resize(cols);
        for (size_t r = slice.begin; r < slice.end; ++r) {
          reader->read(begin + r, row.data());
          const auto [origin, origin_row] = reader->origin(begin + r);
          require_representable(origin, origin_row, row, tensor.format);
          encode_row(tensor.format, rounding_, row.data(), cols, chunk.data() + r * row_bytes);
        }
      });
      put(tensor, chunk);
    }
    for (const StoredTensor& part : parts) weights_->release(part.bytes);
  }
  writer.commit();
}

}  // namespace kilin
