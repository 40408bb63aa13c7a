// SPDX-License-Identifier: Apache-2.0
// The request slots of ranks, and the operands of their operations.
#include <algorithm>

#include "mpi/host.hpp"

namespace manyscale::mpi {

void Host::fail(const Rank& rank, const std::string& what) const {
  const auto& operations = job_.program.operations;
  throw SimulationError("rank " + std::to_string(rank.world) + ", operation " +
                        std::to_string(rank.operation) + " (" +
                        std::string(kind_name(operations[rank.operation].kind)) + "): " + what);
}

std::uint32_t Host::peer_of(const Rank& rank, std::uint16_t communicator, std::int64_t wanted,
                            bool receiving) const {
  const Communicator& members = job_.program.communicators[communicator];
  if (wanted == any && receiving) return any_rank;
  if (wanted == last) return rank.last_source;
  if (!members.contains(rank.world))
    fail(rank, "it is not a member of communicator " + std::to_string(communicator));
  const Group group = members.group(rank.world);
  if (wanted < 0 || wanted >= group.size) {
    fail(rank, std::to_string(wanted) + " is not a rank of communicator " + std::to_string(communicator) +
                   ", which has " + std::to_string(group.size));
  }
  return group.world(static_cast<std::uint32_t>(wanted));
}

std::int32_t Host::tag_of(const Rank& rank, std::int64_t wanted, bool receiving) const {
  if (wanted == any && receiving) return any_tag;
  if (wanted == last) return rank.last_tag;
  if (wanted < 0 || wanted > 0x7fffffff)
    fail(rank, std::to_string(wanted) + " is not a tag (0 to 2147483647)");
  return static_cast<std::int32_t>(wanted);
}

std::uint64_t Host::bytes_of(const Rank& rank, std::int32_t column) const {
  const std::int64_t bytes = value(rank, column);
  if (bytes < 0 || static_cast<std::uint64_t>(bytes) > most_bytes)
    fail(rank, "a message cannot have " + std::to_string(bytes) + " bytes");
  return static_cast<std::uint64_t>(bytes);
}

Host::Transfer Host::transfer_of(const Rank& rank, const Operation& operation, bool receiving) const {
  Transfer transfer;
  transfer.peer = peer_of(rank, operation.communicator, value(rank, operation.peer), receiving);
  transfer.tag = tag_of(rank, value(rank, operation.tag), receiving);
  transfer.context = context_of(operation.communicator, false);
  if (!receiving) {
    transfer.bytes = bytes_of(rank, operation.bytes);
    transfer.value = rank.sends;
    transfer.synchronous =
        operation.kind == OperationKind::synchronous_send || operation.kind == OperationKind::issend;
  }
  return transfer;
}

std::uint32_t& Host::empty_slot(Rank& rank, const Operation& operation) {
  const std::int64_t number = value(rank, operation.slot);
  std::uint32_t& slot = slots(rank)[number];
  if (slot != none)
    fail(rank, "slot " + std::to_string(number) + " holds a request that nobody has waited for");
  return slot;
}

std::pair<std::uint32_t, std::uint32_t> Host::slot_range(const Rank& rank, const Operation& operation) const {
  const std::int64_t first = value(rank, operation.slot);
  const std::int64_t count = operation.count < 0 ? 1 : value(rank, operation.count);
  const std::int64_t most = job_.program.slots;
  if (first < 0 || count < 0 || first > most || count > most - first)
    fail(rank,
         "slots " + std::to_string(first) + " to " + std::to_string(first + count - 1) + " are not there");
  return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)};
}

bool Host::slot_complete(std::uint32_t content) const {
  return content == finished || (content != none && requests_[content].complete);
}

bool Host::slot_active(std::uint32_t content) const {
  return content == finished ||
         (content != none && (requests_[content].active || requests_[content].complete));
}

// A completed request has been seen: persistent ones stay for their next start.
void Host::clear_slot(std::uint32_t& content) {
  if (content != finished) {
    Request& request = requests_[content];
    request.complete = false;
    request.awaited = false;
    if (request.persistent) return;
    release(content);
  }
  content = none;
}

// Empties the slots that a wait or test has found complete: all of them, one, or those that are.
void Host::take_completed(Rank& rank, const Operation& operation) {
  const auto [first, count] = slot_range(rank, operation);
  std::uint32_t* slot = slots(rank) + first;
  if (operation.kind == OperationKind::testall && std::any_of(slot, slot + count, [&](auto content) {
        return slot_active(content) && !slot_complete(content);
      }))
    return;
  const bool one = operation.kind == OperationKind::waitany || operation.kind == OperationKind::testany;
  bool taken = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (slot_complete(slot[i]) && !(one && taken)) {
      clear_slot(slot[i]);
      taken = true;
    } else if (slot[i] < finished) {
      requests_[slot[i]].awaited = false;
    }
  }
}

void Host::make_persistent(Rank& rank, const Operation& operation) {
  const bool receiving = operation.kind == OperationKind::receive_init;
  std::uint32_t& slot = empty_slot(rank, operation);
  const bool idle_forever = value(rank, operation.peer) == nobody;
  Transfer transfer;
  if (idle_forever)
    transfer.peer = none;
  else
    transfer = transfer_of(rank, operation, receiving);
  transfer.in_slot = true;
  slot = requests_.take();
  Request& request = requests_[slot];
  fill(request, receiving ? Request::Type::receive : Request::Type::send, rank, transfer);
  request.persistent = true;
  request.active = false;
  next(rank);
}

void Host::start_persistent(Rank& rank, const Operation& operation) {
  const auto [first, count] = slot_range(rank, operation);
  for (std::uint32_t i = first; i < first + count; ++i) {
    const std::uint32_t number = slots(rank)[i];
    if (number >= finished || !requests_[number].persistent)
      fail(rank, "slot " + std::to_string(i) + " holds no persistent request");
    Request& request = requests_[number];
    if (request.active || request.complete) fail(rank, "slot " + std::to_string(i) + " is started already");
    if (request.peer == none) {
      request.complete = true;
      continue;
    }
    request.active = true;
    if (request.type == Request::Type::receive) {
      begin_receive(rank, number);
      continue;
    }
    const Transfer transfer{.peer = request.peer,
                            .tag = request.tag,
                            .context = request.context,
                            .bytes = request.bytes,
                            .value = rank.sends,
                            .in_slot = true};
    if (begin_send(rank, number, transfer) == finished) complete(number);
  }
  next(rank);
}

void Host::free_request(Rank& rank, const Operation& operation) {
  std::uint32_t& slot = slots(rank)[slot_range(rank, operation).first];
  if (slot < finished) {
    Request& request = requests_[slot];
    if (request.active && !request.complete) {
      request.freed = true;  // goes on by itself
    } else {
      release(slot);
    }
  }
  slot = none;
  next(rank);
}

}  // namespace manyscale::mpi
