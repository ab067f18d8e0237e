#include "synthetic/synthetic_checkpoint.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors_writer.h"
#include "core/error.h"
#include "core/file.h"
#include "core/folder_lock.h"
#include "synthetic/synthetic_values.h"
#include "text/tokenizer.h"

namespace kilin {

namespace fs = std::filesystem;

namespace {

constexpr size_t kPiece = size_t{1} << 22;          // values that are made and written together
constexpr size_t kSlice = size_t{1} << 13;          // values that one thread makes at a time
constexpr const char* kStaging = ".synth-partial";  // in the folder itself, so that files are moved, not copied

constexpr std::array kTokenizerFiles = {"tiktoken.model", "tokenizer_config.json", "special_tokens_map.json",
                                        "chat_template.jinja"};

// The folder while it is written: files are in a staging folder inside it until publish().
class StagedFolder {
 public:
  StagedFolder(const fs::path& out, SyntheticCheckpoint::Existing existing) : out_(out), staging_(out / kStaging), lock_(out) {
    fs::remove_all(staging_);  // left by a run that was interrupted
    if (existing == SyntheticCheckpoint::Existing::Refuse && !fs::is_empty(out_))
      raise(ErrorCode::InvalidArgument, "{}: holds files already; expected a new or empty folder", out_.string());
    fs::create_directory(staging_);
  }
  ~StagedFolder() {
    std::error_code ignored;
    fs::remove_all(staging_, ignored);
    if (lock_.is_new() && fs::is_empty(out_, ignored)) fs::remove(out_, ignored);
  }
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const fs::path& staging() const { return staging_; }

  // config.json comes last: without it the folder is no model.
  void publish() {
    std::vector<fs::path> old;
    for (const fs::directory_entry& entry : fs::directory_iterator(out_))
      if (entry.is_regular_file() && belongs_to_a_checkpoint(entry.path())) old.push_back(entry.path());
    for (const fs::path& file : old) fs::remove(file);
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(staging_)) files.push_back(entry.path());
    std::stable_partition(files.begin(), files.end(), [](const fs::path& file) { return file.filename() != "config.json"; });
    for (const fs::path& file : files) fs::rename(file, out_ / file.filename());
  }

 private:
  static bool belongs_to_a_checkpoint(const fs::path& file) {
    const std::string name = file.filename().string();
    return file.extension() == ".safetensors" || name == "model.safetensors.index.json" || name == "config.json" ||
           name == "generation_config.json" || std::ranges::find(kTokenizerFiles, name) != kTokenizerFiles.end();
  }

  fs::path out_, staging_;
  FolderLock lock_;  // two writers would take each other's files away
};

// A message without the staging folder, of which nobody but this file knows.
std::string in_terms_of(const fs::path& out, std::string message) {
  const std::string staging = (out / kStaging).string();
  for (size_t at = message.find(staging); at != std::string::npos; at = message.find(staging, at))
    message.replace(at, staging.size(), out.string());
  return message;
}

struct Tensors {
  std::vector<ExpectedTensor> expected;
  std::vector<SafetensorsWriter::Planned> plan;
  SyntheticCheckpoint::Size size;
};

Tensors tensors_of(const ModelConfig& config, DType dtype) {
  Tensors tensors{expected_tensors(config), {}, {}};
  // Sorted by layer, as checkpoints are sharded, so that a layer can be read from one or two files.
  std::ranges::stable_sort(tensors.expected, {}, [](const ExpectedTensor& tensor) {
    constexpr std::string_view kLayers = "model.layers.";
    if (!tensor.name.starts_with(kLayers)) return tensor.name == "model.embed_tokens.weight" ? 0 : 1 << 30;
    return 1 + std::stoi(tensor.name.substr(kLayers.size()));
  });
  for (const ExpectedTensor& tensor : tensors.expected) {
    const DType stored = tensor.published_dtype() == DType::f32 ? DType::f32 : dtype;
    tensors.plan.push_back({tensor.name, stored, tensor.shape});
    ++tensors.size.tensors;
    tensors.size.parameters += tensor.shape.elements();
    tensors.size.bytes += tensors.plan.back().bytes();
  }
  return tensors;
}

void require_space(const fs::path& folder, uint64_t bytes) {
  constexpr uint64_t kRest = 64 << 20;  // headers, index, tokenizer, and what the file system needs
  const uint64_t free = fs::space(folder).available;
  if (free < bytes + kRest)
    raise(ErrorCode::ResourceExhausted, "{}: the checkpoint needs {:.2f} GB, but only {:.2f} GB are free there",
          folder.parent_path().string(), static_cast<double>(bytes) / 1e9, static_cast<double>(free) / 1e9);
}

void write_file(const fs::path& file, std::string_view text) {
  AtomicFile out(file);
  out.write(text);
  out.commit();
}

void copy_tokenizer(const fs::path& from, const fs::path& to, size_t vocab_size) {
  Tokenizer::load(from).require_vocabulary(vocab_size);
  for (const char* name : kTokenizerFiles)
    if (fs::exists(from / name)) write_file(to / name, read_file(from / name));
}

// Makes a tensor's values piece by piece on all threads, and writes them.
class TensorWriter {
 public:
  TensorWriter(SafetensorsWriter& writer, ThreadPool& pool) : writer_(writer), pool_(pool) {}

  template <typename Written>
  void write(const SafetensorsWriter::Planned& tensor, const SyntheticDistribution& distribution, uint64_t key,
             Written written) {
    const size_t elements = tensor.shape.elements();
    for (size_t first = 0; first < elements; first += kPiece) {
      const size_t n = std::min(kPiece, elements - first);
      pool_.parallel_for((n + kSlice - 1) / kSlice, 1, [&](const Slice& slice) {
        const size_t begin = slice.begin * kSlice, end = std::min(n, slice.end * kSlice);
        fill_synthetic(distribution, key, first + begin, std::span(values_).subspan(begin, end - begin));
        if (tensor.dtype == DType::bf16)
          for (size_t i = begin; i < end; ++i) rounded_[i] = to_bf16(values_[i]);
      });
      const auto bytes = tensor.dtype == DType::bf16 ? std::as_bytes(std::span(rounded_).first(n))
                                                     : std::as_bytes(std::span(values_).first(n));
      writer_.write(tensor.name, bytes);
      written(bytes.size());
    }
  }

 private:
  SafetensorsWriter& writer_;
  ThreadPool& pool_;
  std::vector<float> values_ = std::vector<float>(kPiece);
  std::vector<bf16> rounded_ = std::vector<bf16>(kPiece);
};

}  // namespace

SyntheticCheckpoint::Size SyntheticCheckpoint::write(const fs::path& out, ThreadPool& pool, const Progress& progress) const
    try {
  const fs::path config_file = fs::is_directory(config) ? config / "config.json" : config;
  const std::string text = synthetic_config(read_file(config_file), config_file.string(), shape);
  const ModelConfig model = ModelConfig::parse(text, config_file.string());
  const Tensors tensors = tensors_of(model, shape.dtype);

  StagedFolder folder(out, existing);
  require_space(folder.staging(), tensors.size.bytes);
  if (tokenizer) copy_tokenizer(*tokenizer, folder.staging(), model.vocab_size);
  write_file(folder.staging() / "config.json", text);

  SafetensorsWriter writer(folder.staging(), tensors.plan, max_shard_bytes);
  TensorWriter values(writer, pool);
  std::map<std::string_view, const ExpectedTensor*> by_name;
  for (const ExpectedTensor& tensor : tensors.expected) by_name.emplace(tensor.name, &tensor);
  uint64_t done = 0;
  for (const auto& tensor : writer.tensors()) {
    const SyntheticDistribution distribution = distribution_of(*by_name.at(tensor.name), model);
    values.write(tensor, distribution, synthetic_key(seed, tensor.name), [&](size_t bytes) {
      done += bytes;
      if (progress) progress(done, tensors.size.bytes);
    });
  }
  writer.commit();
  folder.publish();
  return tensors.size;
} catch (const fs::filesystem_error& error) {
  throw Error(ErrorCode::Io, in_terms_of(out, error.path1().string() + ": " + error.code().message()));
} catch (const Error& error) {
  throw Error(error.code(), in_terms_of(out, error.what()));
}

}  // namespace kilin
