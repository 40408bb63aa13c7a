// SPDX-License-Identifier: Apache-2.0
// Trace node: a node of an elastic trace, as gem5's elastic traces have them: an instruction, the
// instructions compacted into it, and their computational delays. Its producers count back in nodes.
//
// Sync nodes are where threads meet. They stand for what the program's runtime did there, which is not
// recorded. They are of class `system` and halt the stream; their address is the object that they are about,
// their pc where the program was.
#pragma once
#include <cstdint>
#include <string_view>

#include "cpu/stream/elastic_timing.hpp"
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
  await,            // event: goes on when it has happened as often as the event's number states
};
inline constexpr std::size_t sync_kinds = 15;
std::string_view sync_kind_name(SyncKind kind);

// A node of a recorded trace.
struct TraceNode : Record {
  ElasticTiming timing{};
  SyncKind sync = SyncKind::system_call;  // of a sync node
  bool sleeps = false;                    // of a sync node: who waits there sleeps

  bool is_sync() const { return kind == InstructionClass::system; }
  // Whether a thread has nothing to do before it may pass this node.
  bool is_beginning() const {
    return is_sync() && (sync == SyncKind::begin || sync == SyncKind::thread_begin);
  }
};

constexpr TraceNode sync_node(SyncKind kind, std::uint64_t object, std::uint16_t thread,
                              std::uint64_t pc = 0) {
  TraceNode node;
  node.pc = pc;
  node.address = object;
  node.kind = InstructionClass::system;
  node.flags = Trait::halts_stream;
  node.thread = thread;
  node.sync = kind;
  return node;
}

}  // namespace manyscale::cpu
