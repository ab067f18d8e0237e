// Loads a model and continues a prompt greedily, showing each piece of text as it comes.
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

    const auto request = engine.submit(engine.loaded().require_tokenizer().encode(argv[2]), params);
    while (const auto token = request->next_token()) std::cout << token->text << std::flush;
    const kilin::Answer& answer = request->answer();
    std::cout << answer.finish.text << '\n';
    std::cerr << "Kilin " << kilin::version() << ": " << answer.ids.size() << " tokens, " << to_string(answer.finish.reason)
              << ", " << answer.finish.cause << '\n';
  } catch (const kilin::Error& error) {
    std::cerr << "generate: " << error.what() << '\n';
    return 1;
  }
}
