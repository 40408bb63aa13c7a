// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/fault_report.hpp"

#include <bit>

#include "gpu/exec/place.hpp"

namespace manyscale::gpu {

namespace {

// ", of ld.global.f32": the PTX that a machine instruction was made from, where that is known.
std::string made_from(const Program& program, const OpInfo& info) {
  const auto found = program.ptx_texts.find(info.where.line);
  return found == program.ptx_texts.end() ? std::string() : ", of " + found->second;
}

}  // namespace

std::string explain(const Cta& cta, const Warp& warp, const Fault& fault) {
  const Launch& launch = cta.launch();
  const Program& program = *launch.program;
  const OpInfo& info = warp.fault_place();
  const std::string_view kernel = program.kernel_name;
  std::string text = std::string(fault.what()) + "\n  kernel " + std::string(kernel);
  if (warp.code().name != kernel) text += ", in function " + warp.code().name;
  return text + ", CTA " + in_words(cta.position()) + ", thread " +
         in_words(thread_position(launch, warp.thread(fault.lane))) + "\n  at " + place_of(program, info) +
         ": " + instruction_text(program, warp.code(), info) + made_from(program, info);
}

std::string explain_deadlock(const Cta& cta) {
  const Program& program = *cta.launch().program;
  std::string text = "deadlock: no warp of CTA " + in_words(cta.position()) + " of kernel " +
                     program.kernel_name + " can go on";
  unsigned shown = 0;
  for (const auto& warp : cta.warps()) {
    for (const Split& split : warp->splits()) {
      if (++shown > 8) return text + "\n  …";
      const bool at_barrier = split.state == Split::State::at_barrier;
      const std::uint32_t pc = at_barrier ? split.pc - 1 : split.pc;
      const OpInfo& info = split.frame->code->infos[split.frame->code->ops[pc].info];
      text += "\n  warp " + std::to_string(warp->index()) + ": " + std::to_string(std::popcount(split.mask)) +
              " lanes wait at " + place_of(program, info) +
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
  return text;
}

}  // namespace manyscale::gpu
