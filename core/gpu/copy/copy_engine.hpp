// SPDX-License-Identifier: Apache-2.0
// A copy engine of a GPU: carries out copies one after the other.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "gpu/link/page_protocol.hpp"
#include "gpu/sched/command.hpp"
#include "memory/address_hash.hpp"
#include "memory/protocol.hpp"

namespace manyscale::gpu {

struct CopyEngineSpec {
  std::int64_t page_size = 1;
  std::int64_t pages_in_flight = 1;
  std::int64_t pages_ahead = 1;
  bool through_l2 = false;
  std::int64_t outstanding_lines = 1;
  std::int64_t slices = 1;
  std::int64_t line = 32;
  std::string slice_hash = "polynomial";
};

struct CopyEngineStatistics {
  Counter copies, bytes, lines_read, lines_written, busy;
};

// The lines of a cache that a run of bytes touches.
struct LineRun {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t line = 128;

  std::uint64_t count() const;
  std::uint64_t address(std::uint64_t index) const { return begin / line * line + index * line; }
  // Which sectors of one of the lines it touches, a bit each.
  std::uint8_t sectors(std::uint64_t index) const;
};

// Takes the most urgent of the copies that wait, and carries it out before it looks for the next. Pages from
// the host are written to the L2 line by line as they arrive; pages to the host are read some ahead of those
// on the link. A copy has ended when its last page has arrived and the L2 has confirmed its last line. Leaves
// out how an engine finds its way through virtual addresses.
class CopyEngine final : public Component {
 public:
  using Spec = CopyEngineSpec;

  explicit CopyEngine(const Spec& spec);
  std::vector<Wait> waits() const override;

  void attach(std::shared_ptr<CommandTable> commands) { commands_ = std::move(commands); }

 private:
  void receive(const CopyStart& start, std::uint32_t lane);
  void page_moved(const PageMoved& moved, std::uint32_t lane);
  void answered(const memory::Message& message, std::uint32_t lane);

  void begin_next();
  void end_if_complete();
  void move_values(Copy& copy) const;

  // --- Between host and device ---
  std::uint64_t pages() const;
  LineRun page_run(std::uint64_t page) const;
  void send_pages();
  void read_pages();

  // --- Within the device ---
  void move_lines();
  void line_read(std::uint64_t index);

  void request(memory::Op op, const LineRun& run, std::uint64_t index, std::uint64_t value);

  const Spec spec_;
  CopyEngineStatistics statistics_;
  Port<CopyProtocol, 1> scheduler_{*this, "scheduler", "what starts copies and hears of their end"};
  Port<PageProtocol, 0> link_{*this, "link", "the link to the host", Links::optional};
  memory::RequesterPort memory_{*this, "memory", "the network to the L2, by several links", Links::many};
  memory::SliceHash slices_;
  std::shared_ptr<CommandTable> commands_;

  UrgencyQueue waiting_;

  // --- The current copy ---
  bool busy_ = false;
  CommandId current_ = 0;
  Copy* copy_ = nullptr;
  memory::Origin origin_ = memory::nobody;
  std::uint64_t next_ = 0;       // page or line to begin
  std::uint64_t completed_ = 0;  // pages that have crossed the link
  std::int64_t on_link_ = 0;
  std::uint64_t unanswered_ = 0;           // lines
  std::deque<std::uint64_t> ready_pages_;  // read, and not yet on the link
  // Pages that are being read, which may end in any order; those with no line left are free.
  struct Reading {
    std::uint64_t page = 0;
    std::uint64_t lines = 0;  // that have not come
  };
  std::vector<Reading> reading_;
  LineRun from_;
  LineRun to_;
};

}  // namespace manyscale::gpu

namespace manyscale {

template <>
struct describe<gpu::CopyEngineSpec> {
  using S = gpu::CopyEngineSpec;
  static constexpr bool required = true;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"page_size", &S::page_size, Unit::bytes, "that cross the link together", 1,
                             4 << 20},
      Field<S, std::int64_t>{
          "pages_in_flight", &S::pages_in_flight, Unit::count,
          "pages of a copy on the link at the same time; with 1 each waits for the one before", 1, 1024},
      Field<S, std::int64_t>{"pages_ahead", &S::pages_ahead, Unit::count,
                             "pages on their way to the host that are read before the link can take them", 1,
                             1024},
      Field<S, bool>{"through_l2", &S::through_l2, Unit::none,
                     "whether copies from and to the host are traffic for crossbar, L2 and memory"},
      Field<S, std::int64_t>{"outstanding_lines", &S::outstanding_lines, Unit::count,
                             "outstanding lines of a copy within the device", 1, 1e6},
      Field<S, std::int64_t>{"slices", &S::slices, Unit::count, "slices of the L2", 1, 65536},
      Field<S, std::int64_t>{"line", &S::line, Unit::bytes, "of the L2", 32, 256},
      Field<S, std::string>{"slice_hash", &S::slice_hash, Unit::none,
                            "which slice a line is in: modulo, xor, polynomial or interleaved"}};
};

template <>
struct describe<gpu::CopyEngineStatistics> {
  using S = gpu::CopyEngineStatistics;
  static constexpr auto fields =
      std::tuple{Statistic<S, Counter>{"copies", &S::copies, "1", "copies completed"},
                 Statistic<S, Counter>{"bytes", &S::bytes, "B", "bytes of these copies"},
                 Statistic<S, Counter>{"lines_read", &S::lines_read, "1", "lines read from the L2"},
                 Statistic<S, Counter>{"lines_written", &S::lines_written, "1", "lines written to the L2"},
                 Statistic<S, Counter>{"busy", &S::busy, "fs", "time with a copy in progress"}};
};

}  // namespace manyscale
