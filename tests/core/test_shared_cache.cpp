// SPDX-License-Identifier: Apache-2.0
// How long requests keep the bank of a slice busy: reads, writes of whole sectors and of parts, atomic
// operations, and the answers of a line that several wait for.
#include "test_memory_machine.hpp"

using namespace manyscale;
using namespace manyscale::memory;
using namespace manyscale::memory::test;
using namespace manyscale::test;

namespace {

// Sends all its messages at once, time after time, and notes when each is answered.
class Requester final : public Component {
 public:
  Requester(std::vector<Message> messages, std::vector<Time> times)
      : messages_(std::move(messages)), times_(std::move(times)) {
    memory.on_receive<&Requester::receive>();
    timer_.on_expire<&Requester::send>();
  }
  void start() override {
    for (std::uint32_t i = 0; i < times_.size(); ++i) timer_.after(times_[i], i);
  }

  RequesterPort memory{*this, "memory", "the slice"};
  std::vector<Time> answers;

 private:
  void send(const std::uint32_t&) {
    for (const Message& message : messages_) memory.send(message, 0);
  }
  void receive(const Message&, std::uint32_t) { answers.push_back(now()); }

  std::vector<Message> messages_;
  std::vector<Time> times_;
  Timer<std::uint32_t> timer_{*this};
};

Message request(Op op, std::uint8_t sectors) {
  Message message;
  message.op = op;
  message.sectors = sectors;
  if (op == Op::write) message.flags = Flag::wants_ack;
  return message;
}

// Cycles of the slice between the answers to two requests of a line; in the L2, or the first time they ask.
std::int64_t cycles_between(const Message& message, bool cold = false) {
  Simulation simulation;
  SharedCacheSpec spec;
  spec.width = 32;
  spec.write_interval = 2;
  auto sender = std::make_unique<Requester>(std::vector<Message>(2, message), std::vector<Time>{0, 10 * us});
  Requester& requester = *sender;
  Component& from = simulation.add("requester", std::move(sender));
  Component& slice = simulation.add("slice", std::make_unique<SharedCache>(spec));
  Component& channel = simulation.add("channel", std::make_unique<Dram>(DramSpec{}));
  simulation.connect(port(from, "memory"), port(slice, "requesters"), nanosecond);
  simulation.connect(port(slice, "memory"), port(channel, "requests"), nanosecond);
  simulation.run({});
  check_equal(static_cast<std::int64_t>(requester.answers.size()), 4, "answers");
  const std::size_t first = cold ? 0 : 2;
  return (requester.answers[first + 1] - requester.answers[first]) / nanosecond;  // its clock has 1 GHz
}

TEST(a_bank_reads_so_many_bytes_a_cycle) {
  check_equal(cycles_between(request(Op::read, 1)), 1, "a sector");
  check_equal(cycles_between(request(Op::read, 15)), 4, "a line");
}

TEST(those_that_wait_for_one_line_take_its_bank_one_after_the_other) {
  check_equal(cycles_between(request(Op::read, 15), true), 4, "a line that comes from memory");
}

TEST(a_written_sector_takes_longer_and_one_in_part_is_read_first) {
  Message written = request(Op::write, 15);
  check_equal(cycles_between(written), 8, "a line of whole sectors");
  written.flags |= Flag::partial;
  written.tag = 15;
  check_equal(cycles_between(written), 12, "a line of parts");
  written.tag = 1;
  check_equal(cycles_between(written), 9, "a line with one part");
}

TEST(atomic_operations_take_their_rounds) {
  Message atomic = request(Op::atomic, 15);
  atomic.flags = Flag::rounds;
  atomic.tag = 16;
  check_equal(cycles_between(atomic), 3 + 16, "a line of words: the first sector is read before");
  atomic.sectors = 1;
  atomic.tag = 1;
  check_equal(cycles_between(atomic), 1, "one word");
  atomic.tag = 32;
  check_equal(cycles_between(atomic), 32, "a word that all lanes change");
}

}  // namespace
