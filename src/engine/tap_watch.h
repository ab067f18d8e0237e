// Knows at which value a tap threw.
#pragma once

#include <optional>

#include "taps/taps.h"

namespace kilin {

/// Passes everything on, and remembers where it is while it does.
class TapWatch final : public Taps {
 public:
  explicit TapWatch(Taps& taps) : taps_(taps) {}

  void at(const Site& site, TensorView values) override {
    inside_ = site;
    taps_.at(site, values);
    inside_.reset();
  }
  bool wants(const Site& site) override { return taps_.wants(site); }
  void at_sequences(const Site& site, std::span<const TensorView> parts) override {
    inside_ = site;
    taps_.at_sequences(site, parts);
    inside_.reset();
  }

  /// The value whose tap did not return; nothing if none was called, or all did.
  const std::optional<Site>& threw_at() const { return inside_; }

 private:
  Taps& taps_;
  std::optional<Site> inside_;
};

}  // namespace kilin
