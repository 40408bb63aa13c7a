// SPDX-License-Identifier: Apache-2.0
#include "memory/cache/replacement.hpp"

namespace manyscale::memory {

namespace {

// Static re-reference interval prediction with 2 bits. Stamps are the predicted distances to the next use: a
// line that was just filled has a long one, and its first use makes it the shortest.
class Srrip final : public ReplacementPolicy {
 public:
  explicit Srrip(const ReplacementShape&) {}

  ReplacementRules rules() const override {
    return {
        .on_use = StampRule::value, .use_value = 0, .on_fill = StampRule::value, .fill_value = longest - 1};
  }
  std::uint32_t victim(std::uint32_t, std::span<std::uint32_t> stamps, std::uint64_t movable,
                       Random&) override {
    for (;;) {
      for (std::uint32_t way = 0; way < stamps.size(); ++way)
        if ((movable >> way & 1) != 0 && stamps[way] >= longest) return way;
      for (std::uint32_t& stamp : stamps) ++stamp;
    }
  }

 private:
  static constexpr std::uint32_t longest = 3;
};

const Registered<Srrip> registered{"srrip", "A line that is predicted to be used again late leaves."};

}  // namespace

}  // namespace manyscale::memory
