// SPDX-License-Identifier: Apache-2.0
// A kernel on its way through a simulated GPU, and what the scheduler and the SMs say to each other about it.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/port.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/lower/sass_code.hpp"
#include "memory/protocol.hpp"

namespace manyscale::gpu {

// A launch with what its CTAs take of an SM, and how it went.
struct TimedLaunch {
  Launch launch;
  std::shared_ptr<const SassProgram> machine;
  std::uint64_t code_address = 0;  // where its instructions lie
  std::vector<std::uint32_t>
      first_operation;  // by function: its first in a list of all operations; then their number
  std::uint32_t stream = 0;
  std::int32_t priority = 0;
  memory::Origin origin = memory::nobody;  // of its accesses to memory; set when it begins
  std::uint64_t fitting = 1;               // CTAs that fit on an SM at the same time
  std::uint64_t shared_of_sm = 0;          // bytes that those take as shared memory
  bool records_states = false;             // of its warps over time
  Time begun = -1;                         // taken from the queue
  std::int64_t prepared = 0;               // cycles of its launch that had passed then
  Time first_cta = -1;
  Time ended = -1;  // the last CTA is complete

  // Numbers the operations of all functions; after `launch` is set.
  void number_operations() {
    first_operation.assign(1, 0);
    for (const Code& code : launch.program->codes)
      first_operation.push_back(first_operation.back() + static_cast<std::uint32_t>(code.ops.size()));
  }
  std::uint64_t threads() const { return launch.threads_per_cta(); }
  std::uint64_t warps() const { return launch.warps_per_cta(); }
};

// All launches of a GPU, in the order they were given; shared by the scheduler and the SMs.
struct LaunchTable {
  std::vector<std::unique_ptr<TimedLaunch>> launches;
};

struct CtaStart {
  std::uint64_t cta = 0;
  std::uint32_t launch = 0;
};

// A CTA of a launch has left its SM, and so many of those that left are complete: the L2 has confirmed what
// they wrote.
struct CtaEnd {
  std::uint32_t launch = 0;
  std::uint32_t left = 0;
  std::uint32_t complete = 0;
};

struct CtaProtocol {
  static constexpr std::string_view name = "cta";
  static constexpr std::array<std::string_view, 2> roles{"scheduler", "sm"};
  using First = CtaStart;
  using Second = CtaEnd;
};

using SchedulerPort = Port<CtaProtocol, 0>;
using SmPort = Port<CtaProtocol, 1>;

}  // namespace manyscale::gpu
