// SPDX-License-Identifier: Apache-2.0
// A grid of CTAs that executes a program, and those who carry it out.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/exec/checker.hpp"
#include "gpu/exec/checks.hpp"
#include "gpu/exec/device_memory.hpp"
#include "gpu/exec/fault.hpp"
#include "gpu/exec/instructions/barrier.hpp"
#include "gpu/exec/program.hpp"
#include "gpu/exec/texture.hpp"
#include "gpu/exec/warp.hpp"

namespace manyscale::gpu {

inline constexpr unsigned kBarriers = 16;

// What a grid has done.
struct LaunchCounts {
  std::uint64_t warp_instructions = 0;
  std::uint64_t thread_instructions = 0;
};

// A constant of SASS, the same for all lanes.
struct alignas(64) ConstantLanes {
  std::array<std::uint32_t, kLanes> words;
  const std::byte* data() const { return reinterpret_cast<const std::byte*>(words.data()); }
};

// Everything that all CTAs of a grid share. Nothing here changes once it has begun, except the memory.
struct Launch {
  const Program* program = nullptr;
  DeviceMemory* memory = nullptr;
  const TextureTable* textures = nullptr;
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint64_t dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters;
  // Of SASS: the constants of the program with what the launch knows, and all of its banks.
  std::vector<ConstantLanes> constants;
  std::array<std::span<const std::byte>, ConstantBanks::kCount> banks{};
  std::vector<std::byte> launch_bank;       // bank 0: the shape of the grid, windows and parameters
  unsigned threads = 1;                     // of the host
  bool order_matters = false;               // results can depend on the order in which CTAs run
  Checks check;                             // races, uninitialised reads and the like to look for
  std::uint64_t maximum_instructions = 0;   // per grid, 0: no limit
  std::uint64_t sequence = 0;               // which launch on the device this is
  std::uint64_t workspace = 0;              // of a cooperative grid: zeroed memory for its barrier
  const std::atomic<bool>* stop = nullptr;  // set by somebody who does not want to wait any longer

  // Reads what SASS takes for constant. Memory is read here and not when the launch is queued:
  // commands before it in its stream may write there.
  void begin();

  unsigned threads_per_cta() const { return block[0] * block[1] * block[2]; }
  unsigned warps_per_cta() const { return (threads_per_cta() + kLanes - 1) / kLanes; }
  std::uint64_t ctas() const { return std::uint64_t{grid[0]} * grid[1] * grid[2]; }
  std::uint64_t shared_bytes() const { return program->static_shared_bytes + dynamic_shared_bytes; }
  // Throws a KernelFault where more was executed than may be.
  void check_limit(const LaunchCounts& counts) const {
    if (maximum_instructions != 0 && counts.warp_instructions > maximum_instructions) give_up();
  }
  // The same, and Stopped where nobody waits any longer. Whatever may go on for ever has to ask.
  void check_end(const LaunchCounts& counts) const {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) throw Stopped("interrupted");
    check_limit(counts);
  }
  [[noreturn]] void give_up() const;
};

// One host thread's part in a grid: what it has counted, printed and looked up.
struct Worker {
  const Launch* launch = nullptr;
  Access* access = nullptr;  // what the instruction that is executed touches; whoever has the worker has it
  LaunchCounts counts;
  std::uint64_t cycle = 0;  // of the clock, where time is modelled
  std::string printed;
  std::vector<std::string> warnings;
  std::array<DeviceMemory::Range, 16> ranges{};             // allocations found last, by instruction
  alignas(64) std::array<std::uint64_t, kLanes> offsets{};  // of the current access, in host memory
  bool shares_memory = false;                               // other workers change memory at the same time
  Checker* checker = nullptr;                               // of the CTA that runs, if asked for

  // Says something once that the user should know, although the kernel goes on.
  void warn(const std::string& warning);
};

// A named barrier of a CTA.
struct Barrier {
  std::vector<Mask> arrived;          // lanes, by warp
  std::uint32_t expected = 0;         // threads; 0: all of the CTA
  std::uint32_t arrived_threads = 0;  // whole warps count
  std::uint32_t holding = 0;          // of bar.red: threads whose predicate holds
  std::uint32_t asked = 0;            // threads that brought a predicate
  std::uint32_t last_holding = 0;     // in the round that completed last
  std::uint32_t last_asked = 0;
};

// Whether the predicates of the round that completed last hold.
bool barrier_holds(const Barrier& barrier, BarrierReduction reduction);
// Gives the lanes of a split that leaves bar.red its result (barrier.cpp).
void write_barrier_result(const Barrier& barrier, const Op& op, const Split& split);

// A CTA: its warps, its shared memory, its barriers. It keeps its memory when it is started again.
class Cta {
 public:
  void start(const Launch& launch, Worker& worker, std::uint64_t index);

  // Runs warps in turn until all have finished or none can go on alone.
  enum class State { finished, waiting };
  State run();

  const Launch& launch() const { return *launch_; }
  std::uint64_t index() const { return index_; }
  std::array<std::uint32_t, 3> position() const { return position_; }
  std::byte* shared() { return shared_.data(); }
  std::uint64_t shared_bytes() const { return shared_bytes_; }
  Checker* checker() { return checker_.get(); }
  const std::vector<std::unique_ptr<Warp>>& warps() const { return warps_; }
  // The warp that ran last; it raised the fault if there was one.
  const Warp& running() const { return *running_; }

  // Lanes of a warp arrive at a barrier that expects so many threads, 0 for all of the CTA. True if they were
  // the last: then all who wait there have passed.
  bool arrive(Warp& warp, unsigned barrier, Mask lanes, std::uint32_t expected);
  Barrier& barrier(unsigned index) { return barriers_[index]; }
  const Barrier& barrier(unsigned index) const { return barriers_[index]; }
  // Lanes have exited: barriers no longer wait for them.
  void exited();

 private:
  bool complete_if_full(unsigned barrier);

  const Launch* launch_ = nullptr;
  Worker* worker_ = nullptr;
  std::uint64_t index_ = 0;
  std::array<std::uint32_t, 3> position_{};
  std::vector<std::byte> shared_;
  std::uint64_t shared_bytes_ = 0;
  std::vector<std::unique_ptr<Warp>> warps_;
  std::vector<char> finished_;
  std::array<Barrier, kBarriers> barriers_;
  std::unique_ptr<Checker> checker_;
  Warp* running_ = nullptr;
  bool released_ = false;  // a barrier let warps go on
};

inline const Launch& Warp::launch() const {
  return *worker_->launch;
}

// What came of a launch.
struct LaunchResult {
  LaunchCounts counts;
  std::string printed;
  std::vector<std::string> warnings;
};

// Begins a launch and runs its grid to the end. Throws KernelFault.
LaunchResult run_grid(Launch launch);

}  // namespace manyscale::gpu
