// SPDX-License-Identifier: Apache-2.0
// How messages are sent and received: eager (the data at once, through buffers) and rendezvous (the sender
// asks, the receiver answers when its receive is posted, the data follows).
#include <algorithm>

#include "mpi/host.hpp"

namespace manyscale::mpi {

// A request of the rank's present operation; a rank waits for those that are in no slot.
void Host::fill(Request& request, Request::Type type, const Rank& rank, const Transfer& transfer) const {
  request.type = type;
  request.bytes = transfer.bytes;
  request.value = transfer.value;
  request.rank = index_of(rank);
  request.peer = transfer.peer;
  request.tag = transfer.tag;
  request.context = transfer.context;
  request.activity = transfer.activity;
  request.operation = rank.operation;
  request.in_slot = transfer.in_slot;
  request.awaited = !transfer.in_slot;
}

// Begins a send; returns its request, or `finished` where it was complete at once.
std::uint32_t Host::post_send(Rank& rank, const Transfer& transfer) {
  return begin_send(rank, none, transfer);
}

std::uint32_t Host::begin_send(Rank& rank, std::uint32_t number, const Transfer& transfer) {
  const MpiSpec& spec = job_.spec;
  const bool local = is_local(transfer.peer);
  const SoftwareCosts costs = this->costs();
  const bool eager = !transfer.synchronous && costs.eager(transfer.bytes, local);
  Envelope envelope{.source = rank.world,
                    .destination = transfer.peer,
                    .step = eager ? Step::eager : Step::ask,
                    .tag = transfer.tag,
                    .context = transfer.context};
  envelope.word = job_.recording.values ? transfer.value : static_cast<std::uint64_t>(rank.time);
  const Time began = rank.time;
  charge(rank, costs.send(local));
  if (transfer.activity == none) ++rank.sends;
  ++(local ? counts_.local_messages : counts_.messages);
  (local ? counts_.local_bytes : counts_.bytes) += static_cast<std::int64_t>(transfer.bytes);
  if (!local) envelope.number = sent_numbers_(index_of(rank), transfer.peer)++;
  if (eager) {
    ++counts_.eager;
    charge(rank, costs.send_bytes(transfer.bytes, local));
    charge(rank, costs.copy(transfer.bytes, local));
    transmit(rank, envelope, transfer.bytes, rank.time, false);
    return finished;
  }
  ++counts_.rendezvous;
  if (number == none) number = requests_.take();
  fill(requests_[number], Request::Type::send, rank, transfer);
  requests_[number].began = began;
  requests_[number].moved = 0;
  envelope.request = number;
  envelope.pages = Envelope::pages_of(transfer.bytes);
  transmit(rank, envelope, static_cast<std::uint64_t>(spec.control_bytes), rank.time, false);
  return number;
}

// Begins a receive; it may be complete when this returns, but then only requests in slots still exist.
std::uint32_t Host::post_receive(Rank& rank, const Transfer& transfer) {
  const std::uint32_t number = requests_.take();
  fill(requests_[number], Request::Type::receive, rank, transfer);
  begin_receive(rank, number);
  return number;
}

void Host::begin_receive(Rank& rank, std::uint32_t number) {
  requests_[number].began = rank.time;
  charge(rank, job_.spec.post_overhead);
  const std::uint32_t found = matcher_.post(number);
  if (found == none) return;
  Arrival& arrival = arrivals_[found];
  if (!arrival.seen) {  // the processor will see to it, and then find its receive
    arrival.request = number;
    return;
  }
  const Envelope envelope = arrival.envelope;
  const std::uint64_t bytes = arrival.bytes;
  const bool local = arrival.local;
  arrivals_.release(found);
  charge(rank, job_.spec.match_overhead);
  if (envelope.step == Step::ask) {
    charge(rank, costs().control(envelope.pages));
    answer(rank, number, envelope, rank.time);
  } else {
    charge(rank, costs().copy(bytes, local));
    finish_receive(rank, number, envelope);
  }
}

// Tells the sender that the receive is there.
void Host::answer(Rank& rank, std::uint32_t number, const Envelope& ask, Time at) {
  const Envelope envelope{.source = rank.world,
                          .destination = ask.source,
                          .step = Step::answer,
                          .tag = ask.tag,
                          .context = ask.context,
                          .request = ask.request,
                          .number = number,
                          .word = static_cast<std::uint64_t>(at)};
  transmit(rank, envelope, static_cast<std::uint64_t>(job_.spec.control_bytes), at, false);
}

void Host::send_data(Rank& rank, std::uint32_t number, std::uint32_t receiver_request, Time at) {
  Request& request = requests_[number];
  const std::uint64_t rest = request.bytes - request.moved;
  const auto window = static_cast<std::uint64_t>(job_.spec.window);
  const std::uint64_t bytes = window == 0 ? rest : std::min(rest, window);
  const bool last = bytes == rest;
  const bool local = is_local(request.peer);
  request.moved += bytes;
  const Envelope envelope{
      .source = rank.world,
      .destination = request.peer,
      .step = last ? Step::data : Step::piece,
      .tag = request.tag,
      .context = request.context,
      .request = receiver_request,
      .number = number,
      .word = job_.recording.values ? request.value : static_cast<std::uint64_t>(request.began)};
  if (!job_.spec.offload) {
    charge(rank, costs().send_bytes(bytes, local));
    at = rank.time;
  }
  const Time left = transmit(rank, envelope, bytes, at, last);
  if (!local || !last) return;
  Envelope sent = envelope;
  sent.step = Step::sent;
  sent.destination = rank.world;
  sent.request = number;
  const std::uint32_t crossing = crossings_.take();
  crossings_[crossing] = {sent, 0, none};
  cross_.after(left - now(), crossing);
}

// Puts a message on its way at a time not before now; returns when it has left a rank that sends within the
// node.
Time Host::transmit(Rank& rank, const Envelope& envelope, std::uint64_t bytes, Time at, bool tell_sent) {
  if (!is_local(envelope.destination)) {
    nic_.send({nic_.node(), job_.node_of_rank[envelope.destination], bytes, envelope.pack(), tell_sent},
              add_saturating(at - now(), job_.spec.latency));
    return at;
  }
  // One rank's messages are copied one after another, so that none overtakes another.
  rank.channel_free = add_saturating(std::max(rank.channel_free, at), costs().local_copy(bytes));
  const std::uint32_t crossing = crossings_.take();
  crossings_[crossing] = {envelope, bytes, none};
  cross_.after(add_saturating(rank.channel_free, job_.spec.local.latency) - now(), crossing);
  return rank.channel_free;
}

}  // namespace manyscale::mpi
