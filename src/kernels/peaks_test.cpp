// The loops do all the work that they claim: if a compiler dropped some, the measured peak would be wrong.
#include "kernels/peaks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/random.h"
#include "kernels/isa.h"

namespace kilin {
namespace {

constexpr uint64_t kRounds = 1000;

std::vector<const PeakTable*> peaks_here() {
  std::vector<const PeakTable*> tables;
  for (Isa isa : kIsas)
    if (supports(CpuInfo::detect(), isa) && peaks_of(isa) != nullptr) tables.push_back(peaks_of(isa));
  return tables;
}

TEST(Peaks, Int8DotsAddAllTheirProducts) {
  for (const PeakTable* peaks : peaks_here()) {
    const uint64_t products = peaks->int8_dot.operations_per_round / 2 * kRounds;
    EXPECT_EQ(peaks->int8_dot.run(kRounds), static_cast<float>(products * 3));  // of 3 and 1
    EXPECT_EQ(peaks->int8_dot.run(0), 0.0f);
  }
}

// Chain c of 12 goes from c to c / 2 + 1, and so on. If two were equal, a compiler would compute only one.
TEST(Peaks, Fp32ChainsBeginApartAndEndAtTwo) {
  for (const PeakTable* peaks : peaks_here()) {
    const auto lanes = static_cast<float>(peaks->fp32_fma.operations_per_round / 2 / 12);
    EXPECT_EQ(peaks->fp32_fma.run(0), lanes * 66);
    EXPECT_EQ(peaks->fp32_fma.run(1), lanes * (66 / 2.0f + 12));
    EXPECT_EQ(peaks->fp32_fma.run(2), lanes * (66 / 4.0f + 18));
    EXPECT_EQ(peaks->fp32_fma.run(kRounds), lanes * 24);
  }
}

TEST(Peaks, Bf16DotsAddAllTheirProducts) {
  const ArithmeticPeak peak = bf16_dot_peak(CpuInfo::detect());
  if (!peak.exists()) GTEST_SKIP() << "this CPU has no bf16 dot product";
  EXPECT_EQ(peak.run(kRounds), static_cast<float>(peak.operations_per_round / 2 * kRounds) * 0x1p-24f);
}

TEST(Peaks, BothStreamsAreReadWhole) {
  constexpr size_t kWords = 3 * kReadStep / sizeof(uint32_t);
  std::vector<uint32_t> words(2 * kWords + 1);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(random_bits(1, i));
  uint32_t expected = 0;
  for (size_t i = 0; i < 2 * kWords; ++i) expected ^= words[1 + i];
  for (const PeakTable* peaks : peaks_here()) {  // unaligned too
    const auto* first = reinterpret_cast<const std::byte*>(words.data() + 1);
    EXPECT_EQ(peaks->read(first, first + kWords * sizeof(uint32_t), kWords * sizeof(uint32_t)), expected);
    EXPECT_EQ(peaks->read(first, first, 0), 0u);
  }
}

}  // namespace
}  // namespace kilin
