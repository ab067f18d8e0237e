// Loads a model and lets it go on with a prompt, greedily, showing each piece of text as it comes.
//   generate MODEL PROMPT [TOKENS]
#include <kilin/kilin.h>

#include <cstdlib>
#include <iostream>

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::cerr << "usage: generate MODEL PROMPT [TOKENS]\n";
    return 2;
  }
  try {
    kilin::Engine engine(kilin::LoadedModel::load(argv[1]), kilin::EngineOptions{});
    kilin::GenerationParams params;
    params.max_new_tokens = argc == 4 ? std::strtoul(argv[3], nullptr, 10) : 64;
    params.stop_ids = engine.loaded().stop_ids;

    const auto show = [](const kilin::TokenEvent& event) { std::cout << event.text << std::flush; };
    const auto request = engine.submit(engine.loaded().require_tokenizer().encode(argv[2]), params, show);
    engine.run(*request);
    std::cout << '\n';
    std::cerr << "Kilin " << kilin::version() << ": " << request->output_ids().size() << " tokens, "
              << to_string(request->finish_reason()) << '\n';
  } catch (const kilin::Error& error) {
    std::cerr << "generate: " << error.what() << '\n';
    return 1;
  }
}
