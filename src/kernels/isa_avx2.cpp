// AVX2 with FMA and F16C: sixteen registers of eight floats.
#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/generic/includes.h"

KILIN_TARGET_BEGIN("avx2,fma,f16c")
namespace kilin::avx2 {

inline constexpr Isa kIsa = Isa::Avx2;

// Register tiles: rows x columns of dot products; rows of a KDA panel; keys or rows of attention, two vectors wide.
inline constexpr size_t kDotRows = 4, kDotColumns = 3, kKdaTileRows = 4, kScoreRows = 4;

// Of products with panels: strips of kWidth outputs x rows.
inline constexpr size_t kStrips = 2, kStripRows = 4;

#include "kernels/generic/vec_avx2.inl"

#include "kernels/generic/dot_avx2.inl"

#include "kernels/generic/kernels.inl"

}  // namespace kilin::avx2
KILIN_TARGET_END

namespace kilin::avx2 {
#include "kernels/generic/table.inl"
}  // namespace kilin::avx2

#endif
