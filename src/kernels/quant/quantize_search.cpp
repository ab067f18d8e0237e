// The search. Each group first finds the scale (and offset) that is best for it alone: it tries several ranges of the levels
// and takes the least-squares fit with the least error. Then d (and dmin) are fixed, each group tries the whole-number scales
// around its own and compares their true errors, and d is fitted again to the chosen scales.
//
// All errors of a block weigh the same. Weighting them by the square of the element, as others do, gave no less KL divergence
// on models/tiny and a larger error of the weights.
#include <array>
#include <limits>

#include "kernels/quant/quantize_rules.h"

namespace kilin::quant {

namespace {

constexpr int kSweeps =
    2;  // of whole-number scales and a refit of d; a third gains 0.2 % of the error and costs a third of the time
constexpr int kRefinements = 2;  // of a group's own fit
constexpr size_t kMostGroups = 16;

/// A group's best choice so far.
template <typename Choice>
struct Best {
  Choice choice{};
  float error = std::numeric_limits<float>::infinity();

  bool offer(const Choice& other, float its_error) {
    if (!(its_error < error)) return false;
    choice = other;
    error = its_error;
    return true;
  }
};

// The fp16 scale that a search starts from. Not 0 where fp16 rounds d to 0 but larger group scales can make up for it.
float starting_half(float d, float most_scale) {
  const float half = finite_half(d);
  return half == 0 && std::fabs(d) * most_scale >= 0x1p-25f ? std::copysign(0x1p-24f, d) : half;
}

// Symmetric formats ------------------------------------------------------------------------------------------------------

// The best scale for the group's given codes, and the error with these codes (the codes nearest to that scale do better).
Affine fitted(const Group& group, const Moments& m, float& its_error) {
  const float scale = m.qq > 0 ? m.xq / m.qq : 0;
  its_error = group.sum_xx - scale * m.xq;
  return {scale, 0};
}

float search_scale(const Grid& grid, const Group& group) {
  const float most = peak(group.x, group.n);
  Best<Affine> best;
  const auto offer_fit = [&](float scale) {
    float its_error = 0;
    const Affine fit = fitted(group, moments(group, grid.levels, {scale, 0}), its_error);
    return best.offer(fit, its_error);
  };
  for (int i = 0; i < grid.steps; ++i) {
    const float stretch = grid.first_stretch + grid.step * static_cast<float>(i);
    offer_fit(most / (grid.levels.low * stretch));
    if (grid.levels.low < -grid.levels.high)
      offer_fit(most / (grid.levels.high * stretch));  // with the other sign the levels lie elsewhere
  }
  for (int i = 0; i < kRefinements; ++i)
    if (!offer_fit(best.choice.scale)) break;
  return best.choice.scale;
}

void search_one_scale(const Grid& grid, const Group& group, BlockParts& parts) {
  parts.scales[0] = 1;
  Best<float> best;
  float d = search_scale(grid, group);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    d = finite_half(d);
    best.offer(d, error(group, grid.levels, {d, 0}));
    float unused = 0;
    d = fitted(group, moments(group, grid.levels, {d, 0}), unused).scale;
  }
  parts.d = best.choice;
}

void search_signed_groups(const Grid& grid, const std::array<Group, kMostGroups>& groups, size_t count, BlockParts& parts) {
  std::array<float, kMostGroups> wanted{};
  for (size_t g = 0; g < count; ++g) wanted[g] = search_scale(grid, groups[g]);
  const int least = -grid.most_scale - 1;
  float d = starting_half(peak(wanted.data(), count) / static_cast<float>(least), static_cast<float>(grid.most_scale));

  Best<BlockParts> best;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    BlockParts now;
    now.d = d;
    float total = 0, xa = 0, aa = 0;  // sums of x a and a^2, a = scale * q
    for (size_t g = 0; g < count; ++g) {
      const int centre = whole(wanted[g] * inverse(d), least, grid.most_scale);
      Best<int> scale;
      for (int s = std::max(centre - 2, least); s <= std::min(centre + 2, grid.most_scale); ++s)
        scale.offer(s, error(groups[g], grid.levels, {d * static_cast<float>(s), 0}));
      now.scales[g] = static_cast<int8_t>(scale.choice);
      total += scale.error;
      const auto s = static_cast<float>(scale.choice);
      wanted[g] = d * s;
      const Moments m = moments(groups[g], grid.levels, {wanted[g], 0});
      xa += s * m.xq;
      aa += s * s * m.qq;
    }
    best.offer(now, total);
    if (aa > 0) d = finite_half(xa / aa);
  }
  parts = best.choice;
}

// Affine formats ---------------------------------------------------------------------------------------------------------

// The best scale and offset for the group's given codes.
Affine fitted_affine(const Group& group, const Moments& m, float& its_error) {
  const float determinant = group.count() * m.qq - m.q * m.q;
  Affine fit;
  if (determinant > 0) {
    fit.scale = (group.count() * m.xq - group.sum_x * m.q) / determinant;
    fit.offset = (m.qq * group.sum_x - m.q * m.xq) / determinant;
  }
  if (!(determinant > 0) || fit.offset > 0 || fit.scale < 0) fit = {m.qq > 0 ? std::max(m.xq / m.qq, 0.0f) : 0, 0};
  its_error = group.sum_xx - fit.scale * m.xq - fit.offset * group.sum_x;
  return fit;
}

Affine search_affine(const Grid& grid, const Group& group) {
  const Span span = span_of(group.x, group.n);
  if (!(span.high - span.low > 0x1p-30f)) return {0, span.low};
  const float middle = 0.5f * (span.low + span.high);
  Best<Affine> best;
  const auto offer_fit = [&](Affine at) {
    float its_error = 0;
    const Affine fit = fitted_affine(group, moments(group, grid.levels, at), its_error);
    return best.offer(fit, its_error);
  };
  for (int i = 0; i < grid.steps; ++i) {
    const float stretch = grid.first_stretch + grid.step * static_cast<float>(i);
    const float scale = (span.high - span.low) / (grid.levels.high * stretch);
    offer_fit({scale, std::min(middle - 0.5f * scale * grid.levels.high, 0.0f)});
  }
  for (int i = 0; i < kRefinements; ++i)
    if (!offer_fit(best.choice)) break;
  return best.choice;
}

struct Pair {
  int scale;
  int minimum;
};

// The best whole-number scale and minimum around `wanted`.
Best<Pair> search_pair(const Grid& grid, const Group& group, float d, float dmin, Affine wanted) {
  Best<Pair> best;
  const auto affine = [&](Pair pair) -> Affine {
    return {d * static_cast<float>(pair.scale), -(dmin * static_cast<float>(pair.minimum))};
  };
  const auto offer = [&](Pair pair) {
    if (pair.minimum >= 0 && pair.minimum <= grid.most_scale) best.offer(pair, error(group, grid.levels, affine(pair)));
  };
  const int centre = whole(wanted.scale * inverse(d), 0, grid.most_scale);
  const int start = whole(-wanted.offset * inverse(dmin), 0, grid.most_scale);
  offer({centre, start});
  for (int s = std::max(centre - 2, 0); s <= std::min(centre + 2, grid.most_scale); ++s) {
    const Affine at = affine({s, start});
    const Moments m = moments(group, grid.levels, at);
    const float offset = (group.sum_x - at.scale * m.q) / group.count();  // best for these codes
    offer({s, whole(-offset * inverse(dmin), 0, grid.most_scale)});
  }
  const Pair found = best.choice;
  offer({found.scale, found.minimum - 1});
  offer({found.scale, found.minimum + 1});
  return best;
}

void search_affine_groups(const Grid& grid, const std::array<Group, kMostGroups>& groups, size_t count, BlockParts& parts) {
  std::array<Affine, kMostGroups> wanted{};
  float most_scale = 0;
  float most_minimum = 0;
  for (size_t g = 0; g < count; ++g) {
    wanted[g] = search_affine(grid, groups[g]);
    most_scale = std::max(most_scale, wanted[g].scale);
    most_minimum = std::max(most_minimum, -wanted[g].offset);
  }
  const auto most = static_cast<float>(grid.most_scale);
  float d = starting_half(most_scale / most, most);
  float dmin = starting_half(most_minimum / most, most);

  Best<BlockParts> best;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    BlockParts now;
    now.d = d;
    now.dmin = dmin;
    float total = 0;
    float aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;  // sums of products of x, a = scale * q and b = minimum
    for (size_t g = 0; g < count; ++g) {
      const Best<Pair> pair = search_pair(grid, groups[g], d, dmin, wanted[g]);
      now.scales[g] = static_cast<int8_t>(pair.choice.scale);
      now.offsets[g] = static_cast<int8_t>(-pair.choice.minimum);
      total += pair.error;
      wanted[g] = group_affine(now, g);
      const Moments m = moments(groups[g], grid.levels, wanted[g]);
      const auto scale = static_cast<float>(pair.choice.scale);
      const auto minimum = static_cast<float>(pair.choice.minimum);
      aa += scale * scale * m.qq;
      ab += scale * minimum * m.q;
      bb += minimum * minimum * groups[g].count();
      xa += scale * m.xq;
      xb += minimum * groups[g].sum_x;
    }
    best.offer(now, total);
    // Least squares of x = d a - dmin b.
    const float determinant = aa * bb - ab * ab;
    if (determinant > 0) {
      d = finite_half(std::max((xa * bb - xb * ab) / determinant, 0.0f));
      dmin = finite_half(std::max((xa * ab - xb * aa) / determinant, 0.0f));
    } else if (aa > 0) {
      d = finite_half(std::max(xa / aa, 0.0f));
    }
  }
  parts = best.choice;
}

}  // namespace

void searched_block(const Grid& grid, const float* x, BlockParts& parts) {
  const BlockTraits& traits = block_traits(grid.format);
  const size_t count = traits.elements / traits.group;
  std::array<Group, kMostGroups> groups{};
  for (size_t g = 0; g < count; ++g) groups[g] = make_group(x + g * traits.group, traits.group);
  if (traits.has_offsets)
    search_affine_groups(grid, groups, count, parts);
  else if (grid.most_scale > 1)
    search_signed_groups(grid, groups, count, parts);
  else
    search_one_scale(grid, groups[0], parts);
  choose_block_codes(grid, x, parts);
}

}  // namespace kilin::quant
