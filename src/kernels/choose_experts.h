// Chooses experts by their selection scores. Plain comparisons, shared by every form of `route`.
#pragma once

#include "kernels/kernel_table.h"

namespace kilin {

/// Writes the ids of the params.top_k best of choice[0, experts), ascending; ties go to the lower id. If there are more groups
/// than top_groups, first sets `choice` to -inf outside the best groups.
void choose_experts(float* choice, size_t experts, const RouteParams& params, int32_t* ids);

}  // namespace kilin
