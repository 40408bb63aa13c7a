// SPDX-License-Identifier: Apache-2.0
// Faults one at a time against what nvprof showed of a GeForce GTX 1080 Ti (micro-benchmarks
// getHWPrefetcherP1, P2, P3, largePageBoundary and managedAllocRoundUp of gpgpu-sim_UVMSmart): the same
// transfers in the same order, and each fault's time within 10%.
#include "test_uvm.hpp"

using namespace manyscale;
using namespace manyscale::gpu;
using namespace manyscale::gpu::test;

namespace {

struct Fault {
  std::uint64_t offset_kib;
  double microseconds;
  std::vector<Moved> transfers;
};

void same_as_hardware(const std::string& name, std::uint64_t bytes, const std::vector<Fault>& faults) {
  Machine machine(logged_spec(), {bytes});
  std::vector<Access> accesses;
  for (const Fault& fault : faults) accesses.push_back({kBase + fault.offset_kib * kKib, false, 0});
  const StandInSm& sm = machine.add_sm({accesses});
  machine.run();
  std::vector<Moved> expected;
  for (const Fault& fault : faults)
    expected.insert(expected.end(), fault.transfers.begin(), fault.transfers.end());
  check_moves(machine.moved(PageEventKind::to_device), expected, name);
  std::size_t batch = 0;
  for (const PageEvent& event : machine.uvm->log()) {
    if (event.kind != PageEventKind::batch) continue;
    const Fault& fault = faults[batch++];
    const double measured = fault.microseconds;
    check_between(static_cast<double>(event.end - event.begin) / microsecond, 0.9 * measured, 1.1 * measured,
                  name + ", fault at " + std::to_string(fault.offset_kib) + " KiB");
  }
  check_equal(static_cast<std::int64_t>(batch), static_cast<std::int64_t>(faults.size()), name + ", faults");
  // What the SM waits for is the driver, and a few hundred nanoseconds of walks and messages.
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const AccessOutcome& outcome = sm.outcomes[0][i];
    check(outcome.faulted, name + ": the access faults");
    check_between(static_cast<double>(outcome.done - outcome.asked) / microsecond,
                  0.9 * faults[i].microseconds, 1.1 * faults[i].microseconds + 0.3,
                  name + ", as the SM sees it");
  }
}

TEST(first_pattern) {
  same_as_hardware("P1", 2 * kMib,
                   {{0, 183.74, {{0, 4}, {4, 60}}},
                    {64, 25.22, {{64, 4}, {68, 60}}},
                    {128, 31.84, {{128, 4}, {132, 124}}},
                    {256, 49.28, {{256, 4}, {260, 252}}},
                    {512, 84.38, {{512, 4}, {516, 508}}},
                    {1024, 157.02, {{1024, 4}, {1028, 1020}}}});
}

TEST(second_pattern) {
  same_as_hardware("P2", 2 * kMib,
                   {{64, 175.84, {{64, 4}, {68, 60}}},
                    {192, 25.57, {{192, 4}, {196, 60}}},
                    {0, 47.84, {{0, 4}, {4, 60}, {128, 64}}},
                    {256, 50.27, {{256, 4}, {260, 252}}},
                    {512, 84.80, {{512, 4}, {516, 508}}},
                    {1024, 156.42, {{1024, 4}, {1028, 1020}}}});
}

TEST(third_pattern) {
  same_as_hardware("P3", 2 * kMib,
                   {{64, 191.94, {{64, 4}, {68, 60}}},
                    {192, 24.61, {{192, 4}, {196, 60}}},
                    {320, 23.62, {{320, 4}, {324, 60}}},
                    {448, 23.55, {{448, 4}, {452, 60}}},
                    {0, 58.53, {{0, 4}, {4, 60}, {128, 64}, {256, 64}, {384, 64}}},
                    {512, 84.38, {{512, 4}, {516, 508}}},
                    {1024, 158.24, {{1024, 4}, {1028, 1020}}}});
}

TEST(trees_end_at_large_pages) {
  same_as_hardware("largePageBoundary", 6 * kMib,
                   {{0, 188.99, {{0, 4}, {4, 60}}},
                    {64, 25.12, {{64, 4}, {68, 60}}},
                    {128, 32.45, {{128, 4}, {132, 124}}},
                    {256, 48.93, {{256, 4}, {260, 252}}},
                    {512, 83.84, {{512, 4}, {516, 508}}},
                    {1024, 158.18, {{1024, 4}, {1028, 1020}}},
                    {2048, 57.66, {{2048, 4}, {2052, 60}}},
                    {2112, 22.08, {{2112, 4}, {2116, 60}}},
                    {2176, 31.42, {{2176, 4}, {2180, 124}}},
                    {2304, 54.85, {{2304, 4}, {2308, 252}}},
                    {2560, 83.46, {{2560, 4}, {2564, 508}}},
                    {3072, 155.10, {{3072, 4}, {3076, 1020}}},
                    {4096, 55.36, {{4096, 4}, {4100, 60}}},
                    {4160, 21.73, {{4160, 4}, {4164, 60}}},
                    {4224, 30.30, {{4224, 4}, {4228, 124}}},
                    {4352, 48.03, {{4352, 4}, {4356, 252}}},
                    {4608, 82.37, {{4608, 4}, {4612, 508}}},
                    {5120, 154.43, {{5120, 4}, {5124, 1020}}}});
}

TEST(allocations_are_rounded_up) {
  check_equal(static_cast<std::int64_t>(managed_bytes(2 * kMib + 192 * kKib)),
              static_cast<std::int64_t>(2 * kMib + 256 * kKib), "2 MiB + 192 KiB");
  check_equal(static_cast<std::int64_t>(managed_bytes(4 * kMib + 192 * kKib)),
              static_cast<std::int64_t>(4 * kMib + 256 * kKib), "4 MiB + 192 KiB");
  check_equal(static_cast<std::int64_t>(managed_bytes(1)), static_cast<std::int64_t>(64 * kKib), "1 B");
  check_equal(static_cast<std::int64_t>(managed_bytes(2 * kMib)), static_cast<std::int64_t>(2 * kMib),
              "2 MiB");
  check_equal(static_cast<std::int64_t>(managed_bytes(2 * kMib - 1)), static_cast<std::int64_t>(2 * kMib),
              "a byte less than 2 MiB");
  same_as_hardware("managedAllocRoundUp", 2 * kMib + 192 * kKib,
                   {{0, 173.73, {{0, 4}, {4, 60}}},
                    {64, 25.50, {{64, 4}, {68, 60}}},
                    {128, 32.03, {{128, 4}, {132, 124}}},
                    {256, 49.25, {{256, 4}, {260, 252}}},
                    {512, 96.38, {{512, 4}, {516, 508}}},
                    {1024, 158.88, {{1024, 4}, {1028, 1020}}},
                    {2048, 93.57, {{2048, 4}, {2052, 60}}},
                    {2112, 25.66, {{2112, 4}, {2116, 60}}},
                    {2176, 34.34, {{2176, 4}, {2180, 124}}}});
}

}  // namespace
