// The library in one header, for those who embed it: #include <kilin/kilin.h>.
#pragma once

#include "core/cpu_info.h"
#include "core/error.h"
#include "core/version.h"
#include "engine/engine.h"
#include "engine/lens/lens.h"
#include "engine/loaded_model.h"
#include "engine/request.h"
#include "engine/trace/interleaved_trace.h"
#include "engine/trace/project_on_vocab.h"
#include "engine/trace/trace.h"
