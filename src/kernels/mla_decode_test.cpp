// Absorbed attention over a block of latents.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/mla.h"
#include "support/compare.h"
#include "support/kernels.h"

namespace kilin {
namespace {

using testing::Form;
using testing::Matrix;
using testing::Random;

struct Decode {
  Decode(size_t head_count, size_t key_count, size_t rank_dim, size_t rope_dim, uint64_t seed, KvType kv_type = KvType::f32)
      : heads(head_count),
        keys(key_count),
        rank(rank_dim),
        rope(rope_dim),
        type(kv_type),
        row_bytes(latent_row_bytes(type, rank + rope)),
        random(seed),
        q_latent(heads, rank, random, -2, 2),
        q_rope(heads, rope, random, -2, 2) {
    // Each page ends with its last row, so that a sanitiser sees a read beyond it.
    for (size_t s = 0; s < keys; ++s) {
      if (s % kMlaPage == 0) pages.emplace_back(std::min(kMlaPage, keys - s) * row_bytes);
      const std::vector<float> row = random.vector(rank + rope);
      store_latent_row(type, row.data(), row.size(), pages.back().data() + s % kMlaPage * row_bytes);
    }
  }
  std::vector<float> latent(size_t s) const {
    std::vector<float> row(rank + rope);
    load_latent_row(type, pages[s / kMlaPage].data() + s % kMlaPage * row_bytes, row.size(), row.data());
    return row;
  }
  size_t heads, keys, rank, rope;
  KvType type;
  size_t row_bytes;
  Random random;
  Matrix q_latent, q_rope;
  std::vector<std::vector<std::byte>> pages;
};

struct Partial {
  std::vector<float> max, sum, out;
};

using DecodeKernel = void (*KernelTable::*)(const MlaDecodeBlock&, std::span<float>) noexcept;

Partial decode(const Form& form, const Decode& in, size_t begin, size_t end,
               DecodeKernel kernel = &KernelTable::mla_decode_block) {
  const size_t heads = end - begin;
  Partial result{std::vector<float>(heads, 7.f), std::vector<float>(heads, 7.f), {}};
  Matrix out(heads, in.rank);
  std::vector<float> scratch(mla_decode_scratch(heads, in.rank + in.rope), std::nanf(""));
  std::vector<const std::byte*> pages;
  for (const auto& page : in.pages) pages.push_back(page.data());
  (form.table.*kernel)({.q_latent = in.q_latent.view().rows(begin, end),
                        .q_rope = in.q_rope.view().rows(begin, end),
                        .latents = {in.type, pages, in.keys},
                        .scale = 0.3f,
                        .upcoming = pages.front(),
                        .max = result.max.data(),
                        .sum = result.sum.data(),
                        .out = out.view()},
                       scratch);
  EXPECT_TRUE(out.gaps_are_intact()) << form.name;
  result.out = out.values();
  return result;
}

Partial reference(const Decode& in) {
  Partial result;
  for (size_t h = 0; h < in.heads; ++h) {
    std::vector<double> p, values(in.rank);
    double most = -1e300, total = 0;
    for (size_t s = 0; s < in.keys; ++s) {
      const std::vector<float> latent = in.latent(s);
      double score = 0;
      for (size_t d = 0; d < in.rank + in.rope; ++d)
        score += static_cast<double>(d < in.rank ? in.q_latent.at(h, d) : in.q_rope.at(h, d - in.rank)) *
                 static_cast<double>(latent[d]);
      p.push_back(score * static_cast<double>(0.3f));
      most = std::max(most, p.back());
    }
    for (double& x : p) total += x = std::exp(x - most);
    for (size_t s = 0; s < in.keys; ++s) {
      const std::vector<float> latent = in.latent(s);
      for (size_t c = 0; c < in.rank; ++c) values[c] += p[s] * static_cast<double>(latent[c]);
    }
    result.max.push_back(static_cast<float>(most)), result.sum.push_back(static_cast<float>(total));
    for (double value : values) result.out.push_back(static_cast<float>(value));
  }
  return result;
}

TEST(MlaDecodeBlock, AgreesWithDoubleForEveryKindOfLatents) {
  for (KvType type : {KvType::f32, KvType::bf16, KvType::q8})
    for (const Decode& in : {Decode(1, 1, 3, 2, 1, type), Decode(4, 70, 64, 16, 2, type), Decode(32, 512, 40, 9, 3, type),
                             Decode(45, 130, 33, 1, 4, type), Decode(17, 17, 70, 16, 5, type), Decode(3, 64, 130, 70, 6, type),
                             Decode(9, 129, 64, 16, 7, type)}) {
      const Partial expected = reference(in);
      for (const Form& form : testing::all_forms()) {
        const Partial r = decode(form, in, 0, in.heads);
        const std::string what = form.name + ", " + std::string(to_string(type)) + ", heads " + std::to_string(in.heads);
        EXPECT_CLOSE_TO_MAX(r.max, expected.max, 1e-6) << what;
        EXPECT_CLOSE_TO_MAX(r.sum, expected.sum, 3e-6) << what;
        EXPECT_CLOSE_TO_MAX(r.out, expected.out, 3e-6) << what;
      }
    }
}

// The op for latents of bf16, which may round queries. Sets without products of bf16 round nothing.
constexpr DecodeKernel kBf16 = &KernelTable::mla_decode_block_bf16;

bool rounds_to_bf16(const Form& form) { return form.table.mla_decode_block_bf16 != form.table.mla_decode_block; }

// With queries that are bf16 to begin with.
Decode with_rounded_queries(Decode in) {
  for (Matrix* q : {&in.q_latent, &in.q_rope})
    for (size_t h = 0; h < in.heads; ++h)
      for (size_t c = 0; c < q->view().cols(); ++c) q->at(h, c) = to_float(to_bf16(q->at(h, c)));
  return in;
}

std::vector<Decode> bf16_cases() {
  constexpr KvType type = KvType::bf16;
  std::vector<Decode> cases;
  for (const Decode& in : {Decode(1, 1, 3, 2, 1, type), Decode(4, 70, 64, 16, 2, type), Decode(32, 512, 40, 9, 3, type),
                           Decode(45, 131, 33, 1, 4, type), Decode(17, 17, 70, 16, 5, type), Decode(3, 64, 130, 70, 6, type),
                           Decode(9, 511, 64, 16, 7, type), Decode(33, 65, 256, 64, 8, type), Decode(2, 2, 95, 300, 9, type)})
    cases.push_back(with_rounded_queries(in));
  return cases;
}

TEST(MlaDecodeBlockBf16, RoundsNothingButQueriesAndExponentials) {
  for (const Decode& in : bf16_cases()) {
    const Partial expected = reference(in);
    for (const Form& form : testing::all_forms()) {
      const Partial r = decode(form, in, 0, in.heads, kBf16);
      const std::string what = form.name + ", heads " + std::to_string(in.heads) + ", keys " + std::to_string(in.keys);
      const double tolerance = rounds_to_bf16(form) ? 1.0 / 256 : 3e-6;  // an exponential's: half a unit of its last bit
      EXPECT_CLOSE_TO_MAX(r.max, expected.max, 1e-6) << what;
      EXPECT_CLOSE_TO_MAX(r.sum, expected.sum, tolerance) << what;
      EXPECT_CLOSE_TO_MAX(r.out, expected.out, tolerance) << what;
    }
  }
}

// Where a table's own exponential rounds the other way, the last bit differs.
TEST(MlaDecodeBlockBf16, AgreesWithTheNaiveFormUpToFewRoundings) {
  for (const Decode& in : bf16_cases()) {
    const Partial expected = decode({"naive", naive_kernels()}, in, 0, in.heads, kBf16);
    for (const Form& form : testing::all_forms()) {
      if (!rounds_to_bf16(form)) continue;
      const Partial r = decode(form, in, 0, in.heads, kBf16);
      const std::string what = form.name + ", heads " + std::to_string(in.heads) + ", keys " + std::to_string(in.keys);
      EXPECT_CLOSE_TO_MAX(r.max, expected.max, 1e-6) << what;
      EXPECT_CLOSE_TO_MAX(r.sum, expected.sum, 2e-4) << what;
      EXPECT_CLOSE_TO_MAX(r.out, expected.out, 1e-3) << what;
    }
  }
}

TEST(MlaDecodeBlockBf16, OneKeyIsReadBackAsItIs) {
  const Decode in(5, 1, 40, 9, 12, KvType::bf16);
  for (const Form& form : testing::all_forms()) {
    const Partial r = decode(form, in, 0, in.heads, kBf16);
    for (size_t h = 0; h < in.heads; ++h) {
      EXPECT_EQ(r.sum[h], 1) << form.name;
      for (size_t c = 0; c < in.rank; ++c) EXPECT_EQ(r.out[h * in.rank + c], in.latent(0)[c]) << form.name;
    }
  }
}

TEST(MlaDecodeBlockBf16, AKeyThatIsNotANumberSpoilsEveryHead) {
  Decode in(5, 3, 40, 9, 13, KvType::bf16);
  reinterpret_cast<bf16*>(in.pages[0].data())[49 + 7] = to_bf16(std::nanf(""));
  for (const Form& form : testing::all_forms()) {
    const Partial r = decode(form, in, 0, in.heads, kBf16);
    for (size_t h = 0; h < in.heads; ++h) {
      EXPECT_TRUE(std::isnan(r.sum[h])) << form.name;
      for (size_t c = 0; c < in.rank; ++c) EXPECT_TRUE(std::isnan(r.out[h * in.rank + c])) << form.name;
    }
  }
}

void expect_same_bytes_for_any_heads(const Decode& in, DecodeKernel kernel) {
  for (const Form& form : testing::all_forms()) {
    const Partial whole = decode(form, in, 0, in.heads, kernel);
    for (size_t part : {1, 8, 16, 20}) {
      Partial parts;
      for (size_t h = 0; h < in.heads; h += part) {
        const Partial r = decode(form, in, h, std::min(h + part, in.heads), kernel);
        parts.max.insert(parts.max.end(), r.max.begin(), r.max.end());
        parts.sum.insert(parts.sum.end(), r.sum.begin(), r.sum.end());
        parts.out.insert(parts.out.end(), r.out.begin(), r.out.end());
      }
      EXPECT_BYTES_EQ(parts.max, whole.max) << form.name << " by " << part;
      EXPECT_BYTES_EQ(parts.sum, whole.sum) << form.name << " by " << part;
      EXPECT_BYTES_EQ(parts.out, whole.out) << form.name << " by " << part;
    }
  }
}

TEST(MlaDecodeBlock, HeadsAloneOrTogetherGiveTheSameBytes) {
  expect_same_bytes_for_any_heads(Decode(37, 200, 50, 7, 6), &KernelTable::mla_decode_block);
}

TEST(MlaDecodeBlockBf16, HeadsAloneOrTogetherGiveTheSameBytes) {
  expect_same_bytes_for_any_heads(Decode(37, 201, 50, 7, 6, KvType::bf16), kBf16);
}

}  // namespace
}  // namespace kilin
