// SPDX-License-Identifier: Apache-2.0
#include "gpu/lower/register_file.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace manyscale::gpu {

namespace {

constexpr unsigned kPredicates = 7;
// More than a thread can have: pairs leave gaps that the count of those in use leaves out.
constexpr unsigned kRegisters = 255;

// A stretch of operations of one block in which a value is needed.
struct Interval {
  std::uint32_t value;
  std::uint32_t first;
  std::uint32_t last;
  bool from_above = false;  // it is made in another block
  bool beyond = false;      // another block needs it
};

struct Mention {
  std::uint32_t op;
  bool writes;
  bool reads;  // also what a guard leaves as it is
};

// Operations in which a value can be in local memory instead of a register, and what that costs.
struct Spill {
  std::uint32_t value;
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      stretches;  // first operation, and the one behind the last
  std::vector<std::uint32_t> loads;
  std::vector<std::uint32_t> stores;
  bool within_block = false;
  double cost = 0;
  double length = 0;
};

class Assigner {
 public:
  explicit Assigner(const RegisterNeeds& needs) : needs_(needs), count_(needs.words.size()) {
    operations_ = needs.blocks.empty() ? 0 : needs.blocks.back().last;
  }

  RegisterFile run() {
    collect_mentions();
    find_intervals();
    result_.first.assign(count_, 0);
    measure();
    spill();
    assign();
    count_kept();
    return std::move(result_);
  }

 private:
  // All uses of each value, in the order of the operations.
  void collect_mentions() {
    first_.assign(count_ + 1, 0);
    auto for_each = [&](auto&& visit) {
      for (std::uint32_t op = 0; op < operations_; ++op) {
        for (std::uint32_t id : needs_.uses.reads(op)) visit(id, Mention{op, false, true});
        for (std::uint32_t id : needs_.uses.writes(op)) visit(id, Mention{op, true, needs_.partial[op] != 0});
      }
    };
    for_each([&](std::uint32_t id, const Mention&) { ++first_[id + 1]; });
    for (std::size_t i = 1; i <= count_; ++i) first_[i] += first_[i - 1];
    mentions_.resize(first_[count_]);
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for_each([&](std::uint32_t id, const Mention& mention) { mentions_[next[id]++] = mention; });
  }

  void find_intervals() {
    std::vector<std::uint32_t> block_of(operations_);
    std::vector<std::vector<std::uint32_t>> predecessors(needs_.blocks.size());
    for (std::uint32_t b = 0; b < needs_.blocks.size(); ++b) {
      for (std::uint32_t op = needs_.blocks[b].first; op < needs_.blocks[b].last; ++op) block_of[op] = b;
      for (std::uint32_t successor : needs_.blocks[b].successors) predecessors[successor].push_back(b);
    }
    struct Local {
      std::uint32_t block, first, last;
      bool exposed, kills;
    };
    std::vector<Local> locals;
    std::vector<std::uint32_t> live_in(needs_.blocks.size(), kNoBlock);
    std::vector<std::uint32_t> live_out(needs_.blocks.size(), kNoBlock);
    std::vector<std::uint32_t> killed(needs_.blocks.size(), kNoBlock);
    std::vector<std::uint32_t> work;
    std::vector<std::uint32_t> touched;
    for (std::uint32_t id = 0; id < count_; ++id) {
      locals.clear();
      touched.clear();
      for (std::uint32_t i = first_[id]; i < first_[id + 1]; ++i) {
        const Mention& mention = mentions_[i];
        const std::uint32_t block = block_of[mention.op];
        if (locals.empty() || locals.back().block != block)
          locals.push_back({block, mention.op, mention.op, false, false});
        Local& local = locals.back();
        local.last = mention.op;
        if (mention.reads && !local.kills) local.exposed = true;
        if (!mention.reads) local.kills = true;
      }
      for (const Local& local : locals) {
        if (local.kills && !local.exposed) killed[local.block] = id;
        if (local.exposed) work.push_back(local.block);
      }
      while (!work.empty()) {
        const std::uint32_t b = work.back();
        work.pop_back();
        if (live_in[b] == id) continue;
        live_in[b] = id;
        touched.push_back(b);
        for (std::uint32_t p : predecessors[b]) {
          if (live_out[p] != id) touched.push_back(p);
          live_out[p] = id;
          if (killed[p] != id) work.push_back(p);
        }
      }
      for (const Local& local : locals) {
        const bool in = live_in[local.block] == id;
        const bool out = live_out[local.block] == id;
        intervals_.push_back({id, in ? needs_.blocks[local.block].first : local.first,
                              out ? needs_.blocks[local.block].last - 1 : local.last, in, out});
      }
      std::ranges::sort(touched);
      touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
      for (std::uint32_t b : touched)
        if (std::ranges::find(locals, b, &Local::block) == locals.end() && live_in[b] == id &&
            live_out[b] == id)
          intervals_.push_back({id, needs_.blocks[b].first, needs_.blocks[b].last - 1, true, true});
    }
  }

  // A value's register is free for a result of the operation that uses it last.
  void measure() {
    std::vector<std::int32_t> change(operations_ + 1, 0);
    for (const Interval& interval : intervals_) {
      change[interval.first] += needs_.words[interval.value];
      change[std::max(interval.first + 1, interval.last)] -= needs_.words[interval.value];
    }
    pressure_.assign(operations_, 0);
    std::int32_t now = 0;
    result_.used = 0;
    for (std::uint32_t op = 0; op < operations_; ++op) {
      now += change[op];
      pressure_[op] = static_cast<std::uint32_t>(std::max(now, 0));
      result_.used = std::max(result_.used, pressure_[op]);
    }
  }

  // Where too many values are needed, those go to local memory for whom that is cheapest: between two
  // operations of a block that use a value, or from one block to others.
  void spill() {
    constexpr std::uint32_t kForSpills = 4;  // registers through which spilled values pass
    if (result_.used <= needs_.limit) return;
    const std::uint32_t limit = needs_.limit > 2 * kForSpills ? needs_.limit - kForSpills : needs_.limit;
    std::vector<Spill> spills = possible_spills();
    std::ranges::stable_sort(spills, {}, [](const Spill& spill) { return spill.cost / spill.length; });
    std::vector<std::uint32_t> above;
    for (std::uint32_t op = 0; op < operations_; ++op)
      if (pressure_[op] > limit) above.push_back(op);
    std::vector<const Spill*> chosen;
    for (const Spill& spill : spills) {
      if (above.empty()) break;
      bool helps = false;
      for (const auto& [first, last] : spill.stretches)
        for (auto found = std::ranges::lower_bound(above, first); found != above.end() && *found < last;
             ++found) {
          helps = true;
          pressure_[*found] -= std::min<std::uint32_t>(pressure_[*found], needs_.words[spill.value]);
        }
      if (!helps) continue;
      chosen.push_back(&spill);
      std::erase_if(above, [&](std::uint32_t op) { return pressure_[op] <= limit; });
    }
    carry_out(chosen);
    measure();
    result_.used = std::min(result_.used, needs_.limit);
  }

  double weight(std::uint32_t op) const { return std::pow(10.0, std::min<int>(needs_.depths[op], 4)); }

  std::span<const Mention> mentions_in(const Interval& interval) const {
    const auto all = std::span(mentions_).subspan(first_[interval.value],
                                                  first_[interval.value + 1] - first_[interval.value]);
    const auto begin = std::ranges::lower_bound(all, interval.first, {}, &Mention::op);
    const auto end = std::ranges::upper_bound(all, interval.last, {}, &Mention::op);
    return {begin, end};
  }

  static void add_stretch(Spill& spill, std::uint32_t first, std::uint32_t last) {
    if (first >= last) return;
    spill.stretches.push_back({first, last});
    spill.length += last - first;
  }

  std::vector<Spill> possible_spills() const {
    std::vector<Spill> result;
    Spill across;
    auto finish = [&](Spill& spill) {
      for (std::uint32_t op : spill.loads) spill.cost += weight(op);
      for (std::uint32_t op : spill.stores) spill.cost += weight(op);
      constexpr double kWorthwhile = 8;  // operations
      if (spill.length > kWorthwhile) result.push_back(spill);
    };
    for (std::size_t i = 0; i < intervals_.size(); ++i) {
      const Interval& interval = intervals_[i];
      if (needs_.words[interval.value] == 0) continue;
      if (i == 0 || intervals_[i - 1].value != interval.value)
        across = {interval.value, {}, {}, {}, false, 0, 0};
      const auto mentions = mentions_in(interval);
      spill_across(interval, mentions, across);
      std::uint32_t written = kNoBlock;
      for (std::size_t k = 0; k + 1 < mentions.size(); ++k) {
        if (mentions[k].writes) written = mentions[k].op;
        const Mention& next = mentions[k + 1];
        Spill within{interval.value, {}, {}, {}, true, 0, 0};
        add_stretch(within, mentions[k].op + 1, next.op);
        if (within.stretches.empty()) continue;
        if (next.reads) {
          within.loads.push_back(next.op);
          within.stores.push_back(written == kNoBlock ? mentions[k].op : written);
        }
        finish(within);
      }
      if (i + 1 == intervals_.size() || intervals_[i + 1].value != interval.value) finish(across);
    }
    return result;
  }

  // What keeping a value in local memory from block to block means in one of them.
  static void spill_across(const Interval& interval, std::span<const Mention> mentions, Spill& across) {
    if (mentions.empty()) return add_stretch(across, interval.first, interval.last + 1);
    if (interval.from_above) {
      add_stretch(across, interval.first, mentions.front().op);
      if (mentions.front().reads) across.loads.push_back(mentions.front().op);
    }
    if (!interval.beyond) return;
    add_stretch(across, mentions.back().op + 1, interval.last + 1);
    std::uint32_t written = kNoBlock;
    for (const Mention& mention : mentions)
      if (mention.writes) written = mention.op;
    if (written != kNoBlock) across.stores.push_back(written);
  }

  // Takes the stretches out of the intervals, and notes the accesses.
  void carry_out(std::span<const Spill* const> chosen) {
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> away(count_);
    std::vector<char> is_across(count_, 0);
    std::vector<char> is_spilled(count_, 0);
    for (const Spill* spill : chosen) {
      if (!spill->within_block) is_across[spill->value] = 1;
      is_spilled[spill->value] = 1;
      for (const auto& stretch : spill->stretches) away[spill->value].push_back(stretch);
    }
    for (const Spill* spill : chosen) {
      for (std::uint32_t op : spill->loads) result_.loads.push_back({op, spill->value});
      for (std::uint32_t op : spill->stores) {
        // What has come from local memory is there already.
        const auto range = std::span(mentions_).subspan(first_[spill->value],
                                                        first_[spill->value + 1] - first_[spill->value]);
        const bool writes = std::ranges::any_of(
            range, [&](const Mention& mention) { return mention.op == op && mention.writes; });
        if (writes || !is_across[spill->value]) result_.stores.push_back({op, spill->value});
      }
    }
    result_.spills = static_cast<std::uint32_t>(std::ranges::count(is_spilled, 1));
    for (auto* list : {&result_.loads, &result_.stores}) {
      std::ranges::sort(*list, {}, [](const auto& access) { return std::pair(access.op, access.value); });
      const auto twice = std::ranges::unique(*list);
      list->erase(twice.begin(), twice.end());
    }
    std::vector<Interval> left;
    for (const Interval& interval : intervals_) {
      auto& gaps = away[interval.value];
      std::ranges::sort(gaps);
      std::uint32_t at = interval.first;
      for (const auto& [first, last] : gaps) {
        if (last <= at || first > interval.last) continue;
        if (first > at) left.push_back({interval.value, at, first - 1});
        at = last;
      }
      if (at <= interval.last) left.push_back({interval.value, at, interval.last});
    }
    intervals_ = std::move(left);
  }

  // Each value in the order of first uses gets the first register that no other value needs in one of the
  // stretches in which it is needed itself.
  void assign() {
    std::vector<std::vector<Interval>> needed(count_);
    for (const Interval& interval : intervals_)
      needed[interval.value].push_back(
          {interval.value, interval.first, std::max(interval.first + 1, interval.last)});
    std::vector<std::uint32_t> order;
    for (std::uint32_t id = 0; id < count_; ++id) {
      std::ranges::sort(needed[id], {}, &Interval::first);
      if (!needed[id].empty()) order.push_back(id);
    }
    std::ranges::sort(order, {}, [&](std::uint32_t id) { return std::pair(needed[id][0].first, id); });
    std::vector<Occupancy> registers(kRegisters);
    std::vector<Occupancy> predicates(kPredicates);
    for (std::uint32_t id : order) {
      const unsigned words = needs_.words[id];
      result_.first[id] = words == 0 ? give(needed[id], 1, predicates) : give(needed[id], words, registers);
    }
  }

  // When a register, or a predicate, holds something: by the first operation of a stretch, its last.
  using Occupancy = std::map<std::uint32_t, std::uint32_t>;

  // Operations in which a register is needed by a value and by others.
  static std::uint64_t overlap(const Occupancy& occupied, std::span<const Interval> needed) {
    std::uint64_t result = 0;
    for (const Interval& interval : needed) {
      auto found = occupied.upper_bound(interval.first);
      if (found != occupied.begin()) --found;
      for (; found != occupied.end() && found->first < interval.last; ++found)
        if (found->second > interval.first)
          result += std::min(found->second, interval.last) - std::max(found->first, interval.first);
    }
    return result;
  }

  // The first registers that are free, a pair at an even one; where there are none, those that the fewest
  // operations need besides.
  static std::uint8_t give(std::span<const Interval> needed, unsigned words, std::vector<Occupancy>& file) {
    std::size_t best = 0;
    std::uint64_t least = ~std::uint64_t{0};
    for (std::size_t at = 0; at + words <= file.size() && least != 0; at += words) {
      std::uint64_t shared = 0;
      for (unsigned i = 0; i < words && shared < least; ++i) shared += overlap(file[at + i], needed);
      if (shared < least) {
        least = shared;
        best = at;
      }
    }
    for (unsigned i = 0; i < words; ++i)
      for (const Interval& interval : needed) {
        auto& last = file[best + i][interval.first];
        last = std::max(last, interval.last);
      }
    return static_cast<std::uint8_t>(best);
  }

  void count_kept() {
    std::vector<char> kept(256, 0);
    for (const Interval& interval : intervals_) {
      const auto call = std::ranges::upper_bound(needs_.calls, interval.first);
      if (call == needs_.calls.end() || *call >= interval.last) continue;
      for (unsigned i = 0; i < needs_.words[interval.value]; ++i)
        kept[(result_.first[interval.value] + i) & 255] = 1;
    }
    result_.kept = static_cast<std::uint32_t>(std::ranges::count(kept, 1));
  }

  const RegisterNeeds& needs_;
  const std::size_t count_;
  std::uint32_t operations_ = 0;
  std::vector<std::uint32_t> first_;
  std::vector<Mention> mentions_;
  std::vector<Interval> intervals_;
  std::vector<std::uint32_t> pressure_;
  RegisterFile result_;
};

}  // namespace

RegisterFile assign_registers(const RegisterNeeds& needs) {
  return Assigner(needs).run();
}

}  // namespace manyscale::gpu
