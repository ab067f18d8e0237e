// The workspace that a dry run plans is what a pass takes, to the byte.
#include "model/dry_run.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/configs.h"
#include "support/golden.h"
#include "support/ids.h"
#include "weights/blank_store.h"

namespace kilin {
namespace {

using testing::some_ids;

// Widths that divide by nothing; a layer of each kind that the cases below leave in.
Json odd_config() {
  Json c = testing::published_config();
  c.update({{"hidden_size", 37}, {"intermediate_size", 53}, {"vocab_size", 71}, {"num_hidden_layers", 4}});
  c.update({{"bos_token_id", 1}, {"eos_token_id", 2}, {"pad_token_id", 3}});
  c.update({{"num_attention_heads", 3}, {"num_key_value_heads", 3}, {"kv_lora_rank", 19}, {"qk_nope_head_dim", 11}});
  c.update({{"qk_rope_head_dim", 5}, {"v_head_dim", 7}, {"moe_intermediate_size", 29}, {"num_experts", 5}});
  c.update({{"num_experts_per_token", 2}, {"first_k_dense_replace", 1}});
  c["linear_attn_config"].update({{"head_dim", 13}, {"num_heads", 3}});
  c["linear_attn_config"].update({{"kda_layers", {1, 2, 3}}, {"full_attn_layers", {4}}});
  return c;
}

struct ModelCase {
  const char* name;
  std::optional<BlockFormat> blocks;
  Json config;
};

std::vector<ModelCase> model_cases() {
  const Json none = Json::object();
  const auto odd_but = [](const Json& changes, const Json& linear = Json::object()) {
    Json c = odd_config();
    c.update(changes);
    c["linear_attn_config"].update(linear);
    return c;
  };
  // Rows of whole blocks of 32; experts wider than the stream, so that their copies count for more.
  const Json even = {{"hidden_size", 64}, {"intermediate_size", 96}, {"moe_intermediate_size", 160}};
  return {{"odd widths", {}, odd_config()},
          {"dense only", {}, odd_but({{"first_k_dense_replace", 4}})},
          {"KDA only", {}, odd_but(none, {{"kda_layers", {1, 2, 3, 4}}, {"full_attn_layers", Json::array()}})},
          {"MLA only", {}, odd_but(none, {{"kda_layers", Json::array()}, {"full_attn_layers", {1, 2, 3, 4}}})},
          {"one expert", {}, odd_but({{"num_experts", 1}, {"num_experts_per_token", 1}})},
          {"a large shared expert", {}, odd_but({{"num_shared_experts", 9}})},
          {"wide experts", {}, odd_but(even)},
          {"wide experts in panels", BlockFormat::q8_0, odd_but(even)}};
}

// A model with zeros for weights, and what it runs on.
class BlankModel {
 public:
  BlankModel(const ModelConfig& config, std::optional<BlockFormat> blocks)
      : source_(WeightSource::open(std::make_shared<BlankStore>(config, blocks), config)),
        model_(KimiLinearForCausalLM::load(source_, config)) {}

  // What a batch with so many new tokens a sequence, and the logits of all of them, take of a workspace of `planned` bytes.
  size_t used(size_t planned, size_t threads, ActivationType activations, KvType kv_type, std::span<const size_t> tokens,
              std::span<const ForwardMode> modes) const {
    const ModelConfig& c = model_.config();
    MemoryPools pools = {RecurrentStatePool(model_.state_dimensions(), tokens.size()),
                         LatentKvPool(model_.latent_dimensions(kv_type), 64)};
    std::vector<StateHandle> states;
    std::vector<PageTable> pages;
    std::vector<SequenceSpan> spans;
    std::vector<size_t> cu_seqlens = {0};
    for (size_t n = 0; n < tokens.size(); ++n) {
      states.push_back(pools.states.acquire());
      pages.emplace_back(pools.latents).grow(tokens[n]);
      spans.push_back({.mode = modes[n], .state_slot = states.back().slot(), .pages = pages.back().pages()});
      cu_seqlens.push_back(cu_seqlens.back() + tokens[n]);
    }
    const size_t all = cu_seqlens.back();
    const std::vector<int32_t> ids = some_ids(all, 1, c.vocab_size);
    std::vector<uint32_t> rows(all);
    std::iota(rows.begin(), rows.end(), 0u);
    const Tensor hidden(DType::f32, {all, c.hidden_size}), logits(DType::f32, {all, c.vocab_size});

    ThreadPool pool(threads);
    LocalCommunicator communicator;
    Workspace workspace(planned);
    ExecContext ctx = {pool, kernels_, communicator, workspace, nullptr, activations};
    model_.forward(ctx, {ids, cu_seqlens, spans, rows, &pools}, hidden.matrix());
    model_.logits(ctx, hidden.matrix(), logits.matrix());
    return workspace.peak();
  }

  size_t used_by_logits(size_t planned, size_t rows, ActivationType activations) const {
    const Tensor hidden(DType::f32, {rows, model_.config().hidden_size}),
        logits(DType::f32, {rows, model_.config().vocab_size});
    ThreadPool pool(1);
    LocalCommunicator communicator;
    Workspace workspace(planned);
    ExecContext ctx = {pool, kernels_, communicator, workspace, nullptr, activations};
    model_.logits(ctx, hidden.matrix(), logits.matrix());
    return workspace.peak();
  }

  const KimiLinearForCausalLM& model() const { return model_; }

 private:
  WeightSource source_;
  KimiLinearForCausalLM model_;
  KernelTable kernels_ = select_kernels(CpuInfo::detect(), KernelChoice::from_environment());
};

constexpr ForwardMode kModes[] = {ForwardMode::Extend, ForwardMode::Decode};

TEST(DryRun, PlansWhatTheWorstBatchTakesToTheByte) {
  constexpr KvType kKvTypes[] = {KvType::f32, KvType::bf16, KvType::q8};
  size_t turn = 0;  // all combinations of the rest with each model and size; these two go round
  for (const ModelCase& c : model_cases()) {
    const BlankModel m(ModelConfig::parse(c.config.dump(), "config.json"), c.blocks);
    for (size_t tokens : {1u, 63u, 64u, 65u, 200u})
      for (ActivationType activations : kActivationTypes) {
        const size_t threads = 1 + turn % 5;
        const KvType kv_type = kKvTypes[turn++ % 3];
        const size_t planned = workspace_bytes(
            m.model(), {.tokens = tokens, .logit_rows = tokens, .threads = threads, .activations = activations});
        size_t most = 0;
        for (ForwardMode mode : kModes)
          most = std::max(most, m.used(planned, threads, activations, kv_type, {{tokens}}, {{mode}}));
        EXPECT_EQ(most, planned) << c.name << ", " << tokens << " tokens, " << threads << " threads, activations "
                                 << to_string(activations) << ", latents " << to_string(kv_type);
      }
  }
}

TEST(DryRun, EveryBatchOfAsManyTokensStaysWithinThePlan) {
  for (const ModelCase& c : model_cases()) {
    const BlankModel m(ModelConfig::parse(c.config.dump(), "config.json"), c.blocks);
    for (size_t sequences = 1; sequences <= 9; ++sequences)
      for (ForwardMode first : kModes) {
        std::vector<size_t> tokens(sequences);
        std::vector<ForwardMode> modes(sequences);
        for (size_t n = 0; n < sequences; ++n) {
          tokens[n] = 1 + n * 17 % 64;
          modes[n] = kModes[(static_cast<size_t>(first) + n) % 2];
        }
        const size_t all = std::accumulate(tokens.begin(), tokens.end(), size_t{0}), threads = 1 + sequences % 5;
        const ActivationType activations = kActivationTypes[sequences % 3];
        const size_t planned =
            workspace_bytes(m.model(), {.tokens = all, .logit_rows = all, .threads = threads, .activations = activations});
        EXPECT_LE(m.used(planned, threads, activations, KvType::f32, tokens, modes), planned)  // what needs more throws
            << c.name << ", " << sequences << " sequences";
      }
  }
}

TEST(DryRun, WithoutAnActivationTypePlansForTheOneThatTakesMost) {
  for (const ModelCase& c : model_cases()) {
    const BlankModel m(ModelConfig::parse(c.config.dump(), "config.json"), c.blocks);
    for (size_t tokens : {1u, 65u}) {
      PassSize size = {.tokens = tokens, .logit_rows = tokens, .threads = 2};
      const size_t planned = workspace_bytes(m.model(), size);
      size_t most = 0;
      for (ActivationType activations : kActivationTypes) {
        size.activations = activations;
        most = std::max(most, workspace_bytes(m.model(), size));
      }
      EXPECT_EQ(planned, most) << c.name;
    }
  }
}

TEST(DryRun, NoSmallerBatchIsPlannedMore) {
  const BlankModel m(ModelConfig::parse(odd_config().dump(), "config.json"), {});
  size_t last = 0;
  for (size_t tokens = 0; tokens <= 130; ++tokens) {
    const size_t planned = workspace_bytes(m.model(), {.tokens = tokens, .logit_rows = 0, .threads = 3});
    EXPECT_GE(planned, last) << tokens;
    last = planned;
  }
}

TEST(DryRun, LogitsOfManyRowsAreTheLargestPartOfASmallStep) {
  const BlankModel m(ModelConfig::parse(odd_config().dump(), "config.json"), {});
  const size_t planned =
      workspace_bytes(m.model(), {.tokens = 1, .logit_rows = 5000, .threads = 1, .activations = ActivationType::bf16});
  EXPECT_EQ(planned, m.used_by_logits(planned, 5000, ActivationType::bf16));
}

}  // namespace
}  // namespace kilin
