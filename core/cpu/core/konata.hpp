// SPDX-License-Identifier: Apache-2.0
// A log of some instructions' way through the pipeline, as the viewer Konata reads it (format Kanata 0004).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/time.hpp"

namespace manyscale::cpu {

class KonataLog {
 public:
  struct Row {
    std::uint64_t number = 0;  // of the instruction, counted from the beginning of the core's work
    std::uint64_t pc = 0;
    std::uint16_t thread = 0;
    Cycle fetched = 0, dispatched = 0, issued = 0, complete = 0, committed = 0;
  };
  // What to show for an instruction besides its address; may be empty.
  using Label = std::function<std::string(std::uint64_t pc)>;

  void add(const Row& row) { rows_.push_back(row); }
  const std::vector<Row>& rows() const { return rows_; }
  // The stages are F (fetch and decode), W (waits in the window), X (executes) and C (waits to commit).
  std::string text(const Label& label = {}) const;

 private:
  std::vector<Row> rows_;
};

}  // namespace manyscale::cpu
