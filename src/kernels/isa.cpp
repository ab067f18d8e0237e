#include "kernels/isa.h"

namespace kilin {

const KernelTable* kernels_of(Isa isa) {
  switch (isa) {
    case Isa::Scalar:
      return &scalar::kKernels;
#if defined(__x86_64__)
    case Isa::Avx2:
      return &avx2::kKernels;
    case Isa::Avx2Vnni:
      return &avx2_vnni::kKernels;
    case Isa::Avx512:
      return &avx512::kKernels;
    case Isa::Avx512Vnni:
      return &avx512_vnni::kKernels;
    case Isa::Avx512Bf16:
      return &avx512_bf16::kernels();
#else
    default:
      break;
#endif
  }
  return nullptr;
}

const MathTable* math_of(Isa isa) {
  switch (isa) {
    case Isa::Scalar:
      return &scalar::kMath;
#if defined(__x86_64__)
    case Isa::Avx2:
      return &avx2::kMath;
    case Isa::Avx2Vnni:
      return &avx2_vnni::kMath;
    case Isa::Avx512:
      return &avx512::kMath;
    case Isa::Avx512Vnni:
    case Isa::Avx512Bf16:
      return &avx512_vnni::kMath;
#else
    default:
      break;
#endif
  }
  return nullptr;
}

bool supports(const CpuInfo& cpu, Isa isa) {
  switch (isa) {
    case Isa::Scalar:
      return true;
    case Isa::Avx2:
      return cpu.avx2 && cpu.fma && cpu.f16c;
    case Isa::Avx2Vnni:
      return cpu.avx2 && cpu.fma && cpu.f16c && cpu.avx_vnni;
    case Isa::Avx512:
      return cpu.avx512;
    case Isa::Avx512Vnni:
      return cpu.avx512 && cpu.avx512_vnni;
    case Isa::Avx512Bf16:
      return cpu.avx512 && cpu.avx512_vnni && cpu.avx512_bf16;
  }
  return false;
}

}  // namespace kilin
