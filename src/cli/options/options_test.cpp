#include "cli/options/options.h"

#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/context.h"
#include "core/error.h"
#include "support/golden.h"

namespace kilin::cli {
namespace {

// The message of the InvalidArgument that `f` throws; empty if it throws none.
template <typename F>
std::string refusal(F f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument) << error.what();
    return error.what();
  }
  return {};
}

TEST(Options, WholeNumbersAreDecimalAndTakeTheWholeText) {
  EXPECT_EQ(parse_unsigned("-n", "0"), 0u);
  EXPECT_EQ(parse_unsigned("-n", "010"), 10u);  // not octal
  EXPECT_EQ(parse_unsigned("-n", "18446744073709551615"), UINT64_MAX);
  for (const char* bad : {"", " 1", "1 ", "-1", "+1", "0x10", "1e3", "1.0", "one", "18446744073709551616"})
    EXPECT_NE(refusal([&] { parse_unsigned("-n", bad); }), "") << bad;
}

TEST(Options, NumbersAreFinite) {
  EXPECT_EQ(parse_number("--temp", "0.7"), 0.7);
  EXPECT_EQ(parse_number("--temp", "-1"), -1);
  EXPECT_EQ(parse_number("--temp", "1e-3"), 1e-3);
  for (const char* bad : {"", "nan", "inf", "-inf", "1e999", "0,7", "0.7x", " 1"})
    EXPECT_NE(refusal([&] { parse_number("--temp", bad); }), "") << bad;
}

TEST(Options, IdsStandBetweenCommas) {
  EXPECT_EQ(parse_ids("--ids", "5,17,9"), (std::vector<int32_t>{5, 17, 9}));
  EXPECT_EQ(parse_ids("--ids", "2147483647"), (std::vector<int32_t>{2147483647}));
  EXPECT_EQ(parse_ids("--ids", "-1"), (std::vector<int32_t>{-1}));  // refused later, with the vocabulary's size
  for (const char* bad : {"", ",", "1,,2", "1,", ",1", "1, 2", "1;2", "2147483648", "0x1", "1.5"})
    EXPECT_NE(refusal([&] { parse_ids("--ids", bad); }), "") << bad;
}

TEST(Options, ListsOfNumbersStandBetweenCommas) {
  EXPECT_EQ(parse_unsigned_list("--depth", "0,4096", {0, 9999}), (std::vector<size_t>{0, 4096}));
  EXPECT_EQ(parse_unsigned_list("--depth", "7", {1, 9}), (std::vector<size_t>{7}));
  EXPECT_TRUE(parse_unsigned_list("--depth", "none").empty());
  for (const char* bad :
       {"", ",", "1,,2", "1,", ",1", "1, 2", "-1", "0", "10", "1,10", "x", "1.5", "none,1", "99999999999999999999"})
    EXPECT_NE(refusal([&] { parse_unsigned_list("--depth", bad, {1, 9}); }), "") << bad;
  EXPECT_EQ(
      refusal([] {
        parse_unsigned_list("--depth", "1,x", {1, 9});
      }),
      "--depth is '1,x', whose number 2 is 'x'; expected whole numbers from 1 to 9 with commas between, as in 512,2048, or "
      "none");
}

TEST(Options, RefusalsNameOptionValueAndWhatWasExpected) {
  const std::string message = refusal([] { parse_unsigned("--top-k", "many"); });
  for (const char* part : {"--top-k", "many", "whole number"}) EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(Options, RefusalsTellTheRangeAndThePlace) {
  EXPECT_EQ(refusal([] {
              parse_unsigned("--threads", "-1", {1, 4096});
            }),
            "--threads is '-1'; expected a whole number from 1 to 4096");
  EXPECT_EQ(refusal([] {
              parse_unsigned("--threads", "0", {1, 4096});
            }),
            "--threads is 0; expected a whole number from 1 to 4096");
  EXPECT_EQ(refusal([] { parse_unsigned("-n", "", {.min = 1}); }), "-n is empty; expected a whole number from 1 on");
  EXPECT_EQ(refusal([] { parse_ids("--ids", "5,,6"); }),
            "--ids is '5,,6', whose id 2 is empty; expected token ids with commas between, as in 5,17,9");
  EXPECT_NE(refusal([] { parse_ids("--ids", "5,x"); }).find("whose id 2 is 'x'"), std::string::npos);
}

TEST(Options, TextsAreTakenAsTheyAre) {
  std::vector<std::string> texts;
  std::optional<std::string> model;
  CLI::App app;
  add_model(app, model);
  add_texts(app, "--stop", texts, "");
  // CLI11 would make three of the first one, none of the second, and a text of the model.
  std::vector<std::string> arguments = {"folder", "{}", "--stop", "[a,b]", "--stop"};
  app.parse(arguments);
  EXPECT_EQ(texts, (std::vector<std::string>{"[a,b]", "{}"}));
  EXPECT_EQ(model, "folder");
}

TEST(Options, TheEmbeddedModelStandsInForModel) {
  testing::TemporaryFolder folder;
  Context context;
  context.tiny_model = folder.path();
  EXPECT_EQ(model_path(context, std::nullopt), folder.path());
  EXPECT_EQ(model_path(context, (folder / "..").string()), folder / "..");
  context.tiny_model = folder / "nowhere";
  try {
    model_path(context, std::nullopt);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::NotFound);
    EXPECT_NE(std::string(error.what()).find("nowhere"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace kilin::cli
