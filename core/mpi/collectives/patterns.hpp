// SPDX-License-Identifier: Apache-2.0
// Trees and divisions that several collective algorithms share.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "mpi/collectives/schedule.hpp"

namespace manyscale::mpi {

// Members counted from the root, which becomes 0.
inline std::uint32_t from_root(const Call& call) {
  return (call.rank() + call.size() - call.root) % call.size();
}
inline std::uint32_t member_at(const Call& call, std::uint32_t distance) {
  return (distance + call.root) % call.size();
}

// The bytes of blocks [begin, end) of a buffer that is cut into `count` blocks as equal as possible.
inline std::uint64_t blocks(std::uint64_t bytes, std::uint32_t count, std::uint32_t begin,
                            std::uint32_t end) {
  const auto up_to = [&](std::uint64_t block) {
    return bytes / count * block + bytes % count * block / count;
  };
  return up_to(end) - up_to(begin);
}

// Chains of a chain tree. Open MPI: coll_tuned_component.c, init_chain_fanout.
inline constexpr std::uint32_t chain_fanout = 4;

// A member's position in a tree over a group; members are counted from the root.
struct Tree {
  std::uint32_t parent = none;
  std::vector<std::uint32_t> children;
};
// Each member of a level has `radix` - 1 children per lower level; radix 2 is the binomial tree. Children
// with the largest subtrees come first.
inline Tree knomial_tree(std::uint32_t size, std::uint32_t position, std::uint32_t radix) {
  Tree tree;
  std::uint64_t level = 1;
  for (; level < size; level *= radix) {
    if (const std::uint64_t digit = position / level % radix; digit != 0) {
      tree.parent = static_cast<std::uint32_t>(position - digit * level);
      break;
    }
  }
  while (level > 1) {
    level /= radix;
    for (std::uint64_t digit = 1; digit < radix; ++digit) {
      const std::uint64_t child = position + digit * level;
      if (child < size) tree.children.push_back(static_cast<std::uint32_t>(child));
    }
  }
  return tree;
}
inline Tree binary_tree(std::uint32_t size, std::uint32_t position) {
  Tree tree;
  if (position > 0) tree.parent = (position - 1) / 2;
  for (std::uint64_t child = 2 * std::uint64_t{position} + 1; child <= 2 * std::uint64_t{position} + 2;
       ++child)
    if (child < size) tree.children.push_back(static_cast<std::uint32_t>(child));
  return tree;
}
// The root sends to so many chains of nearly equal length.
inline Tree chain_tree(std::uint32_t size, std::uint32_t position, std::uint32_t chains) {
  Tree tree;
  chains = std::min(chains, size - 1);
  if (position == 0) {
    for (std::uint32_t chain = 0; chain < chains; ++chain)
      tree.children.push_back(1 + static_cast<std::uint32_t>(blocks(size - 1, chains, 0, chain)));
    return tree;
  }
  std::uint32_t begin = 0, end = 0;
  for (std::uint32_t chain = 0; end < position; ++chain) {
    begin = end;
    end = static_cast<std::uint32_t>(blocks(size - 1, chains, 0, chain + 1));
  }
  tree.parent = position - 1 == begin ? 0 : position - 1;
  if (position < end) tree.children.push_back(position + 1);
  return tree;
}

// Algorithms for powers of two first fold the members that are too many into others: of the first 2 * extra
// members each odd one hands its data to the even one before it.
struct Fold {
  std::uint32_t size;  // a power of two
  std::uint32_t extra;

  explicit Fold(std::uint32_t members) : size(std::bit_floor(members)), extra(members - size) {}

  // Where the i-th folded member's share begins among all members.
  std::uint32_t begin(std::uint32_t i) const { return i < extra ? 2 * i : i + extra; }
  bool folded_away(std::uint32_t member) const { return member < 2 * extra && member % 2 == 1; }
  bool has_guest(std::uint32_t member) const { return member < 2 * extra && member % 2 == 0; }
  std::uint32_t position(std::uint32_t member) const {
    return member < 2 * extra ? member / 2 : member - extra;
  }
};

// The first half of Rabenseifner's reductions, for members that are not folded away: after it the i-th of
// them, from the root, has block i of the result.
Schedule reduce_to_blocks(Call& call);

}  // namespace manyscale::mpi
