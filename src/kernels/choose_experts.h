// Which experts a router takes, given what it selects by. Plain comparisons: every form of `route` shares them.
#pragma once

#include "kernels/kernel_table.h"

namespace kilin {

/// Writes the params.top_k ids of the best of choice[0, experts), ascending; ties go to the lower id. Where there are more
/// groups than top_groups, all of `choice` outside the best groups becomes -inf first.
void choose_experts(float* choice, size_t experts, const RouteParams& params, int32_t* ids);

}  // namespace kilin
