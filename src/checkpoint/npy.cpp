#include "checkpoint/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace kilin {

namespace {

static_assert(std::endian::native == std::endian::little, "elements are read and written as they lie in memory");

constexpr std::string_view kMagic = "\x93NUMPY";

struct NamedDType {
  std::string_view descr;
  DType dtype;
};

constexpr std::array<NamedDType, 12> kDTypes = {{{"<f4", DType::f32},
                                                 {"<f2", DType::f16},
                                                 {"<f8", DType::f64},
                                                 {"|i1", DType::i8},
                                                 {"|u1", DType::u8},
                                                 {"<i2", DType::i16},
                                                 {"<u2", DType::u16},
                                                 {"<i4", DType::i32},
                                                 {"<u4", DType::u32},
                                                 {"<i8", DType::i64},
                                                 {"<u8", DType::u64},
                                                 {"|b1", DType::boolean}}};

struct Header {
  DType dtype = DType::f32;
  Shape shape;
};

// Reads the header, a Python literal of one form: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderScanner {
 public:
  HeaderScanner(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  Header scan() {
    std::optional<DType> dtype;
    std::optional<bool> fortran;
    std::optional<Shape> shape;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !dtype)
        dtype = scan_dtype();
      else if (key == "fortran_order" && !fortran)
        fortran = scan_bool();
      else if (key == "shape" && !shape)
        shape = scan_shape();
      else
        fail("key '" + printable(key) + "' is unknown or stands twice");
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("text follows the closing brace");
    if (!dtype || !fortran || !shape) fail("one of descr, fortran_order and shape is missing");
    if (*fortran) raise(ErrorCode::Unsupported, "{}: is in Fortran order; expected C order", source_);
    return {*dtype, *shape};
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    raise(ErrorCode::Corrupt, "{}: npy header: {} (at byte {})", source_, what, at_);
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("expected '") + c + "'");
  }
  bool accept_word(std::string_view word) {
    skip_space();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  std::string_view quoted() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("expected a quoted string");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a string does not end");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }

  DType scan_dtype() {
    const std::string_view descr = quoted();
    for (const NamedDType& known : kDTypes)
      if (known.descr == descr) return known.dtype;
    raise(ErrorCode::Unsupported, "{}: has elements of type '{}'; expected a little-endian number such as '<f4' or '<i4'",
          source_, printable(descr));
  }

  bool scan_bool() {
    if (accept_word("False")) return false;
    if (accept_word("True")) return true;
    fail("expected True or False");
  }

  Shape scan_shape() {
    std::array<size_t, Shape::kMaxRank> extents{};
    size_t rank = 0, elements = 1;
    expect('(');
    for (bool comma = true; !accept(')');) {
      if (!comma) fail("expected ',' or ')'");
      skip_space();
      size_t extent = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc()) fail("expected an extent");
      at_ = static_cast<size_t>(end - text_.data());
      if (rank == Shape::kMaxRank)
        raise(ErrorCode::Unsupported, "{}: has more than {} axes; expected at most that", source_, Shape::kMaxRank);
      if (__builtin_mul_overflow(elements, std::max<size_t>(extent, 1), &elements)) fail("the product of the shape overflows");
      extents[rank++] = extent;
      comma = accept(',');
      if (rank == 1 && !comma) fail("expected ',' after the first extent");  // (3) is a number, (3,) a tuple
    }
    return Shape(std::span<const size_t>(extents.data(), rank));
  }

  std::string_view text_;
  const std::string& source_;
  size_t at_ = 0;
};

size_t little_endian(std::span<const std::byte> bytes) {
  size_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= std::to_integer<size_t>(bytes[i]) << (8 * i);
  return value;
}

// What an array's header says, its elements, and what follows them.
struct Parts {
  Header header;
  std::span<const std::byte> data;
  std::span<const std::byte> rest;
};

[[noreturn]] void raise_size(const std::string& source, size_t bytes, const Header& header) {
  raise(ErrorCode::Corrupt, "{}: holds {} bytes of data; expected {} of {} for shape {}", source, bytes,
        header.shape.elements(), to_string(header.dtype), to_string(header.shape));
}

Parts split(std::span<const std::byte> file, const std::string& source) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic) || text.size() < 8)
    raise(ErrorCode::Corrupt, "{}: does not begin as a .npy file, with \\x93NUMPY and a version", source);
  const int major = std::to_integer<int>(file[6]), minor = std::to_integer<int>(file[7]);
  if ((major != 1 && major != 2) || minor != 0)
    raise(ErrorCode::Unsupported, "{}: is npy version {}.{}; expected 1.0 or 2.0", source, major, minor);
  const size_t start = major == 1 ? 10 : 12;
  if (file.size() < start) raise(ErrorCode::Corrupt, "{}: ends within the npy header", source);
  const size_t length = little_endian(file.subspan(8, start - 8));
  if (length > file.size() - start)
    raise(ErrorCode::Corrupt, "{}: npy header length is {}; expected at most {}", source, length, file.size() - start);

  const Header header = HeaderScanner(text.substr(start, length), source).scan();
  const auto data = file.subspan(start + length);
  // Division, for the product with the element size could overflow.
  if (data.size() / size_of(header.dtype) < header.shape.elements()) raise_size(source, data.size(), header);
  const size_t bytes = header.shape.elements() * size_of(header.dtype);
  return {header, data.first(bytes), data.subspan(bytes)};
}

// What stands before the data of a file of version 1.
std::string header_of(DType dtype, const Shape& shape) {
  const auto named = std::ranges::find(kDTypes, dtype, &NamedDType::dtype);
  if (named == kDTypes.end()) raise(ErrorCode::InvalidArgument, "NumPy has no {}; expected another type", to_string(dtype));
  std::string extents;
  for (size_t extent : shape) extents += std::to_string(extent) + (shape.rank() == 1 ? "," : ", ");
  if (shape.rank() > 1) extents.resize(extents.size() - 2);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", named->descr, extents);
  constexpr size_t kPrefix = 10;
  const size_t padded = (kPrefix + header.size() + 1 + 63) / 64 * 64;  // data begins at a multiple of 64
  header.resize(padded - kPrefix - 1, ' ');
  header += '\n';
  std::string prefix(kMagic);
  prefix += {'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return prefix + header;
}

}  // namespace

Tensor parse_npy(std::span<const std::byte> file, const std::string& source) {
  const auto [header, data, rest] = split(file, source);
  if (!rest.empty()) raise_size(source, data.size() + rest.size(), header);
  Tensor tensor(header.dtype, header.shape);
  if (!data.empty()) std::memcpy(tensor.data(), data.data(), data.size());
  return tensor;
}

Tensor read_npy(const std::filesystem::path& file) { return parse_npy(MappedFile(file).bytes(), file.string()); }

void write_npy(const std::filesystem::path& file, const Tensor& tensor) {
  AtomicFile out(file);
  out.write(header_of(tensor.dtype(), tensor.shape()));
  out.write({tensor.data(), tensor.bytes()});
  out.commit();
}

NpyMatrix::NpyMatrix(const std::filesystem::path& file) : mapped_(file) {
  const std::string source = file.string();
  const auto [header, data, rest] = split(mapped_.bytes(), source);
  if (!rest.empty()) note_ = parse_npy(rest, source);
  if (header.dtype != DType::f32 || header.shape.rank() != 2)
    raise(ErrorCode::Corrupt, "{}: holds {} of shape {}; expected a matrix of f32", source, to_string(header.dtype),
          to_string(header.shape));
  data_ = data;
  rows_ = header.shape[0];
  cols_ = header.shape[1];
}

void NpyMatrix::read(size_t row, std::span<float> out) const {
  assert(row < rows_ && out.size() == cols_);
  if (!out.empty()) std::memcpy(out.data(), data_.data() + row * out.size_bytes(), out.size_bytes());
}

NpyWriter::NpyWriter(const std::filesystem::path& file, size_t rows, size_t cols)
    : path_(file), file_(file), rows_(rows), cols_(cols) {
  file_.write(header_of(DType::f32, {rows, cols}));
}

void NpyWriter::append(MatView<const float> rows) {
  if (rows.cols() != cols_ || rows.rows() > rows_ - written_)
    raise(ErrorCode::InvalidArgument, "{}: rows [{}, {}) of width {} do not fit; expected at most {} of width {}",
          path_.string(), written_, written_ + rows.rows(), rows.cols(), rows_, cols_);
  if (rows.stride() == rows.cols()) {
    file_.write(std::as_bytes(std::span(rows.data(), rows.rows() * rows.cols())));
  } else {
    for (size_t r = 0; r < rows.rows(); ++r) file_.write(std::as_bytes(rows[r]));
  }
  written_ += rows.rows();
}

void NpyWriter::commit(const Tensor& note) {
  if (written_ != rows_)
    raise(ErrorCode::InvalidArgument, "{}: {} rows were written; expected {}", path_.string(), written_, rows_);
  if (!note.empty()) {
    file_.write(header_of(note.dtype(), note.shape()));
    file_.write({note.data(), note.bytes()});
  }
  file_.commit();
}

}  // namespace kilin
