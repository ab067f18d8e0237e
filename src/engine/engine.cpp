#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>

#include "core/error.h"
#include "core/float_mode.h"
#include "engine/memory_plan.h"
#include "kernels/kda.h"

namespace kilin {

namespace {

ActivationType activations_of(const EngineOptions& options, const LoadedModel& model) {
  return options.activations.value_or(model.has_panels() ? ActivationType::int8 : ActivationType::f32);
}

KvType kv_type_of(const EngineOptions& options, ActivationType activations) {
  return options.kv_type.value_or(activations == ActivationType::f32 ? KvType::f32 : KvType::bf16);
}

const EngineOptions& valid(const EngineOptions& options) {
  options.validate();
  return options;
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

[[noreturn]] void raise_no_number(const LoadedModel& model) {
  raise(ErrorCode::Corrupt, "{}: the model's logits hold no number; kilin verify looks for broken weights",
        model.path().string());
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void EngineOptions::validate() const {
  const auto require = [](size_t value, size_t most, const char* name) {
    if (value < 1 || value > most) raise(ErrorCode::InvalidArgument, "{} is {}; expected 1 to {}", name, value, most);
  };
  if (threads != 0) require(threads, kMostThreads, "threads");
  require(prefill_chunk, kMostPrefillChunk, "prefill chunk");
  require(max_sequences, 1u << 12, "max sequences");
  require(context_tokens, size_t{1} << 40, "context");
  select_kernels(CpuInfo::detect(), kernels);
}

Engine::Engine(LoadedModel model, const EngineOptions& options)
    : model_(std::move(model)),
      options_(valid(options)),
      activations_(activations_of(options, model_)),
      kernels_(select_kernels(CpuInfo::detect(), options.kernels)),
      pool_(options.threads == 0 ? usable_threads() : options.threads),
      context_tokens_(std::min(options.context_tokens, config().model_max_length)),
      plan_(plan_memory(model_.model, model_.weight_bytes(),
                        {.kv_type = kv_type_of(options, activations_),
                         .sequences = options.max_sequences,
                         .context_tokens = std::min(options.context_tokens, options.max_sequences * context_tokens_),
                         .prefill_chunk = options.prefill_chunk,
                         .threads = pool_.size()})),
      pools_(std::make_shared<MemoryPools>(
          MemoryPools{RecurrentStatePool(model_.model.state_dimensions(), options.max_sequences),
                      LatentKvPool(model_.model.latent_dimensions(kv_type_of(options, activations_)), plan_.latent_pages)})),
      workspace_(plan_.workspace),
      sampler_(kernels_, config().vocab_size),
      batch_(options.prefill_chunk + options.max_sequences, options.max_sequences) {
  fed_.reserve(options.max_sequences);
  running_.reserve(options.max_sequences);
}

ExecContext Engine::exec_context(Workspace& workspace, Taps* taps) {
  return {pool_, kernels_, communicator_, workspace, taps, activations_, profile_};
}

void Engine::check_ids(std::span<const int32_t> ids, size_t before) const {
  if (ids.empty()) raise(ErrorCode::InvalidArgument, "the prompt is empty; expected at least one token");
  for (int32_t id : ids)
    if (id < 0 || static_cast<size_t>(id) >= config().vocab_size)
      raise(ErrorCode::InvalidArgument, "token id {} is outside of the vocabulary: 0 to {}", id, config().vocab_size - 1);
  if (before + ids.size() > context_tokens_)
    raise(ErrorCode::InvalidArgument, "{} tokens are more than the context of {} holds", before + ids.size(), context_tokens_);
}

Sequence Engine::fresh_sequence() { return {pools_, pools_->states.acquire(), PageTable(pools_->latents), {}}; }

std::shared_ptr<Request> Engine::submit(std::vector<int32_t> ids, GenerationParams params, TokenListener listener,
                                        std::optional<Sequence> sequence) {
  if (sequence && sequence->pools != pools_)
    raise(ErrorCode::InvalidArgument,
          "the sequence to continue is another engine's; expected one that a request of this one left");
  const size_t before = sequence ? sequence->tokens() : 0;
  check_ids(ids, before);
  params.sampling.validate();
  if (params.max_new_tokens < 1) raise(ErrorCode::InvalidArgument, "the number of new tokens is 0; expected at least 1");
  // The last token is sampled but not fed, so it needs no place.
  params.max_new_tokens = std::min(params.max_new_tokens, context_tokens_ - before - ids.size() + 1);
  std::optional<TextStream> stream;
  if (!params.stop_strings.empty()) model_.require_tokenizer();
  if (model_.tokenizer) stream.emplace(*model_.tokenizer, params.stop_strings);
  auto request = std::make_shared<Request>(std::move(params), std::move(listener), sequence ? std::move(*sequence) : Sequence{},
                                           ids, std::move(stream));
  waiting_.push_back(request);
  return request;
}

bool Engine::has_room_for(const Request& request) const {
  const size_t pages = LatentKvPool::pages_for(request.most_fed_tokens());
  const size_t held = request.sequence_.pages.pages().size();
  const bool slot = request.sequence_.state.valid() || pools_->states.free_slots() > 0;
  return slot && running_.size() < options_.max_sequences && (pages <= held || pages - held <= pools_->latents.free_pages());
}

void Engine::end_cancelled() {
  const auto ended = [](const std::shared_ptr<Request>& request) {
    if (request->cancelled_ && !request->finished()) request->end(FinishReason::Cancelled);
    return request->finished();
  };
  std::erase_if(waiting_, ended);
  std::erase_if(running_, ended);
}

// Requests start in order of arrival, and only with all the memory that they can need: none is stopped half-way for want of it.
void Engine::admit() {
  while (!waiting_.empty() && has_room_for(*waiting_.front())) {
    Request& request = *waiting_.front();
    if (!request.sequence_.state.valid()) {
      Sequence fresh = fresh_sequence();
      fresh.ids = std::move(request.sequence_.ids);  // empty, with its reserve
      request.sequence_ = std::move(fresh);
    }
    request.sequence_.pages.grow(request.most_fed_tokens());
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

// A prompt that does not fit is cut at a multiple of 64, which changes no byte. Chunks below 64 are cut as they come; then a
// chunk goes in whole or not at all, so that where it is cut depends on its own length alone.
void Engine::add_prompt_chunk(const std::shared_ptr<Request>& shared, size_t& budget) {
  Request& request = *shared;
  const size_t left = request.unfed().size(), start = request.sequence_.tokens();
  size_t take = std::min(left, options_.prefill_chunk);
  if (options_.prefill_chunk >= kKdaChunk) {
    take = std::min(take, budget);
    if (take < left) take = std::max(start, (start + take) / kKdaChunk * kKdaChunk) - start;
  }
  if (take == 0 || take > budget) return;
  budget -= take;
  batch_.add(request.sequence_, ForwardMode::Extend, request.unfed().first(take));
  if (take == left) batch_.want_last_row();
  fed_.push_back({.request = shared, .tokens = take, .samples = take == left, .id = {}, .shown = {}});
}

void Engine::build_batch() {
  batch_.clear();
  fed_.clear();
  for (const auto& request : running_) {
    if (request->in_prompt()) continue;
    batch_.add(request->sequence_, ForwardMode::Decode, request->unfed());
    batch_.want_last_row();
    fed_.push_back({.request = request, .tokens = 1, .samples = true, .id = {}, .shown = {}});
  }
  size_t budget = options_.prefill_chunk;
  for (const auto& request : running_)
    if (request->in_prompt()) add_prompt_chunk(request, budget);
}

StepResult Engine::step() {
  end_cancelled();
  admit();
  if (running_.empty()) return waiting_.empty() ? StepResult::Idle : StepResult::Blocked;
  build_batch();
  try {
    compute_batch();
  } catch (...) {
    for (const Fed& fed : fed_) fed.request->end(FinishReason::Error);
    fed_.clear();
    end_cancelled();
    throw;
  }
  std::erase_if(running_, [](const auto& request) { return request->finished(); });
  call_listeners();
  return StepResult::Ran;
}

// Forward, sample, account: after this every request of the batch is where its tokens are.
void Engine::compute_batch() {
  const auto start = std::chrono::steady_clock::now();
  FloatModeGuard float_mode;
  ExecContext ctx = context();
  Workspace::Frame frame(workspace_);
  auto hidden = frame.matrix(batch_.logit_rows(), config().hidden_size);  // of the rows that get a token
  auto logits = frame.matrix(kLogitRows, config().vocab_size);
  model_.model.forward(ctx, batch_.view(*pools_), hidden);

  size_t row = 0;  // of `hidden`: the requests that sample, in the order of fed_
  for (Fed& fed : fed_) {
    if (!fed.samples) continue;
    const size_t in_block = row % kLogitRows;
    if (in_block == 0) {
      const size_t rows = std::min(kLogitRows, hidden.rows() - row);
      model_.model.logits(ctx, hidden.rows(row, row + rows), logits.rows(0, rows));
    }
    const Request& request = *fed.request;
    const StageScope stage = ctx.stage(Stage::Sampling);
    fed.id = sampler_.sample(logits[in_block], request.params_.sampling, request.ids_, request.ids_.size());
    ++row;
  }
  const double seconds = seconds_since(start);
  for (Fed& fed : fed_) {
    fed.request->feed(fed.tokens, seconds);
    if (fed.id)
      fed.shown = fed.request->accept(*fed.id);
    else if (fed.samples)
      fed.request->end(FinishReason::Error);
  }
}

void Engine::call_listeners() {
  std::exception_ptr first;
  for (const Fed& fed : fed_) {
    if (!fed.id || !fed.request->listener_) continue;
    try {
      fed.request->listener_({*fed.id, fed.shown});
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  fed_.clear();
  if (first) std::rethrow_exception(first);
}

// Ends a request whose driver does not go on, so that no later step calls its listener.
void Engine::abandon(Request& request) {
  if (!request.finished()) request.end(FinishReason::Cancelled);
  end_cancelled();
}

void Engine::run(Request& request, const std::function<void()>& between) {
  try {
    while (!request.finished()) {
      if (step() == StepResult::Blocked && !request.finished())
        raise(ErrorCode::ResourceExhausted,
              "nothing can run: a request needs {} tokens of context, and other sequences hold the memory",
              request.most_fed_tokens());
      if (between) between();
    }
  } catch (...) {
    abandon(request);
    throw;
  }
  if (request.finish_reason() == FinishReason::Error) raise_no_number(model_);
}

void Engine::logits(std::span<const int32_t> ids, const std::function<void(size_t, MatView<const float>)>& sink) {
  check_ids(ids, 0);
  FloatModeGuard float_mode;
  Sequence sequence = fresh_sequence();
  sequence.pages.grow(ids.size());
  ExecContext ctx = context();
  const size_t chunk =
      options_.prefill_chunk >= kKdaChunk ? options_.prefill_chunk / kKdaChunk * kKdaChunk : options_.prefill_chunk;
  Workspace::Frame frame(workspace_);
  auto hidden_rows = frame.matrix(options_.prefill_chunk, config().hidden_size);
  auto logits = frame.matrix(kLogitRows, config().vocab_size);
  for (size_t done = 0; done < ids.size();) {
    const auto part = ids.subspan(done, std::min(chunk, ids.size() - done));
    batch_.clear();
    batch_.add(sequence, ForwardMode::Extend, part);
    batch_.want_all_rows();
    const MatView<float> hidden = hidden_rows.rows(0, part.size());
    model_.model.forward(ctx, batch_.view(*pools_), hidden);
    for (size_t row = 0; row < part.size(); row += kLogitRows) {
      const size_t rows = std::min(kLogitRows, part.size() - row);
      model_.model.logits(ctx, hidden.rows(row, row + rows), logits.rows(0, rows));
      for (size_t r = 0; r < rows; ++r)
        if (!hold_numbers(logits[r])) raise_no_number(model_);
      sink(done + row, logits.rows(0, rows));
    }
    sequence.ids.insert(sequence.ids.end(), part.begin(), part.end());
    done += part.size();
  }
}

}  // namespace kilin
