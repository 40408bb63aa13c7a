// SPDX-License-Identifier: Apache-2.0
#include "gpu/lower/loop_heads.hpp"

#include <algorithm>

namespace manyscale::gpu {

namespace {

// What a warp meets first in a block.
enum class Meets : char { nothing, memory, parting };

bool is_memory(InstructionKind kind) {
  return kind >= InstructionKind::load_global && kind <= InstructionKind::shuffle &&
         kind != InstructionKind::load_constant;
}

class Search {
 public:
  Search(const Values& values, const Regions& regions, std::span<const Sequence> sequences)
      : values_(values), regions_(regions), searched_(regions.blocks().size(), kNoBlock) {
    for (const Block& block : regions.blocks()) meets_.push_back(first_met(block, sequences));
  }

  // Whether a path from a block back to it, or to where lanes can part, goes past no memory.
  bool turns(std::uint32_t head, std::uint32_t last) {
    work_.assign(1, head);
    while (!work_.empty()) {
      const std::uint32_t block = work_.back();
      work_.pop_back();
      if (meets_[block] == Meets::memory) continue;
      if (meets_[block] == Meets::parting) return true;
      for (std::uint32_t next : successors(block)) {
        if (next == head) return true;
        if (next < head || next > last || searched_[next] == head) continue;
        searched_[next] = head;
        work_.push_back(next);
      }
    }
    return false;
  }

 private:
  Meets first_met(const Block& block, std::span<const Sequence> sequences) const {
    for (std::uint32_t op = block.first; op < block.last; ++op) {
      if (regions_.barriers_set(op) != 0 || sequences[op].branches()) return Meets::parting;
      const Flow flow = values_.code().ops[op].flow;
      if (flow == Flow::call || flow == Flow::call_indirect) return Meets::parting;
      if (is_memory(sequences[op].main)) return Meets::memory;
    }
    return Meets::nothing;
  }

  // What is predicated instead of being jumped over is on the way.
  std::span<const std::uint32_t> successors(std::uint32_t block) {
    const Block& from = regions_.blocks()[block];
    if (!regions_.is_removed(from.last - 1) || block + 1 == regions_.blocks().size()) return from.successors;
    next_ = block + 1;
    return {&next_, 1};
  }

  const Values& values_;
  const Regions& regions_;
  std::vector<Meets> meets_;
  std::vector<std::uint32_t> searched_;  // by block: the head for which it was searched last
  std::vector<std::uint32_t> work_;
  std::uint32_t next_ = 0;
};

}  // namespace

std::vector<char> heads_that_turn(const Values& values, const Regions& regions,
                                  std::span<const Sequence> sequences) {
  const auto& ops = values.code().ops;
  std::vector<char> result(ops.size(), 0);
  Search search(values, regions, sequences);
  for (const Loop& loop : find_loops(ops)) {
    const std::uint32_t head = regions.block_of(loop.first);
    if (search.turns(head, regions.block_of(loop.last))) result[regions.first_operation(head)] = 1;
  }
  return result;
}

}  // namespace manyscale::gpu
