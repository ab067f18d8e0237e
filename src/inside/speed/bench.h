// How fast a model runs here, and how fast it could: prompts, generation after a past of some length, several sequences at
// once. The figures come from an Engine, through its public functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "inside/speed/machine_probe.h"
#include "taps/stage_profile.h"

namespace kilin {

/// How the past of a row is made.
enum class PastBy : uint8_t {
  Nothing,  ///< there is none
  Prompt,   ///< by reading a prompt of random ids
  Noise,    ///< by lengthen_with_noise, after a short prompt
};
std::string_view to_string(PastBy by);  ///< "nothing", "prompt", "noise"

struct BenchPlan {
  std::vector<size_t> prompts = {512};                              ///< tokens, a row each
  std::vector<size_t> depths = {0, 4096};                           ///< tokens before the generated ones, a row each
  std::vector<size_t> batches = {1, 8};                             ///< sequences at once, a row each
  size_t generate = 32;                                             ///< tokens per sequence and repeat
  size_t repeat = 3;                                                ///< how often a row is measured
  uint64_t seed = 1;                                                ///< of ids, of sampling and of noise
  std::optional<PastBy> past = {};                                  ///< unset: Prompt where that takes some seconds, else Noise
  enum class Times : uint8_t { Rows, Stages } times = Times::Rows;  ///< Stages: by stage too

  static constexpr size_t kMostTokens = size_t{1} << 30, kMostGenerated = 1u << 16, kMostRepeats = 1000,
                          kMostSequences = 1u << 12;

  /// Which of the rows and figures nobody asked for.
  struct Defaulted {
    bool prompts = false, depths = false, batches = false, generate = false;
  };
  /// Makes what nobody asked for fit into a short model: a prompt as long as it can be, fewer generated tokens, and no row that
  /// has no room even then.
  void shorten(const Defaulted& defaulted, size_t model_max_length);

  /// What an engine needs for the largest row.
  size_t pool_tokens() const;
  size_t max_sequences() const;

  /// @throws InvalidArgument if a row is longer than the model allows
  void require_length(size_t model_max_length) const;
  /// @throws ResourceExhausted if a row needs more memory than there is, naming the row and its need
  void require_memory(const MemoryPlan& plan, uint64_t available_bytes) const;
};

/// Median, smallest and largest of some figures.
struct Spread {
  double median = 0, min = 0, max = 0;
};
/// @pre at least one value
Spread spread_of(std::vector<double> values);

struct BenchRow {
  enum class Work : uint8_t { Prompt, Generation, Batch } work = Work::Prompt;
  size_t prompt_tokens = 0;  ///< of a Prompt row
  size_t depth = 0;          ///< of the other rows: tokens of each sequence before the first timed one
  PastBy past = PastBy::Nothing;
  size_t sequences = 1;
  size_t tokens = 0;                 ///< read or made in a repeat, by all sequences together
  size_t steps = 0;                  ///< of a repeat; costs are given per step. A prompt counts as one
  std::vector<double> seconds = {};  ///< of each repeat
  MachinePeaks before = {}, after = {};
  StageProfile profile = {};  ///< of all repeats together

  MachinePeaks peaks() const { return mean(before, after); }
  Spread tokens_per_s() const;
  double seconds_per_step() const;  ///< median
  StageCost total_cost() const { return profile.sum().cost; }
  /// Converts a sum over all repeats to one per step.
  double per_step(uint64_t sum) const;
};

/// The peak of the arithmetic that multiplies most of a model's weights, and its name: "int8", "bf16" or "fp32".
struct ProductPeak {
  std::string_view name;
  double operations_per_s;
};
ProductPeak product_peak(const MachinePeaks& peaks, ActivationType activations, bool has_panels);

/// The least time that a step of generation can take: its bytes at full bandwidth, then the attention over the past at the peak
/// of its products, bf16 or fp32. Products of a few rows add no time: they run while the weights are read.
double generation_bound_s(const BenchRow& row);

/// The least time that some work can take if reading and computing overlap: the longer of the two.
double stage_bound_s(const StageCost& cost, const MachinePeaks& peaks);

/// Measures rows, one at a time, on an engine that nobody else uses (Drive::ByCaller) and whose pools hold the plan's largest
/// row.
class Bench {
 public:
  /// @param between called between two steps; an exception from it ends the measurement
  Bench(Engine& engine, BenchPlan plan, std::function<void()> between = {});

  /// Seconds to a fresh sequence's first token, after a prompt of one token.
  double first_token_s();

  /// Call this before measuring rows. It allocates the probe's memory and reads a short prompt, so that all weights have been
  /// in memory once and PastBy can be chosen. @throws ResourceExhausted
  void prepare(size_t probe_bytes_per_thread);
  size_t probe_bytes() const { return probe_ ? probe_->memory_bytes() : 0; }

  /// @throws Corrupt if no logit is a number, as Engine::follow
  BenchRow prompt(size_t tokens);
  BenchRow generation(size_t depth);
  BenchRow batch(size_t sequences);

 private:
  std::vector<int32_t> random_ids(size_t n);
  GenerationParams sampling(size_t max_new_tokens);
  void run(Request& request);
  Sequence read_prompt(size_t tokens);
  Sequence make_past(size_t depth, PastBy by);
  void step_all(std::span<const std::shared_ptr<Request>> requests);
  void measure_steps(std::span<const std::shared_ptr<Request>> requests, BenchRow& row);
  StageProfile fresh_profile() const;

  Engine& engine_;
  std::optional<MachineProbe> probe_;
  BenchPlan plan_;
  std::function<void()> between_;
  uint64_t drawn_ = 0;              // random numbers so far
  double prompt_tokens_per_s_ = 0;  // of the last prompt
};

}  // namespace kilin
