// SPDX-License-Identifier: Apache-2.0
// What the bindings of programs share with those of recorded traces.
#pragma once
#include <stdexcept>
#include <vector>

#include "cpu/live/functional_run.hpp"
#include "cpu/mpi/work_counts.hpp"
#include "module.hpp"

// A component of the core as what it is; `name` is that of its model.
template <class Model>
Model& model(manyscale::Component& component, const char* name) {
  auto* found = dynamic_cast<Model*>(&component);
  if (found == nullptr) throw std::invalid_argument(component.name() + " is no " + name);
  return *found;
}

nb::list region_list(const manyscale::cpu::RegionTable& regions);
// The explicit tasks of a program in the order of their creation.
nb::list task_list(const manyscale::cpu::TaskTable& tasks);

// A program without time, and what came of it.
class FunctionalProgram {
 public:
  FunctionalProgram(const nb::dict& launch, std::uint32_t cores, std::uint64_t seed);

  // Runs without the interpreter lock; takes it now and then to see to signals and to show progress.
  const char* run(std::uint64_t limit, const nb::object& progress);

  std::uint64_t instructions() const { return run_.instructions(); }
  nb::list processes() const;
  nb::object failure() const;
  nb::dict details();
  // From now on the work of each process is counted, which takes longer.
  void count_work() { run_.record_to(&work_); }
  // Of each process: instructions, branches, loads and stores that were counted.
  nb::list work() const;
  manyscale::cpu::FunctionalRun& functional_run() { return run_; }

 private:
  manyscale::cpu::FunctionalRun run_;
  manyscale::cpu::WorkCounts work_{run_.regions()};
};
