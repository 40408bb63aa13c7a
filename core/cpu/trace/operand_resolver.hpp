// SPDX-License-Identifier: Apache-2.0
// Finds out what the operands of an instruction wait for when the instructions that produce them are
// compacted: for the nodes that these waited for, with their latencies as computational delays. A record has
// room for few dependences; where they are more, those that are certain to end before another are left out,
// and else a compacted producer becomes a node.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "cpu/trace/compaction_window.hpp"
#include "cpu/trace/dependence.hpp"

namespace manyscale::cpu {

// A producer that an instruction has: how many instructions back, and the latency between its result and what
// depends on it.
struct SourceOperand {
  std::uint16_t distance = 0;  // 0: none
  std::uint32_t latency = 0;
  std::uint32_t l1_hits = 0;  // in the latency
};

class OperandResolver {
 public:
  explicit OperandResolver(CompactionWindow& window) : window_(window) {}

  // Writes the dependences of the instruction at `position` on these operands, and on `own`: a delay after
  // its dispatch. If they are more than there is room for, some producers become nodes where that is
  // `allowed`; else the answer is false.
  bool resolve(std::uint64_t position, std::span<const SourceOperand> operands, const Dependence& own,
               std::span<Dependence> dependences, bool allowed);

  // The steps.

  // All dependences of an instruction, however many.
  struct Candidates {
    std::array<Dependence, 15> nodes{};  // five operands of three dependences each
    std::size_t count = 0;
    Dependence dispatch{};                             // the longest delay after its dispatch
    std::uint32_t longest = 0;                         // delay after a node
    std::uint64_t heaviest = Dependence::on_dispatch;  // the compacted producer with the most dependences
    std::uint32_t heaviest_weight = 0;
  };
  Candidates collect(std::uint64_t position, std::span<const SourceOperand> operands, const Dependence& own);
  bool fits(const Candidates& found, std::size_t room) const;
  // Leaves out nodes whose result is there before that of another, or before the delay after dispatch is
  // over.
  void drop_covered(std::uint64_t position, Candidates& found) const;
  // Leaves out the delay after dispatch if that of a node, which is dispatched before, is longer.
  void drop_covered_dispatch(std::uint64_t position, Candidates& found) const;
  // Makes a node of the producer that needs the most dependences, or begins a long chain; false: there is
  // none.
  bool split(const Candidates& found);

 private:
  void add_node(std::uint64_t position, const Dependence& dependence, Candidates& found) const;
  void add_compacted(std::uint64_t position, const SourceOperand& operand, Candidates& found) const;

  CompactionWindow& window_;
};

}  // namespace manyscale::cpu
