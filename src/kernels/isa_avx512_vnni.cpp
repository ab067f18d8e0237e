// AVX-512 F, BW, CD, DQ, VL and VNNI: integer dot products in one instruction.
#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/generic/includes.h"

KILIN_TARGET_BEGIN("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")
namespace kilin::avx512_vnni {

inline constexpr Isa kIsa = Isa::Avx512Vnni;

// Register tiles: rows x columns of dot products; rows of one or two KDA panels; keys or rows of attention, two vectors wide.
inline constexpr size_t kDotRows = 6, kDotColumns = 4, kKdaTileRows = 8, kScoreRows = 8;

// Of products with panels: strips of kWidth outputs x rows.
inline constexpr size_t kStrips = 4, kStripRows = 4;

#include "kernels/generic/vec_avx512.inl"

#include "kernels/generic/dot_avx512_vnni.inl"

#include "kernels/generic/kernels.inl"

}  // namespace kilin::avx512_vnni
KILIN_TARGET_END

namespace kilin::avx512_vnni {
#include "kernels/generic/table.inl"
}  // namespace kilin::avx512_vnni

#endif
