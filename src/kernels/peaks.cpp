#include "kernels/peaks.h"

#include "kernels/isa.h"

namespace kilin {

const PeakTable* peaks_of(Isa isa) {
  switch (isa) {
    case Isa::Scalar:
      return &scalar::kPeaks;
#if defined(__x86_64__)
    case Isa::Avx2:
      return &avx2::kPeaks;
    case Isa::Avx2Vnni:
      return &avx2_vnni::kPeaks;
    case Isa::Avx512:
      return &avx512::kPeaks;
    case Isa::Avx512Vnni:
    case Isa::Avx512Bf16:
      return &avx512_vnni::kPeaks;
#else
    default:
      break;
#endif
  }
  return nullptr;
}

}  // namespace kilin
