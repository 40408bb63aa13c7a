// SPDX-License-Identifier: Apache-2.0
// Limits of trace compaction for tests, as the presets of machines state them.
#pragma once
#include "cpu/trace/compaction_spec.hpp"

namespace manyscale::test {

inline constexpr cpu::CompactionTuning fitted{.max_dispatch_delay = 10,
                                              .max_own_dispatch_delay = 6,
                                              .max_hidden_completion = 12,
                                              .port_sample_period = 64,
                                              .port_node_period = 12,
                                              .port_slack = 1.1,
                                              .reorder_buffer_share = 0.4};

}  // namespace manyscale::test
