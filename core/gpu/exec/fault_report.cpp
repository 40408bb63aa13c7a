// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/fault_report.hpp"

#include <bit>

#include "gpu/exec/location.hpp"

namespace manyscale::gpu {

namespace {

// ", of ld.global.f32": the PTX that a machine instruction was made from, where that is known.
std::string made_from(const Program& program, const OpInfo& info) {
  const auto found = program.ptx_texts.find(info.where.line);
  return found == program.ptx_texts.end() ? std::string() : ", of " + found->second;
}

}  // namespace

KernelFault explain(const Cta& cta, const Warp& warp, const Fault& fault) {
  const Launch& launch = cta.launch();
  const Program& program = *launch.program;
  const OpInfo& info = warp.fault_location();
  const FaultLocation at{std::string(program.kernel_name),
                         instruction_text(program, warp.code(), info),
                         location_of(program, info),
                         cta.position(),
                         thread_position(launch, warp.thread(fault.lane)),
                         fault.address};
  std::string text = std::string(fault.what()) + "\n  kernel " + at.kernel;
  if (warp.code().name != at.kernel) text += ", in function " + warp.code().name;
  text += ", CTA " + in_words(at.cta) + ", thread " + in_words(at.thread) + "\n  at " + at.source + ": " +
          at.instruction + made_from(program, info);
  return {text, fault.kind, at};
}

KernelFault explain_deadlock(const Cta& cta) {
  const Program& program = *cta.launch().program;
  FaultLocation at;
  at.kernel = program.kernel_name;
  at.cta = cta.position();
  std::string text = "deadlock: no warp of CTA " + in_words(cta.position()) + " of kernel " +
                     program.kernel_name + " can go on";
  unsigned shown = 0;
  for (const auto& warp : cta.warps()) {
    for (const Split& split : warp->splits()) {
      if (++shown > 8) return {text + "\n  …", FaultKind::deadlock, at};
      const bool at_barrier = split.state == Split::State::at_barrier;
      const std::uint32_t pc = at_barrier ? split.pc - 1 : split.pc;
      const OpInfo& info = split.frame->code->infos[split.frame->code->ops[pc].info];
      text += "\n  warp " + std::to_string(warp->index()) + ": " + std::to_string(std::popcount(split.mask)) +
              " lanes wait at " + location_of(program, info) +
              (at_barrier ? " for barrier " + std::to_string(split.members) : " for other lanes of the warp");
    }
  }
  for (unsigned i = 0; i < kBarriers; ++i) {
    const Barrier& barrier = cta.barrier(i);
    if (barrier.arrived_threads == 0) continue;
    text += "\n  barrier " + std::to_string(i) + ": " + std::to_string(barrier.arrived_threads) +
            " threads came, " +
            (barrier.expected == 0 ? "all that have not exited" : std::to_string(barrier.expected)) +
            " are expected";
  }
  return {text, FaultKind::deadlock, at};
}

}  // namespace manyscale::gpu
