// SPDX-License-Identifier: Apache-2.0
// A warp: 32 lanes that execute one instruction at a time. Lanes that branch differently become splits, each
// with a program counter of its own; a split that reaches the point where all paths meet again waits there
// for the others. Waiting to meet is a matter of speed, never of correctness: lanes that spin let the waiting
// ones go on.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <vector>

#include "gpu/exec/op.hpp"
#include "gpu/exec/program.hpp"
#include "gpu/exec/texture.hpp"

namespace manyscale::gpu {

class Cta;
struct Worker;
struct Launch;

// Registers that the hardware fills in; each takes 32 lanes of up to 8 bytes in the warp's own area.
enum class Special : std::uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  total_smem_size,
  dynamic_smem_size,
  workspace_low,
  workspace_high,
  zero,
  one,
  count,
};
inline constexpr std::uint32_t kSpecialStride = kLanes * 8;

// What the last memory instruction touched, for those who watch or time it. Of each worker, not of each warp:
// it is used up before another warp goes on, and what a thousand warps have is in no cache.
struct Access {
  ptx::Space space = ptx::Space::generic;
  std::uint8_t bytes = 0;  // per lane, all elements of a vector
  Mask mask = 0;
  alignas(64) std::array<std::uint64_t, kLanes> addresses{};  // of the lanes in mask; in their space
  TextureFootprint texture;                                   // of a texture instruction, which has no mask
};

// The registers and the local memory of one activation of a function.
struct Frame {
  std::vector<std::byte> storage;
  std::byte* registers = nullptr;  // aligned in storage
  const Code* code = nullptr;
  Frame* caller = nullptr;
  std::uint32_t local_base = 0;
};

// Lanes with one program counter.
struct Split {
  enum class State : std::uint8_t { ready, at_barrier, at_warp_sync, at_convergence };
  std::uint32_t pc = 0;
  Mask mask = 0;
  std::int32_t join = -1;
  State state = State::ready;
  Mask members = 0;  // whom it waits for, at a warp-wide instruction
  Frame* frame = nullptr;
};

// Where splits meet again: behind a branch, or behind a call.
struct Join {
  std::uint32_t pc = 0;
  Mask expected = 0;
  Mask arrived = 0;
  std::int32_t parent = -1;
  Frame* frame = nullptr;   // in which they go on
  Frame* callee = nullptr;  // of a call
  const CallSite* call = nullptr;
  bool used = false;
};

// What a reduction at a barrier gave, where that is not written at once.
struct BarrierResult {
  std::uint32_t count = 0;
  bool holds = false;
};

enum class Outcome : std::uint8_t {
  finished,  // all lanes have exited
  blocked,   // every split waits for another warp, or for lanes of its own
  yielded,   // could go on, but seems to wait for somebody
  paused,    // can go on, when the other warps have had their turn
};

class Warp {
  // Room for the splits of most warps; more come from elsewhere.
  alignas(64) std::array<std::byte, 2 * sizeof(Split)> first_splits_;
  std::pmr::monotonic_buffer_resource split_memory_{first_splits_.data(), first_splits_.size()};

 public:
  Warp();
  Warp(const Warp&) = delete;
  Warp& operator=(const Warp&) = delete;

  // Makes it the index-th warp of a CTA that is about to start.
  void start(Cta& cta, Worker& worker, unsigned index);

  // Executes until the warp can or should not go on.
  Outcome run();

  // One instruction at a time, for those who say when: the one that comes next, null if the warp has finished
  // or waits; and executing it. Then mask says for which lanes, and access what memory it touched; it is true
  // if the operation behind it is sure to be next.
  const Op* next();
  bool step();

  // Lets go on what can go on without those it waits for; false if there is nothing such. Used when a CTA is
  // stuck.
  bool release_waiting();

  // --- For handlers
  // ----------------------------------------------------------------------------------------------
  // From here to splits_ stands what each instruction needs, together: with time, many warps take turns, and
  // each of these lines comes from far away.
  alignas(64) Mask mask = 0;  // lanes for which the current instruction is executed
  Mask active = 0;            // lanes of the current split, before the guard
  Mask carry = 0;             // the carry flag of each lane
  Access* access = nullptr;   // of the worker

  template <class T>
  T* lanes(Slot slot) const {
    return reinterpret_cast<T*>(bases_[slot & 3] + (slot & ~Slot{3}));
  }
  Mask& predicate(Slot slot) const { return *lanes<Mask>(slot); }
  Slot listed(const Op& op, unsigned index) const { return code().slots[op.aux + index]; }

  Cta& cta() const { return *cta_; }
  Worker& worker() const { return *worker_; }
  const Launch& launch() const;
  const Code& code() const { return *frame_->code; }
  const Frame& frame() const { return *frame_; }
  unsigned index() const { return index_; }
  Mask live() const { return live_; }
  // Thread within the CTA.
  unsigned thread(unsigned lane) const { return index_ * kLanes + lane; }
  // Local memory of a lane; `local_stride` bytes of it.
  std::byte* local(unsigned lane) { return local_.data() + std::size_t{lane} * local_stride_; }
  std::size_t local_stride() const { return local_stride_; }
  // A number that grows as the warp executes; stands for clock cycles where time is not modelled.
  std::uint64_t clock() const;

  // --- For barriers
  // ---------------------------------------------------------------------------------------------- The
  // current split waits at a barrier of the CTA, until it may pass.
  void wait_at(unsigned barrier);
  void pass_barrier(unsigned barrier);
  BarrierResult barrier_result() const { return barrier_result_; }
  const std::pmr::vector<Split>& splits() const { return splits_; }
  // The instruction at which a handler raised a fault.
  const OpInfo& fault_location() const { return code().infos[fault_info_]; }

 private:
  template <bool kBrief>
  Outcome run_split();
  void select(std::size_t split);
  bool choose_ready();
  bool redirect(const Op& op, std::uint32_t pc);
  bool returns_to_spin(const Op& op, std::uint32_t pc, std::uint64_t turn);
  // Each of these changes current_ and says whether the current split goes on.
  bool branch(const Op& op, std::uint32_t pc);
  bool diverge(Mask taken, std::uint32_t target, std::uint32_t next, std::uint32_t reconvergence);
  bool branch_table(const Op& op, std::uint32_t pc);
  bool call(const Op& op, std::uint32_t pc);
  bool leave(Mask mask, std::uint32_t pc, bool exits);
  bool arrive(std::uint32_t pc);
  bool barrier(const Op& op, std::uint32_t pc);
  bool warp_sync(const Op& op, std::uint32_t pc);
  bool branch_if(const Op& op, std::uint32_t pc);
  bool exit_if(const Op& op, std::uint32_t pc);
  bool branch_if_divergent(const Op& op, std::uint32_t pc);
  bool jump(const Op& op, std::uint32_t pc);
  std::uint32_t jump_target(const Op& op, std::uint64_t address, unsigned lane) const;
  bool part(const std::array<std::uint32_t, kLanes>& targets, std::uint32_t next, Mask staying);
  bool converge(const Op& op, std::uint32_t pc);
  Mask barrier_members(const Split& split) const;
  bool release_converged();
  bool release_convergence();
  void unite(std::uint32_t pc, Mask lanes);
  void meet(const Op& op);
  void release_complete_syncs();
  void finish_sync(std::size_t index, Mask present);
  std::int32_t join_at(std::uint32_t reconvergence);
  void yield();
  void complete(std::int32_t join);
  bool is_gather(std::int32_t join) const;
  bool release_join();
  bool release_own();
  std::int32_t new_join(const Join& join);
  Frame* new_frame(const Code& code, Frame* caller);
  void free_frame(Frame* frame);
  void drop_current();
  void grow_local(std::size_t bytes);
  void copy_parameters(const std::vector<ParameterLocation>& from, std::uint32_t from_base,
                       const std::vector<ParameterLocation>& to, std::uint32_t to_base, Mask lanes);
  void copy_registers(const std::vector<Slot>& from, Frame* from_frame, const std::vector<Slot>& to,
                      Frame* to_frame, const std::vector<std::uint8_t>& bytes, Mask lanes);

  std::array<std::byte*, 3> bases_{};  // by Base
  Worker* worker_ = nullptr;
  const Op* ops_ = nullptr;  // of the current split's function
  Frame* frame_ = nullptr;
  Cta* cta_ = nullptr;
  std::uint32_t fault_info_ = 0;
  bool leaves_barrier_ = false;  // has passed one since it ran
  bool synchronised_ = false;    // an instruction that others may wait for or answer to was executed
  std::size_t current_ = 0;
  std::pmr::vector<Split> splits_{&split_memory_};
  unsigned index_ = 0;
  Mask live_ = 0;
  std::vector<Join> joins_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<Frame*> free_frames_;
  std::vector<std::byte> local_;
  std::size_t local_stride_ = 0;
  BarrierResult barrier_result_;
  std::uint32_t spins_ = 0;   // loops around such instructions
  std::uint32_t yields_ = 0;  // in a row
  alignas(64) std::array<std::byte, static_cast<std::size_t>(Special::count) * kSpecialStride> specials_{};
};

}  // namespace manyscale::gpu
