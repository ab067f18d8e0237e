// Random numbers by counter: the value is a function of its keys alone, so that neither batch nor scheduling can change it.
#pragma once

#include <cstdint>

namespace kilin {

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection that scatters 64 bits.
inline uint64_t scatter(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// 64 random bits keyed by (seed, counter).
inline uint64_t random_bits(uint64_t seed, uint64_t counter) {
  return scatter(scatter(seed + 0x9e3779b97f4a7c15u) + (counter + 1) * 0x9e3779b97f4a7c15u);
}

/// Uniform in [0, 1), with 53 bits.
inline double random_uniform(uint64_t seed, uint64_t counter) {
  return static_cast<double>(random_bits(seed, counter) >> 11) * 0x1p-53;
}

}  // namespace kilin
