// SPDX-License-Identifier: Apache-2.0
// Somebody who wants to see what a program executes.
#pragma once
#include <span>

#include "cpu/stream/record.hpp"

namespace manyscale::cpu {

class RecordSink {
 public:
  virtual ~RecordSink() = default;
  // The next records, markers among them, all of one thread or of several; those of one thread come in the
  // order of its program, those of different threads in the order of their execution. Producers count back
  // in the records of their thread that are not markers.
  virtual void take(std::span<const Record> records) = 0;
};

}  // namespace manyscale::cpu
