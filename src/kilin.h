// The library in one header, for those who embed it: #include <kilin/kilin.h>.
#pragma once

#include "core/cpu_info.h"
#include "core/error.h"
#include "core/mapped_ranges.h"
#include "core/version.h"
#include "engine/engine.h"
#include "engine/request.h"
#include "inside/lens/lens.h"
#include "inside/trace/interleaved_trace.h"
#include "inside/trace/project_on_vocab.h"
#include "inside/trace/trace.h"
#include "loading/loaded_model.h"
