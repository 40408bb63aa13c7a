// SPDX-License-Identifier: Apache-2.0
#include "cpu/live/marked_program.hpp"

namespace manyscale::cpu {

void MarkedProgram::launch(const LaunchSpec& spec, const std::vector<WatchPoint>& watch) {
  kernel_.launch(spec);
  for (const auto& process : kernel_.processes()) {
    watches_.push_back(std::make_unique<MarkerWatch>(watch, regions_, tasks_));
    watched_versions_.push_back(watches_.back()->version());
    process->interpreter.watch(watches_.back()->addresses());
  }
}

const std::vector<std::uint64_t>& MarkedProgram::markers_at(Thread& thread) {
  Process& process = *thread.process;
  MarkerWatch& watch = *watches_[process.number];
  markers_.clear();
  watch.reached(static_cast<std::uint16_t>(thread.number), thread.hart, process.interpreter.marker(),
                process.memory, markers_);
  if (watch.version() != watched_versions_[process.number]) {
    watched_versions_[process.number] = watch.version();
    process.interpreter.watch(watch.addresses());
  }
  return markers_;
}

const std::vector<std::uint64_t>& MarkedProgram::markers_at_end(Thread& thread) {
  markers_.clear();
  watches_[thread.process->number]->thread_ends(static_cast<std::uint16_t>(thread.number), markers_);
  return markers_;
}

}  // namespace manyscale::cpu
