#include "loading/export_source.h"

#include "loading/tokenizer_fit.h"

namespace kilin {

GgufExportSource export_source(const ModelFiles& files) {
  GgufExportSource source;
  source.config = files.config();
  source.weights = files.weights(source.config);
  source.tokenizer = files.tokenizer();
  if (source.tokenizer) require_fit(*source.tokenizer, source.config);
  if (source.tokenizer) source.chat_template = files.chat_template();
  return source;
}

}  // namespace kilin
