// SPDX-License-Identifier: Apache-2.0
// How a rank goes through its operations, until it has to wait, computes or is done.
#include <algorithm>
#include <utility>

#include "mpi/host.hpp"

namespace manyscale::mpi {

namespace {
// Noted for a timeline per node, so that a long run of a traced rank does not fill the memory.
constexpr std::size_t most_spans = 4'000'000;
}  // namespace

void Host::resumed(const std::uint32_t& number) {
  Rank& rank = ranks_[number];
  if (rank.paused != none) {
    rank.state = Rank::State::running;
    if (!take_part(rank, std::exchange(rank.paused, none))) return;
  }
  advance(rank);
}

void Host::advance(Rank& rank) {
  if (!flows_.empty()) return advance_flow(rank);
  const auto& operations = job_.program.operations;
  rank.state = Rank::State::running;
  for (int budget = most_at_once;;) {
    if (rank.operation >= operations.size() || operations[rank.operation].kind == OperationKind::end) {
      rank.state = Rank::State::done;
      rank.end = rank.time;
      drain(rank);
      return;
    }
    if (--budget == 0) {
      pause(rank);
      return;
    }
    const Operation& operation = operations[rank.operation];
    count_begun(operation);
    if (operation.mask >= 0 && operation.kind != OperationKind::branch && value(rank, operation.mask) == 0) {
      rank.operation = operation.kind == OperationKind::loop_begin
                           ? static_cast<std::uint32_t>(operation.target) + 1
                           : rank.operation + 1;
      continue;
    }
    rank.call_began = rank.time;
    if (!execute(rank, operation)) return;
  }
}

// The operation is over.
void Host::next(Rank& rank) {
  if (rank.traced && rank.time > rank.call_began) {
    std::vector<Span>& spans = noting().spans;
    if (spans.size() < most_spans) spans.push_back({rank.world, rank.operation, rank.call_began, rank.time});
  }
  ++rank.operation;
}

// Gives way to others until the rank's own time; false, as it does not go on at once.
bool Host::pause(Rank& rank) {
  rank.state = Rank::State::computing;
  resume_.after(rank.time - now(), index_of(rank));
  return false;
}

// Waits until `needs` completions have come; true where they came already.
bool Host::block(Rank& rank) {
  drain(rank);
  if (rank.needs == 0) {
    finish_call(rank);
    return true;
  }
  rank.state = Rank::State::waiting;
  return false;
}

void Host::finish_call(Rank& rank) {
  if (!flows_.empty()) return;  // a rank then waits for operations, not in one
  const Operation& operation = job_.program.operations[rank.operation];
  switch (operation.kind) {
    case OperationKind::wait:
    case OperationKind::waitall:
    case OperationKind::waitany:
    case OperationKind::waitsome:
      take_completed(rank, operation);
      break;
    default:
      break;
  }
  next(rank);
}

// True where the rank can go on with the next operation at once.
bool Host::execute(Rank& rank, const Operation& operation) {
  std::uint32_t* iterations = this->iterations(rank);
  switch (operation.kind) {
    case OperationKind::end:
      return true;
    case OperationKind::loop_begin: {
      const std::int64_t count = value(rank, operation.count);
      if (count > 0xffffffff) fail(rank, "a loop runs at most 4,294,967,295 times");
      if (count <= 0) {
        rank.operation = static_cast<std::uint32_t>(operation.target) + 1;
      } else {
        iterations[operation.depth] = 0;
        ++rank.operation;
      }
      return true;
    }
    case OperationKind::loop_end: {
      const Operation& begin = job_.program.operations[static_cast<std::size_t>(operation.target)];
      const std::int64_t count = value(rank, begin.count);
      if (++iterations[operation.depth] < count)
        rank.operation = static_cast<std::uint32_t>(operation.target) + 1;
      else
        ++rank.operation;
      return true;
    }
    case OperationKind::branch:
      if (operation.mask < 0 || value(rank, operation.mask) == 0)
        rank.operation = static_cast<std::uint32_t>(operation.target);
      else
        ++rank.operation;
      return true;
    case OperationKind::compute:
    case OperationKind::draw:
      return compute(rank, operation);
    case OperationKind::send:
    case OperationKind::synchronous_send:
    case OperationKind::receive:
    case OperationKind::isend:
    case OperationKind::issend:
    case OperationKind::ireceive:
      return point_to_point(rank, operation);
    case OperationKind::send_receive:
      return send_and_receive(rank, operation);
    case OperationKind::send_init:
    case OperationKind::receive_init:
      make_persistent(rank, operation);
      return true;
    case OperationKind::start:
      start_persistent(rank, operation);
      return true;
    case OperationKind::request_free:
      free_request(rank, operation);
      return true;
    case OperationKind::wait:
    case OperationKind::waitall:
    case OperationKind::waitany:
    case OperationKind::waitsome:
      return wait_for(rank, operation);
    case OperationKind::test:
    case OperationKind::testall:
    case OperationKind::testany:
    case OperationKind::testsome:
      return look(rank, operation);
    case OperationKind::probe:
    case OperationKind::iprobe:
      return probe(rank, operation);
    default:
      return collective(rank, operation);
  }
}

bool Host::compute(Rank& rank, const Operation& operation) {
  const Program& program = job_.program;
  std::uint32_t* occurrence = nullptr;
  if (operation.slot >= 0) occurrence = numbers_.occurrences(index_of(rank)) + value(rank, operation.slot);
  std::int64_t duration = 0;
  if (operation.kind == OperationKind::draw) {
    const std::int64_t pattern = value(rank, operation.bytes);
    if (pattern < 0 || static_cast<std::uint64_t>(pattern) >= program.patterns.size())
      fail(rank, "there is no compute pattern " + std::to_string(pattern));
    duration = program.patterns[static_cast<std::size_t>(pattern)].draw(
        job_.seed, rank.world, static_cast<std::uint32_t>(value(rank, operation.slot)), *occurrence);
    if (operation.count >= 0)
      duration = static_cast<Time>(static_cast<double>(duration) * 1e-6 *
                                   static_cast<double>(value(rank, operation.count)));
  } else if (program.columns[static_cast<std::size_t>(operation.bytes)].loop == Column::occurrence) {
    duration = program.value_at(operation.bytes, rank.world, *occurrence);
  } else {
    duration = value(rank, operation.bytes);
  }
  if (occurrence != nullptr) ++*occurrence;
  if (duration < 0) fail(rank, "a compute phase cannot last " + std::to_string(duration) + " fs");
  if (duration > never - 1 - rank.time) fail(rank, "the simulated time passes 9,223 s");
  rank.time += duration;
  rank.times.compute += duration;
  next(rank);
  return duration == 0 || pause(rank);
}

bool Host::point_to_point(Rank& rank, const Operation& operation) {
  const bool receiving =
      operation.kind == OperationKind::receive || operation.kind == OperationKind::ireceive;
  const bool blocking = operation.kind == OperationKind::send ||
                        operation.kind == OperationKind::synchronous_send ||
                        operation.kind == OperationKind::receive;
  const std::int64_t peer = value(rank, operation.peer);
  std::uint32_t* slot = blocking ? nullptr : &empty_slot(rank, operation);
  if (peer == nobody) {
    if (slot != nullptr) *slot = finished;
    next(rank);
    return true;
  }
  Transfer transfer = transfer_of(rank, operation, receiving);
  transfer.in_slot = !blocking;
  if (blocking) rank.needs = 1;
  if (receiving) {
    const std::uint32_t request = post_receive(rank, transfer);
    if (slot != nullptr) *slot = request;
  } else {
    const std::uint32_t request = post_send(rank, transfer);
    if (slot != nullptr)
      *slot = request;
    else if (request == finished)
      rank.needs = 0;
  }
  if (blocking && rank.needs > 0) return block(rank);
  next(rank);
  return true;
}

bool Host::send_and_receive(Rank& rank, const Operation& operation) {
  const std::int64_t to = value(rank, operation.peer);
  const std::int64_t from = value(rank, operation.from);
  rank.needs = (to != nobody) + (from != nobody);
  if (from != nobody) {
    Transfer transfer;
    transfer.peer = peer_of(rank, operation.communicator, from, true);
    transfer.tag = tag_of(rank, value(rank, operation.receive_tag), true);
    transfer.context = context_of(operation.communicator, false);
    post_receive(rank, transfer);
  }
  if (to != nobody && post_send(rank, transfer_of(rank, operation, false)) == finished) --rank.needs;
  return block(rank);
}

bool Host::wait_for(Rank& rank, const Operation& operation) {
  drain(rank);
  const auto [first, count] = slot_range(rank, operation);
  const std::uint32_t* slot = slots(rank) + first;
  const bool all = operation.kind == OperationKind::wait || operation.kind == OperationKind::waitall;
  std::uint32_t missing = 0;
  bool one_complete = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (slot_complete(slot[i])) {
      one_complete = true;
    } else if (slot_active(slot[i])) {
      ++missing;
    }
  }
  rank.needs = all ? missing : (missing > 0 && !one_complete);
  if (rank.needs == 0) {
    finish_call(rank);
    return true;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (slot_active(slot[i]) && !slot_complete(slot[i])) requests_[slot[i]].awaited = true;
  }
  rank.state = Rank::State::waiting;
  return false;
}

// Tests look at the moment at which they are called, so the rank must not be ahead of it.
bool Host::look(Rank& rank, const Operation& operation) {
  if (rank.time > now()) return pause(rank);
  drain(rank);
  charge(rank, job_.spec.poll_overhead);
  take_completed(rank, operation);
  next(rank);
  return true;
}

bool Host::probe(Rank& rank, const Operation& operation) {
  const bool blocking = operation.kind == OperationKind::probe;
  if (!blocking && rank.time > now()) return pause(rank);
  drain(rank);
  if (value(rank, operation.peer) != nobody && !found(rank, operation) && blocking) {
    rank.needs = 0;
    rank.probing = true;
    rank.state = Rank::State::waiting;
    return false;
  }
  charge(rank, job_.spec.poll_overhead);
  next(rank);
  return true;
}

// Whether a message is there that the rank's probe looks for.
bool Host::found(Rank& rank, const Operation& operation) {
  const Transfer transfer = transfer_of(rank, operation, true);
  Request wanted;
  wanted.peer = transfer.peer;
  wanted.tag = transfer.tag;
  wanted.context = transfer.context;
  const std::uint32_t number = matcher_.probe(index_of(rank), wanted);
  if (number == none) return false;
  rank.last_source = arrivals_[number].envelope.source;
  rank.last_tag = arrivals_[number].envelope.tag;
  return true;
}

}  // namespace manyscale::mpi
