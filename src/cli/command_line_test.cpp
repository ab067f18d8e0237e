#include "cli/command_line.h"

#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "cli/options/options.h"
#include "core/error.h"

namespace kilin::cli {
namespace {

using Words = std::vector<std::string>;

class CommandLine : public ::testing::Test {
 protected:
  CommandLine() {
    CLI::App* write = app_.add_subcommand("write", "");
    add_texts(*write, "-p,--prompt", texts_, "");
    add_unsigned(*write, "-n,--max-tokens", tokens_, "");
    write->add_flag("--json", json_, "");
    app_.add_subcommand("read", "");
  }

  std::string refusal(const Words& words) {
    try {
      prepared_arguments(app_, words);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
      return error.what();
    }
    return "";
  }

  std::vector<std::string> texts_;
  size_t tokens_ = 0;
  bool json_ = false;
  CLI::App app_{"", "kilin"};
};

TEST_F(CommandLine, AnEmptyValueStaysOneAndTakesNothingElse) {
  EXPECT_EQ(prepared_arguments(app_, {"write", "--prompt=", "-n", "5"}), (Words{"write", "--prompt", "", "-n", "5"}));
  EXPECT_EQ(prepared_arguments(app_, {"write", "--prompt=x=", "--json="}), (Words{"write", "--prompt=x=", "--json="}));
}

TEST_F(CommandLine, WhatIsAValueAlreadyIsLeftAlone) {
  for (const Words& words : {Words{"write", "-p", "--prompt="},
                             {"write", "--prompt", "-n=5"},
                             {"write", "--", "--prompt="},
                             {"write", "-p-n=5"},
                             {"write", "--unknown="},
                             {"write", "-n5"}})
    EXPECT_EQ(prepared_arguments(app_, words), words);
}

TEST_F(CommandLine, AShortOptionTakesNoEqualsSign) {
  EXPECT_EQ(refusal({"write", "-n=5"}), "'-n=5' has an equals sign; expected -n 5 or --max-tokens=5");
  EXPECT_NE(refusal({"write", "-p=x"}), "");
}

TEST_F(CommandLine, AnOptionHasItsValueAndStandsOnce) {
  EXPECT_EQ(refusal({"write", "-n"}), "--max-tokens stands last; expected its value after it");
  EXPECT_EQ(refusal({"write", "-n", "1", "--max-tokens=2"}), "--max-tokens is given twice; expected it once");
  EXPECT_EQ(refusal({"write", "-p", "a", "-p", "b"}), "");
  EXPECT_EQ(refusal({"write", "--json", "--json"}), "");
}

TEST_F(CommandLine, AWordThatIsNoCommandIsNamedBesideThoseThatAre) {
  EXPECT_EQ(refusal({"dance"}), "'dance' is not a command; write and read are");
  EXPECT_EQ(refusal({""}), "'' is not a command; write and read are");
  EXPECT_EQ(refusal({"write", "dance"}), "");  // MODEL, perhaps
}

TEST_F(CommandLine, WhatWasNotExpectedIsListedInItsOrder) {
  Words words = {"write", "one", "--two", "three"};
  std::ranges::reverse(words);  // as CLI11 wants it
  EXPECT_THROW(app_.parse(words), CLI::ExtrasError);
  EXPECT_EQ(unexpected_arguments(app_), "'one', '--two', 'three'");
  EXPECT_EQ(command_name(app_), "kilin write");
}

TEST_F(CommandLine, HelpHasNoRunsOfEmptyLines) {
  app_.footer("The end.\n\n");
  const std::string help = help_of(app_);
  EXPECT_EQ(help.find("\n\n\n"), std::string::npos) << help;
  EXPECT_TRUE(help.ends_with("The end.\n")) << help;
}

}  // namespace
}  // namespace kilin::cli
