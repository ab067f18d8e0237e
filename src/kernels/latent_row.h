// One token's row of latents as the pool stores it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kilin {

/// How latents are stored. Attention reads them back through the pool in every mode, so that a token costs the same rounding
/// whether its query came with it or later.
enum class KvType : uint8_t { f32, bf16, q8 };

std::string_view to_string(KvType type);
/// @throws InvalidArgument naming the known ones
KvType parse_kv_type(std::string_view name);

/// Values of a q8 row that share a scale. It divides kv_lora_rank, so that the rope part, which no norm keeps in bounds, has
/// scales of its own; and one fp32 scale in 64 bytes costs 6 %.
inline constexpr size_t kLatentGroup = 64;

/// Bytes of a row of `width` values: 4 or 2 a value; in q8 a byte a value after an fp32 scale a group. The largest number if
/// the true one does not fit.
size_t latent_row_bytes(KvType type, size_t width);

/// Rounds a row. In q8 a value becomes the nearest of -127 .. 127 times its group's scale, which is the group's largest
/// magnitude / 127, rounded up to 16 significant bits: so a row that was read and is stored again keeps its bytes. A group that
/// holds an infinity or a NaN reads back as NaNs.
/// @param to latent_row_bytes bytes, of any alignment. Thread-safe for different rows, as load_latent_row is
void store_latent_row(KvType type, const float* from, size_t width, std::byte* to);
void load_latent_row(KvType type, const std::byte* from, size_t width, float* to);

}  // namespace kilin
