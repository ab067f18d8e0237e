// Looks inside a pass: reads attention patterns, removes a layer's contribution, and prints how that changes the next token.
//   trace MODEL PROMPT
#include <kilin/kilin.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

namespace {

// The most probable next token of the first prompt, with its probability.
void print_guess(const kilin::Engine& engine, const kilin::SavedValue& probabilities, const char* when) {
  const kilin::Tensor& p = probabilities.of(0);
  const float* best = std::max_element(p.as<float>(), p.as<float>() + p.elements());
  const auto id = static_cast<int32_t>(best - p.as<float>());
  std::cout << when << ": '" << engine.loaded().require_tokenizer().token_bytes(id) << "' " << *best << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: trace MODEL PROMPT\n";
    return 2;
  }
  try {
    kilin::Engine engine(kilin::LoadedModel::load(argv[1]), kilin::EngineOptions{});
    const std::vector<int32_t> ids = engine.loaded().require_tokenizer().encode(argv[2]);

    // A trace that is told beforehand what to keep.
    kilin::Trace plain(engine, {{ids}});
    const auto patterns = plain.save("layers.3.self_attn.attention_probabilities");
    const auto guess = plain.save("next_token_probs");
    plain.run();
    std::cout << patterns->name() << ' ' << to_string(patterns->of(0).shape()) << '\n';
    print_guess(engine, *guess, "as it is");

    // A trace with an edit: it removes what layer 2 adds to the stream.
    kilin::Trace without(engine, {{ids}});
    for (const char* value : {"layers.2.attention_output", "layers.2.mlp_output"})
      without.edit(value, [](const kilin::TracedValue& v) {
        const kilin::Tensor zeros(v.of(0).dtype(), v.of(0).shape());
        copy_elements(zeros.view(), v.of(0));
      });
    const auto other = without.save("next_token_probs");
    without.run();
    print_guess(engine, *other, "without layer 2");

    // A trace beside the pass: each read waits until the pass has reached the value, and the pass goes on with what is written.
    kilin::InterleavedTrace beside(engine, {{ids}});
    const kilin::TracedValue& decays = beside.wait_for("layers.1.linear_attn.decays");
    std::cout << "layers.1.linear_attn.decays " << to_string(decays.of(0).shape()) << '\n';
    beside.finish();
  } catch (const kilin::Error& error) {
    std::cerr << "trace: " << error.what() << '\n';
    return 1;
  }
}
