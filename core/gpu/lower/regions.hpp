// SPDX-License-Identifier: Apache-2.0
// The flow of a function as an assembler arranges it: loops, branches that lanes of a warp take differently,
// short bodies that are executed under a predicate instead of being jumped over.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/exec/flow_graph.hpp"
#include "gpu/lower/values.hpp"

namespace manyscale::gpu {

struct Loop {
  std::uint32_t first;  // operations
  std::uint32_t last;
};
// By branches that lead back, outer ones first.
std::vector<Loop> find_loops(std::span<const Op> ops);
// The number of loops that each operation is in.
std::vector<std::uint8_t> loop_depths(std::span<const Op> ops);

class Regions {
 public:
  // `lengths`: the SASS instructions of each operation.
  Regions(const Values& values, std::span<const std::uint32_t> lengths, bool is_kernel);

  std::span<const Block> blocks() const { return blocks_; }
  std::uint32_t block_of(std::uint32_t op) const { return block_of_[op]; }
  unsigned depth(std::uint32_t op) const { return depths_[op]; }  // loops that it is in
  bool dominates(std::uint32_t block, std::uint32_t other) const {
    return enter_[block] <= enter_[other] && leave_[other] <= leave_[block];
  }
  bool is_reached(std::uint32_t op) const { return enter_[block_of_[op]] < 2 * blocks_.size(); }
  // A branch that is not there: what it would jump over is predicated, or it leads to the next instruction.
  bool is_removed(std::uint32_t op) const { return removed_[op] != 0; }
  // Whether an operation is a branch whose sides are predicated instead.
  bool is_predicated_branch(std::uint32_t op) const { return predicated_branches_[op] != 0; }
  // The predicate under which an operation is executed besides its own; kNoOperation for none.
  std::uint32_t predicate(std::uint32_t op) const { return predicates_[block_of_[op]]; }
  // The first operation of a block that is no join.
  std::uint32_t first_operation(std::uint32_t block) const;
  // Convergence barriers that are set up ahead of an operation (BSSY), and those at which lanes meet with a
  // join (BSYNC).
  unsigned barriers_set(std::uint32_t op) const { return set_[op]; }
  unsigned reconvergences(std::uint32_t op) const { return reconvergences_[op]; }
  // Barriers that have been set up when an operation is executed.
  unsigned open_barriers(std::uint32_t op) const { return open_[op]; }
  bool is_divergent(std::uint32_t element) const { return divergent_[element] != 0; }

 private:
  void find_dominators();
  void find_divergence();
  bool makes_divergent(std::uint32_t op) const;
  void spread_over_region(std::uint32_t block);
  // Runs of blocks that are one after predication, by their first block: the last one, and the SASS
  // instructions.
  struct BlockRuns {
    std::vector<std::uint32_t> last;
    std::vector<std::uint32_t> length;
  };
  // A conditional branch, the first blocks of its sides, and the one block that leads to the second.
  struct BranchSides {
    std::uint32_t branch, first, second, before_second;
  };
  void predicate_short_bodies(std::span<const std::uint32_t> lengths);
  BlockRuns measure_blocks(std::span<const std::uint32_t> lengths);
  void remove_jumps_around(BlockRuns& runs);
  bool is_only_reached_from(std::uint32_t block, std::uint32_t from) const;
  std::optional<BranchSides> sides_of_branch(std::uint32_t block) const;
  bool predicate_branch_of(std::uint32_t head, BlockRuns& runs);
  bool can_be_predicated(std::uint32_t block) const;
  struct FarLoads {
    bool any = false;
    bool used_at_once = false;    // by what follows on the same side
    bool stored_at_once = false;  // with a store there
  };
  FarLoads loads_from_far(std::uint32_t first, std::uint32_t last) const;
  std::uint32_t longest_predicated(std::uint32_t branch, std::uint32_t first, std::uint32_t last,
                                   bool alone) const;
  void insert_barriers();
  bool only_ends(std::uint32_t block) const;

  const Values& values_;
  const bool is_kernel_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> block_of_;
  std::vector<std::vector<std::uint32_t>> predecessors_;
  std::vector<std::uint32_t> reconvergence_;  // of a block: where paths from it meet again
  std::vector<Loop> loops_;
  std::vector<std::uint8_t> depths_;
  std::vector<std::uint32_t> enter_;
  std::vector<std::uint32_t> leave_;
  std::vector<char> divergent_;
  std::vector<std::uint32_t> searched_;  // by block: the branch for which it was searched last
  std::vector<char> removed_;
  std::vector<char> predicated_branches_;
  std::vector<std::uint32_t> predicates_;  // by block
  std::vector<std::uint8_t> set_;
  std::vector<std::uint8_t> reconvergences_;
  std::vector<std::uint8_t> open_;
};

}  // namespace manyscale::gpu
