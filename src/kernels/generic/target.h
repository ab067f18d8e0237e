// Functions between KILIN_TARGET_BEGIN and KILIN_TARGET_END are compiled for the named instruction sets. A whole file compiled
// with -mavx512f would also compile the std templates that it uses for AVX-512, and the linker may keep those copies for the
// whole program; a region opened after the last #include avoids that. g++ and clang spell it differently.
//
// Use no lambdas inside a region: they are not compiled for its target.
#pragma once

#define KILIN_PRAGMA(text) _Pragma(#text)

// For large functions that several templates share: inlined into each, they would take minutes to compile.
#define KILIN_NOINLINE __attribute__((noinline))

// For functions that only prefetch: g++ 12 sees no side effect in them and drops their calls unless they are inlined first.
#define KILIN_INLINE inline __attribute__((always_inline))

#if defined(__clang__)
#define KILIN_TARGET_BEGIN(isa) KILIN_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define KILIN_TARGET_END KILIN_PRAGMA(clang attribute pop)
#define KILIN_UNROLL KILIN_PRAGMA(unroll)
#else
#define KILIN_TARGET_BEGIN(isa) KILIN_PRAGMA(GCC push_options) KILIN_PRAGMA(GCC target(isa))
#define KILIN_TARGET_END KILIN_PRAGMA(GCC pop_options)
#define KILIN_UNROLL KILIN_PRAGMA(GCC unroll 16)
#endif
