#include "text/pre_tokenizer.h"

#include <cstdint>

#include "text/unicode_classes.h"
#include "text/utf8.h"

namespace kilin {

namespace {

constexpr size_t kNoMatch = std::string_view::npos;

struct Character {
  char32_t code_point = 0;
  uint8_t classes = 0;
  size_t bytes = 0;  // 0 at the end of the text, which matches no class, not even a negated one

  bool is(uint8_t any_of) const { return (classes & any_of) != 0; }
  bool is_newline() const { return code_point == '\n' || code_point == '\r'; }
  bool is_upper() const { return is(CharClass::kLuLt | CharClass::kLmLo | CharClass::kM) && !is(CharClass::kHan); }  // U
  bool is_lower() const { return is(CharClass::kLl | CharClass::kLmLo | CharClass::kM) && !is(CharClass::kHan); }    // D
  bool is_symbol() const { return bytes != 0 && !is(CharClass::kWhiteSpace | CharClass::kL | CharClass::kN); }
  bool may_lead_word() const { return bytes != 0 && !is_newline() && !is(CharClass::kL | CharClass::kN); }
};

// One match attempt from a fixed place. Every function takes the offset where its part of the pattern begins and returns the
// offset where it ends.
class Matcher {
 public:
  explicit Matcher(std::string_view text) : text_(text) {}

  size_t match(size_t begin) const {
    const Character first = at(begin);
    if (first.is(CharClass::kHan)) return run(begin, [](const Character& c) { return c.is(CharClass::kHan); });
    if (const size_t end = word(begin, first); end != kNoMatch) return end;
    if (first.is(CharClass::kN)) return number(begin);
    if (const size_t end = symbols(first.code_point == ' ' ? begin + 1 : begin); end != kNoMatch) return end;
    return spaces(begin);
  }

 private:
  Character at(size_t place) const {
    if (place >= text_.size()) return {};
    const Utf8Unit unit = utf8_unit(text_, place);
    return {unit.code_point, classes_of(unit.code_point), unit.bytes};
  }

  template <typename Predicate>
  size_t run(size_t begin, Predicate&& is_in) const {
    for (Character c = at(begin); c.bytes != 0 && is_in(c); c = at(begin)) begin += c.bytes;
    return begin;
  }

  // The two alternatives for words. Each is tried with the optional leading character first; only if that is a mark can the
  // word also begin with it.
  size_t word(size_t begin, const Character& first) const {
    const size_t after_lead = first.may_lead_word() ? begin + first.bytes : kNoMatch;
    for (size_t start : {after_lead, begin})
      if (const size_t end = start == kNoMatch ? kNoMatch : upper_then_lower(start); end != kNoMatch) return contraction(end);
    for (size_t start : {after_lead, begin})
      if (start != kNoMatch && at(start).is_upper())
        return contraction(lower_run(run(start, [](const Character& c) { return c.is_upper(); })));
    return kNoMatch;
  }

  // U* D+. If no D follows the longest run of U, the run gives back characters until its last one is also a D. The match ends
  // there, since all characters given back are in U only.
  size_t upper_then_lower(size_t begin) const {
    size_t after_last_in_both = kNoMatch;
    Character c = at(begin);
    while (c.is_upper()) {
      begin += c.bytes;
      if (c.is_lower()) after_last_in_both = begin;
      c = at(begin);
    }
    return c.is_lower() ? lower_run(begin) : after_last_in_both;
  }

  size_t lower_run(size_t begin) const {
    return run(begin, [](const Character& c) { return c.is_lower(); });
  }

  // S?. Ignoring case means simple case folding, in which U+017F (long s) is also an s.
  size_t contraction(size_t begin) const {
    if (at(begin).code_point != '\'') return begin;
    const auto folded = [](const Character& c) -> char32_t {
      if (c.code_point >= 'A' && c.code_point <= 'Z') return c.code_point + 32;
      return c.code_point == 0x17f ? U's' : c.code_point;
    };
    const Character first = at(begin + 1);
    const size_t after_first = begin + 1 + first.bytes;
    switch (folded(first)) {
      case 's':
      case 't':
      case 'm':
      case 'd':
        return after_first;
      case 'r':
      case 'v':
        return folded(at(after_first)) == 'e' ? after_first + 1 : begin;
      case 'l':
        return folded(at(after_first)) == 'l' ? after_first + 1 : begin;
      default:
        return begin;
    }
  }

  // \p{N}{1,3}
  size_t number(size_t begin) const {
    for (int digits = 0; digits < 3 && at(begin).is(CharClass::kN); ++digits) begin += at(begin).bytes;
    return begin;
  }

  // [^\s\p{L}\p{N}]+[\r\n]*
  size_t symbols(size_t begin) const {
    if (!at(begin).is_symbol()) return kNoMatch;
    const size_t end = run(begin, [](const Character& c) { return c.is_symbol(); });
    return run(end, [](const Character& c) { return c.is_newline(); });
  }

  // The three alternatives for white space. `begin` is at a run of at least one such character. The match ends after the last
  // newline of the run; without a newline, before the run's last character, which goes with what follows; at the end of the
  // text, or if the run is a single character, it is the whole run.
  size_t spaces(size_t begin) const {
    size_t after_newline = kNoMatch, last = begin, end = begin;
    for (Character c = at(end); c.is(CharClass::kWhiteSpace); c = at(end)) {
      last = end;
      end += c.bytes;
      if (c.is_newline()) after_newline = end;
    }
    if (after_newline != kNoMatch) return after_newline;
    return end == text_.size() || last == begin ? end : last;
  }

  std::string_view text_;
};

}  // namespace

std::optional<std::string_view> PreTokenizer::next() {
  if (at_ >= text_.size()) return std::nullopt;
  const size_t begin = at_;
  at_ = Matcher(text_).match(begin);
  return text_.substr(begin, at_ - begin);
}

}  // namespace kilin
