#include "inside/lens/lens.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/error.h"
#include "inside/lens/guesses.h"
#include "inside/trace/project_on_vocab.h"
#include "inside/trace/trace_run.h"

namespace kilin {

namespace {

constexpr size_t kBlockRows = 64;  // rows whose logits are in memory at a time: 42 MB for the published vocabulary

size_t triangle(size_t rows) { return rows * (rows + 1) / 2; }

// The block size, in tokens per cell side, at which all patterns together hold at most `most_cells` cells.
size_t block_for(const ModelConfig& config, size_t tokens, size_t most_cells) {
  const size_t patterns = config.mla_layers() * config.num_attention_heads;
  size_t block = 1;
  while (block < tokens && patterns * triangle((tokens + block - 1) / block) > most_cells) ++block;
  return block;
}

float half_life(double log_decay) {
  return log_decay < 0 ? static_cast<float>(std::numbers::ln2 / -log_decay) : std::numeric_limits<float>::infinity();
}

class Looker final : public TraceObserver {
 public:
  Looker(Engine& engine, std::span<const int32_t> ids, const LensOptions& options)
      : engine_(engine),
        config_(engine.config()),
        options_(options),
        tokens_(ids.size()),
        last_layer_(config_.num_hidden_layers - 1) {
    lens_.ids.assign(ids.begin(), ids.end());
    LogitLens& l = lens_.logit_lens;
    l.rows = config_.num_hidden_layers + 1;
    l.guesses = std::min(options.guesses, config_.vocab_size);
    l.best.resize(l.rows * tokens_ * l.guesses);
    l.actual.resize(l.rows * tokens_);
    lens_.attention_block = block_for(config_, tokens_, options.attention_cells);
  }

  bool wants(const Moment& moment) override {
    switch (moment.site.value) {
      case Value::TokenEmbeddings:
      case Value::LayerOutput:
      case Value::AttentionProbabilities:
      case Value::Betas:
      case Value::ExpertIndices:
      case Value::ExpertWeights:
      case Value::Decays:
        return true;
      default:
        return false;
    }
  }
  void reached(const Moment&) override {}
  bool is_done(const Moment& moment) const override {
    return moment.site.value == Value::LayerOutput && layer_of(moment) == last_layer_;
  }

  void at(const TracedValue& value) override {
    const TensorView v = value.of(0);
    switch (value.moment().site.value) {
      case Value::TokenEmbeddings:
        return read_stream(0, v);
      case Value::LayerOutput:
        return read_stream(layer_of(value.moment()) + 1, v);
      case Value::AttentionProbabilities:
        return read_attention(layer_of(value.moment()), v);
      case Value::Decays:
        return read_decays(layer_of(value.moment()), v);
      case Value::Betas:
        lens_.kda.back().betas = elements_of<float>(v);
        return;
      case Value::ExpertIndices:
        return read_experts(layer_of(value.moment()), v);
      case Value::ExpertWeights:
        lens_.experts.back().weights = elements_of<float>(v);
        return;
      default:
        return;
    }
  }

  Lens take() { return std::move(lens_); }

 private:
  static size_t layer_of(const Moment& moment) { return static_cast<size_t>(moment.site.layer); }

  // The elements of rows that may be apart.
  template <typename T>
  static std::vector<T> elements_of(const TensorView& v) {
    const Tensor copy = copy_of(v);
    return {copy.as<T>(), copy.as<T>() + copy.elements()};
  }

  void read_stream(size_t row, const TensorView& v) {
    const MatView<const float> stream(v.as<float>(), tokens_, config_.hidden_size, v.stride(0));
    const size_t vocab = config_.vocab_size;
    if (logits_.empty()) {
      logits_ = Tensor(DType::f32, {std::min(kBlockRows, tokens_), vocab});
      probabilities_ = Tensor(DType::f32, {engine_.threads(), vocab});
    }
    for (size_t begin = 0; begin < tokens_; begin += kBlockRows) {
      const size_t end = std::min(begin + kBlockRows, tokens_);
      project_on_vocab(engine_, stream.rows(begin, end), logits_.matrix().rows(0, end - begin));
      read_logits(row, begin, end);
      if (options_.progress) options_.progress(row * tokens_ + end, lens_.logit_lens.rows * tokens_);
    }
  }

  void read_logits(size_t row, size_t begin, size_t end) {
    LogitLens& l = lens_.logit_lens;
    Workspace none(0);
    const FairLock lock(engine_.runner().computing());
    engine_.runner().exec_context(none).pool.parallel_for(end - begin, 1, [&](const Slice& slice) {
      for (size_t token = begin + slice.begin; token < begin + slice.end; ++token) {
        const bool is_last = token + 1 == tokens_;
        const size_t cell = row * tokens_ + token;
        const auto actual =
            read_guesses(engine_.kernels(), logits_.matrix()[token - begin], probabilities_.matrix()[slice.worker],
                         is_last ? std::nullopt : std::optional(lens_.ids[token + 1]),
                         std::span(l.best).subspan(cell * l.guesses, l.guesses));
        if (!actual)
          raise(ErrorCode::Corrupt, "{}: the logits of token {} hold no number",
                row == 0 ? std::string("token_embeddings") : fmt::format("layers.{}.layer_output", row - 1), token);
        l.actual[cell] = *actual;
      }
    });
  }

  void read_attention(size_t layer, const TensorView& v) {
    const size_t heads = v.shape()[0], block = lens_.attention_block, cells = triangle((tokens_ + block - 1) / block);
    AttentionPatterns patterns = {.layer = layer, .heads = heads, .probabilities = std::vector<float>(heads * cells)};
    for (size_t h = 0; h < heads; ++h) {
      float* cell = patterns.probabilities.data() + h * cells;
      for (size_t q = 0; q < tokens_; ++q) {
        const float* row = v.as<float>() + h * v.stride(0) + q * v.stride(1);
        float* into = cell + triangle(q / block);
        for (size_t k = 0; k <= q; ++k) into[k / block] = std::max(into[k / block], row[k]);
      }
    }
    lens_.attention.push_back(std::move(patterns));
  }

  void read_decays(size_t layer, const TensorView& v) {
    const size_t heads = v.shape()[1], channels = v.shape()[2];
    MemoryPatterns memory = {
        .layer = layer, .heads = heads, .channels = channels, .half_lives = {}, .token_half_lives = {}, .betas = {}};
    std::vector<double> sums(heads * channels);
    for (size_t token = 0; token < tokens_; ++token) {
      const float* decays = v.as<float>() + token * v.stride(0);
      for (size_t h = 0; h < heads; ++h) {
        double logarithms = 0;
        for (size_t c = 0; c < channels; ++c) {
          const float decay = decays[h * v.stride(1) + c];
          sums[h * channels + c] += decay;
          logarithms += std::log(double{half_life(decay)});
        }
        memory.token_half_lives.push_back(static_cast<float>(std::exp(logarithms / static_cast<double>(channels))));
      }
    }
    for (double sum : sums) memory.half_lives.push_back(half_life(sum / static_cast<double>(tokens_)));
    lens_.kda.push_back(std::move(memory));
  }

  void read_experts(size_t layer, const TensorView& v) {
    ExpertChoices choices = {.layer = layer,
                             .experts = config_.num_experts,
                             .chosen = v.shape()[1],
                             .indices = elements_of<int32_t>(v),
                             .weights = {},
                             .load = std::vector<uint32_t>(config_.num_experts)};
    for (int32_t expert : choices.indices) ++choices.load[static_cast<size_t>(expert)];
    lens_.experts.push_back(std::move(choices));
  }

  Engine& engine_;
  const ModelConfig& config_;
  const LensOptions& options_;
  size_t tokens_;
  size_t last_layer_;
  Tensor logits_;         // [some rows, vocab]
  Tensor probabilities_;  // [threads, vocab]
  Lens lens_;
};

}  // namespace

Lens look_inside(Engine& engine, std::span<const int32_t> ids, const LensOptions& options) {
  if (ids.size() > LensOptions::kMostTokens)
    raise(ErrorCode::InvalidArgument, "the prompt has {} tokens; a lens shows at most {}", ids.size(),
          LensOptions::kMostTokens);
  const TracePrompt prompt = {.ids = {ids.begin(), ids.end()}};
  trace_steps(engine.config(), {&prompt, 1}, {});
  Looker looker(engine, ids, options);
  run_trace(engine, {&prompt, 1}, {}, looker);
  return looker.take();
}

}  // namespace kilin
