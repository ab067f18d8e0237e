// Integer dot products by VNNI, 512 bits: unsigned weights of eight bits times signed activations, no saturation.

inline constexpr int kWideBias = 128;

inline Ints dot2(Ints acc, Ints a, Ints b) { return _mm512_dpwssd_epi32(acc, a, b); }
inline Ints dot4(Ints acc, Ints w, Ints x) { return _mm512_dpbusd_epi32(acc, w, x); }
inline Ints dot4_wide(Ints acc, Ints w, Ints x) { return _mm512_dpbusd_epi32(acc, w, x); }
