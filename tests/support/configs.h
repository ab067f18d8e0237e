// config.json for tests: the published one, transformers' own form of it, and tables of bad ones.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"

namespace kilin::testing {

/// The published config.json of the real model; a part of the repository, so that no test is skipped.
Json published_config();

/// The same model in the form that transformers' own class saves: other spellings, no linear_attn_config, words for the layers.
Json in_transformers_form(const Json& published);

/// The message with which `parse` refuses a text under the name "config.json"; empty if it accepts it.
using ParseConfig = std::function<void(const std::string& text)>;
std::string refusal(const ParseConfig& parse, const std::string& text, ErrorCode* code = nullptr);

/// An edit that makes a good configuration bad.
struct BadConfig {
  std::function<void(Json&)> edit;
  ErrorCode code;
  std::vector<const char*> words;  ///< that the message must contain
};

/// Expects each edit of `base` to be refused, in one line that begins with the file's name and holds all the words.
void expect_refused(const ParseConfig& parse, const Json& base, const std::vector<BadConfig>& cases);

}  // namespace kilin::testing
