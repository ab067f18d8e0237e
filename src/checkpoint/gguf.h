// The bytes of one GGUF file, parsed and checked whole before a tensor is handed out.
//
//   file     = "GGUF" version:u32 tensors:u64 keys:u64 key* tensor* padding data            all little-endian
//   key      = name:string type:u32 value                       string = length:u64 byte*
//   value    = the type's bytes | string | element:u32 count:u64 value*                     no arrays of arrays
//   tensor   = name:string rank:u32 extent:u64[rank] type:u32 offset:u64                    first extent contiguous
//   data     = begins at a multiple of the alignment (key general.alignment, else 32); so does each tensor in it. Writers take
//              powers of two from 8 on, but nothing here needs that
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/gguf_metadata.h"
#include "checkpoint/tensor_store.h"

namespace kilin {

inline constexpr std::string_view kGgufMagic = "GGUF";
inline constexpr uint32_t kGgufVersion = 3;
inline constexpr size_t kGgufDefaultAlignment = 32;
inline constexpr std::string_view kGgufAlignmentKey = "general.alignment";

/// Keys, tensors, and bytes of their names, of one file at most: far beyond any model, and small enough to be held in memory.
inline constexpr size_t kMaxGgufKeys = size_t{1} << 16;
inline constexpr size_t kMaxGgufNameBytes = 65535;
inline constexpr size_t kMaxGgufTensors = size_t{1} << 20;

/// What a file says. Both refer to the bytes that were parsed.
struct GgufContents {
  uint32_t version = kGgufVersion;
  GgufMetadata metadata;
  std::vector<StoredTensor> tensors;  ///< by name, ascending; extents row-major, so in the reverse of the file's order
};

/// Parses and checks a whole file's bytes: counts and lengths against what is there before anything is allocated, types, ranks,
/// sizes (without overflow), whole blocks, alignment, range, and that no two tensors overlap.
/// @param source names the file in errors. @throws Corrupt; Unsupported for version 1, big-endian files and tensor types that
/// Kilin does not read
GgufContents parse_gguf(std::span<const std::byte> file, const std::string& source);

}  // namespace kilin
