// Everything that generic/*.inl uses. Include it before the target region opens.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "core/dtype.h"
#include "core/mat_view.h"
#include "kernels/choose_experts.h"
#include "kernels/generic/reach.h"
#include "kernels/generic/target.h"
#include "kernels/isa.h"
#include "kernels/kernel_table.h"
#include "kernels/quant/block_layout.h"
#include "kernels/quant/panels.h"
#include "kernels/scratch.h"
