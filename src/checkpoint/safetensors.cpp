#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/json.h"

namespace kilin {

namespace {

struct NamedDType {
  std::string_view name;
  DType dtype;
};

constexpr std::array<NamedDType, 13> kDTypes = {{{"BF16", DType::bf16},
                                                 {"F16", DType::f16},
                                                 {"F32", DType::f32},
                                                 {"F64", DType::f64},
                                                 {"I8", DType::i8},
                                                 {"U8", DType::u8},
                                                 {"I16", DType::i16},
                                                 {"U16", DType::u16},
                                                 {"I32", DType::i32},
                                                 {"U32", DType::u32},
                                                 {"I64", DType::i64},
                                                 {"U64", DType::u64},
                                                 {"BOOL", DType::boolean}}};

uint64_t little_endian_u64(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  return value;
}

std::string shown(const Json& value) { return printable(value.dump(-1, ' ', true)); }

// Where a tensor lies in the data, before its bytes are looked at.
struct Range {
  uint64_t begin;
  uint64_t end;
};

// Parses the entries of one header.
class EntryParser {
 public:
  EntryParser(const std::string& source, std::span<const std::byte> data) : source_(source), data_(data) {}

  StoredTensor parse(const std::string& name, const Json& entry) const {
    if (!entry.is_object()) fail(name, "is {}; expected an object of dtype, shape and data_offsets", shown(entry));
    for (const auto& [key, value] : entry.items())
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        fail(name, "has a key '{}'; expected dtype, shape and data_offsets", printable(key));
    const DType dtype = parse_dtype(name, member(name, entry, "dtype"));
    const Shape shape = parse_shape(name, member(name, entry, "shape"));
    const Range range = parse_range(name, member(name, entry, "data_offsets"));

    const uint64_t stored = range.end - range.begin;
    if (stored % size_of(dtype) != 0 || stored / size_of(dtype) != shape.elements())
      fail(name, "occupies {} bytes; expected {} of {} for shape {}", stored, shape.elements(), to_string(dtype),
           to_string(shape));
    return {.name = name, .format = dtype, .shape = shape, .bytes = data_.subspan(range.begin, stored), .file = source_};
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(const std::string& name, fmt::format_string<Args...> format, Args&&... args) const {
    raise(ErrorCode::Corrupt, "{}: tensor '{}' {}", source_, printable(name),
          fmt::vformat(format, fmt::make_format_args(args...)));
  }

  const Json& member(const std::string& name, const Json& entry, const char* key) const {
    const auto at = entry.find(key);
    if (at == entry.end()) fail(name, "has no {}", key);
    return *at;
  }

  DType parse_dtype(const std::string& name, const Json& value) const {
    if (!value.is_string()) fail(name, "has dtype {}; expected a string", shown(value));
    const auto& text = value.get_ref<const std::string&>();
    for (const NamedDType& known : kDTypes)
      if (known.name == text) return known.dtype;
    std::string names;
    for (const NamedDType& known : kDTypes) names += (names.empty() ? "" : ", ") + std::string(known.name);
    raise(ErrorCode::Unsupported, "{}: tensor '{}' has dtype '{}', which Kilin does not read; expected one of {}", source_,
          printable(name), printable(text), names);
  }

  // The product of the extents is checked here, so that Shape::elements() does not overflow.
  Shape parse_shape(const std::string& name, const Json& value) const {
    if (!value.is_array()) fail(name, "has shape {}; expected a list of extents", shown(value));
    if (value.size() > Shape::kMaxRank)
      raise(ErrorCode::Unsupported, "{}: tensor '{}' has {} axes; expected at most {}", source_, printable(name), value.size(),
            Shape::kMaxRank);
    std::array<size_t, Shape::kMaxRank> extents{};
    size_t elements = 1;
    for (size_t axis = 0; axis < value.size(); ++axis) {
      if (!value[axis].is_number_unsigned()) fail(name, "has shape {}; expected whole numbers >= 0", shown(value));
      extents[axis] = value[axis].get<uint64_t>();
      // An extent of 0 hides nothing: the others could still overflow when strides are formed.
      if (__builtin_mul_overflow(elements, std::max<size_t>(extents[axis], 1), &elements))
        fail(name, "has shape {}, whose product overflows", shown(value));
    }
    return Shape(std::span<const size_t>(extents.data(), value.size()));
  }

  Range parse_range(const std::string& name, const Json& value) const {
    if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() || !value[1].is_number_unsigned())
      fail(name, "has data_offsets {}; expected [begin, end]", shown(value));
    const Range range{value[0].get<uint64_t>(), value[1].get<uint64_t>()};
    if (range.begin > range.end || range.end > data_.size())
      fail(name, "has data_offsets [{}, {}]; expected begin <= end <= {}, the file's bytes of data", range.begin, range.end,
           data_.size());
    return range;
  }

  const std::string& source_;
  std::span<const std::byte> data_;
};

// The format has neither overlaps nor gaps: sorted by position, each tensor begins where the last one ended.
void check_coverage(const std::vector<StoredTensor>& tensors, std::span<const std::byte> data, const std::string& source) {
  std::vector<const StoredTensor*> order;
  order.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) order.push_back(&tensor);
  const auto position = [](const StoredTensor* t) { return std::pair(t->bytes.data(), t->bytes.size()); };
  std::sort(order.begin(), order.end(), [&](const auto* a, const auto* b) { return position(a) < position(b); });

  size_t covered = 0;
  const StoredTensor* last = nullptr;
  const auto require_no_gap = [&](size_t next) {
    if (next != covered)
      raise(ErrorCode::Corrupt, "{}: bytes [{}, {}) of the data belong to no tensor; the format has no gaps", source, covered,
            next);
  };
  for (const StoredTensor* tensor : order) {
    const auto begin = static_cast<size_t>(tensor->bytes.data() - data.data());
    if (begin < covered)
      raise(ErrorCode::Corrupt, "{}: tensors '{}' and '{}' overlap at byte {} of the data", source, printable(last->name),
            printable(tensor->name), begin);
    require_no_gap(begin);
    covered = begin + tensor->bytes.size();
    last = tensor;
  }
  require_no_gap(data.size());
}

}  // namespace

std::string_view safetensors_dtype(DType dtype) {
  for (const NamedDType& known : kDTypes)
    if (known.dtype == dtype) return known.name;
  return "?";
}

SafetensorsHeader parse_safetensors(std::span<const std::byte> file, const std::string& source) {
  if (file.size() < 8)
    raise(ErrorCode::Corrupt, "{}: holds {} bytes; expected a safetensors file, which begins with 8 bytes of header length",
          source, file.size());
  const uint64_t length = little_endian_u64(file);
  if (length > kMaxSafetensorsHeader || length > file.size() - 8)
    raise(ErrorCode::Corrupt, "{}: header length is {}; expected at most {}, for the file holds {} bytes (is it truncated?)",
          source, length, std::min<uint64_t>(kMaxSafetensorsHeader, file.size() - 8), file.size());
  const std::string_view text(reinterpret_cast<const char*>(file.data() + 8), length);
  if (!text.starts_with('{')) raise(ErrorCode::Corrupt, "{}: the header does not begin with '{{'", source);

  const Json header = parse_json(text, source);
  const EntryParser parser(source, file.subspan(8 + length));
  SafetensorsHeader result;
  for (const auto& [name, entry] : header.items()) {  // nlohmann keeps keys in ascending order
    if (name != "__metadata__") {
      result.tensors.push_back(parser.parse(name, entry));
      continue;
    }
    if (!entry.is_object())
      raise(ErrorCode::Corrupt, "{}: __metadata__ is {}; expected an object of strings", source, shown(entry));
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string())
        raise(ErrorCode::Corrupt, "{}: __metadata__ key '{}' is {}; expected a string", source, printable(key), shown(value));
      result.metadata.emplace(key, value.get<std::string>());
    }
  }
  check_coverage(result.tensors, file.subspan(8 + length), source);
  return result;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& file)
    : mapped_(file), source_(file.string()), header_(parse_safetensors(mapped_.bytes(), source_)) {
  names_.reserve(header_.tensors.size());
  for (const StoredTensor& tensor : header_.tensors) names_.push_back(tensor.name);
}

std::shared_ptr<const SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& file) {
  return std::shared_ptr<const SafetensorsFile>(new SafetensorsFile(file));
}

std::optional<StoredTensor> SafetensorsFile::find(std::string_view name) const {
  const auto at = std::lower_bound(names_.begin(), names_.end(), name);
  if (at == names_.end() || *at != name) return std::nullopt;
  return header_.tensors[static_cast<size_t>(at - names_.begin())];
}

}  // namespace kilin
