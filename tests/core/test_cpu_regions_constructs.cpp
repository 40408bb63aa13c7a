// SPDX-License-Identifier: Apache-2.0
// Each family of libgomp's calls by itself: the ends of teams, worksharing, ordered loops, tasks and
// taskgroups.
#include <string>
#include <vector>

#include "test_cpu_regions_watch.hpp"

using namespace manyscale::cpu;
using namespace manyscale::test;

namespace {

// The call does nothing but what the watch notes of it.
std::string call_and_return(Script& script, std::uint64_t function, std::uint64_t from) {
  const std::string noted = script.call(0, function, from);
  script.back(0);
  return noted;
}

TEST(a_team_ends_at_its_call_site_if_its_region_is_unknown) {
  Script script({{0x180, Construct::team_end}});
  expect(script.call(0, 0x180, 0x1004), "+barrier@1002", "the barrier of an unknown region");
  expect(script.back(0), "-barrier@1002", "which ends");
}

TEST(a_team_end_closes_open_worksharing) {
  Script script({{0x110, Construct::single_start}, {0x180, Construct::team_end}});
  script.call(0, 0x110, 0x1004);
  expect(script.back(0, 1), "+single@1002", "this thread executes the single construct");
  expect(script.call(0, 0x180, 0x1010), "-single@1002 +barrier@100e", "with nowait it lasts until the join");
}

TEST(sections_last_from_start_to_end) {
  Script script({{0x100, Construct::parallel_sections},
                 {0x110, Construct::sections_start},
                 {0x120, Construct::sections_end},
                 {0x128, Construct::sections_end_nowait}});
  expect(call_and_return(script, 0x110, 0x1004), "+sections@1002", "sections begin");
  expect(script.call(0, 0x120, 0x1010), "-sections@1002 +barrier@100e", "and end with a barrier");
  expect(script.back(0), "-barrier@100e", "that is left");
  expect(call_and_return(script, 0x110, 0x1024), "+sections@1022", "sections with nowait");
  expect(call_and_return(script, 0x128, 0x1030), "-sections@1022", "end without one");
  expect(script.call(0, 0x100, 0x1044, {0x2000}), "+parallel@2000", "parallel sections");
  expect(script.call(0, 0x2000, 0x108), "+sections@2000", "begin with the outlined function");
}

TEST(a_loop_within_a_loop_of_libgomp_is_the_same_loop) {
  Script script({{0x110, Construct::loop_start}, {0x128, Construct::loop_end_nowait}});
  expect(call_and_return(script, 0x110, 0x1004), "+loop@1002", "a loop begins");
  expect(call_and_return(script, 0x110, 0x1104), "", "it is open, so another start belongs to it");
  expect(call_and_return(script, 0x128, 0x1110), "-loop@1002", "it ends once");
  expect(call_and_return(script, 0x110, 0x1204), "+loop@1202", "the next one is another");
}

TEST(ordered_is_a_wait_and_a_body) {
  Script script(
      {{0x100, Construct::ordered_start}, {0x108, Construct::ordered_end}, {0x110, Construct::loop_next}});
  expect(script.call(0, 0x100, 0x1004), "+ordered_wait@1002", "waits for the iterations before");
  expect(script.back(0), "-ordered_wait@1002 +ordered@1002", "then executes its body");
  expect(call_and_return(script, 0x108, 0x1010), "-ordered@1002", "which ends");
  expect(script.call(0, 0x110, 0x1020), "", "the loop takes its next iterations");
  expect(call_and_return(script, 0x100, 0x114), "", "the wait within that call is the runtime's own");
}

TEST(locks_are_released_at_their_call_site) {
  Script script({{0x140, Construct::lock}, {0x148, Construct::unlock}});
  expect(script.call(0, 0x140, 0x1004, {0x7000}), "+lock@1002", "waits for the lock");
  expect(script.back(0), "-lock@1002", "and has it");
  expect(script.call(0, 0x148, 0x1010, {0x7000}), "released@100e", "gives it back");
}

TEST(taskgroups_end_with_a_wait_for_their_tasks) {
  Script script({{0x100, Construct::taskgroup_start}, {0x108, Construct::taskgroup_end}});
  expect(script.call(0, 0x100, 0x1004), "", "the call that begins a taskgroup");
  expect(script.back(0), "+taskgroup@1002", "it begins when the call returns");
  expect(script.call(0, 0x108, 0x1010), "+taskwait@1002", "its end waits in the name of the taskgroup");
  expect(script.back(0), "-taskwait@1002 -taskgroup@1002", "and closes it");
  expect(script.call(0, 0x108, 0x1020), "+taskwait@101e",
         "an end without a beginning waits at its call site");
}

TEST(tasks_of_a_taskloop_are_created_by_their_memory) {
  Script script({{0x110, Construct::task_memory}, {0x130, Construct::taskloop}, {0x100, Construct::task}});
  expect(script.call(0, 0x110, 0x1004, {64}), "", "memory outside of the creation of tasks");
  script.back(0, 0x10000);
  expect(script.call(0, 0x130, 0x1014, {0x2000}), "+task_create@1012", "a taskloop creates none by itself");
  expect(script.call(0, 0x110, 0x134, {96}), "new0", "its first task");
  script.back(0, 0x10100);
  expect(script.call(0, 0x110, 0x138, {32}), "", "memory of another size is a list");
  script.back(0, 0x10200);
  expect(script.call(0, 0x110, 0x13c, {96}), "new1", "its second task");
  script.back(0, 0x10300);
  expect(script.back(0), "-task_create@1012", "all are created");
  expect(script.call(1, 0x2000, 0x400, {0x10310}), "start1 +task@2000", "the data name the task");
  expect(script.back(1), "end1 -task@2000", "which ends");
}

TEST(a_task_takes_its_memory_once) {
  Script script({{0x100, Construct::task}, {0x110, Construct::task_memory}});
  expect(script.call(0, 0x100, 0x1004, {0x2000, 0, 0, 0, 0, 1, 0}), "+task_create@1002 new0", "a task");
  expect(script.call(0, 0x110, 0x104, {64}), "", "has memory");
  script.back(0, 0x10000);
  script.call(0, 0x110, 0x10c, {64});
  script.back(0, 0x11000);
  script.back(0);
  expect(script.call(1, 0x2000, 0x400, {0x11010}), "+task@2000", "what it takes later is not its data");
  script.back(1);
  expect(script.call(1, 0x2000, 0x400, {0x10010}), "start0 +task@2000", "what it took first is");
}

}  // namespace
