// SPDX-License-Identifier: Apache-2.0
// Random programs of device and host on memories of all sizes down to one block of 2 MiB, against a reference
// model of the contents: each side has a version of each page, writes make a new one, transfers copy, and
// every read must see the newest. What moved is taken from the log; what the model believes is its own.
#include <algorithm>
#include <array>

#include "engine/random.hpp"
#include "test_uvm.hpp"

using namespace manyscale;
using namespace manyscale::gpu;
using namespace manyscale::gpu::test;

namespace {

// The contents of all pages, as they follow from what was logged and accessed.
class Contents {
 public:
  Contents(const UnifiedMemory& memory, std::size_t pages) : memory_(memory), pages_(pages) {}

  // An SM's access in the device's memory happens now.
  void device_access(const Access& access) {
    catch_up();
    Versions& page = at(access.address);
    if (access.write) page.device = ++page.newest;
    wrong_ += page.device != page.newest;
  }
  // All that was logged since the last time has happened.
  void catch_up() {
    for (; seen_ < memory_.log().size(); ++seen_) {
      const PageEvent& event = memory_.log()[seen_];
      for (std::uint32_t i = 0; i < event.pages && event.kind != PageEventKind::batch; ++i)
        apply(event, at(event.address + i * kPageBytes));
    }
  }
  // Reads that saw an old version, and versions that were lost.
  int wrong() const { return wrong_; }
  // At the end the newest version of each page is where the page table says it is.
  int lost() {
    catch_up();
    int lost = 0;
    for (const auto& [address, allocation] : memory_.ranges()->allocations()) {
      const std::vector<PageLocation> locations = memory_.locations(address, allocation.rounded);
      for (std::size_t i = 0; i < locations.size(); ++i) {
        const Versions& page = at(address + i * kPageBytes);
        const bool device = page.device == page.newest;
        const bool host = page.host == page.newest;
        lost += locations[i] == PageLocation::moving ||
                (locations[i] == PageLocation::nowhere && page.newest != 0) ||
                (locations[i] == PageLocation::device && !device) ||
                (locations[i] == PageLocation::host && !host) ||
                (locations[i] == PageLocation::both && !(device && host));
      }
    }
    return lost;
  }

 private:
  struct Versions {
    std::uint32_t newest = 0, device = 0, host = 0;
  };

  Versions& at(std::uint64_t address) { return pages_[(address - kBase) / kPageBytes]; }
  void apply(const PageEvent& event, Versions& page) {
    switch (event.kind) {
      case PageEventKind::to_device:
        page.device = page.host;
        break;
      case PageEventKind::populate:
        wrong_ += page.newest != 0;  // it had contents somewhere
        page.device = 0;
        break;
      case PageEventKind::to_host:
        page.host = page.device;
        break;
      case PageEventKind::drop:
        wrong_ += page.host != page.device;
        break;
      case PageEventKind::host_write:
      case PageEventKind::remote_write:
        (event.cause == PageEvent::Cause::host ? page.host : page.device) = ++page.newest;
        break;
      case PageEventKind::host_read:
      case PageEventKind::remote_read:
        wrong_ += (event.cause == PageEvent::Cause::host ? page.host : page.device) != page.newest;
        break;
      case PageEventKind::fault:
      case PageEventKind::batch:
      case PageEventKind::host_fault:
        break;
    }
  }

  const UnifiedMemory& memory_;
  std::vector<Versions> pages_;
  std::size_t seen_ = 0;
  int wrong_ = 0;
};

template <std::size_t count>
const char* one_of(Random& random, const std::array<const char*, count>& words) {
  return words[random.below(count)];
}

UnifiedMemorySpec random_spec(Random& random) {
  UnifiedMemorySpec spec = logged_spec();
  spec.prefetcher = one_of<5>(random, {"none", "random", "sequential_local", "locality_aware", "tree"});
  spec.oversubscribed_prefetcher = one_of<4>(random, {"same", "same", "none", "tree"});
  spec.eviction = one_of<6>(random, {"lru_page", "lru_block", "random", "sequential_local", "tree", "lfu"});
  spec.recency = one_of<2>(random, {"migration", "access"});
  spec.frames = one_of<3>(random, {"page", "block", "root"});
  spec.handling = one_of<2>(random, {"measured", "fixed"});
  spec.replay = one_of<2>(random, {"batch", "arrival"});
  spec.mapping = one_of<2>(random, {"page", "chunk"});
  spec.shootdown = one_of<3>(random, {"page", "page", "all"});
  spec.remote = one_of<5>(random, {"off", "off", "always", "oversubscribed", "adaptive"});
  spec.remote_threshold = 1 + static_cast<std::int64_t>(random.below(12));
  spec.curve = one_of<3>(random, {"measured", "arctangent", "line"});
  spec.capacity = static_cast<std::int64_t>((1 + random.below(4)) * kBlockBytes);
  spec.batch_size = std::int64_t{1} << random.below(9);
  spec.drop_clean = random.below(2) == 0;
  spec.first_touch = random.below(2) == 0;
  spec.free_share = random.below(3) == 0 ? 0.2 : 0;
  spec.reserved_share = random.below(3) == 0 ? 0.2 : 0;
  spec.outstanding_faults = random.below(4) == 0 ? 3 : 65536;
  spec.l2_tlb_entries = random.below(2) == 0 ? 0 : 64;
  spec.walkers = 1 + static_cast<std::int64_t>(random.below(16));
  spec.host_granularity = std::int64_t{4096} << random.below(10);
  spec.host_fault_latency = static_cast<Time>(random.below(20)) * microsecond;
  return spec;
}

void random_program(std::uint64_t seed) {
  Random random(seed, 17);
  const std::vector<std::uint64_t> sizes{1 + random.below(5 * kMib), 1 + random.below(5 * kMib), 64 * kKib};
  const UnifiedMemorySpec spec = random_spec(random);
  Machine machine(spec, sizes);
  std::vector<std::uint64_t> pages;  // addresses that the program uses: some hot, some anywhere
  const std::uint64_t spread = 1 + random.below(200);
  for (std::uint64_t i = 0; i < spread; ++i) {
    const std::size_t allocation = random.below(sizes.size());
    pages.push_back(machine.allocations[allocation] +
                    random.below(sizes[allocation]) / kPageBytes * kPageBytes);
  }
  for (std::uint64_t i = random.below(5); i > 0; --i) {
    const std::size_t allocation = random.below(sizes.size());
    const std::uint64_t from = random.below(sizes[allocation]);
    machine.uvm->advise(machine.allocations[allocation] + from, 1 + random.below(sizes[allocation] - from),
                        static_cast<Advice>(random.below(9)));
  }

  Contents contents(*machine.uvm, 20 * kBlockBytes / kPageBytes);
  for (std::uint64_t sm = 1 + random.below(3); sm > 0; --sm) {
    std::vector<std::vector<Access>> sequences(1 + random.below(40));
    for (auto& sequence : sequences)
      for (std::uint64_t i = random.below(30); i > 0; --i)
        sequence.push_back({pages[random.below(pages.size())] + random.below(kPageBytes),
                            random.below(3) == 0, static_cast<Time>(random.below(3000)) * microsecond});
    StandInSm& made = machine.add_sm(std::move(sequences));
    made.on_access = [&](const Access& access) { contents.device_access(access); };
  }
  std::vector<HostStep> steps;
  for (std::uint64_t i = random.below(30); i > 0; --i) {
    const std::size_t allocation = random.below(sizes.size());
    const std::uint64_t from = random.below(sizes[allocation]);
    steps.push_back({static_cast<RangeCommandKind>(random.below(4)), machine.allocations[allocation] + from,
                     1 + random.below(random.below(2) == 0 ? kPageBytes : sizes[allocation] - from),
                     static_cast<Time>(random.below(3000)) * microsecond});
  }
  const StandInHost& host = machine.add_host(std::move(steps));

  const std::string program = "program " + std::to_string(seed);
  const RunReport report = machine.run();
  check_equal(contents.wrong(), 0, program + ", old or lost contents");
  check_equal(contents.lost(), 0, program + ", pages that are not where they should be");
  check(report.now < 10 * second, program + " ends in bounded time");
  check(machine.uvm->lost_log_rows() == 0, program + ", all was logged");
  for (const Time done : host.done) check(done >= 0, program + ", the host's commands end");
  const UvmDriverStatistics& counted = machine.uvm->driver_statistics();
  check(counted.resident_pages.highest() <= static_cast<double>(spec.capacity / 4096),
        program + " never takes more frames than there are");
  // Nothing is counted twice: pages that came are there or have left.
  const std::int64_t came = counted.pages_faulted_in.value() + counted.pages_prefetched.value() +
                            counted.pages_commanded_in.value();
  std::int64_t resident = 0, to_device = 0;
  for (const auto& of : machine.uvm->allocations()) {
    resident += of.statistics.resident_pages;
    to_device += of.statistics.pages_to_device;
  }
  check_equal(to_device, came, program + ", pages that came, by allocation");
  std::int64_t there = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    for (const PageLocation location : {PageLocation::device, PageLocation::both})
      there += machine.pages_at(location, machine.allocations[i], managed_bytes(sizes[i]));
  check_equal(resident, there, program + ", pages that are there");
  check(
      counted.prefetched_used.value() + counted.prefetched_unused.value() <= counted.pages_prefetched.value(),
      program + ", prefetched pages are used or not");
}

std::uint64_t number_in(const char* variable, std::uint64_t otherwise) {
  const char* value = std::getenv(variable);
  return value == nullptr ? otherwise : std::stoull(value);
}

// `UVM_SEED=400 UVM_PROGRAMS=1 test_uvm_random` runs one program again.
TEST(random_programs_lose_nothing) {
  const std::uint64_t first = number_in("UVM_SEED", 1);
  const std::uint64_t last = first + number_in("UVM_PROGRAMS", 300);
  for (std::uint64_t seed = first; seed < last; ++seed) {
    try {
      random_program(seed);
    } catch (const std::exception& error) {
      check(false, "program " + std::to_string(seed) + ": " + error.what());
    }
  }
}

}  // namespace
