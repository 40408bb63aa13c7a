// SPDX-License-Identifier: Apache-2.0
// Nodes of a recorded trace at which threads meet: they stand for what the program's runtime did there, which
// is not recorded. A node is a Record of kind `system` that halts the stream; its size is the SyncKind, its
// address the object that it is about, its pc where the program was. Its weight counts as that of others.
#pragma once
#include <cstdint>
#include <string_view>

#include "cpu/stream/record.hpp"

namespace manyscale::cpu {

enum class SyncKind : std::uint8_t {
  system_call,      // an ordinary system call; no object
  fork,             // team: its master begins a parallel region
  begin,            // team: a worker begins its part of it; follows the fork
  join,             // team: its part of the region is done; the master goes on when all have come to theirs
  barrier,          // team: all its threads go on when all have come, and all its tasks are done
  acquire,          // lock: goes on when no other holds it
  release,          // lock
  task_create,      // task: from now on it may run
  taskwait,         // none: goes on when the tasks that this stream created are done
  taskgroup_begin,  // none: tasks created from now on, and their descendants, belong to a group
  taskgroup_end,    // none: goes on when those of the innermost group are done
  thread_end,       // thread: the last node of its stream; a task's stream simply ends
  thread_begin,     // event: the first node of a thread that the program made itself; goes on as `await` does
  post,             // event: has happened once more
  await,            // event: goes on when it has happened as often as is said
};
inline constexpr std::size_t sync_kinds = 15;
std::string_view sync_kind_name(SyncKind kind);

constexpr Record sync_node(SyncKind kind, std::uint64_t object, std::uint16_t thread, std::uint64_t pc = 0) {
  Record record;
  record.pc = pc;
  record.address = object;
  record.kind = Kind::system;
  record.flags = Trait::halts_stream;
  record.size = static_cast<std::uint8_t>(kind);
  record.thread = thread;
  return record;
}
constexpr bool is_sync_node(const Record& record) {
  return record.kind == Kind::system;
}
constexpr SyncKind sync_kind(const Record& record) {
  return static_cast<SyncKind>(record.size);
}
// Whether a thread has nothing to do before it may pass this node.
constexpr bool is_beginning(const Record& record) {
  return is_sync_node(record) &&
         (sync_kind(record) == SyncKind::begin || sync_kind(record) == SyncKind::thread_begin);
}

}  // namespace manyscale::cpu
