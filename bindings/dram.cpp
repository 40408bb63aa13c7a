// SPDX-License-Identifier: Apache-2.0
// What tests need of memory channels: the log of commands, and a requester fast enough for millions of them.
#include "memory/dram/dram.hpp"

#include <nanobind/stl/string.h>

#include <vector>

#include "engine/simulation.hpp"
#include "engine/timer.hpp"
#include "module.hpp"
#include "values.hpp"

using namespace manyscale;

namespace {

// What an exerciser does; times are in femtoseconds.
struct Exercise {
  std::int64_t requests = 1000;
  std::int64_t outstanding = 16;
  std::string pattern = "random";
  std::int64_t writes = 0;       // percent
  std::uint8_t sectors = 3;      // mask
  std::int64_t line_bytes = 64;  // distance of two lines
  std::int64_t span = 1 << 30;   // bytes that addresses lie in
  Time pause = 0;                // mean, now and then
};

// A requester for tests and measurements: a number of outstanding requests at any time, by a pattern. It
// stands for no hardware.
class DramExerciser final : public Component {
 public:
  explicit DramExerciser(const Exercise& exercise) : exercise_(exercise) {
    memory_.on_receive<&DramExerciser::answered>();
    pause_.on_expire<&DramExerciser::resumed>();
  }
  void start() override {
    for (std::int64_t i = 0; i < exercise_.outstanding; ++i) ask(0);
  }

 private:
  void answered(const memory::Message&, std::uint32_t) {
    if (exercise_.pause > 0 && random().below(64) == 0) {
      pause_.after(static_cast<Time>(random().below(static_cast<std::uint64_t>(2 * exercise_.pause))), 0);
    } else {
      ask(0);
    }
  }
  void resumed(const int&) { ask(0); }

  void ask(Time delay) {
    if (sent_ == exercise_.requests) return;
    ++sent_;
    const auto lines = static_cast<std::uint64_t>(exercise_.span / exercise_.line_bytes);
    if (exercise_.pattern == "stream" || (exercise_.pattern == "mixed" && random().below(4) != 0)) {
      line_ = (line_ + 1) % lines;
    } else {
      line_ = random().below(lines);
    }
    memory::Message message;
    message.address = line_ * static_cast<std::uint64_t>(exercise_.line_bytes);
    message.sectors = exercise_.sectors;
    const bool write =
        exercise_.writes > 0 && random().below(100) < static_cast<std::uint64_t>(exercise_.writes);
    message.op = write ? memory::Op::write : memory::Op::read;
    message.flags = write ? memory::Flag::wants_ack : 0;
    memory_.send(message, delay);
  }

  const Exercise exercise_;
  memory::RequesterPort memory_{*this, "memory", "the channel to exercise"};
  Timer<int> pause_{*this};
  std::int64_t sent_ = 0;
  std::uint64_t line_ = 0;
};

const memory::Dram& dram_of(const Component& component) {
  const auto* dram = dynamic_cast<const memory::Dram*>(&component);
  if (dram == nullptr) throw std::invalid_argument(component.name() + " is no memory.dram");
  return *dram;
}

const memory::CommandLog& log_of(const Component& component) {
  return dram_of(component).log();
}

// The interval in femtoseconds, and for each interval how long data of reads and of writes moved on the bus.
nb::dict bus_over_time(const Component& component) {
  auto [reads, writes] = dram_of(component).bus_over_time();
  const Time interval = std::max(reads.interval(), writes.interval());
  reads.widen(interval);
  writes.widen(interval);
  nb::dict out;
  out["interval"] = interval;
  out["reads"] = reads.sums();
  out["writes"] = writes.sums();
  return out;
}

nb::list commands(const Component& component) {
  nb::list list;
  for (const memory::DramCommandRecord& entry : log_of(component)) {
    const std::string_view name = memory::dram_command_names[static_cast<std::size_t>(entry.command)];
    list.append(nb::make_tuple(entry.cycle, nb::str(name.data(), name.size()), entry.rank, entry.bank_group,
                               entry.bank, entry.row, entry.column));
  }
  return list;
}

// Rows of seven 64-bit numbers; the command is its index in dram_command_names.
nb::bytes packed_commands(const Component& component) {
  std::vector<std::int64_t> packed;
  packed.reserve(log_of(component).size() * 7);
  for (const memory::DramCommandRecord& entry : log_of(component)) {
    packed.insert(packed.end(), {entry.cycle, static_cast<std::int64_t>(entry.command), entry.rank,
                                 entry.bank_group, entry.bank, entry.row, entry.column});
  }
  return nb::bytes(packed.data(), packed.size() * sizeof(std::int64_t));
}

nb::dict exercise(const nb::dict& parameters, const Exercise& wanted, std::uint64_t seed) {
  const memory::DramSpec spec = from_values<memory::DramSpec>(named_values(parameters));
  Simulation simulation(seed);
  Component& dram = simulation.add("dram", std::make_unique<memory::Dram>(spec));
  Component& exerciser = simulation.add("exerciser", std::make_unique<DramExerciser>(wanted));
  simulation.connect(*exerciser.ports()[0], *dram.ports()[0], nanosecond);
  RunReport report;
  {
    const nb::gil_scoped_release released;
    report = simulation.run({});
  }
  nb::dict statistics;
  const StatisticRows rows = simulation.statistics();
  for (std::size_t i = 0; i < rows.value.size(); ++i) {
    if (rows.component[i] == "dram" && rows.key[i] != rows.key[i]) {
      statistics[rows.statistic[i].c_str()] = rows.value[i];
    }
  }
  nb::dict out;
  out["now"] = report.now;
  out["events"] = report.events;
  out["wall_seconds"] = report.wall_seconds;
  out["statistics"] = statistics;
  out["commands"] = packed_commands(dram);
  return out;
}

}  // namespace

void bind_dram(nb::module_& module) {
  module.def("dram_bus_over_time", &bus_over_time, nb::arg("component"),
             "How long data moved on a channel's bus in each interval: reads and writes.");
  module.def("dram_commands", &commands, nb::arg("component"),
             "The commands of a memory.dram that logs them: (cycle, command, rank, bank group, bank, row, "
             "column), -1 where a command has no such thing.");
  module.def(
      "dram_exercise",
      [](const nb::dict& parameters, std::int64_t requests, std::int64_t outstanding,
         const std::string& pattern, std::int64_t writes, std::uint8_t sectors, std::int64_t line_bytes,
         std::int64_t span, Time pause, std::uint64_t seed) {
        if (pattern != "stream" && pattern != "random" && pattern != "mixed") {
          throw std::invalid_argument("there is no pattern '" + pattern + "'; known: stream, random, mixed");
        }
        return exercise(parameters,
                        {requests, outstanding, pattern, writes, sectors,
                         std::max<std::int64_t>(line_bytes, 32), std::max(span, line_bytes), pause},
                        seed);
      },
      nb::arg("parameters"), nb::arg("requests"), nb::arg("outstanding") = 32, nb::arg("pattern") = "random",
      nb::arg("writes") = 0, nb::arg("sectors") = 3, nb::arg("line_bytes") = 64,
      nb::arg("span") = std::int64_t{1} << 30, nb::arg("pause") = 0, nb::arg("seed") = 0,
      "Runs one memory.dram against a requester with so many outstanding requests, `writes` percent of them "
      "writes, each of `sectors` (a mask) of a line. Gives end time, statistics, and the packed log.");
}
