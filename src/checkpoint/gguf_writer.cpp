#include "checkpoint/gguf_writer.h"

#include <bit>
#include <utility>

#include "checkpoint/gguf.h"
#include "core/error.h"

namespace kilin {

namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

template <typename T>
void append_to(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_string_to(std::string& bytes, std::string_view text) {
  append_to(bytes, uint64_t{text.size()});
  bytes.append(text);
}

uint64_t aligned(uint64_t bytes) { return (bytes + kGgufDefaultAlignment - 1) / kGgufDefaultAlignment * kGgufDefaultAlignment; }

// What a reader would refuse.
void check_plan(const std::vector<GgufWriter::Planned>& plan, const std::string& file) {
  std::set<std::string_view> names;
  for (const auto& [name, format, shape] : plan) {
    const std::string shown = printable(name);
    if (name.empty() || name.size() > kMaxGgufNameBytes || !names.insert(name).second)
      raise(ErrorCode::InvalidArgument, "{}: tensor '{}' was planned; expected names of 1 to {} bytes, each once", file, shown,
            kMaxGgufNameBytes);
    if (!gguf_number(format))
      raise(ErrorCode::InvalidArgument, "{}: tensor '{}' is of {}, which GGUF does not know", file, shown, to_string(format));
    if (shape.rank() < 1 || shape.elements() == 0 || shape[shape.rank() - 1] % format.block_elements() != 0)
      raise(ErrorCode::InvalidArgument, "{}: tensor '{}' has shape {}; expected 1 to {} axes, and rows of a multiple of {}",
            file, shown, to_string(shape), Shape::kMaxRank, format.block_elements());
  }
}

// Keys and tensors; padding and data follow.
std::string header_of(const GgufKeys& keys, const std::vector<GgufWriter::Planned>& plan) {
  std::string header(kGgufMagic.size(), '\0');  // the magic number comes last
  append_to(header, kGgufVersion);
  append_to(header, uint64_t{plan.size()});
  append_to(header, uint64_t{keys.size()});
  header.append(keys.bytes());
  uint64_t offset = 0;
  for (const GgufWriter::Planned& tensor : plan) {
    append_string_to(header, tensor.name);
    append_to(header, static_cast<uint32_t>(tensor.shape.rank()));
    for (size_t axis = tensor.shape.rank(); axis-- > 0;) append_to(header, uint64_t{tensor.shape[axis]});
    append_to(header, *gguf_number(tensor.format));
    append_to(header, offset);
    offset += aligned(tensor.bytes());
  }
  return header;
}

std::vector<GgufWriter::Planned> checked(std::vector<GgufWriter::Planned> plan, const std::filesystem::path& file) {
  check_plan(plan, file.string());
  return plan;
}

}  // namespace

template <typename T>
void GgufKeys::append(T value) {
  append_to(bytes_, value);
}

void GgufKeys::append_string(std::string_view text) { append_string_to(bytes_, text); }

void GgufKeys::begin(std::string_view key, GgufType type) {
  if (key.empty() || !names_.emplace(key).second)
    raise(ErrorCode::InvalidArgument, "key '{}' was given; expected names, each once", printable(key));
  append_string(key);
  append(static_cast<uint32_t>(type));
}

void GgufKeys::begin_array(std::string_view key, GgufType element, size_t size) {
  begin(key, GgufType::array);
  append(static_cast<uint32_t>(element));
  append(uint64_t{size});
}

void GgufKeys::add_u32(std::string_view key, uint32_t value) {
  begin(key, GgufType::u32);
  append(value);
}

void GgufKeys::add_i32(std::string_view key, int32_t value) {
  begin(key, GgufType::i32);
  append(value);
}

void GgufKeys::add_f32(std::string_view key, float value) {
  begin(key, GgufType::f32);
  append(value);
}

void GgufKeys::add_bool(std::string_view key, bool value) {
  begin(key, GgufType::boolean);
  append(static_cast<uint8_t>(value ? 1 : 0));
}

void GgufKeys::add_string(std::string_view key, std::string_view value) {
  begin(key, GgufType::string);
  append_string(value);
}

void GgufKeys::add_i32s(std::string_view key, std::span<const int32_t> values) {
  begin_array(key, GgufType::i32, values.size());
  for (const int32_t value : values) append(value);
}

void GgufKeys::add_strings(std::string_view key, std::span<const std::string> values) {
  begin_array(key, GgufType::string, values.size());
  for (const std::string& value : values) append_string(value);
}

void GgufKeys::copy(std::string_view key, const GgufValue& value) {
  if (const auto* array = value.as<GgufArray>()) {
    begin_array(key, array->element(), array->size());
    bytes_.append(reinterpret_cast<const char*>(array->bytes().data()), array->bytes().size());
    return;
  }
  begin(key, value.type);
  if (const auto* text = value.as<std::string_view>()) return append_string(*text);
  if (value.type == GgufType::f32) return append(static_cast<float>(*value.as<double>()));
  if (const auto* number = value.as<double>()) return append(*number);
  if (const auto* truth = value.as<bool>()) return append(static_cast<uint8_t>(*truth ? 1 : 0));
  // Two's complement: the lowest bytes of a wide integer are those of the narrow one.
  const auto* natural = value.as<uint64_t>();
  const uint64_t wide = natural != nullptr ? *natural : static_cast<uint64_t>(*value.as<int64_t>());
  bytes_.append(reinterpret_cast<const char*>(&wide), size_of(value.type));
}

GgufWriter::GgufWriter(const std::filesystem::path& file, const GgufKeys& keys, std::vector<Planned> plan)
    : path_(file), plan_(checked(std::move(plan), file)), file_(file) {
  const std::string header = header_of(keys, plan_);
  total_ = aligned(header.size());
  for (const Planned& tensor : plan_) total_ += aligned(tensor.bytes());
  file_.write(header);
  position_ = header.size();
  pad_to_alignment();
}

void GgufWriter::pad_to_alignment() {
  const std::string padding(aligned(position_) - position_, '\0');
  file_.write(padding);
  position_ += padding.size();
}

void GgufWriter::write(std::string_view name, std::span<const std::byte> bytes) {
  if (tensor_ == plan_.size())
    raise(ErrorCode::InvalidArgument, "{}: tensor '{}' was not planned, or is complete", path_.string(), printable(name));
  const Planned& turn = plan_[tensor_];
  if (name != turn.name || bytes.size() > turn.bytes() - written_)
    raise(ErrorCode::InvalidArgument, "{}: {} bytes of tensor '{}' were given; expected at most {} of '{}'", path_.string(),
          bytes.size(), printable(name), turn.bytes() - written_, printable(turn.name));
  file_.write(bytes);
  position_ += bytes.size();
  written_ += bytes.size();
  if (written_ < turn.bytes()) return;
  pad_to_alignment();
  ++tensor_;
  written_ = 0;
}

void GgufWriter::commit() {
  if (tensor_ != plan_.size())
    raise(ErrorCode::InvalidArgument, "{}: tensor '{}' is not complete: {} of {} bytes", path_.string(),
          printable(plan_[tensor_].name), written_, plan_[tensor_].bytes());
  file_.write_at(0, std::as_bytes(std::span(kGgufMagic.data(), kGgufMagic.size())));
  file_.commit();
}

}  // namespace kilin
