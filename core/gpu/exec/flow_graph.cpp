// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/flow_graph.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace manyscale::gpu {

std::vector<Block> make_blocks(std::span<const Op> ops,
                               std::span<const std::vector<std::uint32_t>> branch_tables) {
  std::vector<char> leader(ops.size() + 1, 0);
  leader[0] = 1;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = ops[i];
    if (op.flow == Flow::branch) leader[op.aux] = 1;
    if (op.flow == Flow::branch_table)
      for (std::uint32_t target : branch_tables[op.aux]) leader[target] = 1;
    if (op.flow == Flow::branch || op.flow == Flow::branch_table || op.flow == Flow::ret ||
        op.flow == Flow::exit)
      leader[i + 1] = 1;
  }
  std::vector<Block> blocks;
  std::vector<std::uint32_t> block_of(ops.size() + 1, kNoBlock);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (leader[i])
      blocks.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i), {}, false});
    block_of[i] = static_cast<std::uint32_t>(blocks.size() - 1);
    blocks.back().last = static_cast<std::uint32_t>(i + 1);
  }
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    Block& block = blocks[b];
    const Op& op = ops[block.last - 1];
    const bool guarded = op.guard != kNoSlot;
    bool falls_through = true;
    auto add = [&](std::uint32_t target) {
      if (target >= ops.size()) {
        block.leaves = true;
      } else if (std::ranges::find(block.successors, block_of[target]) == block.successors.end()) {
        block.successors.push_back(block_of[target]);
      }
    };
    if (op.flow == Flow::branch) {
      add(op.aux);
      falls_through = guarded;
    } else if (op.flow == Flow::branch_table) {
      std::vector<std::uint32_t> targets = branch_tables[op.aux];
      std::ranges::sort(targets);
      targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
      for (std::uint32_t target : targets) {
        if (target >= ops.size())
          block.leaves = true;
        else
          block.successors.push_back(block_of[target]);
      }
      falls_through = guarded;
    } else if (op.flow == Flow::ret || op.flow == Flow::exit) {
      block.leaves = true;
      falls_through = guarded;
    }
    if (falls_through) add(block.last);
  }
  return blocks;
}

namespace {

// Blocks in the order in which a depth-first walk over `edges` from `root` leaves them; blocks it does not
// reach are absent.
std::vector<std::uint32_t> post_order(const std::vector<std::vector<std::uint32_t>>& edges,
                                      std::uint32_t root) {
  std::vector<std::uint32_t> order;
  std::vector<char> seen(edges.size(), 0);
  std::vector<std::pair<std::uint32_t, std::size_t>> stack{{root, 0}};
  seen[root] = 1;
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next < edges[node].size()) {
      const std::uint32_t target = edges[node][next++];
      if (!seen[target]) {
        seen[target] = 1;
        stack.push_back({target, 0});
      }
    } else {
      order.push_back(node);
      stack.pop_back();
    }
  }
  return order;
}

}  // namespace

// The iterative algorithm of Cooper, Harvey and Kennedy on the reversed graph, whose root is the end of the
// function.
std::vector<std::uint32_t> immediate_post_dominators(std::span<const Block> blocks) {
  const auto end = static_cast<std::uint32_t>(blocks.size());
  std::vector<std::vector<std::uint32_t>> reversed(blocks.size() + 1);
  for (std::uint32_t b = 0; b < end; ++b) {
    for (std::uint32_t successor : blocks[b].successors) reversed[successor].push_back(b);
    if (blocks[b].leaves) reversed[end].push_back(b);
  }
  std::vector<std::uint32_t> order = post_order(reversed, end);
  if (order.size() < blocks.size() + 1) {
    // Loops without an end: they are given one, from their last block, so that every block has a path to it.
    std::vector<char> reached(blocks.size() + 1, 0);
    for (std::uint32_t b : order) reached[b] = 1;
    for (std::uint32_t b = end; b-- > 0;) {
      if (reached[b]) continue;
      reversed[end].push_back(b);
      for (std::uint32_t r : post_order(reversed, b)) reached[r] = 1;
    }
    order = post_order(reversed, end);
  }
  std::vector<std::uint32_t> number(blocks.size() + 1, 0);
  for (std::size_t i = 0; i < order.size(); ++i) number[order[i]] = static_cast<std::uint32_t>(i);

  std::vector<std::uint32_t> dominator(blocks.size() + 1, kNoBlock);
  dominator[end] = end;
  auto meet = [&](std::uint32_t a, std::uint32_t b) {
    while (a != b) {
      while (number[a] < number[b]) a = dominator[a];
      while (number[b] < number[a]) b = dominator[b];
    }
    return a;
  };
  std::vector<char> given_end(blocks.size() + 1, 0);
  for (std::uint32_t b : reversed[end]) given_end[b] = 1;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = order.size() - 1; i-- > 0;) {
      const std::uint32_t b = order[i];
      std::uint32_t best = given_end[b] ? end : kNoBlock;
      for (std::uint32_t successor : blocks[b].successors)
        if (dominator[successor] != kNoBlock) best = best == kNoBlock ? successor : meet(successor, best);
      if (best != dominator[b]) {
        dominator[b] = best;
        changed = true;
      }
    }
  }
  dominator.resize(blocks.size());
  for (std::uint32_t& d : dominator)
    if (d == end) d = kNoBlock;
  return dominator;
}

std::vector<LiveRange> live_ranges(std::span<const Op> ops, std::span<const Block> blocks,
                                   const RegisterUses& uses, std::size_t registers) {
  std::vector<LiveRange> ranges(registers);
  auto touch = [&](std::uint32_t id, std::uint32_t op) {
    ranges[id].first = std::min(ranges[id].first, op);
    ranges[id].last = std::max(ranges[id].last, op);
  };
  // Only registers that some block reads before it writes them can live across blocks; most do not.
  std::vector<std::uint32_t> crossing(registers, kNoBlock);
  std::vector<std::uint32_t> written_in(registers, kNoBlock);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> exposed;  // (register, block)
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    for (std::uint32_t i = blocks[b].first; i < blocks[b].last; ++i) {
      for (std::uint32_t id : uses.reads(i)) {
        touch(id, i);
        if (written_in[id] != b) exposed.push_back({id, b});
      }
      for (std::uint32_t id : uses.writes(i)) {
        touch(id, i);
        // A guarded write leaves the old value in some lanes.
        if (ops[i].guard != kNoSlot && written_in[id] != b) exposed.push_back({id, b});
        if (ops[i].guard == kNoSlot) written_in[id] = b;
      }
    }
  }
  // A register is live into a block if it is exposed there, or into a successor without being written here.
  // Walk backwards from each exposed use; the blocks passed are within its range.
  std::vector<std::vector<std::uint32_t>> predecessors(blocks.size());
  for (std::uint32_t b = 0; b < blocks.size(); ++b)
    for (std::uint32_t successor : blocks[b].successors) predecessors[successor].push_back(b);
  std::ranges::sort(exposed);
  exposed.erase(std::unique(exposed.begin(), exposed.end()), exposed.end());
  // The blocks that surely write a register.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> killed;  // (register, block)
  for (std::uint32_t b = 0; b < blocks.size(); ++b)
    for (std::uint32_t i = blocks[b].first; i < blocks[b].last; ++i)
      if (ops[i].guard == kNoSlot)
        for (std::uint32_t id : uses.writes(i)) killed.push_back({id, b});
  std::ranges::sort(killed);
  std::vector<std::uint32_t> live_mark(blocks.size(), kNoBlock);
  std::vector<std::uint32_t> kill_mark(blocks.size(), kNoBlock);
  std::vector<std::uint32_t> work;
  std::size_t kill_at = 0;
  for (std::size_t at = 0; at < exposed.size();) {
    const std::uint32_t id = exposed[at].first;
    while (kill_at < killed.size() && killed[kill_at].first < id) ++kill_at;
    for (std::size_t k = kill_at; k < killed.size() && killed[k].first == id; ++k)
      kill_mark[killed[k].second] = id;
    for (; at < exposed.size() && exposed[at].first == id; ++at) {
      live_mark[exposed[at].second] = id;
      work.push_back(exposed[at].second);
    }
    while (!work.empty()) {
      const std::uint32_t b = work.back();
      work.pop_back();
      touch(id, blocks[b].first);
      for (std::uint32_t p : predecessors[b]) {
        touch(id, blocks[p].last - 1);
        if (live_mark[p] == id || kill_mark[p] == id) continue;
        live_mark[p] = id;
        work.push_back(p);
      }
    }
  }
  return ranges;
}

FrameLayout allocate_registers(std::span<const LiveRange> ranges,
                               std::span<const std::uint8_t> bytes_of_register) {
  FrameLayout layout;
  layout.offset.assign(ranges.size(), 0);
  std::vector<std::uint32_t> order(ranges.size());
  std::iota(order.begin(), order.end(), 0U);
  std::erase_if(order, [&](std::uint32_t id) { return ranges[id].first > ranges[id].last; });
  std::ranges::sort(order, {}, [&](std::uint32_t id) { return std::pair(ranges[id].first, id); });
  // Predicates are small: all of them lie first, so that wide registers stay aligned.
  std::uint32_t predicate_bytes = 0;
  std::uint32_t wide_bytes = 0;
  std::map<unsigned, std::vector<std::uint32_t>> unused;  // layout by size
  std::multimap<std::uint32_t, std::uint32_t> ends;       // last use: register
  for (std::uint32_t id : order) {
    while (!ends.empty() && ends.begin()->first < ranges[id].first) {
      const std::uint32_t done = ends.begin()->second;
      unused[bytes_of_register[done]].push_back(layout.offset[done]);
      ends.erase(ends.begin());
    }
    const unsigned bytes = bytes_of_register[id];
    std::vector<std::uint32_t>& candidates = unused[bytes];
    if (!candidates.empty()) {
      layout.offset[id] = candidates.back();
      candidates.pop_back();
    } else if (bytes == 0) {
      layout.offset[id] = predicate_bytes;
      predicate_bytes += sizeof(Mask);
    } else {
      layout.offset[id] = wide_bytes;
      wide_bytes += bytes * kLanes;
    }
    ends.emplace(ranges[id].last, id);
  }
  predicate_bytes = (predicate_bytes + 63) / 64 * 64;
  for (std::uint32_t id : order)
    if (bytes_of_register[id] != 0) layout.offset[id] += predicate_bytes;
  layout.bytes = predicate_bytes + wide_bytes;
  return layout;
}

}  // namespace manyscale::gpu
