// Everything that generic/*.inl uses. It must come before the target region opens.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

#include "core/dtype.h"
#include "core/mat_view.h"
#include "kernels/choose.h"
#include "kernels/generic/target.h"
#include "kernels/isa.h"
#include "kernels/kernel_table.h"
#include "kernels/naive/naive.h"
#include "kernels/scratch.h"
