// For every CPU: vectors of four floats.
#include "kernels/generic/includes.h"

namespace kilin::scalar {

inline constexpr Isa kIsa = Isa::Scalar;

// Register tiles: rows x columns of dot products; rows of a KDA panel; keys or rows of attention, two vectors wide.
inline constexpr size_t kDotRows = 2, kDotColumns = 4, kKdaTileRows = 2, kScoreRows = 4;

// Of products with panels: strips of kWidth outputs x rows.
inline constexpr size_t kStrips = 4, kStripRows = 2;

#include "kernels/generic/vec_scalar.inl"

#include "kernels/generic/kernels.inl"

}  // namespace kilin::scalar

namespace kilin::scalar {
#include "kernels/generic/table.inl"
}  // namespace kilin::scalar
