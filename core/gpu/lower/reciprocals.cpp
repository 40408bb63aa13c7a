// SPDX-License-Identifier: Apache-2.0
#include "gpu/lower/reciprocals.hpp"

#include <algorithm>
#include <map>

namespace manyscale::gpu {

namespace {

class Mover {
 public:
  Mover(const Values& values, const Regions& regions, std::span<Sequence> sequences)
      : values_(values), regions_(regions), sequences_(sequences), loops_(find_loops(values.code().ops)) {}

  Reciprocals run() {
    result_.of.assign(sequences_.size(), kNoOperation);
    for (std::uint32_t op = 0; op < sequences_.size(); ++op)
      if (is_division(op)) move(op);
    sort_by_position();
    return std::move(result_);
  }

 private:
  bool is_division(std::uint32_t op) const {
    if (sequences_[op].length() == 0 || values_.text(op) == nullptr || values_.is_guarded(op) ||
        !regions_.is_reached(op) || regions_.predicate(op) != kNoOperation)
      return false;
    const std::string_view name = values_.opcode(op);
    const ptx::Type type = values_.type(op);
    return (name == "div" || name == "rem") && (type == ptx::Type::u32 || type == ptx::Type::s32);
  }

  // The first operation of the loops ahead of which the divisor is known, if the division is executed
  // whenever these are; the division itself if there is none.
  std::uint32_t position_of(std::uint32_t op, const Source& divisor) const {
    std::uint32_t position = op;
    for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop) {
      if (position < loop->first || position > loop->last || loop->first == 0) continue;
      if (!regions_.dominates(regions_.block_of(position), regions_.block_of(loop->last))) break;
      const auto changes = [&](std::uint32_t writer) {
        return writer >= loop->first && writer <= loop->last;
      };
      if (divisor.kind == SourceKind::reg && std::ranges::any_of(values_.writing(divisor.reg()), changes))
        break;
      position = loop->first - 1;
      while (position > 0 && values_.code().ops[position].flow == Flow::join) --position;
    }
    return position;
  }

  void move(std::uint32_t op) {
    const Sources sources = values_.sources(op);
    if (sources.count != 2 || sources.list[1].kind == SourceKind::none) return;
    const Source& divisor = sources.list[1];
    // Up to the product that makes the reciprocal exact.
    const Expansion steps = sequences_[op].steps;
    const auto product = std::ranges::find_if(steps, [](const ExpansionStep& step) {
      return step.chained && step.kind == InstructionKind::multiply_wide;
    });
    const auto length = product == steps.end() ? 0 : static_cast<std::size_t>(product - steps.begin()) + 1;
    const std::uint32_t position = position_of(op, divisor);
    const bool is_signed = values_.type(op) == ptx::Type::s32;
    auto& known = known_[{static_cast<unsigned>(divisor.kind), divisor.value, is_signed}];
    std::uint32_t found = kNoOperation;
    for (std::uint32_t each : known)
      if (regions_.dominates(regions_.block_of(result_.list[each].ahead_of), regions_.block_of(op)))
        found = each;
    const bool changes = divisor.kind == SourceKind::reg && values_.writers(divisor.reg()) != 1;
    if (found == kNoOperation || changes) {
      if (position == op && changes) return;
      found = static_cast<std::uint32_t>(result_.list.size());
      result_.list.push_back({position, divisor, steps.first(length)});
      known.push_back(found);
    }
    result_.of[op] = found;
    sequences_[op].steps = steps.subspan(length);
  }

  void sort_by_position() {
    std::vector<std::uint32_t> order(result_.list.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return result_.list[i].ahead_of; });
    std::vector<std::uint32_t> position(order.size());
    std::vector<Reciprocal> sorted;
    for (std::uint32_t i : order) {
      position[i] = static_cast<std::uint32_t>(sorted.size());
      sorted.push_back(result_.list[i]);
    }
    result_.list = std::move(sorted);
    for (std::uint32_t& each : result_.of)
      if (each != kNoOperation) each = position[each];
  }

  const Values& values_;
  const Regions& regions_;
  std::span<Sequence> sequences_;
  std::vector<Loop> loops_;  // outer ones first
  std::map<std::tuple<unsigned, std::uint64_t, bool>, std::vector<std::uint32_t>> known_;
  Reciprocals result_;
};

}  // namespace

Reciprocals move_reciprocals(const Values& values, const Regions& regions, std::span<Sequence> sequences) {
  return Mover(values, regions, sequences).run();
}

}  // namespace manyscale::gpu
