// SPDX-License-Identifier: Apache-2.0
// Regions found from calls alone: a thread is led by hand through the functions of libgomp, and back.
#include <string>
#include <vector>

#include "test_cpu_regions_watch.hpp"

using namespace manyscale::cpu;
using namespace manyscale::test;

namespace {

TEST(parallel_region_on_each_thread) {
  Script script({{0x100, Construct::parallel}, {0x180, Construct::team_end}});
  expect(script.call(0, 0x100, 0x1004, {0x2000}), "+parallel@2000", "the master enters");
  expect(script.call(0, 0x2000, 0x110), "", "its function is part of it");
  expect(script.call(1, 0x2000, 0x310), "+parallel@2000", "a worker enters with the function");
  expect(script.back(1), "", "and stays until the join");
  expect(script.call(1, 0x180, 0x320), "+barrier@2000", "where it waits");
  expect(script.back(0), "", "the master's function returns");
  expect(script.call(0, 0x180, 0x130), "+barrier@2000", "it waits, too");
  expect(script.back(0), "-barrier@2000", "the master's wait ends");
  expect(script.back(0), "-parallel@2000", "and its region");
  expect(script.back(1), "-barrier@2000 -parallel@2000", "the worker's ends with the wait");
  expect(script.call(1, 0x2000, 0x310), "+parallel@2000", "the next one");
  expect(script.ends(1), "-parallel@2000", "a thread that ends leaves everything");
}

TEST(loops_and_barriers) {
  Script script({{0x100, Construct::parallel_loop},
                 {0x110, Construct::loop_start},
                 {0x120, Construct::loop_end},
                 {0x128, Construct::loop_end_nowait},
                 {0x130, Construct::barrier}});
  expect(script.call(0, 0x110, 0x1004), "+loop@1002", "a loop begins");
  expect(script.call(0, 0x110, 0x116), "", "one function of libgomp calls another");
  expect(script.back(0), "", "which returns");
  expect(script.back(0), "", "and the first one");
  expect(script.call(0, 0x120, 0x1014), "-loop@1002 +barrier@1012", "the loop ends, the wait begins");
  expect(script.back(0), "-barrier@1012", "and ends");
  expect(script.call(0, 0x128, 0x1020), "", "the end of a loop that did not begin");
  script.back(0);
  expect(script.call(0, 0x100, 0x1030, {0x2000}), "+parallel@2000", "parallel for");
  expect(script.call(0, 0x2000, 0x108), "+loop@2000", "is a loop from its beginning");
  expect(script.call(0, 0x128, 0x2010), "-loop@2000", "until libgomp is told");
  script.back(0);
  script.back(0);
  expect(script.back(0), "-parallel@2000", "and then the region ends");
}

// A loop with a static schedule: its code asks for the number of threads, and at once for its own.
TEST(static_loops) {
  Script script({{0x100, Construct::parallel},
                 {0x110, Construct::team_size},
                 {0x118, Construct::thread_number},
                 {0x130, Construct::barrier}});
  const auto ask = [&](std::uint64_t function, std::uint64_t from) {
    const std::string noted = script.call(0, function, from);
    script.back(0);
    return noted;
  };
  ask(0x110, 0x1004);
  expect(ask(0x118, 0x100a), "", "outside of parallel regions nothing is divided");
  script.call(0, 0x100, 0x1010, {0x2000});
  script.call(0, 0x2000, 0x108);
  expect(ask(0x118, 0x2004), "", "who asks for its number alone divides nothing");
  expect(ask(0x110, 0x2010), "", "the number of threads");
  expect(ask(0x118, 0x2018), "+loop@200e", "and at once its own: a loop begins");
  expect(ask(0x110, 0x2110), "", "the next one …");
  expect(ask(0x118, 0x2118), "-loop@200e +loop@210e", "ends the first");
  expect(script.call(0, 0x130, 0x2140), "-loop@210e +barrier@213e", "and a barrier the second");
  script.back(0);
  ask(0x110, 0x2200);
  expect(ask(0x118, 0x2300), "", "calls that are far apart have nothing to do with each other");
  ask(0x110, 0x2400);
  expect(ask(0x118, 0x2408), "+loop@23fe", "the last loop");
  script.back(0);
  expect(script.back(0), "-loop@23fe -parallel@2000", "ends with the region");
}

// Who executes a single construct that gives others a copy meets them where it gives it.
TEST(copies_of_single) {
  Script script({{0x100, Construct::single_copy_start}, {0x108, Construct::single_copy_end}});
  expect(script.call(0, 0x100, 0x1004), "+wait@1002", "comes there");
  expect(script.back(0, 0), "-wait@1002 +single@1002", "and executes it");
  expect(script.call(1, 0x100, 0x1004), "+wait@1002", "another comes");
  expect(script.call(0, 0x108, 0x1010), "-single@1002 +barrier@100e", "the copy is given");
  expect(script.back(0), "-barrier@100e", "to all");
  expect(script.back(1, 0x5000), "-wait@1002 +barrier@1002 -barrier@1002", "who have met there");
}

// Threads that the program makes itself.
TEST(threads_of_the_program) {
  Script script({{0x100, Construct::thread_create},
                 {0x110, Construct::thread_join},
                 {0x120, Construct::mutex_lock},
                 {0x128, Construct::mutex_unlock},
                 {0x130, Construct::try_lock},
                 {0x140, Construct::test_lock}});
  const std::uint64_t name = 0x7777;
  expect(script.call(0, 0x120, 0x1004, {0xaa}), "", "locks of a lonely thread are for nobody");
  script.back(0);
  expect(script.call(0, 0x100, 0x1010, {memory_at, 0, 0x2000, 5}), "", "a thread is being made");
  expect(script.call(1, 0x2000, 0x310, {5}), "begins0 +thread@2000", "begins, maybe before that is over");
  script.write(memory_at, &name, sizeof name);
  expect(script.back(0, 0), "posted0", "has been made");
  expect(script.call(0, 0x2000, 0x1020, {5}), "", "the same function called as any other");
  script.back(0);
  expect(script.call(1, 0x120, 0x2010, {0xaa}), "+lock@200e", "a lock");
  expect(script.back(1), "-lock@200e", "is taken");
  expect(script.call(1, 0x128, 0x2020, {0xaa}), "released@201e", "and given back");
  script.back(1);
  script.call(1, 0x130, 0x2030, {0xaa});
  expect(script.back(1, 16), "", "one that another has");
  script.call(1, 0x130, 0x2030, {0xaa});
  expect(script.back(1, 0), "acquired@202e", "one that was free");
  script.call(1, 0x140, 0x2040, {0xaa});
  expect(script.back(1, 0), "", "omp.h says it the other way round: not taken");
  script.call(1, 0x140, 0x2040, {0xaa});
  expect(script.back(1, 1), "acquired@203e", "taken");
  expect(script.call(0, 0x110, 0x1030, {name}), "+wait@102e", "its end is waited for");
  expect(script.ends(1), "-thread@2000 posted1", "comes");
  expect(script.back(0, 0), "awaited1 -wait@102e", "and ends the wait");
  expect(script.call(0, 0x110, 0x1040, {0x8888}), "+wait@103e", "a name that was never given");
  expect(script.back(0, 3), "-wait@103e", "has no end");
  script.call(0, 0x100, 0x1050, {memory_at, 0, 0x2000, 5});
  expect(script.back(0, 11), "", "a thread that could not be made");
  expect(script.call(1, 0x2000, 0x310, {5}), "", "does not begin");
}

TEST(threads_that_wait) {
  Script script({{0x100, Construct::condition_wait},
                 {0x108, Construct::condition_signal},
                 {0x110, Construct::thread_barrier},
                 {0x120, Construct::semaphore_wait},
                 {0x128, Construct::semaphore_post}});
  expect(script.call(1, 0x108, 0x3000, {0xcc}), "posted0", "nobody waits for this signal");
  script.back(1);
  expect(script.call(0, 0x100, 0x1004, {0xcc, 0xaa}), "released@1002 +wait@1002", "gives its lock back");
  expect(script.call(1, 0x108, 0x3010, {0xcc}), "posted1", "the signal");
  script.back(1);
  expect(script.back(0), "awaited1 acquired@1002 -wait@1002", "ends the wait, and it has the lock again");
  script.call(0, 0x100, 0x1004, {0xcc, 0xaa});
  expect(script.back(0, 110), "acquired@1002 -wait@1002", "a wait that ended by itself follows no signal");
  for (int turn = 0; turn < 2; ++turn) {
    const std::string event = std::to_string(2 + turn);
    expect(script.call(0, 0x110, 0x1010, {0xbb}), "posted" + event + " +wait@100e", "at a barrier");
    expect(script.call(1, 0x110, 0x1010, {0xbb}), "posted" + event + " +wait@100e", "a second");
    expect(script.call(2, 0x110, 0x1010, {0xbb}), "posted" + event + " +wait@100e", "a third");
    for (const std::uint16_t thread : {2, 0, 1})
      expect(script.back(thread), "awaited" + event + "*3 -wait@100e", "all of them had to come");
  }
  expect(script.call(0, 0x128, 0x1020, {0xdd}), "posted4", "a semaphore is raised");
  script.back(0);
  expect(script.call(0, 0x128, 0x1020, {0xdd}), "posted5", "and once more");
  script.back(0);
  script.call(1, 0x120, 0x3020, {0xdd});
  expect(script.back(1, 0), "awaited4 -wait@301e", "the first gets the first");
  script.call(1, 0x120, 0x3020, {0xdd});
  expect(script.back(1, ~0ull), "-wait@301e", "who got none waited for none");
  script.call(2, 0x120, 0x3020, {0xdd});
  expect(script.back(2, 0), "awaited5 -wait@301e", "the second the second");
  script.call(2, 0x120, 0x3020, {0xdd});
  expect(script.back(2, 0), "-wait@301e", "it was raised from its beginning");
}

TEST(holding_and_waiting) {
  Script script({{0x100, Construct::critical_start},
                 {0x108, Construct::critical_end},
                 {0x110, Construct::named_critical_start},
                 {0x118, Construct::named_critical_end},
                 {0x120, Construct::single_start},
                 {0x130, Construct::barrier},
                 {0x140, Construct::lock},
                 {0x148, Construct::unlock}});
  expect(script.call(0, 0x100, 0x1004), "+critical_wait@1002", "waits");
  expect(script.back(0), "-critical_wait@1002 +critical@1002", "holds");
  expect(script.call(0, 0x110, 0x1010, {0xabc}), "+critical_wait@100e", "another within it");
  expect(script.back(0), "-critical_wait@100e +critical@100e", "holds both");
  expect(script.call(0, 0x118, 0x1018), "-critical@100e", "the inner one ends");
  script.back(0);
  expect(script.call(0, 0x108, 0x1020), "-critical@1002", "the outer one ends");
  script.back(0);
  script.call(0, 0x120, 0x1030);
  expect(script.back(0, 0), "", "another thread has the single");
  script.call(0, 0x120, 0x1040);
  expect(script.back(0, 1), "+single@103e", "this thread has it");
  expect(script.call(0, 0x130, 0x1044), "-single@103e +barrier@1042", "until the barrier");
  expect(script.back(0), "-barrier@1042", "which ends");
  expect(script.call(0, 0x140, 0x1050, {0xdef}), "+lock@104e", "a lock");
  expect(script.back(0), "-lock@104e", "is waited for");
  expect(script.call(0, 0x148, 0x1060, {0xdef}), "released@105e", "and given back");
}

TEST(tasks_are_followed) {
  Script script({{0x100, Construct::task},
                 {0x110, Construct::task_memory},
                 {0x120, Construct::taskwait},
                 {0x130, Construct::taskloop}});
  const std::uint64_t dependences[] = {2, 1, 0x7000, 0x7008};
  script.write(memory_at, dependences, sizeof dependences);
  expect(script.call(0, 0x100, 0x1004, {0x2000, 0, 0, 8, 8, 1, 8, memory_at}), "+task_create@1002 new0",
         "a task is made");
  expect(script.call(0, 0x110, 0x104, {200}), "", "its memory");
  expect(script.back(0, 0x9000), "", "is here");
  expect(script.call(0, 0x110, 0x108, {40}), "", "other memory");
  expect(script.back(0, 0xa000), "", "is not its");
  expect(script.back(0), "-task_create@1002", "it is made");
  expect(script.call(0, 0x100, 0x1004, {0x2000, 0, 0, 8, 8, 1, 0, 0}), "+task_create@1002 new1", "another");
  script.call(0, 0x110, 0x104, {200});
  script.back(0, 0x9100);
  script.back(0);
  expect(script.call(0, 0x120, 0x1010), "+taskwait@100e", "the maker waits");
  expect(script.call(1, 0x2000, 0x504, {0x91c0}), "start1 +task@2000",
         "the second is taken by another thread");
  expect(script.call(0, 0x2000, 0x124, {0x90c0}), "start0 +task@2000", "the first by the one that waits");
  expect(script.back(1), "end1 -task@2000", "and ends");
  expect(script.call(0, 0x100, 0x2010, {0x3000, 0, 0, 8, 8, 0, 0, 0}), "+task_create@200e new2",
         "a task within");
  expect(script.call(0, 0x3000, 0x10c, {0x123}), "start2 +task@3000", "executed at once");
  expect(script.back(0), "end2 -task@3000", "ends");
  expect(script.back(0), "-task_create@200e", "and was made");
  expect(script.back(0), "end0 -task@2000", "the first ends");
  expect(script.back(0), "-taskwait@100e", "and the wait");
  expect(script.call(0, 0x130, 0x1020, {0x4000}), "+task_create@101e", "a loop of tasks");
  expect(script.call(0, 0x110, 0x134, {300}), "new3", "one");
  script.back(0, 0xb000);
  expect(script.call(0, 0x110, 0x134, {300}), "new4", "two");
  script.back(0, 0xb200);
  script.back(0);
  expect(script.call(2, 0x4000, 0x504, {0xb2f0}), "start4 +task@4000", "the second one begins");

  const auto& tasks = script.tasks().tasks();
  check_equal(static_cast<std::int64_t>(tasks.size()), 5, "tasks");
  check_equal(static_cast<std::int64_t>(tasks[2].parent), 1, "the parent of the task within");
  check_equal(tasks[0].dependence_count, 2, "dependences");
  const auto& first = script.tasks().dependences();
  check(first[0].address == 0x7000 && first[0].type == TaskDependence::Type::out, "writes");
  check(first[1].address == 0x7008 && first[1].type == TaskDependence::Type::in, "reads");
}

TEST(long_dependence_lists) {
  Script script({{0x100, Construct::task}});
  // {0, all, out, mutexinoutset, in, …}, then one dependence object {address, kind}.
  const std::uint64_t object[] = {0x7018, 5};
  const std::uint64_t list[] = {0, 4, 1, 1, 1, 0x7000, 0x7008, 0x7010, memory_at + 0x100};
  script.write(memory_at + 0x100, object, sizeof object);
  script.write(memory_at, list, sizeof list);
  script.call(0, 0x100, 0x1004, {0x2000, 0, 0, 8, 8, 1, 8, memory_at});
  script.back(0);
  const auto& found = script.tasks().dependences();
  check_equal(static_cast<std::int64_t>(found.size()), 4, "dependences of the long form");
  using Type = TaskDependence::Type;
  check(found[0].type == Type::out && found[1].type == Type::mutexinoutset && found[2].type == Type::in &&
            found[3].type == Type::inoutset && found[3].address == 0x7018,
        "their types");
  // Lists that lie: nowhere, or without an end.
  const std::uint64_t endless[] = {~std::uint64_t{0}, 3};
  script.write(memory_at + memory_bytes - sizeof endless, endless, sizeof endless);
  script.call(0, 0x100, 0x1004, {0x2000, 0, 0, 8, 8, 1, 8, 0xdead0000});
  script.call(0, 0x100, 0x1004, {0x2000, 0, 0, 8, 8, 1, 8, memory_at + memory_bytes - sizeof endless});
  check_equal(static_cast<std::int64_t>(script.tasks().dependences().size()), 4,
              "nothing is read beyond memory");
}

TEST(frames_that_are_gone) {
  Script script({{0x100, Construct::function}, {0x110, Construct::critical_start}});
  expect(script.call(0, 0x100, 0x1004), "+user@100", "a function the user named");
  script.call(0, 0x110, 0x108);
  script.back(0);
  script.call(0, 0x900, 0x10c);
  script.unwind(0, 0);
  expect(script.call(0, 0x100, 0x1010), "-critical@106 -user@100 +user@100",
         "what an exception skipped has ended, when something else begins further up");
  script.call(0, 0x100, 0x120);
  expect(script.back(0), "-user@100", "recursion: the inner call ends");
  expect(script.back(0), "-user@100", "and the outer");
}

TEST(marker_instructions) {
  Script script({});
  script.write(memory_at, "solve", 6);
  script.write(memory_at + 16, "step", 5);
  expect(script.instruction(0, 1, memory_at), "+solve", "begin");
  expect(script.instruction(0, 1, memory_at + 16), "+step", "begin within");
  expect(script.instruction(0, 3, 35), "+MPI_Send", "a call of MPI");
  expect(script.instruction(0, 4, 35), "-MPI_Send", "ends");
  expect(script.instruction(0, 2, memory_at), "-step -solve", "the end of the outer ends the inner");
  expect(script.instruction(0, 2, memory_at + 16), "", "an end without a beginning");
  expect(script.instruction(0, 1, 0xdead0000), "+(no name)", "a name that cannot be read");
  expect(script.instruction(0, 3, 123456), "+MPI call 123456", "a call that is not known");
  expect(script.instruction(0, 5, 0), "+region of interest", "the region of interest begins");
  expect(script.instruction(0, 6, 0), "-region of interest", "and ends");
  expect(script.instruction(0, 99, 0), "", "a code that means nothing");
}

TEST(watched_addresses_settle) {
  Script script({{0x100, Construct::barrier}});
  for (int turn = 0; turn < 3; ++turn) {
    script.call(0, 0x100, 0x1004);
    script.back(0);
  }
  check_equal(static_cast<std::int64_t>(script.watch().addresses().size()), 2,
              "one function, one return address");
  check_equal(static_cast<std::int64_t>(script.watch().version()), 2, "nothing new after the first time");
}

}  // namespace
