// SPDX-License-Identifier: Apache-2.0
// Parameters of a memory channel. Timing parameters have their JEDEC names and count cycles of the command
// clock; machines/dram/ has them for common standards.
#pragma once
#include <string>

#include "engine/spec.hpp"
#include "engine/time.hpp"

namespace manyscale::memory {

// One memory channel: its backend, organisation, address mapping, timings and controller.
struct DramSpec {
  std::string backend = "timing";

  // Backend "simple".
  Time latency = 50 * nanosecond;
  std::int64_t bandwidth = 19'200'000'000;

  // Organisation: DDR4-2400, eight x8 devices of 8 Gb side by side.
  std::int64_t clock = 1'200'000'000;
  std::int64_t ranks = 1;
  std::int64_t bank_groups = 4;
  std::int64_t banks = 4;
  std::int64_t rows = 65536;
  std::int64_t row_bytes = 8192;
  std::int64_t burst_bytes = 64;
  Cycle burst_cycles = 4;
  bool separate_row_bus = false;

  // Where an address lies.
  std::string mapping = "row:rank:bank:column:bankgroup";
  bool bank_xor = false;
  std::int64_t interleave_channels = 1;
  std::int64_t interleave_bytes = 256;

  // Timings.
  Cycle trcd = 17;
  Cycle trcd_write = 17;
  Cycle trp = 17;
  Cycle tras = 39;
  Cycle trc = 56;
  Cycle tcl = 17;
  Cycle tcwl = 12;
  Cycle tccd_s = 4;
  Cycle tccd_l = 6;
  Cycle trrd_s = 4;
  Cycle trrd_l = 6;
  Cycle tfaw = 26;
  Cycle twtr_s = 3;
  Cycle twtr_l = 9;
  Cycle trtp = 9;
  Cycle twr = 18;
  Cycle turnaround = 2;
  Cycle trtrs = 2;
  Cycle trfc = 420;
  Cycle trefi = 9360;
  bool refresh_by_bank = false;
  Cycle refresh_offset = 0;

  // Controller.
  std::int64_t read_queue = 64;
  std::int64_t write_queue = 64;
  std::int64_t write_high = 48;
  std::int64_t write_low = 16;
  bool closed_page = false;
  Cycle starvation_limit = 4000;

  // For tests.
  bool keep_values = false;
  bool log_commands = false;
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::DramSpec> {
  using Spec = memory::DramSpec;
  using Whole = Field<Spec, std::int64_t>;
  using Flag = Field<Spec, bool>;
  using Text = Field<Spec, std::string>;
  static constexpr auto fields = std::tuple{
      Text{"backend", &Spec::backend, Unit::none,
           "simple (latency and bandwidth), banked (row buffers, analytic) or timing (every command)"},
      Whole{"latency", &Spec::latency, Unit::time, "simple: time from request to first data", 0, 1e15},
      Whole{"bandwidth", &Spec::bandwidth, Unit::bandwidth, "simple: bandwidth of the bus", 1, 1e15},
      Whole{"clock", &Spec::clock, Unit::frequency, "command clock", 1, 1e12},
      Whole{"ranks", &Spec::ranks, Unit::count, "ranks of the channel, a power of two", 1, 64},
      Whole{"bank_groups", &Spec::bank_groups, Unit::count, "bank groups of a rank, a power of two", 1, 64},
      Whole{"banks", &Spec::banks, Unit::count, "banks of a bank group, a power of two", 1, 64},
      Whole{"rows", &Spec::rows, Unit::count, "rows of a bank, a power of two", 1, 1 << 30},
      Whole{"row_bytes", &Spec::row_bytes, Unit::bytes, "bytes of a row over all devices, a power of two", 32,
            1 << 20},
      Whole{"burst_bytes", &Spec::burst_bytes, Unit::bytes, "bytes that a column command moves", 32, 256},
      Whole{"burst_cycles", &Spec::burst_cycles, Unit::cycles, "cycles that a burst takes on the data bus", 1,
            64},
      Flag{"separate_row_bus", &Spec::separate_row_bus, Unit::none,
           "row and column commands have a bus each, as in HBM"},
      Text{"mapping", &Spec::mapping, Unit::none,
           "fields of an address from high to low; a field may come in parts, the lower ones with their "
           "number of bits: row:rank:bank:column:bankgroup:column2"},
      Flag{"bank_xor", &Spec::bank_xor, Unit::none,
           "bank and bank group are XORed with all bits of the row, folded"},
      Whole{"interleave_channels", &Spec::interleave_channels, Unit::count,
            "channels that addresses are spread over; this one takes its share out", 1, 1 << 16},
      Whole{"interleave_bytes", &Spec::interleave_bytes, Unit::bytes,
            "bytes that go to one channel before the next", 32, 1 << 30},
      Whole{"trcd", &Spec::trcd, Unit::cycles, "activate to read", 1, 1e4},
      Whole{"trcd_write", &Spec::trcd_write, Unit::cycles, "activate to write", 1, 1e4},
      Whole{"trp", &Spec::trp, Unit::cycles, "precharge to activate", 1, 1e4},
      Whole{"tras", &Spec::tras, Unit::cycles, "activate to precharge", 1, 1e4},
      Whole{"trc", &Spec::trc, Unit::cycles, "activate to activate of one bank", 1, 1e4},
      Whole{"tcl", &Spec::tcl, Unit::cycles, "read to first data", 1, 1e4},
      Whole{"tcwl", &Spec::tcwl, Unit::cycles, "write to first data", 1, 1e4},
      Whole{"tccd_s", &Spec::tccd_s, Unit::cycles, "column to column, other bank group", 1, 1e4},
      Whole{"tccd_l", &Spec::tccd_l, Unit::cycles, "column to column, same bank group", 1, 1e4},
      Whole{"trrd_s", &Spec::trrd_s, Unit::cycles, "activate to activate, other bank group", 1, 1e4},
      Whole{"trrd_l", &Spec::trrd_l, Unit::cycles, "activate to activate, same bank group", 1, 1e4},
      Whole{"tfaw", &Spec::tfaw, Unit::cycles, "window that holds at most four activates of a rank", 1, 1e4},
      Whole{"twtr_s", &Spec::twtr_s, Unit::cycles, "end of write data to read, other bank group", 0, 1e4},
      Whole{"twtr_l", &Spec::twtr_l, Unit::cycles, "end of write data to read, same bank group", 0, 1e4},
      Whole{"trtp", &Spec::trtp, Unit::cycles, "read to precharge", 1, 1e4},
      Whole{"twr", &Spec::twr, Unit::cycles, "end of write data to precharge", 0, 1e4},
      Whole{"turnaround", &Spec::turnaround, Unit::cycles,
            "idle cycles on the data bus between read and write", 0, 1e4},
      Whole{"trtrs", &Spec::trtrs, Unit::cycles, "idle cycles on the data bus between two ranks", 0, 1e4},
      Whole{"trfc", &Spec::trfc, Unit::cycles, "time of a refresh, of a rank or of a bank", 1, 1e6},
      Whole{"trefi", &Spec::trefi, Unit::cycles, "interval of refreshes of a rank or a bank; 0: none", 0,
            1e9},
      Flag{"refresh_by_bank", &Spec::refresh_by_bank, Unit::none,
           "banks are refreshed one by one (REFSB of HBM), not all banks of a rank at once"},
      Whole{"refresh_offset", &Spec::refresh_offset, Unit::cycles,
            "how much later the first refresh is; channels that differ are not all away at the same time", 0,
            1e9},
      Whole{"read_queue", &Spec::read_queue, Unit::count, "read bursts that the scheduler sees", 1, 1024},
      Whole{"write_queue", &Spec::write_queue, Unit::count, "write bursts that the scheduler sees", 1, 1024},
      Whole{"write_high", &Spec::write_high, Unit::count, "queued write bursts at which a drain begins", 1,
            1024},
      Whole{"write_low", &Spec::write_low, Unit::count, "queued write bursts at which a drain ends", 0, 1024},
      Flag{"closed_page", &Spec::closed_page, Unit::none, "a row is closed once no queued burst wants it"},
      Whole{"starvation_limit", &Spec::starvation_limit, Unit::cycles,
            "age from which the oldest burst goes before row hits", 1, 1e9},
      Flag{"keep_values", &Spec::keep_values, Unit::none, "remembers the values written, by line address"},
      Flag{"log_commands", &Spec::log_commands, Unit::none, "timing: keeps every command, for tests"}};
};

}  // namespace manyscale
