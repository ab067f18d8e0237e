// What every command of the program gets, and what it leaves behind: the standard streams, and the work to do.
#pragma once

#include <filesystem>
#include <functional>

#include "cli/terminal/output.h"

namespace kilin::cli {

/// Thrown by a command that has failed and has said so already: the program ends without another word.
struct FailureWasTold {
  int exit_code = 1;
};

struct Context {
  std::filesystem::path tiny_model;  ///< the model that stands in for MODEL where it is left out
  Output out = Output::standard_output();
  Output err = Output::standard_error();

  /// What the command line asks for. A command sets it when its arguments were parsed (CLI::App::callback); main runs it. It
  /// may throw Error: InvalidArgument counts as wrong usage (exit code 2), everything else as a failure (1).
  std::function<void()> run;
};

}  // namespace kilin::cli
