// SPDX-License-Identifier: Apache-2.0
// What the constructs of OpenMP's runtime took in a run with time, from the logs of its cores: the part that
// a replay of its trace takes as parameters. Waiting for others is left out: it follows from the replay.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cpu/core/region_account.hpp"
#include "cpu/stream/marker.hpp"
#include "cpu/stream/region_table.hpp"

namespace manyscale::cpu {

// Mean times, by the name of the parameter of a replay (replay_spec.hpp); what did not occur is missing.
// The logs are those of all cores, of a run of one process; entries that were dropped are no harm.
//
// A barrier takes from the last arrival, or the end of the last task, until each thread leaves; the end of a
// parallel region until its master does. A lock takes from its release by another until the one who waited
// has it (handover; not of those whose waiters sleep), or as long as the waiting if it was free.
// Between two tasks of a thread, and before its first, lies what it takes to begin one: the median, since
// some have to be waited for. Threads that had to wait for their cores are left out.
std::vector<std::pair<std::string, Time>> construct_times(
    std::span<const std::vector<RegionAccount::LogEntry>* const> logs, const RegionTable& regions);

}  // namespace manyscale::cpu
