// SPDX-License-Identifier: Apache-2.0
// Communicators: which ranks form a group, and their order in it. One communicator stands for all groups that
// a split makes at once; since they are disjoint, a message needs no more than the communicator's number.
// Groups that follow a formula take no memory, others share three arrays.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace manyscale::mpi {

// No rank; and no number of a request, a message or a collective.
inline constexpr std::uint32_t none = 0xffffffffu;

// One group of a communicator as one of its ranks sees it; cheap to copy.
struct Group {
  std::uint32_t size = 1;
  std::uint32_t rank = 0;  // of the one who asked, within the group
  std::uint32_t first = 0;
  std::uint32_t stride = 1;
  const std::uint32_t* members = nullptr;  // instead of first and stride

  // The number in the world of the group's member.
  std::uint32_t world(std::uint32_t member) const {
    return members != nullptr ? members[member] : first + member * stride;
  }
};

class Communicator {
 public:
  // All ranks.
  static Communicator world(std::uint32_t ranks);
  // Along one axis of a row-major grid: `count` ranks that are `stride` apart.
  static Communicator strided(std::uint32_t ranks, std::uint32_t stride, std::uint32_t count);
  // A split: for each rank of the world its group (negative: none) and the key by which a group is ordered,
  // equal keys by rank.
  static Communicator split(std::span<const std::int32_t> group, std::span<const std::int32_t> key);

  bool contains(std::uint32_t world_rank) const { return !members_ || members_->position[world_rank] >= 0; }
  // The group that a member belongs to.
  Group group(std::uint32_t world_rank) const {
    if (members_) {
      const std::uint32_t begin = members_->begin[world_rank];
      return {members_->size[world_rank], static_cast<std::uint32_t>(members_->position[world_rank]), 0, 1,
              members_->ranks.data() + begin};
    }
    const std::uint32_t rank = world_rank / stride_ % count_;
    return {count_, rank, world_rank - rank * stride_, stride_, nullptr};
  }
  // A member's number within its group.
  std::uint32_t rank(std::uint32_t world_rank) const {
    return members_ ? static_cast<std::uint32_t>(members_->position[world_rank])
                    : world_rank / stride_ % count_;
  }
  // The size of a member's group.
  std::uint32_t size(std::uint32_t world_rank) const {
    return members_ ? members_->size[world_rank] : count_;
  }

 private:
  struct Members {
    std::vector<std::uint32_t> ranks;    // group after group
    std::vector<std::uint32_t> begin;    // for each rank of the world: where its group starts in `ranks`
    std::vector<std::uint32_t> size;     // of its group
    std::vector<std::int32_t> position;  // in its group; -1: in none
  };

  std::uint32_t stride_ = 1;
  std::uint32_t count_ = 1;
  std::shared_ptr<const Members> members_;
};

// What a hierarchical collective needs of a communicator: its groups divided by node, and of each such part
// the first rank, which speaks for it.
struct NodeSplit {
  Communicator local, leaders;
};
NodeSplit split_by_node(const Communicator& communicator, std::span<const std::uint32_t> node_of_rank);

}  // namespace manyscale::mpi
