// SPDX-License-Identifier: Apache-2.0
#include "gpu/lower/regions.hpp"

#include <algorithm>
#include <map>

namespace manyscale::gpu {

namespace {

constexpr std::uint32_t kLongestPredicated = 10;  // machine instructions of a body
constexpr std::size_t kLargestRegion = 1024;  // blocks that are searched for what a branch makes divergent

}  // namespace

std::vector<Loop> find_loops(std::span<const Op> ops) {
  std::map<std::uint32_t, std::uint32_t> ends;  // by first operation
  for (std::uint32_t op = 0; op < ops.size(); ++op)
    if (ops[op].flow == Flow::branch && ops[op].aux <= op)
      ends[ops[op].aux] = std::max(ends[ops[op].aux], op);
  std::vector<Loop> loops;
  for (const auto& [first, last] : ends) loops.push_back({first, last});
  return loops;
}

std::vector<std::uint8_t> loop_depths(std::span<const Op> ops) {
  std::vector<int> change(ops.size() + 1, 0);
  for (const Loop& loop : find_loops(ops)) {
    ++change[loop.first];
    --change[loop.last + 1];
  }
  std::vector<std::uint8_t> depths;
  int depth = 0;
  for (std::size_t op = 0; op < ops.size(); ++op) {
    depth += change[op];
    depths.push_back(static_cast<std::uint8_t>(std::min(depth, 255)));
  }
  return depths;
}

Regions::Regions(const Values& values, std::span<const std::uint32_t> lengths, bool is_kernel)
    : values_(values),
      is_kernel_(is_kernel),
      blocks_(make_blocks(values.code().ops, values.code().branch_tables)) {
  const std::size_t count = values.code().ops.size();
  block_of_.resize(count);
  predecessors_.resize(blocks_.size());
  for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
    for (std::uint32_t op = blocks_[b].first; op < blocks_[b].last; ++op) block_of_[op] = b;
    for (std::uint32_t successor : blocks_[b].successors) predecessors_[successor].push_back(b);
  }
  meeting_ = immediate_post_dominators(blocks_);
  removed_.assign(count, 0);
  set_.assign(count, 0);
  meetings_.assign(count, 0);
  predicates_.assign(blocks_.size(), kNoOperation);
  loops_ = find_loops(values.code().ops);
  depths_ = loop_depths(values.code().ops);
  find_dominators();
  find_divergence();
  predicate_short_bodies(lengths);
  place_barriers();
}

// The iterative algorithm of Cooper, Harvey and Kennedy; then numbers of a walk over the tree.
void Regions::find_dominators() {
  const auto count = static_cast<std::uint32_t>(blocks_.size());
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> number(count, kNoBlock);
  std::vector<char> seen(count, 0);
  std::vector<std::pair<std::uint32_t, std::size_t>> stack{{0, 0}};
  seen[0] = 1;
  while (!stack.empty()) {
    auto& [block, next] = stack.back();
    if (next < blocks_[block].successors.size()) {
      const std::uint32_t to = blocks_[block].successors[next++];
      if (!seen[to]) {
        seen[to] = 1;
        stack.push_back({to, 0});
      }
    } else {
      number[block] = static_cast<std::uint32_t>(order.size());
      order.push_back(block);
      stack.pop_back();
    }
  }
  std::vector<std::uint32_t> dominator(count, kNoBlock);
  dominator[0] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = order.size() - 1; i-- > 0;) {
      const std::uint32_t b = order[i];
      std::uint32_t best = kNoBlock;
      for (std::uint32_t p : predecessors_[b]) {
        if (dominator[p] == kNoBlock) continue;
        std::uint32_t a = p;
        if (best == kNoBlock) {
          best = a;
          continue;
        }
        while (a != best) {
          while (number[a] < number[best]) a = dominator[a];
          while (number[best] < number[a]) best = dominator[best];
        }
      }
      if (best != dominator[b]) {
        dominator[b] = best;
        changed = true;
      }
    }
  }
  std::vector<std::vector<std::uint32_t>> children(count);
  for (std::uint32_t b = 1; b < count; ++b)
    if (dominator[b] != kNoBlock) children[dominator[b]].push_back(b);
  // A block that nothing leads to dominates only itself.
  enter_.resize(count);
  leave_.resize(count);
  for (std::uint32_t b = 0; b < count; ++b) enter_[b] = leave_[b] = 2 * count + b;
  std::uint32_t time = 0;
  stack.assign(1, {0, 0});
  enter_[0] = time++;
  while (!stack.empty()) {
    auto& [block, next] = stack.back();
    if (next < children[block].size()) {
      const std::uint32_t child = children[block][next++];
      enter_[child] = time++;
      stack.push_back({child, 0});
    } else {
      leave_[block] = time++;
      stack.pop_back();
    }
  }
}

// Whether an operation gives lanes of a warp different results whatever it reads.
bool Regions::makes_divergent(std::uint32_t op) const {
  if (values_.text(op) == nullptr) return false;
  switch (values_.info(op).kind) {
    case Class::atomic:
    case Class::texture:
    case Class::tensor:
      return true;
    case Class::warp:
      return values_.opcode(op) == "shfl";
    case Class::load:  // what comes from a caller, or back from a call
      return values_.has(op, "param") && !values_.is_kernel_parameter(op);
    case Class::move:
      break;
    default:
      return false;
  }
  for (const ptx::Operand& operand : values_.module().operands_of(*values_.text(op)))
    if (operand.kind == ptx::Operand::Kind::special)
      return operand.text.starts_with("%tid") || operand.text.starts_with("%lane") ||
             operand.text.starts_with("%clock");
  return false;
}

// What is written in the blocks between a branch and where its paths meet depends on which path was taken.
void Regions::spread_over_region(std::uint32_t block) {
  // Lanes that end leave the others together.
  if (std::ranges::any_of(blocks_[block].successors, [&](std::uint32_t b) { return only_ends(b); })) return;
  std::vector<std::uint32_t> work(blocks_[block].successors.begin(), blocks_[block].successors.end());
  std::vector<std::uint32_t> written;
  for (std::size_t seen = 0; !work.empty() && seen < kLargestRegion;) {
    const std::uint32_t b = work.back();
    work.pop_back();
    if (b == meeting_[block] || searched_[b] == block) continue;
    searched_[b] = block;
    ++seen;
    for (std::uint32_t op = blocks_[b].first; op < blocks_[b].last; ++op)
      for (std::uint32_t id : values_.writes(op))
        if (values_.definition(id) == kNoOperation && !divergent_[id]) written.push_back(id);
    work.insert(work.end(), blocks_[b].successors.begin(), blocks_[b].successors.end());
  }
  // Inside, the lanes that are there do the same.
  for (std::uint32_t id : written)
    divergent_[id] |= std::ranges::any_of(
        values_.users(id), [&](std::uint32_t user) { return searched_[block_of_[user]] != block; });
}

void Regions::find_divergence() {
  divergent_.assign(values_.count(), 0);
  searched_.assign(blocks_.size(), kNoBlock);
  std::vector<char> spread(blocks_.size(), 0);
  const auto count = static_cast<std::uint32_t>(block_of_.size());
  bool changed = true;
  for (unsigned pass = 0; changed && pass < 16; ++pass) {
    changed = false;
    for (std::uint32_t op = 0; op < count; ++op) {
      bool divergent = makes_divergent(op);
      for (std::uint32_t id : values_.reads(op)) divergent |= divergent_[id] != 0;
      if (!divergent || (values_.text(op) != nullptr && values_.info(op).kind == Class::warp &&
                         values_.opcode(op) != "shfl"))
        continue;
      for (std::uint32_t id : values_.writes(op)) {
        changed |= divergent_[id] == 0;
        divergent_[id] = 1;
      }
      const std::uint32_t block = block_of_[op];
      if (values_.code().ops[op].flow == Flow::branch && !spread[block]) {
        spread[block] = 1;
        spread_over_region(block);
        changed = true;
      }
    }
  }
}

// Whether a block does nothing but end the kernel: a branch to it is an EXIT.
bool Regions::only_ends(std::uint32_t block) const {
  for (std::uint32_t op = blocks_[block].first; op < blocks_[block].last; ++op) {
    const Flow flow = values_.code().ops[op].flow;
    if (flow == Flow::join) continue;
    return (flow == Flow::ret && is_kernel_) || flow == Flow::exit;
  }
  return false;
}

// Lanes that do not take part had better not wait for what the others load and store.
bool Regions::waits_for_memory(std::uint32_t first, std::uint32_t last) const {
  bool loads = false;
  bool stores = false;
  for (std::uint32_t op = blocks_[first].first; op < blocks_[last].last; ++op) {
    if (values_.text(op) == nullptr) continue;
    const Class kind = values_.info(op).kind;
    loads |= kind == Class::load && values_.has(op, "global");
    stores |= kind == Class::store;
  }
  return loads && stores;
}

bool Regions::can_be_predicated(std::uint32_t block) const {
  for (std::uint32_t op = blocks_[block].first; op < blocks_[block].last; ++op) {
    const Op& operation = values_.code().ops[op];
    if (operation.flow == Flow::join || removed_[op]) continue;
    if (operation.flow == Flow::branch && op + 1 == blocks_[block].last && !values_.is_guarded(op)) continue;
    if (operation.flow != Flow::next) return false;
    const Class kind = values_.info(op).kind;
    if (kind == Class::barrier || kind == Class::fence || kind == Class::tensor || kind == Class::atomic)
      return false;
  }
  return true;
}

void Regions::predicate_short_bodies(std::span<const std::uint32_t> lengths) {
  const auto& ops = values_.code().ops;
  const auto count = static_cast<std::uint32_t>(blocks_.size());
  // A run of blocks that has become one counts as its first.
  std::vector<std::uint32_t> last(count);
  std::vector<std::uint32_t> length(count, 0);
  for (std::uint32_t b = 0; b < count; ++b) {
    last[b] = b;
    for (std::uint32_t op = blocks_[b].first; op < blocks_[b].last; ++op) length[b] += lengths[op];
    const Op& end = ops[blocks_[b].last - 1];
    if (end.flow == Flow::branch && !values_.is_guarded(blocks_[b].last - 1)) {
      const std::uint32_t target = block_of_[end.aux];
      if (target == b + 1) {
        removed_[blocks_[b].last - 1] = 1;
        --length[b];
      }
    }
  }
  // A branch around an unconditional one is a branch with the opposite condition.
  for (std::uint32_t b = 1; b + 1 < count; ++b) {
    const std::uint32_t jump = blocks_[b].last - 1;
    const std::uint32_t around = blocks_[b - 1].last - 1;
    if (ops[jump].flow != Flow::branch || values_.is_guarded(jump) || first_operation(b) != jump ||
        removed_[jump])
      continue;
    if (ops[around].flow != Flow::branch || !values_.is_guarded(around) ||
        block_of_[ops[around].aux] != b + 1)
      continue;
    if (predecessors_[b].size() != 1) continue;
    removed_[jump] = 1;
    --length[b];
  }
  auto only_from = [&](std::uint32_t block, std::uint32_t from) {
    return predecessors_[block].size() == 1 && predecessors_[block][0] == from;
  };
  auto predicate = [&](std::uint32_t first, std::uint32_t end, std::uint32_t with) {
    for (std::uint32_t b = first; b <= end; ++b)
      if (predicates_[b] == kNoOperation) predicates_[b] = with;
  };
  for (std::uint32_t head = count; head-- > 0;) {
    for (;;) {
      const std::uint32_t a = last[head];
      const std::uint32_t branch = blocks_[a].last - 1;
      if (ops[branch].flow != Flow::branch || !values_.is_guarded(branch) || ops[branch].aux <= branch) break;
      const std::uint32_t next = a + 1;
      const std::uint32_t target = block_of_[ops[branch].aux];
      if (next >= count || target <= next || only_ends(target)) break;
      // The sides of the branch as they stand in the text; a lone jump ahead of them leads to the second.
      const bool jumps = removed_[blocks_[next].last - 1] &&
                         first_operation(next) == blocks_[next].last - 1 && target == next + 1;
      const std::uint32_t first = jumps ? target : next;
      const std::uint32_t second = jumps ? block_of_[ops[blocks_[next].last - 1].aux] : target;
      if (!only_from(next, a) || !only_from(first, a) || !can_be_predicated(first) || second <= first) break;
      const Block& ending = blocks_[last[first]];
      if (ending.leaves || ending.successors.size() != 1 || length[first] > kLongestPredicated) break;
      if (last[first] + 1 != second) break;
      const std::uint32_t guard = values_.guard(branch);
      if (guard == kNoOperation) break;
      if (depths_[branch] == 0 && divergent_[guard] && waits_for_memory(first, last[first])) break;
      const std::uint32_t join = ending.successors[0];
      std::uint32_t total = length[first];
      if (join == second) {
        predicate(first, last[first], guard);
      } else {
        const Block& other = blocks_[last[second]];
        if (!only_from(second, jumps ? next : a) || !can_be_predicated(second) ||
            other.successors.size() != 1 || other.leaves || other.successors[0] != join ||
            last[second] + 1 != join || length[second] > kLongestPredicated)
          break;
        predicate(first, last[second], guard);
        removed_[ending.last - 1] = 1;
        total += length[second] - 1;
      }
      removed_[branch] = 1;
      length[head] += total;
      --length[head];
      // What follows belongs to the same run if nothing else leads there.
      const auto inside = [&](std::uint32_t p) { return p >= head && p < join; };
      if (!std::ranges::all_of(predecessors_[join], inside)) break;
      length[head] += length[join];
      last[head] = last[join];
    }
  }
}

std::uint32_t Regions::first_operation(std::uint32_t block) const {
  std::uint32_t op = blocks_[block].first;
  while (op + 1 < blocks_[block].last && values_.code().ops[op].flow == Flow::join) ++op;
  return op;
}

void Regions::place_barriers() {
  const auto& ops = values_.code().ops;
  std::map<std::uint32_t, std::uint32_t>
      anchors;  // by meeting block: the operation ahead of which lanes part
  for (std::uint32_t op = 0; op < ops.size(); ++op) {
    if (ops[op].flow != Flow::branch || removed_[op] || !values_.is_guarded(op)) continue;
    const std::uint32_t guard = values_.guard(op);
    if (guard == kNoOperation || !divergent_[guard]) continue;
    const std::uint32_t meeting = meeting_[block_of_[op]];
    if (meeting == kNoBlock || only_ends(meeting)) continue;
    std::uint32_t anchor = op;
    const std::uint32_t meets = blocks_[meeting].first;
    for (const Loop& loop : loops_)
      if (loop.first <= op && op <= loop.last && (meets < loop.first || meets > loop.last) && loop.first > 0)
        anchor = std::min(anchor, loop.first - 1);
    while (anchor > 0 && ops[anchor].flow == Flow::join) --anchor;
    const auto [found, is_new] = anchors.try_emplace(meeting, anchor);
    if (!is_new) found->second = std::min(found->second, anchor);
  }
  std::vector<int> change(ops.size() + 1, 0);
  for (const auto& [meeting, anchor] : anchors) {
    if (set_[anchor] < 255) ++set_[anchor];
    const std::uint32_t at = blocks_[meeting].first;
    if (ops[at].flow == Flow::join && meetings_[at] < 255) ++meetings_[at];
    ++change[std::min(anchor, at)];
    --change[std::max(anchor, at)];
  }
  int now = 0;
  for (std::size_t op = 0; op < ops.size(); ++op) {
    now += change[op];
    open_.push_back(static_cast<std::uint8_t>(std::clamp(now, 0, 255)));
  }
}

}  // namespace manyscale::gpu
