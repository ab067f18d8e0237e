// One token's row of latents as the pool stores it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kilin {

/// How latents are stored. Attention reads them back from the pool in every mode, so that a token's latent is rounded the same
/// way whether its query came with it or later.
enum class KvType : uint8_t { f32, bf16, q8 };

std::string_view to_string(KvType type);
/// @throws InvalidArgument naming the known ones
KvType parse_kv_type(std::string_view name);

/// Values of a q8 row that share a scale. It divides kv_lora_rank, so that the rope part, which is not normed, has scales of
/// its own. One fp32 scale per 64 bytes costs 6 %.
inline constexpr size_t kLatentGroup = 64;

/// Bytes of a row of `width` values: 4 or 2 per value; in q8 an fp32 scale per group, then one byte per value. Returns the
/// largest size_t if the true number does not fit.
size_t latent_row_bytes(KvType type, size_t width);

/// Rounds a row. In q8 a value becomes the nearest of -127 .. 127 times its group's scale. The scale is the group's largest
/// magnitude / 127, rounded up to 16 significant bits, so that storing a row that was read back keeps its bytes. A group that
/// holds an infinity or a NaN reads back as NaNs.
/// @param to latent_row_bytes bytes, of any alignment. Thread-safe for different rows, as load_latent_row is
void store_latent_row(KvType type, const float* from, size_t width, std::byte* to);
void load_latent_row(KvType type, const std::byte* from, size_t width, float* to);

}  // namespace kilin
