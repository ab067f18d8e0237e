#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"
#include "model/block_kinds.h"

namespace kilin {

namespace {

constexpr std::chrono::milliseconds kFollowInterval(20);  // between two looks at interrupts

const EngineOptions& valid(const EngineOptions& options) {
  options.validate();
  return options;
}

MemoryUse use_of(const EngineOptions& options, const Runner& runner, size_t max_sequence_tokens) {
  return {.kv_type = runner.kv_type(),
          .sequences = options.max_sequences,
          .pool_tokens = std::min(options.pool_tokens, options.max_sequences * max_sequence_tokens),
          .prefill_chunk = options.prefill_chunk,
          .threads = runner.threads(),
          .activations = runner.activations()};
}

std::shared_ptr<MemoryPools> pools_of(const KimiLinearForCausalLM& model, const MemoryPlan& plan, const EngineOptions& options,
                                      KvType kv_type) {
  return std::make_shared<MemoryPools>(MemoryPools{RecurrentStatePool(model.state_dimensions(), options.max_sequences),
                                                   LatentKvPool(model.latent_dimensions(kv_type), plan.latent_pages)});
}

// False where a logit is NaN or none is finite, which only broken weights give. As Sampler::sample, and no +inf besides.
bool hold_numbers(std::span<const float> logits) {
  bool any_nan = false;
  float largest = -std::numeric_limits<float>::infinity();
  for (float x : logits) {
    any_nan |= std::isnan(x);
    largest = std::max(largest, x);
  }
  return !any_nan && std::isfinite(largest);
}

}  // namespace

Engine::Engine(LoadedModel model, const EngineOptions& options)
    : model_(std::move(model)),
      options_(valid(options)),
      runner_(model_, {.threads = options.threads,
                       .activations = options.activations,
                       .kv_type = options.kv_type,
                       .kernels = options.kernels}),
      max_sequence_tokens_(std::min(options.pool_tokens, config().model_max_length)),
      plan_(plan_memory(model_.model, model_.weight_bytes(), use_of(options, runner_, max_sequence_tokens_))),
      pools_(pools_of(model_.model, plan_, options, runner_.kv_type())),
      loop_(runner_, pools_, plan_.workspace, {.prefill_chunk = options.prefill_chunk, .max_sequences = options.max_sequences},
            block_kinds(config()), model_.path().string()) {
  if (options.drive == EngineOptions::Drive::Thread) loop_.start_thread();
}

void Engine::check_ids(std::span<const int32_t> ids, size_t before) const {
  if (ids.empty()) raise(ErrorCode::InvalidArgument, "the prompt is empty; expected at least one token");
  for (int32_t id : ids)
    if (id < 0 || static_cast<size_t>(id) >= config().vocab_size)
      raise(ErrorCode::InvalidArgument, "token id {} is outside of the vocabulary: 0 to {}", id, config().vocab_size - 1);
  if (before + ids.size() > max_sequence_tokens_)
    raise(ErrorCode::InvalidArgument, "{} tokens are more than the context of {} holds", before + ids.size(),
          max_sequence_tokens_);
}

std::shared_ptr<Request> Engine::submit(std::vector<int32_t> ids, GenerationParams params, SubmitOptions options) {
  Sequence sequence = options.sequence ? *std::move(options.sequence) : Sequence{.pools = pools_};
  if (sequence.pools != pools_)
    raise(ErrorCode::InvalidArgument,
          "the sequence to continue is another engine's; expected one that a request of this one left");
  check_ids(ids, sequence.tokens());
  params.sampling.validate();
  if (params.max_new_tokens < 1 && !options.prompt_logits)
    raise(ErrorCode::InvalidArgument, "the number of new tokens is 0; expected at least 1");
  // The last token is drawn but not fed, so it needs no place.
  const size_t room = max_sequence_tokens_ - sequence.tokens() - ids.size() + 1;
  const bool context_limits = params.max_new_tokens > room;
  params.max_new_tokens = std::min(params.max_new_tokens, room);
  if (!params.stop_ids) params.stop_ids = model_.stop_ids;
  std::optional<TextStream> stream;
  if (!params.stop_strings.empty()) model_.require_tokenizer();
  if (model_.tokenizer) stream.emplace(*model_.tokenizer, params.stop_strings);

  const size_t prompt_tokens = ids.size();
  auto channel = std::make_shared<RequestChannel>(loop_.mailbox(), std::move(options.on_event));
  auto active = std::make_unique<ActiveRequest>(ActiveRequest::Input{.id = next_id_++,
                                                                     .prompt = std::move(ids),
                                                                     .params = std::move(params),
                                                                     .context_limits = context_limits,
                                                                     .sequence = std::move(sequence),
                                                                     .stream = std::move(stream),
                                                                     .prompt_logits = std::move(options.prompt_logits),
                                                                     .channel = channel});
  auto request = std::make_shared<Request>(std::move(channel), prompt_tokens);
  loop_.mailbox()->put(std::move(active));
  return request;
}

const Answer& Engine::follow(Request& request, const Follower& follower) {
  const bool steps = options_.drive == EngineOptions::Drive::ByCaller;
  try {
    for (bool ended = request.end_was_heard(); !ended;) {
      if (steps && !request.has_ended()) step();
      // Without a thread all that a step gave is there; with one, events are waited for.
      for (std::optional<Event> event; (event = request.next_within(steps ? std::chrono::milliseconds(0) : kFollowInterval));) {
        if (const auto* token = std::get_if<TokenEvent>(&*event)) {
          if (follower.on_token) follower.on_token(*token);
          if (follower.between && !steps) follower.between();
        } else {
          ended = true;
          break;
        }
      }
      if (follower.between) follower.between();
    }
  } catch (...) {
    request.cancel();
    while (!request.has_ended()) steps ? static_cast<void>(step()) : static_cast<void>(request.next_within(kFollowInterval));
    throw;
  }
  return request.wait();
}

void Engine::logits(std::span<const int32_t> ids, const LogitsSink& sink, const std::function<void()>& between) {
  GenerationParams params;
  params.max_new_tokens = 0;
  const LogitsSink checked = [&](size_t position, MatView<const float> rows) {
    for (size_t r = 0; r < rows.rows(); ++r)
      if (!hold_numbers(rows[r]))
        raise(ErrorCode::Corrupt, "{}: the model's logits hold no number; kilin verify looks for broken weights",
              model_.path().string());
    sink(position, rows);
  };
  const auto request = submit({ids.begin(), ids.end()}, params, {.prompt_logits = checked});
  follow(*request, {.between = between});
}

}  // namespace kilin
