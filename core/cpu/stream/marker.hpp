// SPDX-License-Identifier: Apache-2.0
// Marker: a record that executes nothing and announces that a region, a task or a synchronisation event
// begins or ends at this point of a stream. It names them by number only (region_table.hpp, task_table.hpp).
#pragma once
#include <cstdint>

namespace manyscale::cpu {

// The action of a marker record, in the low 8 bits of Record::address; above them is its subject: a region
// unless the comment names another.
enum class MarkerAction : std::uint8_t {
  enter = 0,
  leave = 1,
  task_created = 2,   // number of a task
  task_starts = 3,    // number of a task
  task_ends = 4,      // number of a task
  released = 5,       // region of kind lock: where the lock was given back
  acquired = 6,       // region of kind lock: where it was taken without a region of its own
  thread_begins = 7,  // sync_event: its thread begins, after the event
  posted = 8,         // sync_event: it has happened once more
  awaited = 9,        // sync_event: it was waited for
};
constexpr std::uint64_t marker_address(std::uint64_t region_or_task, MarkerAction action) {
  return region_or_task << 8 | static_cast<std::uint64_t>(action);
}
constexpr MarkerAction marker_action(std::uint64_t address) {
  return static_cast<MarkerAction>(address & 0xff);
}
constexpr std::uint64_t marker_subject(std::uint64_t address) {
  return address >> 8;
}

// Something that one thread does and others wait for, as a marker or a sync node names it: its number, and
// how often it must have happened before those go on.
constexpr std::uint64_t sync_event(std::uint64_t number, std::uint64_t posts) {
  return number << 16 | posts;
}
constexpr std::uint64_t event_number(std::uint64_t event) {
  return event >> 16;
}
constexpr std::uint64_t event_posts(std::uint64_t event) {
  return event & 0xffff;
}

}  // namespace manyscale::cpu
