// Vectors of eight floats: AVX2 with FMA and F16C. vec_scalar.inl explains the names.

inline constexpr size_t kWidth = 8;
using Vec = __m256;
using Ints = __m256i;
using Mask = __m256;  // the sign bit of each lane

inline Vec splat(float x) { return _mm256_set1_ps(x); }
inline Vec zero() { return _mm256_setzero_ps(); }
inline Ints splat_int(int32_t x) { return _mm256_set1_epi32(x); }

inline Ints lane_numbers() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
inline Ints first_lanes(size_t n) { return _mm256_cmpgt_epi32(splat_int(static_cast<int32_t>(n)), lane_numbers()); }

inline Vec load_first(const float* p, size_t n) {
  reach(p, n * sizeof(float));
  return _mm256_maskload_ps(p, first_lanes(n));
}
inline void store_first(float* p, Vec v, size_t n) {
  reach(p, n * sizeof(float));
  _mm256_maskstore_ps(p, first_lanes(n), v);
}
inline Vec load(const float* p) { return kReachIsChecked ? load_first(p, kWidth) : _mm256_loadu_ps(p); }
inline void store(float* p, Vec v) { kReachIsChecked ? store_first(p, v, kWidth) : _mm256_storeu_ps(p, v); }

inline Vec widen_bf16(__m128i halves) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16)); }
inline __m128i load_halves(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline __m128i load_first_halves(const void* p, size_t n) {
  uint16_t halves[8] = {};
  std::memcpy(halves, p, n * sizeof(uint16_t));
  return load_halves(halves);
}
inline Vec load(const bf16* p) { return widen_bf16(load_halves(p)); }
inline Vec load_first(const bf16* p, size_t n) { return widen_bf16(load_first_halves(p, n)); }
inline Vec load(const f16* p) { return _mm256_cvtph_ps(load_halves(p)); }
inline Vec load_first(const f16* p, size_t n) { return _mm256_cvtph_ps(load_first_halves(p, n)); }

inline Ints bits_of(Vec v) { return _mm256_castps_si256(v); }
inline Vec from_bits(Ints v) { return _mm256_castsi256_ps(v); }
inline Ints plus(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
inline Ints minus(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
inline Ints both(Ints a, Ints b) { return _mm256_and_si256(a, b); }
template <int N>
inline Ints shift_left(Ints a) {
  return _mm256_slli_epi32(a, N);
}
template <int N>
inline Ints shift_right(Ints a) {
  return _mm256_srai_epi32(a, N);
}
inline void store_upper_halves(bf16* p, Vec v) {
  const __m256i halves = _mm256_srli_epi32(bits_of(v), 16);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packus_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1)));
}

inline Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }

inline Mask lanes_below(size_t n) { return from_bits(first_lanes(n)); }
inline Mask only_lane(size_t lane) {
  return from_bits(_mm256_cmpeq_epi32(lane_numbers(), splat_int(static_cast<int32_t>(lane))));
}
inline Mask is_nan(Vec v) { return _mm256_cmp_ps(v, v, _CMP_UNORD_Q); }
inline Vec select(Mask m, Vec a, Vec b) { return _mm256_blendv_ps(b, a, m); }
inline Ints select(Mask m, Ints a, Ints b) { return bits_of(select(m, from_bits(a), from_bits(b))); }
inline Vec max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
inline Vec min(Vec a, Vec b) { return _mm256_min_ps(a, b); }
inline Vec abs(Vec v) { return from_bits(both(bits_of(v), splat_int(0x7fffffff))); }

inline float first_lane(Vec v) { return _mm256_cvtss_f32(v); }
inline float sum_lanes(Vec v) {
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}
inline float max_lane(Vec v) {
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

inline Ints load_ints(const void* p) {
  reach(p, sizeof(Ints));
  return kReachIsChecked ? _mm256_maskload_epi32(static_cast<const int*>(p), splat_int(-1))
                         : _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
inline Ints flip(Ints a, Ints b) { return _mm256_xor_si256(a, b); }
inline Vec to_floats(Ints a) { return _mm256_cvtepi32_ps(a); }
inline Ints load_bytes(const uint8_t* p) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))); }
inline Ints load_bytes(const int8_t* p) { return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))); }
inline Ints round_to_ints(Vec v) { return _mm256_cvtps_epi32(v); }
inline void store_low_bytes(int8_t* p, Ints v) {
  const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(halves, halves));
}
inline Ints look_up(Ints table, Ints w) { return _mm256_shuffle_epi8(table, w); }
