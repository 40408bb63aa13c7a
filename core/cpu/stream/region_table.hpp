// SPDX-License-Identifier: Apache-2.0
// Region table: the regions of a program that time is attributed to (OpenMP constructs, MPI calls, regions
// that the user marks). A region is a location in the program, not one visit to it. Marker records carry its
// number.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace manyscale::cpu {

enum class RegionKind : std::uint8_t {
  parallel,       // parallel region, on each of its threads
  loop,           // iterations of a worksharing loop
  barrier,        // waiting at a barrier, explicit or implied
  critical,       // holding a critical section
  critical_wait,  // waiting to enter one
  single,         // the body of a single construct, on the thread that executes it
  sections,       // a sections construct
  ordered,        // the body of an ordered construct
  ordered_wait,   // waiting for the iterations before it
  task,           // execution of an explicit task
  task_create,    // making one
  taskwait,       // waiting for tasks
  taskgroup,      // a taskgroup construct
  lock,           // waiting for a lock of omp.h, or a mutex
  thread,         // all that a thread does that the program made itself
  wait,           // waiting for such a thread: its end, a condition, a barrier, a semaphore
  mpi,            // a call of MPI
  user,           // between the marks of manyscale.h, or a function the user named
};
inline constexpr std::size_t region_kinds = 18;
std::string_view region_kind_name(RegionKind kind);

struct Region {
  RegionKind kind = RegionKind::user;
  std::string name{};  // given by the program or by MPI; empty: to be made from the pc
  std::uint64_t pc =
      0;  // of the outlined function, or of the caller's next instruction; 0: the name is enough
  std::uint64_t object = 0;  // address of a lock or of the name of a critical section; 0: none
  bool sleeps = false;  // of a lock: who waits for it asks the system to, and does not look at it meanwhile

  auto operator<=>(const Region&) const = default;
};

class RegionTable {
 public:
  // A program may invent as many names as it likes; beyond this many regions all share the last one.
  static constexpr std::size_t limit = 1 << 16;

  // The number of a region, the same for the same region; numbers count from 0.
  std::uint32_t intern(const Region& region);
  const Region& operator[](std::uint32_t number) const { return regions_.at(number); }
  std::size_t size() const { return regions_.size(); }

 private:
  std::vector<Region> regions_;
  std::map<Region, std::uint32_t> numbers_;
};

}  // namespace manyscale::cpu
