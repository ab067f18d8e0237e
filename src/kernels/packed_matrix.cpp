#include "kernels/packed_matrix.h"

namespace kilin {

std::string_view to_string(WeightFormat format) {
  switch (format) {
    case WeightFormat::f32:
      return "f32";
    case WeightFormat::f16:
      return "f16";
    case WeightFormat::bf16:
      return "bf16";
  }
  return "unknown";
}

}  // namespace kilin
