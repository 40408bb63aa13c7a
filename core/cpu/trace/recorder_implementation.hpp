// SPDX-License-Identifier: Apache-2.0
// The recorder's state: its threads, streams, teams and filters. Instructions are recorded in recorder.cpp,
// regions, locks and tasks in recorder_regions.cpp.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/trace/l1_filter.hpp"
#include "cpu/trace/recorded_streams.hpp"
#include "cpu/trace/recorded_thread.hpp"
#include "cpu/trace/recorder.hpp"
#include "cpu/trace/shared_pages.hpp"

namespace manyscale::cpu {

struct Recorder::Implementation {
  using Frame = recording::Frame;
  using RecordedThread = recording::RecordedThread;
  using StreamPosition = recording::StreamPosition;

  // Where an address space begins; see virtual_memory/address_space.hpp.
  static constexpr int process_shift = 40;
  static constexpr std::uint64_t within_process = (std::uint64_t{1} << process_shift) - 1;
  static std::uint32_t process_of(std::uint64_t address) {
    return static_cast<std::uint32_t>((address >> process_shift) - 1);
  }

  Implementation(const CoreSpec& core_, const CompactionTuning& tuning, const RegionTable& regions_,
                 const TaskTable& tasks_, BlockSink sink_);
  void set_l1_filter(std::uint64_t bytes);

  // Nodes that are no instructions.
  void add_marker(const RecordedThread& thread, std::uint32_t stream, std::uint32_t region,
                  MarkerAction action);
  void add_sync(const RecordedThread& thread, std::uint32_t stream, SyncKind kind, std::uint64_t object,
                std::uint64_t pc, bool sleeps = false);

  // Threads and their instructions.
  RecordedThread& thread_of(const Record& record);
  std::uint32_t own_stream(RecordedThread& thread);
  // The innermost frame that decides what is recorded; null: the thread is in none.
  static Frame* ruling(RecordedThread& thread) {
    const auto found = std::find_if(thread.frames.rbegin(), thread.frames.rend(),
                                    [](const Frame& frame) { return frame.role != Frame::Role::plain; });
    return found == thread.frames.rend() ? nullptr : &*found;
  }
  // The stream that the thread's records go to now; none if they are left out.
  std::uint32_t current_stream(RecordedThread& thread);
  void take(const Record& record);
  void record_instruction(RecordedThread& thread, std::uint32_t stream, TraceNode& node,
                          StreamPosition& slot);
  // Whether the line of an instruction may not be in an L1 cache: then it stays a node, so that a
  // replay fetches the line.
  bool misses_l1i(RecordedThread& thread, std::uint32_t stream, const Record& node);

  // Regions, locks, events and tasks.
  void take_markers(RecordedThread& thread, std::uint64_t pc);
  // Enters a region whose runtime's work a sync node stands for.
  void enter_runtime(RecordedThread& thread, Frame& frame, SyncKind kind, std::uint64_t object,
                     std::uint64_t pc);
  std::uint64_t object_of(const RecordedThread& thread, const Region& region) const;
  void enter(RecordedThread& thread, std::uint32_t number, std::uint64_t pc);
  static Frame* innermost(RecordedThread& thread, Frame::Role role);
  bool ends_group(const RecordedThread& thread, const Region& wait) const;
  // A thread that is at the region's function was given it; one that is elsewhere is about to form a team.
  void enter_team(RecordedThread& thread, Frame& frame, std::uint64_t pc);
  // The master's own part of the region begins.
  void form_team(RecordedThread& thread, Frame& frame, std::uint64_t pc);
  void settle_cost(Frame& frame);
  static void add_cost(SyncCost& cost, std::uint64_t instructions, std::uint64_t system_calls);
  void leave(RecordedThread& thread, std::uint32_t region, std::uint64_t pc);
  void close_innermost(RecordedThread& thread, std::uint64_t pc);
  // The stream whose node stands for what the thread does now, be it left out or not; none if there is none.
  std::uint32_t synced_stream(RecordedThread& thread);
  void add_lock(RecordedThread& thread, std::uint32_t number, SyncKind kind, std::uint64_t pc);
  // Events have numbers of their own in each process.
  void add_event(RecordedThread& thread, SyncKind kind, std::uint64_t event, std::uint64_t pc);
  void create_task(RecordedThread& thread, std::uint64_t task, std::uint64_t pc);
  void start_task(RecordedThread& thread, std::uint64_t number);
  void end_task(RecordedThread& thread, std::uint64_t number, std::uint64_t pc);
  // The program has ended.
  void finish();

  const CoreSpec core;
  const RegionTable& regions;
  const TaskTable& tasks;
  RecorderStatistics statistics;
  RecordedStreams streams;
  std::vector<TeamInfo> teams;
  std::vector<std::uint32_t> open_teams;
  std::array<SyncCost, sync_kinds> costs{};
  SyncCost scheduling;
  std::vector<std::unique_ptr<RecordedThread>> threads;
  std::vector<bool> processes_seen;
  SharedPages pages;
  L1Filter data_filter;
  L1Filter code_filter;
  bool finished = false;
  bool forks_kept = false;
};

}  // namespace manyscale::cpu
