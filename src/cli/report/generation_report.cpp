#include "cli/report/generation_report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/report/figures.h"
#include "core/cpu_info.h"

namespace kilin::cli {

std::string tokens_and_rate(size_t tokens, size_t measured, double seconds) {
  if (tokens <= 1) return tokens == 1 ? "1 token" : "no token";
  return fmt::format("{} tokens, {:.1f} tokens/s", tokens, per_second(measured, seconds));
}

double per_second(size_t tokens, double seconds) { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }

std::string GenerationReport::json() const {
  using Json = nlohmann::ordered_json;
  const RequestTimings& t = answer.timings;
  const Json timings = {{"load_s", rounded(load_s)},
                        {"prompt_tokens", t.prompt_tokens},
                        {"prompt_s", rounded(t.prompt_s)},
                        {"prompt_tokens_per_s", rounded(per_second(t.prompt_tokens, t.prompt_s))},
                        {"decode_tokens", t.decode_tokens},
                        {"decode_s", rounded(t.decode_s)},
                        {"decode_tokens_per_s", rounded(per_second(t.decode_tokens, t.decode_s))}};
  const Json report = {{"prompt_ids", prompt_ids},
                       {"ids", answer.ids},
                       {"text", has_text ? Json(answer.text) : Json(nullptr)},
                       {"finish_reason", to_string(answer.finish.reason)},
                       {"seed", seed},
                       {"timings", timings},
                       {"planned_memory_bytes", planned_bytes},
                       {"peak_memory_bytes", peak_resident_bytes()}};
  return report.dump();
}

std::string GenerationReport::figures() const {
  const RequestTimings& t = answer.timings;
  return fmt::format(
      "prompt {}; generated {}; peak memory {:.0f} MiB", tokens_and_rate(t.prompt_tokens, t.prompt_tokens, t.prompt_s),
      tokens_and_rate(answer.ids.size(), t.decode_tokens, t.decode_s), static_cast<double>(peak_resident_bytes()) / (1u << 20));
}

}  // namespace kilin::cli
