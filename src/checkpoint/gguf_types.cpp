#include "checkpoint/gguf_types.h"

#include <algorithm>
#include <array>

#include "core/error.h"

namespace kilin {

namespace {

struct ValueType {
  std::string_view name;
  size_t bytes;
};
constexpr std::array<ValueType, kGgufTypes> kValueTypes = {{{"u8", 1},
                                                            {"i8", 1},
                                                            {"u16", 2},
                                                            {"i16", 2},
                                                            {"u32", 4},
                                                            {"i32", 4},
                                                            {"f32", 4},
                                                            {"bool", 1},
                                                            {"string", 0},
                                                            {"array", 0},
                                                            {"u64", 8},
                                                            {"i64", 8},
                                                            {"f64", 8}}};

struct TensorType {
  uint32_t number;
  std::string_view name;
  std::optional<StorageFormat> format;  // nothing: known by name, to be refused by name
};
constexpr TensorType kTensorTypes[] = {
    {0, "F32", DType::f32},
    {1, "F16", DType::f16},
    {2, "Q4_0", BlockFormat::q4_0},
    {3, "Q4_1", BlockFormat::q4_1},
    {6, "Q5_0", BlockFormat::q5_0},
    {7, "Q5_1", BlockFormat::q5_1},
    {8, "Q8_0", BlockFormat::q8_0},
    {9, "Q8_1", std::nullopt},
    {10, "Q2_K", BlockFormat::q2_k},
    {11, "Q3_K", BlockFormat::q3_k},
    {12, "Q4_K", BlockFormat::q4_k},
    {13, "Q5_K", BlockFormat::q5_k},
    {14, "Q6_K", BlockFormat::q6_k},
    {15, "Q8_K", std::nullopt},
    {16, "IQ2_XXS", std::nullopt},
    {17, "IQ2_XS", std::nullopt},
    {18, "IQ3_XXS", std::nullopt},
    {19, "IQ1_S", std::nullopt},
    {20, "IQ4_NL", BlockFormat::iq4_nl},
    {21, "IQ3_S", std::nullopt},
    {22, "IQ2_S", std::nullopt},
    {23, "IQ4_XS", BlockFormat::iq4_xs},
    {24, "I8", DType::i8},
    {25, "I16", DType::i16},
    {26, "I32", DType::i32},
    {27, "I64", DType::i64},
    {28, "F64", DType::f64},
    {29, "IQ1_M", std::nullopt},
    {30, "BF16", DType::bf16},
    {31, "Q4_0_4_4", std::nullopt},
    {32, "Q4_0_4_8", std::nullopt},
    {33, "Q4_0_8_8", std::nullopt},
    {34, "TQ1_0", std::nullopt},
    {35, "TQ2_0", std::nullopt},
    {36, "IQ4_NL_4_4", std::nullopt},
    {37, "IQ4_NL_4_8", std::nullopt},
    {38, "IQ4_NL_8_8", std::nullopt},
    {39, "MXFP4", BlockFormat::mxfp4},
    {40, "NVFP4", std::nullopt},
};

const TensorType* find(uint32_t number) {
  const auto at = std::ranges::find(kTensorTypes, number, &TensorType::number);
  return at == std::end(kTensorTypes) ? nullptr : at;
}

}  // namespace

std::string_view to_string(GgufType type) { return kValueTypes[static_cast<size_t>(type)].name; }

size_t size_of(GgufType type) { return kValueTypes[static_cast<size_t>(type)].bytes; }

std::optional<StorageFormat> gguf_storage_format(uint32_t number) {
  const TensorType* type = find(number);
  return type == nullptr ? std::nullopt : type->format;
}

std::optional<uint32_t> gguf_number(StorageFormat format) {
  const auto at = std::ranges::find(kTensorTypes, std::optional(format), &TensorType::format);
  if (at == std::end(kTensorTypes)) return std::nullopt;
  return at->number;
}

std::string gguf_type_name(uint32_t number) {
  const TensorType* type = find(number);
  return type == nullptr ? fmt::format("type {}", number) : std::string(type->name);
}

std::string gguf_readable_types() {
  std::string names;
  for (const TensorType& type : kTensorTypes)
    if (type.format) names += (names.empty() ? "" : ", ") + std::string(type.name);
  return names;
}

}  // namespace kilin
