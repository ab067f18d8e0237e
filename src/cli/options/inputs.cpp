#include "cli/options/inputs.h"

#include "checkpoint/gguf_file.h"
#include "core/error.h"

namespace kilin::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kStandardInput = "/dev/stdin";

// Beside *.safetensors and their index.
constexpr const char* kFilesOfAModel[] = {
    "config.json",         "generation_config.json", "tiktoken.model",      "tokenizer_config.json",
    "chat_template.jinja", "expected.json",          "expected_logits.npy", "eval.txt"};

// One file by two names, or one name of a file that is not there yet.
bool same(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const fs::path whole = fs::weakly_canonical(a, error);
  return !error && whole == fs::weakly_canonical(b, error) && !error;
}

}  // namespace

void Inputs::add(const fs::path& file) { files_.push_back(file); }

void Inputs::add_standard_input() { add(kStandardInput); }

void Inputs::add_model(const fs::path& model) {
  std::error_code error;
  if (!fs::is_directory(model, error)) {
    add(model);
    try {
      for (const fs::path& part : GgufFile::open(model)->files()) add(part);
    } catch (const Error&) {  // whoever reads it says why
    }
    return;
  }
  for (const char* name : kFilesOfAModel) add(model / name);
  for (fs::directory_iterator at(model, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json")) add(at->path());
  }
}

void Inputs::require_other(std::string_view option, const fs::path& output) const {
  for (const fs::path& file : files_)
    if (same(file, output))
      raise(ErrorCode::InvalidArgument, "{} is {}, which is read as {}; expected another file", option, output.string(),
            file == kStandardInput ? "standard input" : file.string());
}

void Inputs::require_other_in(std::string_view option, const fs::path& folder) const {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    require_other(option, at->path());
}

}  // namespace kilin::cli
