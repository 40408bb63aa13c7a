// SPDX-License-Identifier: Apache-2.0
#include "gpu/sass/lz4.hpp"

#include <cstring>
#include <string>

namespace manyscale::sass {
namespace {

constexpr std::size_t kLong = 15;  // a length that goes on in further bytes
constexpr std::size_t kShortestCopy = 4;

class Lz4Reader {
 public:
  Lz4Reader(std::span<const std::byte> block, std::span<std::byte> out) : block_{block}, out_{out} {}

  void unpack() {
    while (at_ < block_.size()) {
      const std::size_t token = byte();
      copy_literals(length(token >> 4));
      if (at_ == block_.size() || made_ == out_.size()) break;
      if (block_.size() - at_ < 2) cut_off();
      const std::size_t low = byte();
      const std::size_t distance = low | byte() << 8;
      copy_earlier(distance, length(token & 15) + kShortestCopy);
    }
    if (made_ != out_.size())
      throw Lz4Error("it has " + std::to_string(made_) + " bytes instead of " + std::to_string(out_.size()));
  }

 private:
  std::size_t byte() { return std::to_integer<std::size_t>(block_[at_++]); }

  std::size_t length(std::size_t value) {
    if (value != kLong) return value;
    for (;;) {
      if (at_ == block_.size()) cut_off();
      const std::size_t more = byte();
      value += more;
      if (more != 255) return value;
    }
  }

  void copy_literals(std::size_t count) {
    if (count > block_.size() - at_ || count > out_.size() - made_)
      throw Lz4Error("a run of its LZ4 block is too long");
    if (count != 0) std::memcpy(out_.data() + made_, block_.data() + at_, count);
    at_ += count;
    made_ += count;
  }

  void copy_earlier(std::size_t distance, std::size_t count) {
    if (distance == 0 || distance > made_ || count > out_.size() - made_)
      throw Lz4Error("its LZ4 block points outside itself");
    std::byte* to = out_.data() + made_;
    const std::byte* from = to - distance;
    if (distance >= count)
      std::memcpy(to, from, count);
    else  // source and target overlap
      for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
    made_ += count;
  }

  [[noreturn]] static void cut_off() { throw Lz4Error("its LZ4 block is cut off"); }

  std::span<const std::byte> block_;
  std::span<std::byte> out_;
  std::size_t at_ = 0;
  std::size_t made_ = 0;
};

}  // namespace

void unpack_lz4(std::span<const std::byte> block, std::span<std::byte> out) {
  Lz4Reader{block, out}.unpack();
}

}  // namespace manyscale::sass
