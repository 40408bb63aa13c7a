// SPDX-License-Identifier: Apache-2.0
// Execution pipes of a sub-core: which pipe an instruction goes to, for how long it keeps it, and when its
// result can be used. The two banks of the register file and the operand reuse cache lengthen the interval by
// the read cycles that lowering has found (`IssueControl::read_cycles`).
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "gpu/lower/sass_code.hpp"
#include "gpu/sm/launch_record.hpp"
#include "gpu/sm/sm_spec.hpp"

namespace manyscale::gpu {

// What an instruction needs besides the memory queue: an MSHR for a line, or an entry for a store.
enum class MemoryResource : std::uint8_t { none, line, store };

// Pipe and timing of each kind of instruction, the same for all sub-cores.
class PipeTable {
 public:
  explicit PipeTable(const SmSpec& spec);

  const InstructionTiming& timing(InstructionKind kind) const { return timing_[index(kind)]; }
  Pipe pipe_of(InstructionKind kind) const { return pipe_of_[index(kind)]; }
  // Whether an instruction issues into the MIO queue.
  bool queued(InstructionKind kind) const { return pipe_of(kind) == Pipe::lsu || pipe_of(kind) == Pipe::xu; }
  MemoryResource resource(InstructionKind kind) const { return resource_[index(kind)]; }
  // Cycles that a result takes longer to the pipe that reads it than within the pipe that made it.
  Cycle crossing(Pipe from, Pipe to) const {
    return crossing_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }
  // For how long a scheduled instruction keeps its pipe: longer if the register file needs more cycles for
  // its operands. `cached`: those that the instruction before left in the operand reuse cache are still
  // there.
  Cycle interval(const SassInstruction& instruction, bool cached) const {
    const IssueControl& control = instruction.control;
    const Cycle reads = cached ? control.read_cycles_cached : control.read_cycles;
    return std::max<Cycle>(timing(instruction.kind).interval, reads);
  }

 private:
  static constexpr std::size_t kKinds = static_cast<std::size_t>(InstructionKind::count);
  static std::size_t index(InstructionKind kind) { return static_cast<std::size_t>(kind); }

  std::array<InstructionTiming, kKinds> timing_{};
  std::array<Pipe, kKinds> pipe_of_{};
  std::array<MemoryResource, kKinds> resource_{};
  std::array<std::array<Cycle, kPipes>, kPipes> crossing_{};
};

}  // namespace manyscale::gpu
