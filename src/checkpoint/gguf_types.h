// The numbers that GGUF files give to value types and to storage formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/storage_format.h"

namespace kilin {

/// Types of metadata values, by their number in the file.
enum class GgufType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

inline constexpr uint32_t kGgufTypes = 13;

/// "u8", "string", ... @pre a known type
std::string_view to_string(GgufType type);

/// Bytes of a value; 0 for strings and arrays, which say their own length.
size_t size_of(GgufType type);

/// The storage format of a tensor type's number; nothing for one that Kilin does not read.
std::optional<StorageFormat> gguf_storage_format(uint32_t number);

/// The inverse; nothing for a dtype that GGUF does not know (unsigned integers, booleans).
std::optional<uint32_t> gguf_number(StorageFormat format);

/// The name of any tensor type, also of one that Kilin does not read: "Q4_K", "IQ2_XXS", "type 99".
std::string gguf_type_name(uint32_t number);

/// The names of all tensor types that Kilin reads, with commas between.
std::string gguf_readable_types();

}  // namespace kilin
