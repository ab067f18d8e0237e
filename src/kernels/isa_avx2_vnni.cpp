// AVX2 with FMA, F16C and AVX-VNNI: integer dot products in one instruction.
#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/generic/includes.h"

KILIN_TARGET_BEGIN("avx2,avxvnni,fma,f16c")
namespace kilin::avx2_vnni {

inline constexpr Isa kIsa = Isa::Avx2Vnni;

// Register tiles: rows x columns of dot products; rows of a KDA panel; keys or rows of attention, two vectors wide.
inline constexpr size_t kDotRows = 4, kDotColumns = 3, kKdaTileRows = 4, kScoreRows = 4;

// Of products with panels: strips of kWidth outputs x rows.
inline constexpr size_t kStrips = 2, kStripRows = 4;

#include "kernels/generic/vec_avx2.inl"

#include "kernels/generic/dot_avx2_vnni.inl"

#include "kernels/generic/kernels.inl"

}  // namespace kilin::avx2_vnni
KILIN_TARGET_END

namespace kilin::avx2_vnni {
#include "kernels/generic/table.inl"
}  // namespace kilin::avx2_vnni

#endif
