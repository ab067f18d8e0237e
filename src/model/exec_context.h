// What a forward pass needs beside its weights and its batch. Every module gets it by reference.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/thread_pool.h"
#include "core/workspace.h"
#include "kernels/kernel_table.h"
#include "parallel/communicator.h"
#include "taps/stage_profile.h"
#include "taps/taps.h"

namespace kilin {

/// What the inputs of the large matrix products are rounded to. Norms, router, gates, decays, softmax, the residual stream and
/// the states are fp32 whatever this says, and kv_b_proj reads latents as their pool gives them, alike in both modes. bf16 is
/// for weights of bf16, int8 for weights in panels; products with others read fp32. With either, queries and exponentials that
/// are multiplied with latents of bf16 (absorbed MLA) may be rounded to bf16, too.
enum class ActivationType : uint8_t { f32, bf16, int8 };
inline constexpr std::array kActivationTypes = {ActivationType::f32, ActivationType::bf16, ActivationType::int8};

std::string_view to_string(ActivationType type);
/// @throws InvalidArgument naming the known ones
ActivationType parse_activation_type(std::string_view name);

struct ExecContext {
  ThreadPool& pool;
  const KernelTable& kernels;
  Communicator& communicator;
  Workspace& workspace;
  Taps* taps = nullptr;
  ActivationType activations = ActivationType::f32;
  StageProfile* profile = nullptr;

  /// While the scope lives, the profile books time and work under `stage`.
  [[nodiscard]] StageScope stage(Stage stage) const { return {profile, stage}; }
  void count(const StageCost& cost) const {
    if (profile != nullptr) profile->add(cost);
  }

  /// Shows a value [T, cols].
  void tap(Value value, int layer, MatView<float> values) const {
    if (taps != nullptr) taps->at({value, layer}, TensorView::of(values));
  }
  void tap(Value value, int layer, MatView<int32_t> values) const {
    if (taps != nullptr)
      taps->at({value, layer}, {values.data(), DType::i32, {values.rows(), values.cols()}, {values.stride(), 1, 0, 0}});
  }
  /// Shows a value [T, heads x d] as [T, heads, d].
  void tap_heads(Value value, int layer, MatView<float> values, size_t heads) const {
    if (taps == nullptr) return;
    const size_t d = values.cols() / heads;
    taps->at({value, layer}, {values.data(), DType::f32, {values.rows(), heads, d}, {values.stride(), d, 1, 0}});
  }
  /// Whether a tap asks for this value. For values that cost something to show.
  bool wants(Value value, int layer) const { return taps != nullptr && taps->wants({value, layer}); }
};

}  // namespace kilin
