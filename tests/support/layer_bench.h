// What one layer needs to run without a model around it: kernels, threads, and pools with sequences in them.
#pragma once

#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/float_mode.h"
#include "model/exec_context.h"
#include "model/forward_batch.h"
#include "weights/weight_source.h"

namespace kilin::testing {

struct LayerOptions {
  ActivationType activations = ActivationType::f32;
  KvType kv_type = KvType::f32;
  size_t threads = 2;
  KernelChoice kernels = KernelChoice::from_environment();
};

/// Pools hold one layer of each kind. Each sequence has a state and pages for so many positions; the pools have a slot and a
/// page more, which nobody owns.
struct LayerBench {
  using Floats = std::vector<float>;

  LayerBench(const ModelConfig& c, size_t sequences, size_t positions, const LayerOptions& o = {})
      : hidden(c.hidden_size),
        kernels(select_kernels(CpuInfo::detect(), o.kernels)),
        threads(o.threads),
        pools{RecurrentStatePool({.layers = 1,
                                  .heads = c.kda_num_heads,
                                  .key_dim = c.kda_head_dim,
                                  .value_dim = c.kda_head_dim,
                                  .conv_rows = c.short_conv_kernel_size - 1,
                                  .conv_cols = 3 * c.kda_width()},
                                 sequences + 1),
              LatentKvPool({.layers = 1, .width = c.mla_latent_width(), .type = o.kv_type},
                           sequences * LatentKvPool::pages_for(positions) + 1)},
        activations(o.activations) {
    for (size_t n = 0; n < sequences; ++n) {
      handles.push_back(pools.states.acquire());
      tables.emplace_back(pools.latents).grow(positions);
    }
  }

  /// A span of each sequence.
  std::vector<SequenceSpan> spans(ForwardMode mode, size_t start = 0) const {
    std::vector<SequenceSpan> all;
    for (size_t n = 0; n < handles.size(); ++n)
      all.push_back({.mode = mode, .start = start, .state_slot = handles[n].slot(), .pages = tables[n].pages()});
    return all;
  }

  /// What `forward(ctx, batch, x, out)` gives for rows of `hidden` values.
  template <typename Forward>
  Floats run(const Floats& x, std::span<const size_t> cu_seqlens, std::span<const SequenceSpan> sequences, Forward&& forward,
             Taps* taps = nullptr) {
    const size_t rows = x.size() / hidden;
    const std::vector<int32_t> ids(rows);
    const ForwardBatch batch = {ids, cu_seqlens, sequences, {}, &pools};
    ExecContext ctx = {threads, kernels, communicator, workspace, taps, activations};
    const FloatModeGuard float_mode;
    Floats out(x.size(), std::nanf(""));
    forward(ctx, batch, MatView<const float>(x.data(), rows, hidden), MatView<float>(out.data(), rows, hidden));
    return out;
  }

  /// Every byte of both pools, slot 0 and what nobody owns among them.
  std::vector<std::byte> memory() const {
    std::vector<std::byte> all;
    const auto append = [&](std::span<const std::byte> bytes) { all.insert(all.end(), bytes.begin(), bytes.end()); };
    for (StateSlot slot = 0; slot <= pools.states.slots(); ++slot) {
      const StateSnapshot state = pools.states.snapshot(slot);
      append(std::as_bytes(std::span(state.values)));
    }
    for (PageId page = 0; page < pools.latents.pages(); ++page)
      append({pools.latents.stored_rows(0, page), pools.latents.bytes_per_page()});
    return all;
  }

  size_t hidden;
  KernelTable kernels;
  ThreadPool threads;
  LocalCommunicator communicator;
  Workspace workspace{size_t{1} << 32};  // address space: what a layer says that it needs is held to account elsewhere
  MemoryPools pools;
  std::vector<StateHandle> handles;
  std::vector<PageTable> tables;
  ActivationType activations;
};

/// A source for the tensors of `store`, which must outlive it.
inline WeightSource source_of(const TensorStore& store) {
  return WeightSource::unchecked(std::shared_ptr<const TensorStore>(std::shared_ptr<void>(), &store));
}

}  // namespace kilin::testing
