#include "cli/lens_page/page_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/lens_page/base64.h"
#include "cli/lens_page/shown_token.h"

namespace kilin::cli {

namespace {

using Json = nlohmann::ordered_json;

// A number of 0 to 1 in all the values that T has.
template <typename T>
T part_of_one(float x) {
  constexpr float kMost = std::numeric_limits<T>::max();
  return static_cast<T>(std::lround(std::clamp(x, 0.0f, 1.0f) * kMost));
}

uint16_t packed_half_life(float tokens) {
  if (std::isinf(tokens)) return 65535;
  return static_cast<uint16_t>(std::lround(std::clamp(1000 * (std::log2(tokens) + 16), 0.0f, 65534.0f)));
}

// The elements made into numbers of T, as they lie in memory on every machine that Kilin runs on: little-endian.
template <typename T, typename Elements, typename Make>
std::string packed(const Elements& elements, Make&& make) {
  std::vector<T> numbers(elements.size());
  std::ranges::transform(elements, numbers.begin(), make);
  return base64(std::as_bytes(std::span(numbers)));
}

Json logit_lens(const LogitLens& l) {
  return {{"rows", l.rows},
          {"guesses", l.guesses},
          {"ids", packed<int32_t>(l.best, [](const Guess& g) { return g.id; })},
          {"probabilities", packed<uint16_t>(l.best, [](const Guess& g) { return part_of_one<uint16_t>(g.probability); })},
          {"actual_ranks", packed<uint32_t>(l.actual, [](const TrueToken& a) { return a.rank; })},
          {"actual_probabilities",
           packed<uint16_t>(l.actual, [](const TrueToken& a) { return part_of_one<uint16_t>(a.probability); })}};
}

Json attention(const Lens& lens) {
  Json layers = Json::array();
  for (const AttentionPatterns& a : lens.attention)
    layers.push_back({{"layer", a.layer}, {"heads", a.heads}, {"patterns", packed<uint8_t>(a.probabilities, [](float p) {
                                                                 return part_of_one<uint8_t>(std::sqrt(p));
                                                               })}});
  return {{"block", lens.attention_block}, {"layers", layers}};
}

Json kda(const Lens& lens) {
  Json layers = Json::array();
  for (const MemoryPatterns& k : lens.kda)
    layers.push_back({{"layer", k.layer},
                      {"heads", k.heads},
                      {"channels", k.channels},
                      {"half_lives", packed<uint16_t>(k.half_lives, packed_half_life)},
                      {"token_half_lives", packed<uint16_t>(k.token_half_lives, packed_half_life)},
                      {"betas", packed<uint8_t>(k.betas, part_of_one<uint8_t>)}});
  return layers;
}

Json experts(const Lens& lens) {
  Json layers = Json::array();
  for (const ExpertChoices& e : lens.experts) {
    const float largest = std::max(*std::ranges::max_element(e.weights), 1e-9f);
    layers.push_back({{"layer", e.layer},
                      {"experts", e.experts},
                      {"chosen", e.chosen},
                      {"indices", packed<uint16_t>(e.indices, [](int32_t i) { return static_cast<uint16_t>(i); })},
                      {"largest_weight", largest},
                      {"weights", packed<uint16_t>(e.weights, [&](float w) { return part_of_one<uint16_t>(w / largest); })},
                      {"load", e.load}});
  }
  return layers;
}

// Of every token that the page names.
Json texts(const Lens& lens, const std::function<std::string_view(int32_t)>& text) {
  std::vector<int32_t> ids = lens.ids;
  for (const Guess& guess : lens.logit_lens.best) ids.push_back(guess.id);
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  Json by_id = Json::object();
  if (text)
    for (int32_t id : ids)
      if (const std::string_view bytes = text(id); !bytes.empty()) by_id[std::to_string(id)] = shown_token(bytes);
  return by_id;
}

}  // namespace

std::string lens_page_data(const Lens& lens, std::string_view model, const std::function<std::string_view(int32_t)>& text) {
  const Json data = {{"model", shown_token(model)},
                     {"ids", lens.ids},
                     {"has_texts", static_cast<bool>(text)},
                     {"texts", texts(lens, text)},
                     {"logit_lens", logit_lens(lens.logit_lens)},
                     {"attention", attention(lens)},
                     {"kda", kda(lens)},
                     {"experts", experts(lens)}};
  constexpr bool kOnlyAscii = true;
  const std::string json = data.dump(-1, ' ', kOnlyAscii);
  std::string safe;  // '<' stands in strings alone, where it has another spelling: no "</script>", no "<!--"
  safe.reserve(json.size());
  for (char c : json) c == '<' ? safe += "\\u003c" : safe += c;
  return safe;
}

}  // namespace kilin::cli
