// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/trace_node.hpp"

#include <array>

namespace manyscale::cpu {

std::string_view sync_kind_name(SyncKind kind) {
  static constexpr std::array<std::string_view, sync_kinds> names{
      "system_call",   "fork",       "begin",        "join",     "barrier",
      "acquire",       "release",    "task_create",  "taskwait", "taskgroup_begin",
      "taskgroup_end", "thread_end", "thread_begin", "post",     "await"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace manyscale::cpu
