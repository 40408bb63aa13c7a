// SPDX-License-Identifier: Apache-2.0
// On whose behalf caches and memory work: who is charged for lines that are written back, and when the number
// of one that has ended is used again.
#include "memory/origins/origins.hpp"

#include "test_memory_machine.hpp"

using namespace manyscale;
using namespace manyscale::memory;
using namespace manyscale::memory::test;
using namespace manyscale::test;

namespace {

// Sends messages at given times.
class Requester final : public Component {
 public:
  struct Request {
    Time time;
    Message message;
  };

  explicit Requester(std::vector<Request> requests) : requests_(std::move(requests)) {
    memory.on_receive<&Requester::receive>();
    timer_.on_expire<&Requester::send>();
  }
  void start() override {
    for (std::uint32_t i = 0; i < requests_.size(); ++i) timer_.after(requests_[i].time, i);
  }

  RequesterPort memory{*this, "memory", "the slice"};
  std::vector<Message> answers;

 private:
  void send(const std::uint32_t& number) { memory.send(requests_[number].message, 0); }
  void receive(const Message& message, std::uint32_t) { answers.push_back(message); }

  std::vector<Request> requests_;
  Timer<std::uint32_t> timer_{*this};
};

Message of(Origin origin, Op op, std::uint64_t line) {
  Message message;
  message.address = line * 128;
  message.op = op;
  message.sectors = 3;
  message.flags = op == Op::write ? Flag::wants_ack : 0;
  message.origin = origin;
  return message;
}

// A slice of two lines, which go to one set, and a channel 1 us away.
struct Machine {
  explicit Machine(std::vector<Requester::Request> requests) {
    auto sender = std::make_unique<Requester>(std::move(requests));
    requester = sender.get();
    Component& from = simulation.add("requester", std::move(sender));
    SharedCacheSpec cache;
    cache.cache.size = 256;
    cache.cache.ways = 2;
    parts.push_back(&simulation.add("slice", std::make_unique<SharedCache>(cache)));
    parts.push_back(&simulation.add("channel", std::make_unique<Dram>(DramSpec{})));
    simulation.connect(port(from, "memory"), port(*parts[0], "requesters"), nanosecond);
    simulation.connect(port(*parts[0], "memory"), port(*parts[1], "requests"), us);
  }

  Simulation simulation;
  Requester* requester = nullptr;
  std::vector<Component*> parts;
};

// One writes two lines, another then reads two others: it makes those of the first leave.
TEST(who_makes_a_line_leave_pays_for_it) {
  Machine machine({{0, of(1, Op::write, 0)},
                   {0, of(1, Op::write, 1)},
                   {us, of(2, Op::read, 2)},
                   {us, of(2, Op::read, 3)}});
  Origins origins(machine.parts);
  const Origin writer = origins.open(), reader = origins.open();
  check_equal(writer, 1, "the first number");
  machine.simulation.run({});
  check_equal(static_cast<std::int64_t>(machine.requester->answers.size()), 4, "answers");
  for (const Message& answer : machine.requester->answers)
    check_equal(answer.origin, answer.op == Op::data ? reader : writer, "an answer's origin");
  const Traffic written = origins.close(writer), read = origins.close(reader);
  check_equal(written.cache.writes.value(), 2, "writes of the first");
  check_equal(written.dram.writes.value(), 0, "what the first writes to memory");
  check_equal(written.cache.writebacks.value(), 0, "write-backs of the first");
  check_equal(read.cache.writebacks.value(), 2, "write-backs of the second");
  check_equal(read.dram.write_bytes.value(), 2 * 64, "what the second writes to memory");
  check_equal(read.dram.read_bytes.value(), 2 * 64, "what the second reads");
  check_equal(read.cache.bytes_in.value(), 2 * 64, "what comes to the slice");
  check_equal(read.dram.row_hits.value() + read.dram.row_misses.value() + read.dram.row_conflicts.value() +
                  read.dram.forwarded.value(),
              4, "bursts");
  check_equal(origins.other().dram.writes.value(), 0, "nobody writes");
  check_equal(origins.open(), writer, "the number that was given back first");
  check_equal(origins.open(), reader, "the other");
  check_equal(origins.open(), 3, "a new one");
}

// The run is left while a line is on its way to memory: its number waits, and its writes count for nobody.
TEST(a_number_is_not_used_again_before_its_writes_have_arrived) {
  Machine machine({{0, of(1, Op::write, 0)}, {0, of(1, Op::write, 1)}, {us, of(1, Op::write, 2)}});
  Origins origins(machine.parts);
  const Origin writer = origins.open();
  RunOptions until;
  until.until = us + us / 2;
  machine.simulation.run(until);
  const Traffic so_far = origins.close(writer);
  check_equal(so_far.cache.writebacks.value(), 1, "a line leaves");
  check_equal(so_far.dram.writes.value(), 0, "it has not arrived");
  check_equal(origins.open(), 2, "its number is not free");
  machine.simulation.run({});
  check_equal(origins.other().dram.writes.value(), 1, "it has arrived for nobody");
  check_equal(origins.open(), writer, "its number is free");
  check_equal(origins.other().dram.writes.value(), 1, "what was late stays nobody's");
  check_equal(origins.close(writer).dram.writes.value(), 0, "who has the number next starts at zero");
  const StatisticRows rows = machine.simulation.statistics();
  for (std::size_t i = 0; i < rows.value.size(); ++i)
    if (rows.component[i] == "channel" && rows.statistic[i] == "writes")
      check_equal(std::get<std::int64_t>(rows.value[i]), 1, "what the channel has counted");
}

TEST(what_does_not_count_by_origin_is_refused) {
  Machine machine({});
  std::vector<Component*> parts{machine.requester};
  check_refused([&] { Origins origins(parts); }, "requester");
}

}  // namespace
