// SPDX-License-Identifier: Apache-2.0
// A small machine for tests of unified memory: stand-ins of SMs that make accesses, one that plays the host's
// scheduler, unified memory and the link to the host.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/simulation.hpp"
#include "engine/timer.hpp"
#include "gpu/link/host_link.hpp"
#include "gpu/uvm/unified_memory.hpp"
#include "test_checks.hpp"

namespace manyscale::gpu::test {

using manyscale::test::check;
using manyscale::test::check_between;
using manyscale::test::check_equal;
using Answer = TranslationResponseKind;
using Request = TranslationRequestKind;

inline constexpr std::uint64_t kBase = std::uint64_t{1} << 45;
inline constexpr std::uint64_t kKib = 1024;
inline constexpr std::uint64_t kMib = 1024 * kKib;
inline constexpr Time kLinkLatency = 15 * nanosecond;  // between SMs and the memory management unit

// The link to the host of Listing 1 of the SST-GPU final report.
inline HostLinkSpec pcie() {
  return {.bandwidth = 16'000'000'000, .data_latency = 23'840 * picosecond};
}

struct Access {
  std::uint64_t address = 0;
  bool write = false;
  Time not_before = 0;
};

// What became of an access.
struct AccessOutcome {
  Time asked = -1;
  Time done = -1;
  bool faulted = false;
  Answer kind = Answer::mapped;
  bool tlb_hit = false;
};

// An SM that makes accesses in several sequences at a time; each waits for the one before in its sequence.
// Its TLB holds all it was told.
class StandInSm final : public Component {
 public:
  explicit StandInSm(std::vector<std::vector<Access>> sequences) : sequences_(std::move(sequences)) {
    gmmu.on_receive<&StandInSm::receive>();
    timer_.on_expire<&StandInSm::begin>();
    for (const auto& sequence : sequences_) outcomes.emplace_back(sequence.size());
    next_.resize(sequences_.size());
  }
  void start() override {
    for (std::uint32_t i = 0; i < sequences_.size(); ++i) go_on(i);
  }

  Port<TranslationProtocol, 0> gmmu{*this, "gmmu", "what translates"};
  std::vector<std::vector<AccessOutcome>> outcomes;  // by sequence
  std::uint64_t forgotten = 0;                       // translations that the TLB had to forget
  int wrong = 0;                                     // answers about another page, or that allow too little
  // Called when an access happens in the device's memory.
  std::function<void(const Access&)> on_access = [](const Access&) {};
  bool forgetful = false;  // has no TLB

 private:
  struct Entry {
    bool read_only = false;
    bool wrote = false;
  };

  void go_on(std::uint32_t sequence) {
    if (next_[sequence] == sequences_[sequence].size()) return;
    const Access& access = sequences_[sequence][next_[sequence]];
    timer_.after(std::max<Time>(0, access.not_before - now()), sequence);
  }
  void begin(const std::uint32_t& sequence) {
    const Access& access = sequences_[sequence][next_[sequence]];
    AccessOutcome& outcome = outcomes[sequence][next_[sequence]];
    outcome.asked = now();
    const auto found = tlb_.find(access.address / kPageBytes);
    if (found != tlb_.end() && !(access.write && found->second.read_only)) {
      outcome.tlb_hit = true;
      const bool tell = access.write && !found->second.wrote;
      if (tell) found->second.wrote = true;
      gmmu.send({.address = access.address, .kind = Request::used, .write = tell});
      finish(sequence);
      return;
    }
    gmmu.send(
        {.address = access.address, .tag = sequence, .kind = Request::translate, .write = access.write});
  }
  void receive(const TranslationResponse& answer, std::uint32_t) {
    switch (answer.kind) {
      case Answer::faulted:
        outcomes[answer.tag][next_[answer.tag]].faulted = true;
        return;
      case Answer::shootdown:
        for (std::uint64_t i = 0; i < answer.tag; ++i)
          forgotten += tlb_.erase(answer.address / kPageBytes + i);
        return;
      case Answer::shootdown_all:
        forgotten += tlb_.size();
        tlb_.clear();
        return;
      case Answer::remote: {
        const Access& access = sequences_[answer.tag][next_[answer.tag]];
        outcomes[answer.tag][next_[answer.tag]].kind = Answer::remote;
        gmmu.send({.address = access.address,
                   .tag = answer.tag,
                   .kind = access.write ? Request::remote_write : Request::remote_read,
                   .write = access.write,
                   .sectors = 15});
        return;
      }
      case Answer::remote_done:
        finish(answer.tag);
        return;
      case Answer::mapped:
      case Answer::mapped_read_only: {
        const Access& access = sequences_[answer.tag][next_[answer.tag]];
        wrong += answer.address / kPageBytes != access.address / kPageBytes;
        outcomes[answer.tag][next_[answer.tag]].kind = answer.kind;
        const bool read_only = answer.kind == Answer::mapped_read_only;
        wrong += read_only && access.write;
        if (!forgetful) tlb_[access.address / kPageBytes] = {read_only, access.write};
        const std::uint64_t first = access.address / kChunkBytes * kPagesPerChunk;
        for (std::uint64_t i = 0; i < kPagesPerChunk && answer.chunk && !forgetful; ++i)
          tlb_.try_emplace(first + i);
        finish(answer.tag);
        return;
      }
    }
  }
  void finish(std::uint32_t sequence) {
    AccessOutcome& outcome = outcomes[sequence][next_[sequence]];
    outcome.done = now();
    if (outcome.kind != Answer::remote) on_access(sequences_[sequence][next_[sequence]]);
    ++next_[sequence];
    go_on(sequence);
  }

  std::vector<std::vector<Access>> sequences_;
  std::vector<std::size_t> next_;
  std::unordered_map<std::uint64_t, Entry> tlb_;
  Timer<std::uint32_t> timer_{*this};
};

struct HostStep {
  RangeCommandKind kind = RangeCommandKind::host_read;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  Time not_before = 0;
};

// The host, which does one thing after the other.
class StandInHost final : public Component {
 public:
  explicit StandInHost(std::vector<HostStep> steps) : done(steps.size(), -1), steps_(std::move(steps)) {
    memory.on_receive<&StandInHost::receive>();
    timer_.on_expire<&StandInHost::begin>();
  }
  void start() override { go_on(); }

  Port<RangeProtocol, 0> memory{*this, "memory", "what has the pages"};
  std::vector<Time> done;
  int wrong = 0;  // ends of another command than the current one

 private:
  void go_on() {
    if (next_ < steps_.size()) timer_.after(std::max<Time>(0, steps_[next_].not_before - now()), true);
  }
  void begin(const bool&) {
    const HostStep& step = steps_[next_];
    const std::uint64_t first = step.address / kPageBytes;
    const std::uint64_t last = (step.address + step.bytes - 1) / kPageBytes;
    memory.send({next_, first, static_cast<std::uint32_t>(last - first + 1), step.kind});
  }
  void receive(const RangeEnd& end, std::uint32_t) {
    wrong += end.command != next_;
    done[next_++] = now();
    go_on();
  }

  std::vector<HostStep> steps_;
  std::size_t next_ = 0;
  Timer<bool> timer_{*this};
};

// The numbers of machines/v100.toml.
inline UnifiedMemorySpec v100_spec() {
  UnifiedMemorySpec spec;
  spec.clock = 1'312'000'000;
  spec.walk_latency = 100;
  spec.walkers = 64;
  spec.l2_tlb_latency = 10;
  spec.outstanding_faults = 65536;
  spec.fault_interval = 50 * nanosecond;
  spec.remote_latency = 200;
  spec.capacity = std::int64_t{16} << 30;
  spec.first_touch = true;
  spec.handling = "measured";
  spec.fault_latency = 45 * microsecond;
  spec.batch_size = 256;
  spec.batch_latency = 12'200 * nanosecond;
  spec.fetch_latency = 4 * microsecond;
  spec.kilobyte_latency = 58'500 * picosecond;
  spec.block_latency = 32 * microsecond;
  spec.partial_block_latency = 67 * microsecond;
  spec.scattered_latency = 10'800 * nanosecond;
  spec.cold_latency = 126 * microsecond;
  spec.curve = "measured";
  spec.times_to_device =
      "4KiB 1760ns, 60KiB 5800ns, 124KiB 11200ns, 252KiB 21800ns, 508KiB 43300ns, 1020KiB 86400ns";
  spec.times_to_host = "221KiB 17917ns, 1000KiB 78408ns";
  spec.peak_bandwidth = 12'884'901'888;
  spec.steepness = 0.07292;
  spec.transfer_latency = 1'350 * nanosecond;
  spec.bandwidth = 12'205'000'000;
  spec.prefetcher = "tree";
  spec.remote_threshold = 8;
  spec.remote_penalty = 2;
  spec.host_granularity = 2 << 20;
  return spec;
}

inline UnifiedMemorySpec logged_spec() {
  UnifiedMemorySpec spec = v100_spec();
  spec.log_rows = 1'000'000;
  spec.clock = 1'000'000'000;
  spec.first_touch = false;  // what the tests allocate, the host has written
  return spec;
}

// What happened to pages, one kind of it, by offset from the first allocation.
struct Moved {
  std::uint64_t offset_kib = 0;
  std::uint64_t kib = 0;
  bool operator==(const Moved&) const = default;
};

struct Machine {
  explicit Machine(const UnifiedMemorySpec& spec, std::vector<std::uint64_t> sizes = {4 * kMib}) {
    auto made = std::make_unique<UnifiedMemory>(spec);
    uvm = made.get();
    simulation.add("uvm", std::move(made));
    auto link = std::make_unique<HostLink>(pcie());
    Component& wires = simulation.add("link", std::move(link));
    simulation.connect(port(*uvm, "link"), port(wires, "engines"), 0);
    std::uint64_t address = kBase;
    for (const std::uint64_t bytes : sizes) {
      uvm->allocate(address, bytes, "allocation " + std::to_string(allocations.size()));
      allocations.push_back(address);
      address += (managed_bytes(bytes) + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    }
  }
  StandInSm& add_sm(std::vector<std::vector<Access>> sequences) {
    auto made = std::make_unique<StandInSm>(std::move(sequences));
    StandInSm& sm = *made;
    simulation.add("sm" + std::to_string(sms++), std::move(made));
    simulation.connect(sm.gmmu, port(*uvm, "sms"), kLinkLatency);
    wrong.push_back(&sm.wrong);
    return sm;
  }
  StandInHost& add_host(std::vector<HostStep> steps) {
    auto made = std::make_unique<StandInHost>(std::move(steps));
    StandInHost& host = *made;
    simulation.add("host", std::move(made));
    simulation.connect(host.memory, port(*uvm, "scheduler"), 0);
    wrong.push_back(&host.wrong);
    return host;
  }
  RunReport run(std::uint32_t threads = 1) {
    if (sms == 0) add_sm({});
    RunOptions options;
    options.threads = threads;
    const RunReport report = simulation.run(options);
    check(report.outcome == manyscale::Outcome::finished, "the run ends by itself");
    // Counted by each, since they may run on several threads.
    for (const int* of : wrong) check_equal(*of, 0, "wrong answers");
    return report;
  }

  // Rows of one kind from a row on, neighbours not joined.
  std::vector<Moved> moved(PageEventKind kind, std::size_t from = 0) const {
    std::vector<Moved> found;
    for (std::size_t i = from; i < uvm->log().size(); ++i) {
      const PageEvent& event = uvm->log()[i];
      if (event.kind == kind)
        found.push_back({(event.address - kBase) / kKib, event.pages * kPageBytes / kKib});
    }
    return found;
  }
  std::int64_t pages_at(PageLocation location, std::uint64_t address, std::uint64_t bytes) const {
    return std::ranges::count(uvm->locations(address, bytes), location);
  }
  static PortBase& port(Component& component, const std::string& name) {
    for (PortBase* port : component.ports())
      if (port->name() == name) return *port;
    throw std::invalid_argument("no port " + name);
  }

  Simulation simulation{3};
  UnifiedMemory* uvm = nullptr;
  std::vector<std::uint64_t> allocations;
  std::vector<const int*> wrong;
  int sms = 0;
};

inline std::string text_of(const std::vector<Moved>& moves) {
  std::string text;
  for (const Moved& move : moves)
    text += " " + std::to_string(move.offset_kib) + ":" + std::to_string(move.kib);
  return text;
}

inline void check_moves(const std::vector<Moved>& found, const std::vector<Moved>& expected,
                        const std::string& what) {
  check(found == expected, what + ":" + text_of(found) + " instead of" + text_of(expected));
}

// Reads of these offsets in KiB, one after the other.
inline std::vector<Access> reads(std::initializer_list<std::uint64_t> offsets_kib) {
  std::vector<Access> accesses;
  for (const std::uint64_t offset : offsets_kib) accesses.push_back({kBase + offset * kKib, false, 0});
  return accesses;
}

}  // namespace manyscale::gpu::test
