#include "inside/trace/project_on_vocab.h"

#include <algorithm>

#include "core/error.h"
#include "core/float_mode.h"
#include "model/dry_run.h"

namespace kilin {

namespace {

constexpr size_t kBlockRows = 256;  // rows that are normed and copied at a time

}  // namespace

void project_on_vocab(Engine& engine, MatView<const float> stream, MatView<float> logits) {
  const ModelConfig& config = engine.config();
  if (stream.cols() != config.hidden_size)
    raise(ErrorCode::InvalidArgument, "rows of the stream have {} values; expected {}, the hidden_size", stream.cols(),
          config.hidden_size);
  if (logits.rows() != stream.rows() || logits.cols() != config.vocab_size)
    raise(ErrorCode::InvalidArgument, "logits are [{}, {}]; expected [{}, {}]", logits.rows(), logits.cols(), stream.rows(),
          config.vocab_size);
  const KimiLinearForCausalLM& model = engine.loaded().model;
  const size_t block = std::min(kBlockRows, std::max<size_t>(stream.rows(), 1));
  FloatModeGuard float_mode;
  Workspace workspace(Workspace::rounded(block * config.hidden_size * sizeof(float)) +
                      workspace_bytes(model, {.tokens = 0, .logit_rows = block, .threads = engine.threads()}));
  const FairLock lock(engine.runner().computing());
  ExecContext ctx = engine.runner().exec_context(workspace);
  Workspace::Frame frame(workspace);
  const MatView<float> normed = frame.matrix(block, config.hidden_size);
  for (size_t row = 0; row < stream.rows(); row += block) {
    const size_t rows = std::min(block, stream.rows() - row);
    model.final_norm(ctx, stream.rows(row, row + rows), normed.rows(0, rows));
    model.logits(ctx, normed.rows(0, rows), logits.rows(row, row + rows));
  }
}

}  // namespace kilin
