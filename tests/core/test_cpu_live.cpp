// SPDX-License-Identifier: Apache-2.0
// Programs of a few instructions on the functional run and on the live source, with stand-in cores that take
// no time: what then remains are the latencies of links, system calls and wake-ups, whose sums are known.
#include <elf.h>

#include <cstring>
#include <memory>

#include "cpu/live/functional_run.hpp"
#include "cpu/live/live_source.hpp"
#include "engine/simulation.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using test::check;

namespace {

// Instructions for address 0x10100, and the bytes of memory it needs with its data.
struct Code {
  std::vector<std::uint32_t> words;
  std::size_t bytes;
};

// Writes a line and ends with 7.
//     li a7, 64
//     li a0, 1
//     la a1, text
//     li a2, 6
//     ecall
//     li a7, 94
//     li a0, 7
//     ecall
//   text: .ascii "hello\n"
const Code hello_program{{0x04000893, 0x00100513, 0x00000597, 0x01c58593, 0x00600613, 0x00000073, 0x05e00893,
                          0x00700513, 0x00000073, 0x6c6c6568, 0x00000a6f},
                         44};

// Makes ten system calls (getpid) and ends.
//     li s0, 10
//   loop:
//     li a7, 172
//     ecall
//     addi s0, s0, -1
//     bnez s0, loop
//     li a7, 94
//     li a0, 0
//     ecall
const Code calls_program{
    {0x00a00413, 0x0ac00893, 0x00000073, 0xfff40413, 0xfe041ae3, 0x05e00893, 0x00000513, 0x00000073}, 32};

// Sleeps for 5 microseconds and ends.
//     li a7, 101
//     la a0, duration
//     li a1, 0
//     ecall
//     li a7, 94
//     li a0, 0
//     ecall
//     .balign 8
//   duration: .dword 0, 5000
const Code sleep_program{{0x06500893, 0x00000517, 0x01c50513, 0x00000593, 0x00000073, 0x05e00893, 0x00000513,
                          0x00000073, 0x00000000, 0x00000000, 0x00001388},
                         52};

// A second thread waits for a futex, notes 40 and ends; the first sleeps for 20 microseconds, wakes it, waits
// for its end, and ends with what it noted and how many it woke: 41.
//     li a7, 220
//     li a0, 0x310f00
//     la a1, stack_top
//     la a2, child_id
//     li a3, 0
//     la a4, child_id
//     ecall
//     beqz a0, child
//     li a7, 101
//     la a0, duration
//     li a1, 0
//     ecall
//     la s0, word
//     li t0, 1
//     amoswap.w zero, t0, (s0)
//     li a7, 98
//     mv a0, s0
//     li a1, 1
//     li a2, 1
//     ecall
//     mv s1, a0
//   join:
//     la a0, child_id
//     lw a2, 0(a0)
//     beqz a2, joined
//     li a7, 98
//     li a1, 0
//     li a3, 0
//     ecall
//     j join
//   joined:
//     li a7, 94
//     la t0, result
//     lw a0, 0(t0)
//     add a0, a0, s1
//     ecall
//   child:
//     la a0, word
//     li a7, 98
//     li a1, 0
//     li a2, 0
//     li a3, 0
//     ecall
//     la t0, result
//     li t1, 40
//     sw t1, 0(t0)
//     li a7, 93
//     li a0, 0
//     ecall
//     .balign 8
//   duration: .dword 0, 20000
//   word: .word 0
//   child_id: .word 0
//   result: .word 0
//     .space 256
//     .balign 16
//   stack_top: .word 0
const Code pair_program{
    {0x0dc00893, 0x00311537, 0xf005051b, 0x00000597, 0x1f458593, 0x00000617, 0x0e060613, 0x00000693,
     0x00000717, 0x0d470713, 0x00000073, 0x06050e63, 0x06500893, 0x00000517, 0x0ac50513, 0x00000593,
     0x00000073, 0x00000417, 0x0ac40413, 0x00100293, 0x0854202f, 0x06200893, 0x00040513, 0x00100593,
     0x00100613, 0x00000073, 0x00050493, 0x00000517, 0x08850513, 0x00052603, 0x00060c63, 0x06200893,
     0x00000593, 0x00000693, 0x00000073, 0xfe1ff06f, 0x05e00893, 0x00000297, 0x06428293, 0x0002a503,
     0x00950533, 0x00000073, 0x00000517, 0x04850513, 0x06200893, 0x00000593, 0x00000613, 0x00000693,
     0x00000073, 0x00000297, 0x03428293, 0x02800313, 0x0062a023, 0x05d00893, 0x00000513, 0x00000073,
     0x00000000, 0x00000000, 0x00004e20, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000,
     0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000,
     0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000,
     0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000,
     0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000,
     0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000,
     0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000,
     0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000,
     0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000013},
    516};

// Spins on a word that a second thread sets, and ends with 5.
//     li a7, 220
//     li a0, 0x310f00
//     la a1, stack_top
//     la a2, child_id
//     li a3, 0
//     la a4, child_id
//     ecall
//     beqz a0, child
//     la t0, word
//   spin:
//     lw t1, 0(t0)
//     beqz t1, spin
//     li a7, 94
//     li a0, 5
//     ecall
//   child:
//     la t0, word
//     li t1, 1
//     sw t1, 0(t0)
//     li a7, 93
//     ecall
//     .balign 8
//   word: .word 0
//   child_id: .word 0
//     .space 256
//     .balign 16
//   stack_top: .word 0
const Code spin_program{{0x0dc00893, 0x00311537, 0xf005051b, 0x00000597, 0x16458593, 0x00000617, 0x05860613,
                         0x00000693, 0x00000717, 0x04c70713, 0x00000073, 0x02050063, 0x00000297, 0x03828293,
                         0x0002a303, 0xfe030ee3, 0x05e00893, 0x00500513, 0x00000073, 0x00000297, 0x01c28293,
                         0x00100313, 0x0062a023, 0x05d00893, 0x00000073, 0x00000013},
                        372};

// Makes a system call that is not there (socket).
//     li a7, 198
//     ecall
const Code unknown_program{{0x0c600893, 0x00000073}, 8};

// Stores to address 0x5008, where nothing is.
//     li t0, 0x5000
//     sd zero, 8(t0)
const Code wild_program{{0x000052b7, 0x0002b423}, 8};
LaunchSpec executable(const Code& code) {
  constexpr std::uint64_t base = 0x10000, code_at = 0x100;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_EXEC;
  header.e_machine = EM_RISCV;
  header.e_entry = base + code_at;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  LaunchSpec spec;
  spec.path = "test";
  spec.elf.resize(code_at + code.words.size() * 4);
  const Elf64_Phdr segment{PT_LOAD,         PF_R | PF_W | PF_X,   0,         base, base,
                           spec.elf.size(), code_at + code.bytes, page_bytes};
  std::memcpy(spec.elf.data(), &header, sizeof header);
  std::memcpy(spec.elf.data() + sizeof header, &segment, sizeof segment);
  std::memcpy(spec.elf.data() + code_at, code.words.data(), code.words.size() * 4);
  return spec;
}

// A core that takes every record at once.
class InstantCore final : public Component {
 public:
  InstantCore() { work.on_receive<&InstantCore::answered>(); }

  CorePort work{*this, "work", "the stream source"};
  std::uint64_t taken = 0;
  std::uint64_t sum = 0;  // of all that was in the records, in their order
  int sleeps = 0;
  Time ended = never;

 private:
  void answered(const StreamReply& answer, std::uint32_t) {
    switch (answer.type) {
      case StreamReply::Type::attach:
        ring_ = answer.ring;
        break;
      case StreamReply::Type::sleeps:
        ++sleeps;
        break;
      case StreamReply::Type::ends:
        ended = now();
        break;
      case StreamReply::Type::available:
        take(answer.number);
        break;
    }
  }
  void take(std::uint64_t end) {
    for (; taken < end; ++taken) {
      const Record& record = (*ring_)[taken];
      sum = mix64(sum + record.pc * 3 + record.address * 5 + record.thread);
      if (record.has(Trait::halts_stream)) {
        check(taken + 1 == end, "nothing comes after a record that halts the stream");
        work.send({taken, StreamRequest::Type::reached});
        ++taken;
        return;
      }
    }
    work.send({taken, StreamRequest::Type::wants_more});
  }

  RecordRing* ring_ = nullptr;
};

constexpr Time link = 3 * nanosecond;

struct Run {
  Run(const Code& code, const LiveSourceSpec& spec, std::uint32_t host_threads = 1, std::uint32_t ranks = 1) {
    source = &static_cast<LiveSource&>(simulation.add("program", std::make_unique<LiveSource>(spec)));
    for (std::int64_t i = 0; i < spec.cores; ++i) {
      cores.push_back(&static_cast<InstantCore&>(
          simulation.add("core[" + std::to_string(i) + "]", std::make_unique<InstantCore>())));
      simulation.connect(cores.back()->work, *source->ports()[0], link);
    }
    LaunchSpec launch = executable(code);
    launch.ranks = ranks;
    source->launch(launch);
    RunOptions options;
    options.threads = host_threads;
    simulation.run(options);
  }

  Simulation simulation{5};
  LiveSource* source = nullptr;
  std::vector<InstantCore*> cores;
};

// A program's failure, as the error and as it is kept.
template <class Program, class Action>
void fails(Program& program, Action&& run, const std::string& kind, std::uint64_t pc, std::uint64_t address) {
  try {
    run();
    check(false, kind + ": an error is thrown");
  } catch (const ProgramError& error) {
    check(program.failure() && program.failure()->what == error.failure().what,
          kind + ": the failure is kept");
    check(error.failure().kind == kind, kind + ": the kind, not " + error.failure().kind);
    check(error.failure().pc == pc, kind + ": the pc");
    check(error.failure().address == address, kind + ": the address or number");
  }
}

TEST(programs_run_functionally) {
  FunctionalRun hello(executable(hello_program));
  check(hello.run(), "it comes to its end");
  check(hello.kernel().processes()[0]->standard_output == "hello\n", "its output");
  check(hello.exit_status() == 7, "its exit status");
  check(hello.instructions() == 9, "its instructions");
  FunctionalRun pair(executable(pair_program), 2);
  check(pair.run() && pair.exit_status() == 41, "two threads and a futex");
  FunctionalRun spin(executable(spin_program), 1);
  check(spin.run() && spin.exit_status() == 5, "a thread that spins does not keep the other from running");
}

TEST(failures_say_where_and_what) {
  FunctionalRun unknown(executable(unknown_program));
  fails(unknown, [&] { unknown.run(); }, "system call", 0x10104, 198);
  FunctionalRun wild(executable(wild_program));
  fails(wild, [&] { wild.run(); }, "store", 0x10104, 0x5008);
  check(wild.exit_status() == 128 + 11, "as a shell tells the end by SIGSEGV");
}

TEST(a_run_can_be_stopped) {
  // The spinning thread has its core for itself here: it would spin for ever.
  Code alone = spin_program;
  alone.words[10] = 0x00000013;  // the thread is not made: nop instead of its ecall
  FunctionalRun run(executable(alone));
  int polls = 0;
  check(!run.run([&](std::uint64_t) { return ++polls < 3; }), "stopped");
  check(polls == 3, "asked three times");
}

// Ten calls: the first records arrive after a link, each call takes the way to the source, its latency and
// the way back, and the exit (the eleventh) the way there and that of the end back.
TEST(a_system_call_takes_its_latency) {
  for (const Time latency : {Time{0}, 150 * nanosecond}) {
    LiveSourceSpec spec;
    spec.system_call_latency = latency;
    const Run run(calls_program, spec);
    check(run.cores[0]->ended == link + 10 * (2 * link + latency) + 2 * link,
          "ten calls end after " + std::to_string(run.cores[0]->ended));
    check(run.cores[0]->taken == 44, "1 + 10 x 4 + 3 records");
  }
}

// The sleep begins when its call reaches the source, two links after the beginning.
TEST(a_sleep_lasts_as_long_as_asked_and_waking_takes_its_latency) {
  LiveSourceSpec spec;
  spec.wake_latency = 700 * nanosecond;
  const Run run(sleep_program, spec);
  const Time wakes = 2 * link + 5 * microsecond + spec.wake_latency;
  check(run.cores[0]->ended == wakes + 3 * link, "ends at " + std::to_string(run.cores[0]->ended));
  check(run.cores[0]->sleeps == 1, "the core slept once");
}

// The second thread starts a wake latency after clone, on the core after that of the first.
TEST(threads_on_two_cores_wake_each_other) {
  LiveSourceSpec spec;
  spec.cores = 2;
  const Run one(pair_program, spec, 1);
  check(one.source->exit_status() == 41, "the exit status");
  check(one.cores[1]->taken > 10, "the second thread ran on the second core");
  const Run two(pair_program, spec, 2);
  for (int i = 0; i < 2; ++i) {
    check(one.cores[i]->sum == two.cores[i]->sum, "the same records on two host threads");
    check(one.cores[i]->ended == two.cores[i]->ended, "the same end on two host threads");
  }
  // clone at 2 links; after its latency the sleep is called (2 links later) and lasts; the wake-up comes
  // after its latency, and then an atomic operation and the futex call. Woken then, the second thread ends (2
  // links) and so wakes the first, which ends in turn.
  const Time call = spec.system_call_latency, wake = spec.wake_latency;
  const Time futex = 2 * link + call + 2 * link + 20 * microsecond + wake + 2 * link + 2 * link;
  const Time child_ends = futex + wake + 2 * link;
  const Time ends = child_ends + wake + 2 * link + link;
  check(one.cores[0]->ended == ends,
        "ends at " + std::to_string(one.cores[0]->ended) + ", not " + std::to_string(ends));
}

// With one core the second thread gets its turn only when the slice of the first, which spins, is over.
TEST(threads_on_one_core_take_turns) {
  LiveSourceSpec spec;
  spec.time_slice = 50 * microsecond;
  const Run run(spin_program, spec);
  check(run.source->exit_status() == 5, "the exit status");
  check(run.cores[0]->ended > spec.time_slice, "not before the end of the slice");
  check(run.cores[0]->ended < spec.time_slice + 10 * microsecond, "soon after it");
}

TEST(failures_stop_a_simulation) {
  LiveSourceSpec spec;
  Simulation simulation(5);
  auto& source = static_cast<LiveSource&>(simulation.add("program", std::make_unique<LiveSource>(spec)));
  auto& core = static_cast<InstantCore&>(simulation.add("core[0]", std::make_unique<InstantCore>()));
  simulation.connect(core.work, *source.ports()[0], link);
  source.launch(executable(wild_program));
  fails(source, [&] { simulation.run({}); }, "store", 0x10104, 0x5008);
}

TEST(processes_run_side_by_side) {
  LiveSourceSpec spec;
  spec.cores = 4;
  const Run run(hello_program, spec, 1, 2);
  check(run.source->output(0).standard_output == "hello\n" &&
            run.source->output(1).standard_output == "hello\n",
        "output");
  check(run.cores[0]->taken == 9 && run.cores[2]->taken == 9, "each has half of the cores");
  check(run.cores[1]->taken == 0 && run.cores[3]->taken == 0, "one thread each");
}

}  // namespace
