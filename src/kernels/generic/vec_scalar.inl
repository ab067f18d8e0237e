// Vectors of four floats, by the vector extension that both compilers have on every CPU: SSE2 on x86, NEON on Arm.
//
// Every vec_*.inl defines the same names: Vec of kWidth floats, Mask, Ints; loads and stores of all or of the first n lanes
// (the others read as 0); arithmetic by operators. max and min return their second operand where either is a NaN. The integer
// dot products of the larger sets are in dot_*.inl, because each set may come with VNNI or without.

inline constexpr size_t kWidth = 4;
using Vec = float __attribute__((vector_size(16)));
using Ints = int32_t __attribute__((vector_size(16)));
using Mask = Ints;  // 0 or -1 per lane

inline Vec splat(float x) { return Vec{x, x, x, x}; }
inline Vec zero() { return splat(0); }
inline Ints splat_int(int32_t x) { return Ints{x, x, x, x}; }

inline Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }
inline Vec load_first(const float* p, size_t n) {
  Vec v = zero();
  for (size_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
inline void store_first(float* p, Vec v, size_t n) {
  for (size_t i = 0; i < n; ++i) p[i] = v[i];
}
inline Vec load(const bf16* p) {
  uint16_t __attribute__((vector_size(8))) halves;
  std::memcpy(&halves, p, sizeof halves);
  return reinterpret_cast<Vec>(__builtin_convertvector(halves, Ints) << 16);
}
inline Vec load(const f16* p) { return Vec{to_float(p[0]), to_float(p[1]), to_float(p[2]), to_float(p[3])}; }
template <typename Half>
inline Vec load_first(const Half* p, size_t n) {
  Vec v = zero();
  for (size_t i = 0; i < n; ++i) v[i] = to_float(p[i]);
  return v;
}

inline Ints bits_of(Vec v) { return reinterpret_cast<Ints>(v); }
inline Vec from_bits(Ints v) { return reinterpret_cast<Vec>(v); }
inline Ints plus(Ints a, Ints b) { return a + b; }
inline Ints minus(Ints a, Ints b) { return a - b; }
inline Ints both(Ints a, Ints b) { return a & b; }
template <int N>
inline Ints shift_left(Ints a) {
  return a << N;
}
template <int N>
inline Ints shift_right(Ints a) {  // keeps the sign
  return a >> N;
}
inline void store_upper_halves(bf16* p, Vec v) {
  for (size_t i = 0; i < kWidth; ++i) p[i].bits = static_cast<uint16_t>(static_cast<uint32_t>(bits_of(v)[i]) >> 16);
}

// No fused form here: the baseline has none, and std::fma would be a call.
inline Vec fma(Vec a, Vec b, Vec c) { return a * b + c; }

inline Mask lanes_below(size_t n) { return Ints{0, 1, 2, 3} < splat_int(static_cast<int32_t>(n)); }
inline Mask only_lane(size_t lane) { return Ints{0, 1, 2, 3} == splat_int(static_cast<int32_t>(lane)); }
inline Mask is_nan(Vec v) { return v != v; }
inline Vec select(Mask m, Vec a, Vec b) { return from_bits((m & bits_of(a)) | (~m & bits_of(b))); }
inline Ints select(Mask m, Ints a, Ints b) { return (m & a) | (~m & b); }
inline Vec max(Vec a, Vec b) { return select(a > b, a, b); }
inline Vec min(Vec a, Vec b) { return select(a < b, a, b); }
inline Vec abs(Vec v) { return from_bits(both(bits_of(v), splat_int(0x7fffffff))); }

inline float first_lane(Vec v) { return v[0]; }
inline float sum_lanes(Vec v) { return (v[0] + v[2]) + (v[1] + v[3]); }
inline float max_lane(Vec v) {
  float most = v[0];
  for (size_t i = 1; i < kWidth; ++i) most = most > v[i] ? most : v[i];
  return most;
}

// Bytes and integers. dot4(a, w, x) adds, in each lane, the sum of four products: w bytes of 0 .. 127, x bytes of -127 .. 127.
// dot4_wide takes eight-bit weights of any value, passed as w + kWideBias; whether they are signed or unsigned depends on the
// set. dot2 does so with two int16. look_up takes each byte of w, 0 .. 15, as an index into a table that every 16 bytes repeat.
inline Ints load_ints(const void* p) {
  Ints v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline Ints flip(Ints a, Ints b) { return a ^ b; }
inline Vec to_floats(Ints a) { return __builtin_convertvector(a, Vec); }
inline Ints load_bytes(const uint8_t* p) { return Ints{p[0], p[1], p[2], p[3]}; }
inline Ints load_bytes(const int8_t* p) { return Ints{p[0], p[1], p[2], p[3]}; }
inline Ints round_to_ints(Vec v) {  // to nearest, ties to even: adding 1.5 * 2^23 leaves no bits below 1
  return bits_of(v + splat(0x1.8p23f)) - bits_of(splat(0x1.8p23f));
}
inline void store_low_bytes(int8_t* p, Ints v) {
  for (size_t i = 0; i < kWidth; ++i) p[i] = static_cast<int8_t>(v[i]);
}

inline constexpr int kWideBias = 0;
inline Ints dot4_wide(Ints acc, Ints w, Ints x) {
  int8_t a[4 * kWidth], b[4 * kWidth];
  std::memcpy(a, &w, sizeof a);
  std::memcpy(b, &x, sizeof b);
  for (size_t i = 0; i < kWidth; ++i)
    acc[i] += a[4 * i] * b[4 * i] + a[4 * i + 1] * b[4 * i + 1] + a[4 * i + 2] * b[4 * i + 2] + a[4 * i + 3] * b[4 * i + 3];
  return acc;
}
inline Ints dot4(Ints acc, Ints w, Ints x) { return dot4_wide(acc, w, x); }
inline Ints dot2(Ints acc, Ints a, Ints b) { return acc + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16); }
inline Ints look_up(Ints table, Ints w) {
  uint8_t from[16], at[16];
  std::memcpy(from, &table, sizeof from);
  std::memcpy(at, &w, sizeof at);
  for (uint8_t& byte : at) byte = from[byte];
  return load_ints(at);
}
