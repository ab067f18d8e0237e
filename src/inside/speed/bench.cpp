#include "inside/speed/bench.h"

#include <algorithm>
#include <chrono>

#include "core/error.h"
#include "core/random.h"
#include "inside/speed/row_lengths.h"
#include "inside/speed/synthetic_past.h"

namespace kilin {

namespace {

constexpr double kLongestPrompt_s = 10;  // longest time to read a prompt as the past, unless --past says otherwise

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

std::string_view to_string(PastBy by) {
  switch (by) {
    case PastBy::Nothing:
      return "nothing";
    case PastBy::Prompt:
      return "prompt";
    case PastBy::Noise:
      return "noise";
  }
  return "?";
}

Bench::Bench(Engine& engine, BenchPlan plan, std::function<void()> between)
    : engine_(engine), plan_(std::move(plan)), between_(std::move(between)) {}

std::vector<int32_t> Bench::random_ids(size_t n) {
  std::vector<int32_t> ids(n);
  for (int32_t& id : ids) id = static_cast<int32_t>(random_bits(plan_.seed, drawn_++) % engine_.config().vocab_size);
  return ids;
}

// Draws tokens rather than taking the most probable ones: a model that repeats itself would use the same experts again and
// again.
GenerationParams Bench::sampling(size_t max_new_tokens) {
  GenerationParams params;
  params.sampling.temperature = 1;
  params.sampling.seed = random_bits(plan_.seed, drawn_++);
  params.max_new_tokens = max_new_tokens;
  params.stop_ids.emplace();  // none, so that a row gets its planned length
  return params;
}

void Bench::run(Request& request) { engine_.follow(request, {.between = between_}); }

StageProfile Bench::fresh_profile() const {
  return plan_.times == BenchPlan::Times::Stages ? StageProfile(StageProfile::steady_clock()) : StageProfile();
}

double Bench::first_token_s() {
  const auto request = engine_.submit(random_ids(1), sampling(1));
  const auto start = Clock::now();
  run(*request);
  return seconds_since(start);
}

void Bench::prepare(size_t probe_bytes_per_thread) {
  probe_.emplace(engine_.kernels().isa, engine_.threads(), probe_bytes_per_thread);
  const auto start = Clock::now();
  const size_t tokens = std::min(kWarmUpPrompt, engine_.max_sequence_tokens());
  read_prompt(tokens);
  prompt_tokens_per_s_ = static_cast<double>(tokens) / seconds_since(start);
}

Sequence Bench::read_prompt(size_t tokens) {
  GenerationParams params = sampling(1);
  params.keep_sequence = true;
  const auto request = engine_.submit(random_ids(tokens), std::move(params));
  run(*request);
  return request->take_sequence();
}

Sequence Bench::make_past(size_t depth, PastBy by) {
  if (by == PastBy::Prompt) return read_prompt(depth);
  const size_t prompt = std::min(depth, kNoisePrompt);
  Sequence sequence = read_prompt(prompt);
  lengthen_with_noise(sequence, depth - prompt, engine_.config().vocab_size, plan_.seed);
  return sequence;
}

BenchRow Bench::prompt(size_t tokens) {
  BenchRow row = {.work = BenchRow::Work::Prompt, .prompt_tokens = tokens, .tokens = tokens, .steps = 1};
  row.profile = fresh_profile();
  row.before = probe_->measure();
  engine_.set_profile(&row.profile);
  for (size_t i = 0; i < plan_.repeat; ++i) {
    const auto request = engine_.submit(random_ids(tokens), sampling(1));
    const auto start = Clock::now();
    run(*request);
    row.seconds.push_back(seconds_since(start));
  }
  engine_.set_profile(nullptr);
  row.after = probe_->measure();
  prompt_tokens_per_s_ = row.tokens_per_s().median;
  return row;
}

BenchRow Bench::generation(size_t depth) {
  BenchRow row = {.work = BenchRow::Work::Generation, .depth = depth, .sequences = 1};
  std::optional<Sequence> past;
  if (depth > 0) {
    const bool is_quick = static_cast<double>(depth) <= kLongestPrompt_s * prompt_tokens_per_s_;
    row.past = plan_.past.value_or(is_quick ? PastBy::Prompt : PastBy::Noise);
    past = make_past(depth, row.past);
  }
  const auto request = engine_.submit(random_ids(1), sampling(generated_tokens(plan_)), {.sequence = std::move(past)});
  measure_steps({&request, 1}, row);
  return row;
}

BenchRow Bench::batch(size_t sequences) {
  BenchRow row = {.work = BenchRow::Work::Batch, .depth = kBatchPrompt, .past = PastBy::Prompt, .sequences = sequences};
  std::vector<std::shared_ptr<Request>> requests;
  for (size_t i = 0; i < sequences; ++i)
    requests.push_back(engine_.submit(random_ids(kBatchPrompt), sampling(generated_tokens(plan_))));
  measure_steps(requests, row);
  return row;
}

// Runs one step of every request. A request ends here only by an error.
void Bench::step_all(std::span<const std::shared_ptr<Request>> requests) {
  engine_.step();
  for (const auto& request : requests)
    if (request->has_ended()) request->wait();
}

void Bench::measure_steps(std::span<const std::shared_ptr<Request>> requests, BenchRow& row) {
  row.tokens = plan_.generate * requests.size();
  row.steps = plan_.generate;
  row.profile = fresh_profile();
  const auto end_all = [&] {
    engine_.set_profile(nullptr);
    for (const auto& request : requests) request->cancel();
    engine_.step();  // ends the requests and returns their memory
  };
  try {
    const auto in_prompt = [](const auto& request) { return request->prompt_tokens_read() < request->prompt_tokens(); };
    while (std::ranges::any_of(requests, in_prompt)) {
      step_all(requests);
      if (between_) between_();
    }
    for (size_t i = 0; i < kWarmUpSteps; ++i) step_all(requests);
    row.before = probe_->measure();
    engine_.set_profile(&row.profile);
    for (size_t i = 0; i < plan_.repeat; ++i) {
      const auto start = Clock::now();
      for (size_t step = 0; step < plan_.generate; ++step) {
        step_all(requests);
        if (between_) between_();
      }
      row.seconds.push_back(seconds_since(start));
    }
    row.after = probe_->measure();
  } catch (...) {
    end_all();
    throw;
  }
  end_all();
}

}  // namespace kilin
