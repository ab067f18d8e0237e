// The commands of the program, in the order in which --help lists them. Each stands in a file of its own, NAME_command.cpp.
#pragma once

namespace CLI {
class App;
}

namespace kilin::cli {

struct Context;

// Each adds its subcommand with options and help. `context` outlives `app`.
void add_generate(CLI::App& app, Context& context);
void add_chat(CLI::App& app, Context& context);
void add_tokenize(CLI::App& app, Context& context);
void add_logits(CLI::App& app, Context& context);
void add_trace(CLI::App& app, Context& context);
void add_lens(CLI::App& app, Context& context);
void add_quantize(CLI::App& app, Context& context);
void add_perplexity(CLI::App& app, Context& context);
void add_inspect(CLI::App& app, Context& context);
void add_verify(CLI::App& app, Context& context);
void add_synth(CLI::App& app, Context& context);
void add_bench(CLI::App& app, Context& context);
void add_info(CLI::App& app, Context& context);

}  // namespace kilin::cli
