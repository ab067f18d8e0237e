#include "loading/tokenizer_fit.h"

#include <string_view>

#include "core/error.h"

namespace kilin {

namespace {

void require_token(const Tokenizer& tokenizer, std::string_view key, int32_t id) {
  if (static_cast<size_t>(id) >= tokenizer.size())
    raise(ErrorCode::Corrupt, "{}: has {} tokens, special ones included, and the configuration's {} is {} (is it cut short?)",
          tokenizer.source(), tokenizer.size(), key, id);
}

}  // namespace

void require_fit(const Tokenizer& tokenizer, const ModelConfig& config) {
  tokenizer.require_vocabulary(config.vocab_size);
  for (const int32_t id : config.eos_token_ids) require_token(tokenizer, "eos_token_id", id);
  if (config.bos_token_id) require_token(tokenizer, "bos_token_id", *config.bos_token_id);
  if (config.pad_token_id) require_token(tokenizer, "pad_token_id", *config.pad_token_id);
  // Special tokens come behind the others, so that [BOS] slides down by as many as are missing; with these the embedding has no
  // row too few. Otherwise bos_token_id is the author's choice.
  const auto bos = tokenizer.special("[BOS]");
  if (!bos || !config.bos_token_id || *bos >= *config.bos_token_id) return;
  const auto missing = static_cast<size_t>(*config.bos_token_id - *bos);
  if (tokenizer.size() + missing <= config.vocab_size)
    raise(ErrorCode::Corrupt,
          "{}: token '[BOS]' has id {}, and the configuration's bos_token_id is {} (is it cut short by {}?)",
          tokenizer.source(), *bos, *config.bos_token_id, missing);
}

}  // namespace kilin
