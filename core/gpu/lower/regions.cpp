// SPDX-License-Identifier: Apache-2.0
#include "gpu/lower/regions.hpp"

#include <algorithm>
#include <map>

namespace manyscale::gpu {

namespace {

// Instructions of a body that ptxas of CUDA 12.9 predicates for sm_70, found by kernels of growing bodies:
// fewer if all lanes go the same way or there is another side; more where that lets loads begin early.
constexpr std::uint32_t kLongestDivergent = 8;
constexpr std::uint32_t kLongestUniform = 6;
constexpr std::uint32_t kLongestOfTwo = 7;
constexpr std::uint32_t kLongestWithLoads = 20;
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
  reconvergence_ = immediate_post_dominators(blocks_);
  removed_.assign(count, 0);
  predicated_branches_.assign(count, 0);
  set_.assign(count, 0);
  reconvergences_.assign(count, 0);
  predicates_.assign(blocks_.size(), kNoOperation);
  loops_ = find_loops(values.code().ops);
  depths_ = loop_depths(values.code().ops);
  find_dominators();
  find_divergence();
  predicate_short_bodies(lengths);
  insert_barriers();
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
    if (operand.kind == ptx::OperandKind::special)
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
    if (b == reconvergence_[block] || searched_[b] == block) continue;
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

// What a side of a branch loads from memory that is far away.
Regions::FarLoads Regions::loads_from_far(std::uint32_t first, std::uint32_t last) const {
  FarLoads result;
  bool stores = false;
  const auto inside = [&](std::uint32_t user) {
    return user >= blocks_[first].first && user < blocks_[last].last;
  };
  for (std::uint32_t op = blocks_[first].first; op < blocks_[last].last; ++op) {
    if (values_.text(op) == nullptr) continue;
    stores |= values_.info(op).kind == Class::store;
    if (values_.info(op).kind != Class::load || values_.opcode(op) != "ld" || values_.has(op, "shared") ||
        values_.has(op, "param") || values_.has(op, "const"))
      continue;
    result.any = true;
    if (values_.has(op, "nc")) continue;
    for (std::uint32_t id : values_.writes(op))
      result.used_at_once |= std::ranges::any_of(values_.users(id), inside);
  }
  result.stored_at_once = result.used_at_once && stores;
  return result;
}

// The instructions that a side of a branch has at most if it is predicated; `alone`: there is no other side.
std::uint32_t Regions::longest_predicated(std::uint32_t branch, std::uint32_t first, std::uint32_t last,
                                          bool alone) const {
  const FarLoads loads = loads_from_far(first, last);
  const bool divergent = divergent_[values_.guard(branch)] != 0;
  const bool once = depths_[branch] == 0;
  // Lanes that do not take part had better not wait for what the others load and store.
  if (once && divergent && loads.stored_at_once) return 0;
  if (loads.any && (once || !loads.used_at_once)) return kLongestWithLoads;
  if (!divergent) return kLongestUniform;
  return alone ? kLongestDivergent : kLongestOfTwo;
}

bool Regions::can_be_predicated(std::uint32_t block) const {
  for (std::uint32_t op = blocks_[block].first; op < blocks_[block].last; ++op) {
    const Op& operation = values_.code().ops[op];
    if (operation.flow == Flow::join || removed_[op]) continue;
    if (operation.flow == Flow::branch && op + 1 == blocks_[block].last && !values_.is_guarded(op)) continue;
    const Class kind = values_.info(op).kind;
    const bool is_volatile_load = operation.flow == Flow::yield && kind == Class::load;
    if (operation.flow != Flow::next && !is_volatile_load) return false;
    if (kind == Class::barrier || kind == Class::fence || kind == Class::tensor || kind == Class::atomic)
      return false;
  }
  return true;
}

void Regions::predicate_short_bodies(std::span<const std::uint32_t> lengths) {
  BlockRuns runs = measure_blocks(lengths);
  remove_jumps_around(runs);
  for (auto head = static_cast<std::uint32_t>(blocks_.size()); head-- > 0;)
    while (predicate_branch_of(head, runs)) continue;
}

// Counts instructions by block. Branches to the next block are removed.
Regions::BlockRuns Regions::measure_blocks(std::span<const std::uint32_t> lengths) {
  const auto count = static_cast<std::uint32_t>(blocks_.size());
  BlockRuns runs{std::vector<std::uint32_t>(count), std::vector<std::uint32_t>(count, 0)};
  for (std::uint32_t b = 0; b < count; ++b) {
    runs.last[b] = b;
    for (std::uint32_t op = blocks_[b].first; op < blocks_[b].last; ++op) runs.length[b] += lengths[op];
    const std::uint32_t end = blocks_[b].last - 1;
    const Op& branch = values_.code().ops[end];
    if (branch.flow != Flow::branch || values_.is_guarded(end) || block_of_[branch.aux] != b + 1) continue;
    removed_[end] = 1;
    --runs.length[b];
  }
  return runs;
}

// A branch around an unconditional one is a branch with the opposite condition.
void Regions::remove_jumps_around(BlockRuns& runs) {
  const auto& ops = values_.code().ops;
  for (std::uint32_t b = 1; b + 1 < blocks_.size(); ++b) {
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
    --runs.length[b];
  }
}

bool Regions::is_only_reached_from(std::uint32_t block, std::uint32_t from) const {
  return predecessors_[block].size() == 1 && predecessors_[block][0] == from;
}

// The sides of the conditional branch at the end of a block as they stand in the text; nothing if it leads
// back or out.
std::optional<Regions::BranchSides> Regions::sides_of_branch(std::uint32_t block) const {
  const auto& ops = values_.code().ops;
  const std::uint32_t branch = blocks_[block].last - 1;
  if (ops[branch].flow != Flow::branch || !values_.is_guarded(branch) || ops[branch].aux <= branch)
    return std::nullopt;
  const std::uint32_t next = block + 1;
  const std::uint32_t target = block_of_[ops[branch].aux];
  if (next >= blocks_.size() || target <= next || only_ends(target)) return std::nullopt;
  // A lone jump ahead of the first side leads to the second.
  const std::uint32_t jump = blocks_[next].last - 1;
  const bool jumps = removed_[jump] && first_operation(next) == jump && target == next + 1;
  const BranchSides sides{branch, jumps ? target : next, jumps ? block_of_[ops[jump].aux] : target,
                          jumps ? next : block};
  if (!is_only_reached_from(next, block) || !is_only_reached_from(sides.first, block)) return std::nullopt;
  return sides;
}

// Predicates the sides of the branch at the end of a run, if they are short and meet again. Returns whether
// the run has grown by what follows, and may have another such branch at its end.
bool Regions::predicate_branch_of(std::uint32_t head, BlockRuns& runs) {
  const std::optional<BranchSides> sides = sides_of_branch(runs.last[head]);
  if (!sides) return false;
  const auto [branch, first, second, before_second] = *sides;
  if (!can_be_predicated(first) || second <= first) return false;
  const std::uint32_t last = runs.last[first];
  const Block& ending = blocks_[last];
  const std::uint32_t guard = values_.guard(branch);
  if (ending.leaves || ending.successors.size() != 1 || last + 1 != second || guard == kNoOperation)
    return false;
  const std::uint32_t join = ending.successors[0];
  if (runs.length[first] > longest_predicated(branch, first, last, join == second)) return false;
  std::uint32_t total = runs.length[first];
  std::uint32_t last_predicated = last;
  if (join != second) {
    const Block& other = blocks_[runs.last[second]];
    if (!is_only_reached_from(second, before_second) || !can_be_predicated(second) ||
        other.successors.size() != 1 || other.leaves || other.successors[0] != join ||
        runs.last[second] + 1 != join ||
        runs.length[second] > longest_predicated(branch, second, runs.last[second], false))
      return false;
    last_predicated = runs.last[second];
    removed_[ending.last - 1] = predicated_branches_[ending.last - 1] = 1;
    total += runs.length[second] - 1;
  }
  for (std::uint32_t b = first; b <= last_predicated; ++b)
    if (predicates_[b] == kNoOperation) predicates_[b] = guard;
  removed_[branch] = predicated_branches_[branch] = 1;
  runs.length[head] += total;
  --runs.length[head];
  // What follows belongs to the same run if nothing else leads there.
  const auto inside = [&](std::uint32_t p) { return p >= head && p < join; };
  if (!std::ranges::all_of(predecessors_[join], inside)) return false;
  runs.length[head] += runs.length[join];
  runs.last[head] = runs.last[join];
  return true;
}

std::uint32_t Regions::first_operation(std::uint32_t block) const {
  std::uint32_t op = blocks_[block].first;
  while (op + 1 < blocks_[block].last && values_.code().ops[op].flow == Flow::join) ++op;
  return op;
}

void Regions::insert_barriers() {
  const auto& ops = values_.code().ops;
  std::map<std::uint32_t, std::uint32_t>
      anchors;  // by reconvergence block: the operation ahead of which lanes part
  for (std::uint32_t op = 0; op < ops.size(); ++op) {
    if (ops[op].flow != Flow::branch || removed_[op] || !values_.is_guarded(op)) continue;
    const std::uint32_t guard = values_.guard(op);
    if (guard == kNoOperation || !divergent_[guard]) continue;
    const std::uint32_t reconvergence = reconvergence_[block_of_[op]];
    if (reconvergence == kNoBlock || only_ends(reconvergence)) continue;
    std::uint32_t anchor = op;
    const std::uint32_t meets = blocks_[reconvergence].first;
    for (const Loop& loop : loops_)
      if (loop.first <= op && op <= loop.last && (meets < loop.first || meets > loop.last) && loop.first > 0)
        anchor = std::min(anchor, loop.first - 1);
    while (anchor > 0 && ops[anchor].flow == Flow::join) --anchor;
    const auto [found, is_new] = anchors.try_emplace(reconvergence, anchor);
    if (!is_new) found->second = std::min(found->second, anchor);
  }
  std::vector<int> change(ops.size() + 1, 0);
  for (const auto& [reconvergence, anchor] : anchors) {
    if (set_[anchor] < 255) ++set_[anchor];
    const std::uint32_t at = blocks_[reconvergence].first;
    if (ops[at].flow == Flow::join && reconvergences_[at] < 255) ++reconvergences_[at];
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
