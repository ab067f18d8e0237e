#include "inside/speed/synthetic_past.h"

#include <algorithm>
#include <vector>

#include "core/random.h"

namespace kilin {

void lengthen_with_noise(Sequence& sequence, size_t tokens, size_t vocab_size, uint64_t seed) {
  constexpr size_t kRows = 512;  // of noise, repeated: no kernel's speed depends on the values
  const size_t start = sequence.tokens();
  sequence.pages.grow(start + tokens);
  LatentKvPool& pool = sequence.pools->latents;
  const auto& [layers, width, type] = pool.dimensions();
  std::vector<float> noise(std::min(tokens, kRows) * width);
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<float>(2 * random_uniform(seed, i) - 1);
  for (size_t done = 0; done < tokens; done += kRows) {
    const MatView<const float> rows(noise.data(), std::min(kRows, tokens - done), width);
    for (size_t layer = 0; layer < layers; ++layer) pool.write(layer, sequence.pages.pages(), start + done, rows);
  }
  for (size_t i = 0; i < tokens; ++i)
    sequence.ids.push_back(static_cast<int32_t>(random_bits(seed, noise.size() + i) % vocab_size));
}

}  // namespace kilin
