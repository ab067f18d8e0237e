// From sampled ids to text that may be shown: whole characters, no specials, nothing from a stop string on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/stop_strings.h"
#include "text/detokenizer.h"

namespace kilin {

class TextStream {
 public:
  /// @param tokenizer must outlive this. @throws as StopStrings
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop_strings);

  /// What one more token lets be shown; often nothing.
  std::string push(int32_t id);

  /// What was held back, once no token follows.
  std::string finish();

  /// A stop string came.
  bool stopped() const { return stops_.stopped(); }

 private:
  const Tokenizer* tokenizer_;
  StreamingDetokenizer detokenizer_;
  StopStrings stops_;
};

}  // namespace kilin
