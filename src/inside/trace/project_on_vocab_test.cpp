#include "inside/trace/project_on_vocab.h"

#include "support/trace_fixture.h"

namespace kilin {
namespace {

using testing::some_ids;

class ProjectOnVocab : public testing::TraceTest {};

TEST_F(ProjectOnVocab, OfTheLastLayersOutputIsTheModelsOwnLogits) {
  const std::vector<int32_t> ids = some_ids(300, 71);  // more than one block of rows
  const Saved saved = run({{ids}}, {"layers.5.layer_output"});
  std::vector<float> logits(ids.size() * engine().config().vocab_size);
  project_on_vocab(engine(), saved.begin()->second->of(0).matrix(), {logits.data(), ids.size(), engine().config().vocab_size});
  EXPECT_BYTES_EQ(logits, plain_logits(ids));
}

TEST_F(ProjectOnVocab, OtherShapesAreRefused) {
  std::vector<float> stream(2 * 256), logits(2 * engine().config().vocab_size);
  const size_t vocab = engine().config().vocab_size;
  EXPECT_NE(message_of(ErrorCode::InvalidArgument,
                       [&] {
                         project_on_vocab(engine(), {stream.data(), 2, 255}, {logits.data(), 2, vocab});
                       })
                .find("255 values; expected 256"),
            std::string::npos);
  message_of(ErrorCode::InvalidArgument, [&] {
    project_on_vocab(engine(), {stream.data(), 2, 256}, {logits.data(), 1, vocab});
  });
}

}  // namespace
}  // namespace kilin
