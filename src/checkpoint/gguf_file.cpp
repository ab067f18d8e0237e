#include "checkpoint/gguf_file.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "core/error.h"

namespace kilin {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMostParts = 65535;  // the keys are 16 bits wide

// Where a file stands among the parts of a model.
struct Split {
  uint64_t number;  // from 0
  uint64_t count;
  uint64_t tensors;  // of all parts together
};

uint64_t split_number(const GgufMetadata& metadata, std::string_view key, uint64_t max, const std::string& source) {
  const GgufValue* value = metadata.find(key);
  if (value == nullptr) raise(ErrorCode::Corrupt, "{}: is a part of a split model and has no key '{}'", source, key);
  if (const auto* number = value->as<uint64_t>(); number != nullptr && *number <= max) return *number;
  if (const auto* number = value->as<int64_t>(); number != nullptr && *number >= 0 && static_cast<uint64_t>(*number) <= max)
    return static_cast<uint64_t>(*number);
  raise(ErrorCode::Corrupt, "{}: key '{}' is no whole number in 0..{}", source, key, max);
}

// Nothing for a model in one file.
std::optional<Split> split_of(const GgufMetadata& metadata, const std::string& source) {
  if (metadata.find("split.count") == nullptr) return std::nullopt;
  const uint64_t count = split_number(metadata, "split.count", kMostParts, source);
  if (count <= 1) return std::nullopt;
  return Split{split_number(metadata, "split.no", count - 1, source), count,
               split_number(metadata, "split.tensors.count", kMaxGgufTensors, source)};
}

std::string suffix_of(uint64_t number, uint64_t count) { return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count); }

// The paths of all parts, by the name of one of them.
std::vector<fs::path> parts_beside(const fs::path& file, const Split& split) {
  const std::string name = file.filename().string(), suffix = suffix_of(split.number, split.count);
  if (!name.ends_with(suffix))
    raise(ErrorCode::Corrupt,
          "{}: is part {} of {} of a split model, by its keys split.no and split.count; expected a name that ends in '{}', by "
          "which the other parts are found",
          file.string(), split.number + 1, split.count, suffix);
  const std::string stem = name.substr(0, name.size() - suffix.size());
  std::vector<fs::path> parts;
  std::string missing;
  size_t missing_parts = 0;
  for (uint64_t number = 0; number < split.count; ++number) {
    parts.push_back(file.parent_path() / (stem + suffix_of(number, split.count)));
    std::error_code ignored;
    if (fs::exists(parts.back(), ignored)) continue;
    if (++missing_parts <= 8) missing += (missing.empty() ? "" : ", ") + parts.back().filename().string();
  }
  if (missing_parts > 8) missing += fmt::format(" and {} more", missing_parts - 8);
  if (missing_parts > 0)
    raise(ErrorCode::NotFound, "{}: is one of {} parts, of which {} {} missing beside it: {}", file.string(), split.count,
          missing_parts, missing_parts == 1 ? "is" : "are", missing);
  return parts;
}

// Parts but the first may lack the model's keys; those that have them must agree with it.
void check_same_model(const GgufMetadata& first, const GgufMetadata& other, const fs::path& first_file,
                      const fs::path& other_file) {
  for (const char* key : {"general.architecture", "general.name"}) {
    const GgufValue *a = first.find(key), *b = other.find(key);
    if (a == nullptr || b == nullptr) continue;
    const auto *text = a->as<std::string_view>(), *other_text = b->as<std::string_view>();
    if (text != nullptr && other_text != nullptr && *text != *other_text)
      raise(ErrorCode::Corrupt, "{}: key '{}' is '{}', and '{}' in {}; expected parts of one model", other_file.string(), key,
            printable(*other_text), printable(*text), first_file.string());
  }
}

}  // namespace

bool is_gguf(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return false;
  std::ifstream in(file, std::ios::binary);
  std::string magic(kGgufMagic.size(), '\0');
  if (!in.read(magic.data(), static_cast<std::streamsize>(magic.size()))) return false;
  if (magic == kGgufMagic) return true;
  const MappedFile no_pointer(file);
  return false;
}

std::string gguf_hint(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".gguf") files.push_back(at->path());
  if (files.empty()) return "";
  const std::string first = std::ranges::min(files).string();
  if (files.size() == 1) return fmt::format(", but a GGUF file: give {} itself", first);
  return fmt::format(", but {} GGUF files: give one of them itself, such as {}", files.size(), first);
}

std::shared_ptr<const GgufFile> GgufFile::open(const fs::path& file) {
  return std::shared_ptr<const GgufFile>(new GgufFile(file));
}

GgufFile::GgufFile(const fs::path& file) : source_(file.string()) {
  MappedFile mapped(file);
  GgufContents contents = parse_gguf(mapped.bytes(), source_);
  const auto split = split_of(contents.metadata, source_);
  if (!split) {
    add(file, std::move(contents), std::move(mapped));
    join();
    return;
  }
  for (const fs::path& part : parts_beside(file, *split)) {
    MappedFile part_mapped(part);
    GgufContents part_contents = parse_gguf(part_mapped.bytes(), part.string());
    const auto own = split_of(part_contents.metadata, part.string());
    if (!own || own->number != files_.size() || own->count != split->count || own->tensors != split->tensors)
      raise(ErrorCode::Corrupt,
            "{}: is no part {} of {} with {} tensors in all, by its keys split.no, split.count and split.tensors.count; "
            "expected that of {}",
            part.string(), files_.size() + 1, split->count, split->tensors, source_);
    if (!files_.empty()) check_same_model(metadata_, part_contents.metadata, files_.front(), part);
    add(part, std::move(part_contents), std::move(part_mapped));
  }
  join();
  if (tensors_.size() != split->tensors)
    raise(ErrorCode::Corrupt, "{}: its {} parts hold {} tensors; expected {} (key split.tensors.count)", source_, split->count,
          tensors_.size(), split->tensors);
}

void GgufFile::add(const fs::path& file, GgufContents contents, MappedFile mapped) {
  if (files_.empty()) metadata_ = std::move(contents.metadata);
  files_.push_back(file);
  mapped_.push_back(std::move(mapped));
  std::ranges::move(contents.tensors, std::back_inserter(tensors_));
}

void GgufFile::join() {
  std::ranges::sort(tensors_, {}, &StoredTensor::name);
  names_.reserve(tensors_.size());
  for (const StoredTensor& tensor : tensors_) {
    if (!names_.empty() && names_.back() == tensor.name) {
      const StoredTensor& other = tensors_[names_.size() - 1];
      raise(ErrorCode::Corrupt, "{}: tensor '{}' stands in {} too; expected each tensor in one part", tensor.file,
            printable(tensor.name), other.file);
    }
    names_.push_back(tensor.name);
  }
}

std::optional<StoredTensor> GgufFile::find(std::string_view name) const {
  const auto at = std::ranges::lower_bound(names_, name);
  if (at == names_.end() || *at != name) return std::nullopt;
  return tensors_[static_cast<size_t>(at - names_.begin())];
}

std::vector<const MappedFile*> GgufFile::mapped_files() const {
  std::vector<const MappedFile*> files;
  for (const MappedFile& part : mapped_) files.push_back(&part);
  return files;
}

void GgufFile::release(std::span<const std::byte> bytes) const {
  for (const MappedFile& part : mapped_) part.release(bytes);  // those that do not hold the bytes leave them alone
}

void GgufFile::ask_for_huge_pages(std::span<const std::byte> bytes) const {
  for (const MappedFile& part : mapped_) part.ask_for_huge_pages(bytes);
}

}  // namespace kilin
