// Any GGUF file is refused with a kilin::Error, or gives a configuration, a tokeniser, and tensors under the published names
// that are where the store says.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "checkpoint/gguf.h"
#include "core/error.h"
#include "gguf/config.h"
#include "gguf/names.h"
#include "gguf/tokenizer.h"
#include "weights/weight_map.h"

namespace {

class Parsed final : public kilin::TensorStore {
 public:
  explicit Parsed(kilin::GgufContents contents) : contents_(std::move(contents)) {
    for (const auto& tensor : contents_.tensors) names_.push_back(tensor.name);
  }
  const std::vector<std::string>& names() const override { return names_; }
  const std::string& source() const override { return source_; }
  const kilin::GgufMetadata& metadata() const { return contents_.metadata; }
  std::optional<kilin::StoredTensor> find(std::string_view name) const override {
    const auto at = std::lower_bound(names_.begin(), names_.end(), name);
    if (at == names_.end() || *at != name) return std::nullopt;
    return contents_.tensors[static_cast<size_t>(at - names_.begin())];
  }

 private:
  kilin::GgufContents contents_;
  std::vector<std::string> names_;
  std::string source_ = "file";
};

template <typename Read>
void refused_or_read(Read read) {
  try {
    read();
  } catch (const kilin::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  refused_or_read([&] {
    const auto gguf = std::make_shared<Parsed>(kilin::parse_gguf(std::as_bytes(std::span(data, size)), "file"));
    refused_or_read([&] {
      if (const auto tokenizer = kilin::read_gguf_tokenizer(gguf->metadata(), "file"))
        if (tokenizer->decode(tokenizer->encode("The whale, 123!")) != "The whale, 123!") std::abort();
    });
    const kilin::ModelConfig config = kilin::read_gguf_config(gguf->metadata(), *gguf);
    const auto published = kilin::gguf_with_published_names(gguf, config);
    for (const std::string& name : published->names())
      refused_or_read([&] {
        const kilin::StoredTensor tensor = published->require(name);
        if (tensor.bytes.size() != tensor.format.bytes_of(tensor.elements())) std::abort();
      });
    kilin::check_tensors(*published, config);
  });
  return 0;
}
