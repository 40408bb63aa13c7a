// SPDX-License-Identifier: Apache-2.0
#include "cpu/riscv/interpreter.hpp"

#include <algorithm>
#include <limits>
#include <new>

#include "cpu/riscv/block_builder.hpp"
#include "cpu/riscv/host_float.hpp"
#include "cpu/riscv/machine.hpp"

namespace manyscale::cpu::riscv {

namespace {

// Decoded code beyond this is dropped, so that a program that jumps about cannot fill the host's memory.
constexpr std::size_t most_code_bytes = std::size_t{256} << 20;

// While it lives, the host rounds as the hart does; then the flags are brought to the hart and the host is as
// before.
class FloatScope {
 public:
  FloatScope(Hart& hart, Machine& machine) : hart_(hart), saved_(host_float::begin()) {
    host_float::set_rounding(rounding_of(hart));
    machine.unusual_rounding = rounding_of(hart) > Rounding::up;
  }
  ~FloatScope() {
    host_float::collect(hart_);
    host_float::restore(saved_);
  }
  FloatScope(const FloatScope&) = delete;
  FloatScope& operator=(const FloatScope&) = delete;

 private:
  Hart& hart_;
  host_float::Saved saved_;
};

}  // namespace

struct Interpreter::Implementation {
  // A block that is used once, with its operations.
  template <class Op>
  struct Shortened {
    Block<Op> block;
    std::vector<Op> operations;
  };

  explicit Implementation(AddressSpace& memory) : machine(memory), builder(memory) {
    machine.space_base = (std::uint64_t{memory.number()} + 1) << 40;
  }

  void drop_code() {
    machine.cache<PlainOperation>().forget();
    machine.cache<RecordingOperation>().forget();
  }

  // Forgets what changes of the address space have made wrong.
  void refresh() {
    if (version != machine.memory.version()) {
      version = machine.memory.version();
      machine.loads.forget();
      machine.stores.forget();
    }
    if (code_version != machine.memory.code_version()) {
      code_version = machine.memory.code_version();
      drop_code();
    }
  }

  // The block at a pc, decoded if need be; nullptr after a fault.
  template <class Op>
  const Block<Op>* block_at(std::uint64_t pc, const Op* unlinked) {
    BlockCache<Op>& cache = machine.cache<Op>();
    const Block<Op>* block = cache.find(pc);
    if (block == nullptr) {
      if (cache.bytes() > most_code_bytes) {
        cache.forget();
        unlinked = nullptr;
      }
      std::vector<Op>& operations = scratch<Op>();
      Block<Op> made;
      made.pc = pc;
      made.length = builder.build(pc, BlockBuilder::longest, operations, made.marked);
      if (made.length == 0) return nullptr;
      auto* memory = static_cast<std::byte*>(cache.allocate(64 + operations.size() * sizeof(Op)));
      auto* first = reinterpret_cast<Op*>(memory + 64);
      std::uninitialized_copy(operations.begin(), operations.end(), first);
      made.operations = first;
      block = new (memory) Block<Op>(made);
      cache.add(block);
    }
    cache.remember_jump(block);
    if (unlinked != nullptr) unlinked->link = block;
    return block;
  }

  template <class Op>
  std::vector<Op>& scratch() {
    return std::get<std::vector<Op>>(operations);
  }

  // A block that ends where the budget does.
  template <class Op>
  const Block<Op>* shortened(const Block<Op>& whole) {
    auto& [block, pieces] = std::get<Shortened<Op>>(shortened_blocks);
    block.pc = whole.pc;
    if constexpr (Op::records) {
      // Every instruction has its operation, so the first ones can be copied.
      pieces.clear();
      const Op* operation = whole.operations;
      while (operation->done <= machine.remaining) pieces.push_back(*operation++);
      pieces.push_back(BlockBuilder::going_on<Op>(operation->pc, machine.remaining));
      block.length = machine.remaining;
      block.marked = whole.marked;
    } else {
      block.length = builder.build(whole.pc, machine.remaining, pieces, block.marked);
    }
    block.operations = pieces.data();
    return &block;
  }

  template <class Op>
  Stop execute(Hart& hart, std::uint64_t budget, bool past_marker) {
    refresh();
    const FloatScope scope(hart, machine);
    budget = std::min<std::uint64_t>(budget, std::numeric_limits<std::int64_t>::max() / 2);
    machine.budget = machine.remaining = static_cast<std::int64_t>(budget);
    machine.unlinked = nullptr;
    const Stop stop = execute_blocks<Op>(hart, past_marker);
    hart.retired += static_cast<std::uint64_t>(machine.budget - machine.remaining);
    return stop;
  }

  template <class Op>
  Stop execute_blocks(Hart& hart, bool past_marker) {
    while (machine.remaining > 0) {
      const Block<Op>* block = block_at<Op>(hart.pc, static_cast<const Op*>(machine.unlinked));
      if (block == nullptr) {
        const auto cause = machine.memory.exhausted() ? Fault::Cause::exhausted : Fault::Cause::fetch;
        machine.fault = {cause, hart.pc, 0};
        return Stop::fault;
      }
      if (machine.remaining < block->length) block = shortened(*block);
      const Op* operation = block->operations + (block->marked && past_marker ? 1 : 0);
      past_marker = false;
      machine.unlinked = nullptr;
      while (operation != nullptr) operation = operation->run(operation, &hart, &machine);
      if (machine.pause == Pause::caller) return machine.stop;
      if (machine.pause == Pause::drop_code) drop_code();
    }
    return Stop::budget;
  }

  Machine machine;
  BlockBuilder builder;
  std::tuple<std::vector<PlainOperation>, std::vector<RecordingOperation>> operations;
  std::tuple<Shortened<PlainOperation>, Shortened<RecordingOperation>> shortened_blocks;
  std::uint64_t version = 0, code_version = 0;
};

Interpreter::Interpreter(AddressSpace& memory) : implementation_(std::make_unique<Implementation>(memory)) {}

Interpreter::~Interpreter() = default;

void Interpreter::watch(std::vector<std::uint64_t> addresses) {
  implementation_->builder.watch(std::move(addresses));
  implementation_->drop_code();
}

Stop Interpreter::run(Hart& hart, std::uint64_t budget, bool past_marker) {
  return implementation_->execute<PlainOperation>(hart, budget, past_marker);
}

Stop Interpreter::record(Hart& hart, std::uint64_t budget, RecordRing& ring, std::uint64_t& end,
                         std::uint64_t limit, Producers& producers, std::uint16_t thread, bool past_marker) {
  Machine& machine = implementation_->machine;
  machine.ring = &ring;
  machine.end = end;
  machine.producers = &producers;
  machine.thread = thread;
  const std::uint64_t room = limit > end ? limit - end : 0;
  const Stop stop = implementation_->execute<RecordingOperation>(hart, std::min(budget, room), past_marker);
  end = machine.end;
  return stop;
}

Stop Interpreter::step(Hart& hart) {
  return run(hart, 1, true);
}

void Interpreter::set_time(std::uint64_t cycles, std::uint64_t ticks) {
  implementation_->machine.cycles = cycles;
  implementation_->machine.ticks = ticks;
}

void Interpreter::drop_code() {
  implementation_->drop_code();
}

const Fault& Interpreter::fault() const {
  return implementation_->machine.fault;
}

const Marker& Interpreter::marker() const {
  return implementation_->machine.marker;
}

}  // namespace manyscale::cpu::riscv
