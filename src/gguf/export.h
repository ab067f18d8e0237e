// A model as one GGUF file of llama.cpp's form: which tensors it has, in which format, and where their values come from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/gguf_writer.h"
#include "core/thread_pool.h"
#include "kernels/quant/quantize.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "weights/quant_mix.h"
#include "weights/weight_map.h"

namespace kilin {

/// The model that is exported, in parts that whoever opened it has.
struct GgufExportSource {
  ModelConfig config;
  std::shared_ptr<const TensorStore> weights;       ///< under the published names
  std::shared_ptr<const Tokenizer> tokenizer = {};  ///< null: the file gets none
  std::optional<ChatTemplate> chat_template = {};
};

/// Who will read the file.
enum class GgufReaders : uint8_t {
  All,        ///< llama.cpp too: a model that it would take for another one is refused
  KilinOnly,  ///< the file's keys say it all, and Kilin heeds them
};

struct GgufExportOptions {
  std::optional<QuantType> type;  ///< nothing: bf16, as published
  Rounding rounding = Rounding::Searched;
  std::string name;  ///< general.name
  GgufReaders readers = GgufReaders::All;
};

/// Plan first, then write. Matrices that are in their format already are copied bit for bit; all else passes through fp32, some
/// rows at a time, so that memory does not grow with the model. What llama.cpp wants as fp32 is fp32: norms, the router, its
/// bias, convolutions, decays. The low-rank gates and beta keep their plain format, and so does kv_b_proj, in two parts. A
/// model with tied word embeddings gets an output.weight of its own, without which llama.cpp does not load it.
class GgufExport {
 public:
  /// Called with bytes of the file that are written, and all of them.
  using Progress = std::function<void(uint64_t done, uint64_t total)>;
  /// Reads one row of a planned tensor as fp32, from wherever its values stand. Safe to call from any thread.
  using ReadRow = std::function<void(size_t row, float* out)>;

  /// @throws Unsupported for a model that the format can't describe (dense layers behind others, groups of experts, other heads
  /// for KDA than for MLA), or that llama.cpp would run wrongly (moe_renormalize is false), unless Kilin is to be its only
  /// reader; and what reading the weights throws
  GgufExport(GgufExportSource source, const GgufExportOptions& options);

  const ModelConfig& config() const { return config_; }
  const std::vector<GgufWriter::Planned>& tensors() const { return plan_; }
  std::vector<std::filesystem::path> source_files() const { return weights_->files(); }

  /// Quantises and writes on the threads of `pool`. The file appears whole or not at all.
  /// @throws Corrupt for a value that its format can't hold, naming its tensor; Io; and what `progress` throws
  void write(const std::filesystem::path& file, ThreadPool& pool, const Progress& progress = {}) const;

 private:
  enum class Form : uint8_t { Stored, Decays, Keys, Values };  // of kv_b_proj the last two
  /// Where the values of a planned tensor come from: published tensors one after the other, by row.
  struct Source {
    Form form = Form::Stored;
    std::vector<std::string> names;
  };
  using Put = std::function<void(std::span<const std::byte>)>;  // the next bytes of the tensor whose turn it is
  void plan(const ExpectedTensor& tensor, const std::string& source, const std::optional<QuantMix>& mix);
  void add(std::string name, StorageFormat format, const Shape& shape, Source source);
  StorageFormat format_of(const ExpectedTensor& tensor, StorageFormat stored, const std::optional<QuantMix>& mix) const;

  ReadRow rows_of(Form form, std::span<const StoredTensor> parts, size_t cols) const;
  void copy(std::span<const StoredTensor> parts, const Put& put) const;
  void encode(const GgufWriter::Planned& tensor, std::span<const StoredTensor> parts, const ReadRow& read_row, ThreadPool& pool,
              const Put& put) const;

  ModelConfig config_;
  std::shared_ptr<const TensorStore> weights_;
  GgufKeys keys_;
  std::vector<GgufWriter::Planned> plan_;
  std::vector<Source> sources_;  // of plan_, one each
  Rounding rounding_;
};

}  // namespace kilin
