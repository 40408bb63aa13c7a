// SPDX-License-Identifier: Apache-2.0
// Conservative parallel execution over processes: the windows of window_runner.hpp, of which this process
// runs one partition, and the others run theirs elsewhere. At the end of a window all processes meet.
#pragma once
#include <functional>
#include <vector>

#include "engine/component.hpp"
#include "engine/exchange.hpp"

namespace manyscale {

class ProcessRunner {
 public:
  // `own` is the partition of this process; runs the events of a window up to a time.
  using RunWindow = std::function<void(Partition& own, Time end)>;

  ProcessRunner(Partition& own, const std::vector<Endpoint>& endpoints, Exchange& exchange);

  // Runs windows until no event is left anywhere, `until` is passed, or any process wants to stop.
  void run(Time lookahead, Time until, const RunWindow& run_window, const std::function<bool()>& interrupted);
  std::uint64_t windows() const { return windows_; }

 private:
  // What each process tells all others at the end of a window.
  struct Report {
    Time next;
    std::uint64_t stop;  // a model asked for the end, a handler threw, or somebody interrupted
  };

  Report exchange(bool stop);
  void pack_events();
  void unpack_events(std::span<const std::byte> bytes);

  Partition& own_;
  const std::vector<Endpoint>& endpoints_;
  Exchange& exchange_;
  std::vector<Distributable*> distributables_;  // by endpoint: the component if it takes out-of-band payload
  std::vector<Bytes> outgoing_, incoming_;
  Bytes records_;
  Bytes payload_;
  std::uint64_t windows_ = 0;
};

// Gives bytes to all other processes, and gets those of all, this one's too, by process.
std::vector<Bytes> share_with_all(Exchange& exchange, const Bytes& own);

}  // namespace manyscale
