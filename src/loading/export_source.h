// What GgufExport needs of a model that was opened as files.
#pragma once

#include "gguf/export.h"
#include "loading/model_files.h"

namespace kilin {

/// @throws what reading the files throws
GgufExportSource export_source(const ModelFiles& files);

}  // namespace kilin
