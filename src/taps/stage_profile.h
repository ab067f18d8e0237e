// Where a step's time goes: seconds, bytes and operations by stage of the forward pass.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

namespace kilin {

/// The parts of a step, in the order in which a token passes them.
enum class Stage : uint8_t {
  Embedding,       // rows of embed_tokens
  Norms,           // RMS norms, and the sums of the residual stream
  Activations,     // rounding of the rows that products read, to int8 or bf16
  KdaProjections,  // q, k, v, beta, and the low-rank pairs of decay and output gate
  KdaRecurrence,   // convolution and SiLU, decays, betas, l2 norms, the delta rule, the gated norm
  KdaOutput,       // o_proj
  MlaProjections,  // q, the latent and its norm
  MlaAttention,    // latents written, decompressed or absorbed, and read by all heads
  MlaOutput,       // o_proj
  Router,          // scores, choice, and the rows sorted by expert
  Experts,         // the routed experts and their weighted sum
  SharedExpert,
  DenseMlp,  // of the layers without experts
  LmHead,
  Sampling,
};
inline constexpr size_t kStages = static_cast<size_t>(Stage::Sampling) + 1;

/// "embedding", "norms", ..., "kda_recurrence", ..., "lm_head", "sampling"
std::string_view to_string(Stage stage);

/// The least that some work must read and compute, from shapes. Every byte of weights, states and latents counts once per
/// product or read, however often a kernel reads it again; activations, which stay in caches, and vectors of weights (norms,
/// biases) do not count.
struct StageCost {
  uint64_t weight_bytes = 0;     ///< of matrices and convolutions; of experts, those that a row was sent to
  uint64_t state_bytes = 0;      ///< KDA states and convolution tails, read and written
  uint64_t latent_bytes = 0;     ///< MLA latents, read or written
  uint64_t int8_operations = 0;  ///< of integer products; a multiplication and an addition count as two
  uint64_t bf16_operations = 0;  ///< of products of bf16 rows
  uint64_t fp32_operations = 0;  ///< of fp32 products, of the delta rule and of attention
  uint64_t experts = 0;          ///< routed experts whose weights were read, summed over the layers

  uint64_t bytes() const { return weight_bytes + state_bytes + latent_bytes; }
  uint64_t operations() const { return int8_operations + bf16_operations + fp32_operations; }
  StageCost& operator+=(const StageCost& other);
  friend bool operator==(const StageCost&, const StageCost&) = default;
};

/// Adds up what scopes report. The time of a stage is exclusive: a scope inside another one stops the outer one's clock. Only
/// the thread that runs the step may use it; the time of loops that it shares with other threads counts too. Does not allocate.
class StageProfile {
 public:
  /// Nanoseconds from any fixed point on.
  using Clock = std::function<uint64_t()>;
  static Clock steady_clock();

  struct Total {
    uint64_t ns = 0;
    StageCost cost;
  };

  /// Counts bytes and operations only, and reads no clock.
  StageProfile() = default;
  explicit StageProfile(Clock clock) : clock_(std::move(clock)) {}

  bool has_times() const { return static_cast<bool>(clock_); }
  const Total& operator[](Stage stage) const { return totals_[static_cast<size_t>(stage)]; }
  Total sum() const;  ///< of all stages

  /// Adds the cost to the open stage, or to no stage if none is open; sum() counts it in either case.
  void add(const StageCost& cost);

  /// Resets all sums. @pre no scope is open
  void clear();

 private:
  friend class StageScope;
  static constexpr size_t kOutside = kStages;  // the total outside of all stages
  /// Charges the time since the last change to the open stage, and opens another. @returns the one that was open
  size_t change_to(size_t stage);

  Clock clock_;
  std::array<Total, kStages + 1> totals_{};
  size_t open_ = kOutside;
  uint64_t changed_ns_ = 0;
};

/// Opens a stage for its lifetime; then the previous one goes on. Does nothing without a profile.
class StageScope {
 public:
  StageScope(StageProfile* profile, Stage stage) : profile_(profile) {
    if (profile_ != nullptr) outer_ = profile_->change_to(static_cast<size_t>(stage));
  }
  ~StageScope() {
    if (profile_ != nullptr) profile_->change_to(outer_);
  }
  StageScope(const StageScope&) = delete;
  StageScope& operator=(const StageScope&) = delete;

  /// Ends this stage and begins another one in its place.
  void next(Stage stage) {
    if (profile_ != nullptr) profile_->change_to(static_cast<size_t>(stage));
  }

 private:
  StageProfile* profile_;
  size_t outer_ = 0;
};

}  // namespace kilin
