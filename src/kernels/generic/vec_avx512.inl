// Vectors of sixteen floats: AVX-512 F, BW, CD, DQ and VL. vec_scalar.inl explains the names.

inline constexpr size_t kWidth = 16;
using Vec = __m512;
using Ints = __m512i;
using Mask = __mmask16;

inline Vec splat(float x) { return _mm512_set1_ps(x); }
inline Vec zero() { return _mm512_setzero_ps(); }
inline Ints splat_int(int32_t x) { return _mm512_set1_epi32(x); }

inline Mask lanes_below(size_t n) { return static_cast<Mask>((1u << n) - 1u); }
inline Mask only_lane(size_t lane) { return static_cast<Mask>(1u << lane); }

inline Vec load_first(const float* p, size_t n) {
  reach(p, n * sizeof(float));
  return _mm512_maskz_loadu_ps(lanes_below(n), p);
}
inline void store_first(float* p, Vec v, size_t n) {
  reach(p, n * sizeof(float));
  _mm512_mask_storeu_ps(p, lanes_below(n), v);
}
inline Vec load(const float* p) { return kReachIsChecked ? load_first(p, kWidth) : _mm512_loadu_ps(p); }
inline void store(float* p, Vec v) { kReachIsChecked ? store_first(p, v, kWidth) : _mm512_storeu_ps(p, v); }

// Masked intrinsics with all lanes set: g++ 12 warns that the plain ones, whose pass-through is undefined, use an uninitialised
// variable.
inline constexpr Mask kAll = 0xffff;

inline Vec widen_bf16(__m256i halves) {
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, _mm512_maskz_cvtepu16_epi32(kAll, halves), 16));
}
inline __m256i load_first_halves(const void* p, size_t n) {
  reach(p, n * sizeof(uint16_t));
  return _mm256_maskz_loadu_epi16(lanes_below(n), p);
}
inline __m256i load_halves(const void* p) {
  return kReachIsChecked ? load_first_halves(p, kWidth) : _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
inline Vec load(const bf16* p) { return widen_bf16(load_halves(p)); }
inline Vec load_first(const bf16* p, size_t n) { return widen_bf16(load_first_halves(p, n)); }
inline Vec load(const f16* p) { return _mm512_maskz_cvtph_ps(kAll, load_halves(p)); }
inline Vec load_first(const f16* p, size_t n) { return _mm512_maskz_cvtph_ps(kAll, load_first_halves(p, n)); }

inline Ints bits_of(Vec v) { return _mm512_castps_si512(v); }
inline Vec from_bits(Ints v) { return _mm512_castsi512_ps(v); }
inline Ints plus(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
inline Ints minus(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
inline Ints both(Ints a, Ints b) { return _mm512_and_si512(a, b); }
template <int N>
inline Ints shift_left(Ints a) {
  return _mm512_maskz_slli_epi32(kAll, a, N);
}
template <int N>
inline Ints shift_right(Ints a) {
  return _mm512_maskz_srai_epi32(kAll, a, N);
}

inline void store_upper_halves(bf16* p, Vec v) {
  reach(p, kWidth * sizeof(bf16));
  _mm512_mask_cvtepi32_storeu_epi16(p, kAll, shift_right<16>(bits_of(v)));
}

inline Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }

inline Mask is_nan(Vec v) { return _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q); }
inline Vec select(Mask m, Vec a, Vec b) { return _mm512_mask_blend_ps(m, b, a); }
inline Ints select(Mask m, Ints a, Ints b) { return _mm512_mask_blend_epi32(m, b, a); }
inline Vec max(Vec a, Vec b) { return _mm512_maskz_max_ps(kAll, a, b); }
inline Vec min(Vec a, Vec b) { return _mm512_maskz_min_ps(kAll, a, b); }
inline Vec abs(Vec v) { return from_bits(both(bits_of(v), splat_int(0x7fffffff))); }

// Avoids _mm512_reduce_* and _mm512_castps512_ps256, which cause the same warning.
inline float first_lane(Vec v) { return _mm512_cvtss_f32(v); }
inline __m256 low_half(Vec v) { return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7); }
inline __m256 high_half(Vec v) { return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15); }
inline float sum_lanes(Vec v) {
  const __m256 eight = _mm256_add_ps(low_half(v), high_half(v));
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}
// Two quarters of a, then two of b.
template <int kOrder>
inline Vec quarters(Vec a, Vec b) {
  return _mm512_maskz_shuffle_f32x4(kAll, a, b, kOrder);
}
template <int kOrder>
inline Vec permute(Vec v) {
  return _mm512_maskz_permute_ps(kAll, v, kOrder);
}
// Stores sum_lanes of each of four vectors, by the same additions but all four at once.
inline void store_sums(const Vec (&v)[4], float* to, size_t step) {
  const Vec ab = quarters<0x44>(v[0], v[1]) + quarters<0xee>(v[0], v[1]);
  const Vec cd = quarters<0x44>(v[2], v[3]) + quarters<0xee>(v[2], v[3]);
  Vec four = quarters<0x88>(ab, cd) + quarters<0xdd>(ab, cd);  // a vector in each quarter
  four = four + permute<0xee>(four);
  four = four + permute<0x55>(four);
  for (size_t i = 0; i < 4; ++i) to[i * step] = four[4 * i];
}
inline float max_lane(Vec v) {
  const __m256 eight = _mm256_max_ps(low_half(v), high_half(v));
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

inline Ints load_ints(const void* p) {
  reach(p, sizeof(Ints));
  return kReachIsChecked ? _mm512_maskz_loadu_epi32(kAll, p) : _mm512_loadu_si512(p);
}
inline Ints flip(Ints a, Ints b) { return _mm512_xor_si512(a, b); }
inline Vec to_floats(Ints a) { return _mm512_maskz_cvtepi32_ps(kAll, a); }
inline Ints load_bytes(const uint8_t* p) {
  return _mm512_maskz_cvtepu8_epi32(kAll, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline Ints load_bytes(const int8_t* p) {
  return _mm512_maskz_cvtepi8_epi32(kAll, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline Ints round_to_ints(Vec v) { return _mm512_maskz_cvtps_epi32(kAll, v); }
inline void store_low_bytes(int8_t* p, Ints v) {
  reach(p, kWidth);
  _mm512_mask_cvtepi32_storeu_epi8(p, kAll, v);
}
inline Ints look_up(Ints table, Ints w) { return _mm512_shuffle_epi8(table, w); }
