#include "checkpoint/gguf.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace kilin {

namespace {

constexpr size_t kLeastKeyBytes = 8 + 4 + 1;  // an empty name, a type, a byte
constexpr size_t kLeastTensorBytes = 8 + 4 + 8 + 4 + 8;
constexpr size_t kMaxAlignment = size_t{1} << 20;

// Reads from the front on; whatever would lie beyond the end is an error that says where, and what for.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& source) : bytes_(bytes), source_(source) {}

  size_t position() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }

  std::span<const std::byte> take(uint64_t count, std::string_view what) {
    if (count > left())
      raise(ErrorCode::Corrupt, "{}: {} at byte {} needs {} bytes, and the file has {} more (is it truncated?)", source_, what,
            at_, count, left());
    const auto taken = bytes_.subspan(at_, count);
    at_ += count;
    return taken;
  }

  template <typename T>
  T number(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }

  std::string_view string(std::string_view what) {
    const auto length = number<uint64_t>(what);
    const auto bytes = take(length, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& source_;
  size_t at_ = 0;
};

class Parser {
 public:
  Parser(std::span<const std::byte> file, const std::string& source) : file_(file), source_(source), in_(file, source) {}

  GgufContents parse() {
    GgufContents contents;
    contents.version = parse_version();
    const auto tensors = count("tensors", kMaxGgufTensors, kLeastTensorBytes);
    const auto keys = count("keys", kMaxGgufKeys, kLeastKeyBytes);
    for (uint64_t i = 0; i < keys; ++i) parse_key(contents.metadata);
    const size_t alignment = alignment_of(contents.metadata);
    std::vector<Placed> placed;
    placed.reserve(tensors);
    for (uint64_t i = 0; i < tensors; ++i) placed.push_back(parse_tensor(alignment));
    const size_t data_start = std::min((in_.position() + alignment - 1) / alignment * alignment, file_.size());
    contents.tensors = place(std::move(placed), file_.subspan(data_start));
    return contents;
  }

 private:
  struct Placed {
    StoredTensor tensor;
    uint64_t offset;
    uint64_t bytes;
  };

  template <typename... Args>
  [[noreturn]] void corrupt(fmt::format_string<Args...> format, Args&&... args) const {
    raise(ErrorCode::Corrupt, "{}: {}", source_, fmt::vformat(format, fmt::make_format_args(args...)));
  }
  template <typename... Args>
  [[noreturn]] void unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    raise(ErrorCode::Unsupported, "{}: {}", source_, fmt::vformat(format, fmt::make_format_args(args...)));
  }

  uint32_t parse_version() {
    const auto magic = in_.take(kGgufMagic.size(), "the magic number");
    if (std::memcmp(magic.data(), kGgufMagic.data(), kGgufMagic.size()) != 0)
      corrupt("begins with '{}'; expected a GGUF file, which begins with '{}'",
              printable({reinterpret_cast<const char*>(magic.data()), magic.size()}), kGgufMagic);
    const auto version = in_.number<uint32_t>("the version");
    if (version == 2 || version == kGgufVersion) return version;
    if (version == 1) unsupported("is of GGUF version 1; expected 2 or 3: convert the model anew, or find a newer file");
    if ((version & 0xffffu) == 0 && version != 0) unsupported("is a big-endian GGUF file; expected a little-endian one");
    unsupported("is of GGUF version {}; expected 2 or 3", version);
  }

  // So many entries of at least `least` bytes each must fit into what is left.
  uint64_t count(std::string_view what, size_t most, size_t least) {
    const auto value = in_.number<uint64_t>(fmt::format("the number of {}", what));
    if (value > most || value > in_.left() / least)
      corrupt("says that it holds {} {}; expected at most {}, for the file has {} bytes (is it truncated?)", value, what,
              std::min(most, in_.left() / least), file_.size());
    return value;
  }

  std::string_view name(std::string_view what) {
    const size_t position = in_.position();
    const std::string_view text = in_.string(what);
    if (text.empty() || text.size() > kMaxGgufNameBytes)
      corrupt("{} at byte {} has {} bytes; expected 1 to {}", what, position, text.size(), kMaxGgufNameBytes);
    return text;
  }

  GgufType type(std::string_view key) {
    const auto number = in_.number<uint32_t>("the type of a value");
    if (number >= kGgufTypes)
      corrupt("key '{}' has a value of type {}; expected 0 to {}", printable(key), number, kGgufTypes - 1);
    return static_cast<GgufType>(number);
  }

  void check_boolean(std::string_view key, std::byte byte) const {
    if (byte > std::byte{1})
      corrupt("key '{}' is a bool of value {}; expected 0 or 1", printable(key), std::to_integer<int>(byte));
  }

  void parse_key(GgufMetadata& metadata) {
    const std::string_view key = name("the name of a key");
    const GgufType value_type = type(key);
    if (!metadata.add(key, parse_value(key, value_type))) corrupt("key '{}' stands twice", printable(key));
  }

  GgufValue parse_value(std::string_view key, GgufType value_type) {
    const std::string what = fmt::format("the value of key '{}'", printable(key));
    if (value_type == GgufType::string) return {value_type, in_.string(what)};
    if (value_type == GgufType::array) return {value_type, parse_array(key, what)};
    const auto bytes = in_.take(size_of(value_type), what);
    if (value_type == GgufType::boolean) check_boolean(key, bytes[0]);
    return read_gguf_scalar(value_type, bytes.data());
  }

  GgufArray parse_array(std::string_view key, const std::string& what) {
    const GgufType element = type(key);
    if (element == GgufType::array)
      unsupported("key '{}' is an array of arrays; expected numbers, strings or bools", printable(key));
    const auto size = in_.number<uint64_t>(what);
    const size_t least = element == GgufType::string ? sizeof(uint64_t) : size_of(element);
    if (size > in_.left() / least)
      corrupt("key '{}' says that it has {} elements of type {}; expected at most {}, for the file has {} more bytes",
              printable(key), size, to_string(element), in_.left() / least, in_.left());
    if (element != GgufType::string) {
      const auto bytes = in_.take(size * least, what);
      if (element == GgufType::boolean)
        for (const std::byte byte : bytes) check_boolean(key, byte);
      return {element, size, bytes};
    }
    const size_t begin = in_.position();
    for (uint64_t i = 0; i < size; ++i) in_.string(what);
    return {element, size, file_.subspan(begin, in_.position() - begin)};
  }

  size_t alignment_of(const GgufMetadata& metadata) const {
    const GgufValue* value = metadata.find(kGgufAlignmentKey);
    if (value == nullptr) return kGgufDefaultAlignment;
    const auto* alignment = value->as<uint64_t>();
    if (alignment == nullptr) corrupt("key '{}' is of type {}; expected u32", kGgufAlignmentKey, to_string(value->type));
    if (*alignment < 1 || *alignment > kMaxAlignment)
      corrupt("key '{}' is {}; expected 1 to {}", kGgufAlignmentKey, *alignment, kMaxAlignment);
    return *alignment;
  }

  Placed parse_tensor(size_t alignment) {
    const std::string_view tensor_name = name("the name of a tensor");
    const std::string shown = fmt::format("tensor '{}'", printable(tensor_name));
    const auto rank = in_.number<uint32_t>(shown);
    if (rank < 1 || rank > Shape::kMaxRank) corrupt("{} has {} axes; expected 1 to {}", shown, rank, Shape::kMaxRank);
    std::array<size_t, Shape::kMaxRank> extents{};  // row-major: the file's first one comes last
    size_t elements = 1;
    for (size_t i = 0; i < rank; ++i) {
      const auto extent = in_.number<uint64_t>(shown);
      if (extent == 0) corrupt("{} has an axis of extent 0; expected at least 1", shown);
      if (__builtin_mul_overflow(elements, extent, &elements))
        corrupt("{} has extents whose product overflows, the last read {}", shown, extent);
      extents[rank - 1 - i] = extent;
    }
    const Shape shape(std::span<const size_t>(extents.data(), rank));
    const StorageFormat format = parse_format(shown);
    const auto offset = in_.number<uint64_t>(shown);
    if (offset % alignment != 0)
      corrupt("{} begins at byte {} of the data; expected a multiple of {} ({})", shown, offset, alignment, kGgufAlignmentKey);
    // Before the tensor is made, not among its initialisers: what throws there makes g++ 12 destroy its strings twice.
    const uint64_t bytes = bytes_of(shown, format, shape);
    return {{.name = std::string(tensor_name), .format = format, .shape = shape, .bytes = {}, .file = source_}, offset, bytes};
  }

  StorageFormat parse_format(const std::string& shown) {
    const auto number = in_.number<uint32_t>(shown);
    if (const auto format = gguf_storage_format(number)) return *format;
    unsupported(
        "{} is of {}, which Kilin does not read; expected one of {}: take another file of this model, or quantise it anew "
        "(Q4_K_M or Q6_K are good choices; Q2_K, Q3_K_M or IQ4_XS where memory is short)",
        shown, gguf_type_name(number), gguf_readable_types());
  }

  uint64_t bytes_of(const std::string& shown, StorageFormat format, const Shape& shape) const {
    const size_t row = shape[shape.rank() - 1], whole = format.block_elements();
    if (row % whole != 0)
      corrupt("{} has rows of {} elements; expected a multiple of {}, the elements of a block of {}", shown, row, whole,
              to_string(format));
    const size_t blocks = shape.elements() / whole;
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(blocks, format.bytes_of(whole), &bytes))
      corrupt("{} of shape {} has more bytes than 64 bits can count", shown, to_string(shape));
    return bytes;
  }

  // Where each lies, now that it is known where the data begins.
  std::vector<StoredTensor> place(std::vector<Placed> placed, std::span<const std::byte> data) const {
    std::ranges::sort(placed, {}, &Placed::offset);
    uint64_t covered = 0;
    const Placed* last = nullptr;
    for (Placed& entry : placed) {
      const std::string shown = printable(entry.tensor.name);
      if (entry.offset > data.size() || entry.bytes > data.size() - entry.offset)
        corrupt("tensor '{}' occupies {} bytes from byte {} of the data on; the file has {} bytes of data (is it truncated?)",
                shown, entry.bytes, entry.offset, data.size());
      if (entry.offset < covered)
        corrupt("tensors '{}' and '{}' overlap at byte {} of the data", printable(last->tensor.name), shown, entry.offset);
      entry.tensor.bytes = data.subspan(entry.offset, entry.bytes);
      covered = entry.offset + entry.bytes;
      last = &entry;
    }
    std::ranges::sort(placed, {}, [](const Placed& entry) -> const std::string& { return entry.tensor.name; });
    std::vector<StoredTensor> tensors;
    tensors.reserve(placed.size());
    for (Placed& entry : placed) {
      if (!tensors.empty() && tensors.back().name == entry.tensor.name)
        corrupt("tensor '{}' stands twice", printable(entry.tensor.name));
      tensors.push_back(std::move(entry.tensor));
    }
    return tensors;
  }

  std::span<const std::byte> file_;
  const std::string& source_;
  Cursor in_;
};

}  // namespace

GgufContents parse_gguf(std::span<const std::byte> file, const std::string& source) { return Parser(file, source).parse(); }

}  // namespace kilin
