// SPDX-License-Identifier: Apache-2.0
// What arrives at a host, and what its processors do with it.
#include "mpi/host.hpp"

#include <algorithm>

#include "network/network.hpp"

namespace manyscale::mpi {

Host::Host(const JobContext& job, network::Network& network, std::uint32_t node)
    : job_(job),
      nic_(*this, network, node),
      ranks_(job.first_of_node[node + 1] - job.first_of_node[node]),
      numbers_(job.program, ranks_.size()),
      matcher_(requests_, arrivals_, static_cast<std::uint32_t>(ranks_.size())) {
  nic_.on_arrival<&Host::arrived>();
  nic_.on_sent<&Host::sent>();
  resume_.on_expire<&Host::resumed>();
  cross_.on_expire<&Host::crossed>();
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    rank.world = job.ranks_by_node[job.first_of_node[node] + i];
    rank.operation = job.program.entry < 0
                         ? 0
                         : static_cast<std::uint32_t>(job.program.value_at(job.program.entry, rank.world, 0));
    rank.traced = !job.recording.timeline.empty() && job.recording.timeline[rank.world];
  }
}

void Host::start() {
  if (job_.program.dependencies.unordered) {
    flows_.resize(ranks_.size());
    for (const Rank& rank : ranks_) flows_[index_of(rank)].start(job_.program, rank.operation, rank.time);
  }
  for (Rank& rank : ranks_) advance(rank);
}

void Host::arrived(const network::Message& message) {
  const Envelope envelope = Envelope::unpack(message.header);
  if (envelope.step == Step::eager || envelope.step == Step::ask)
    take_in_order(envelope, message.bytes);
  else
    take(envelope, message.bytes, false);
}

void Host::take_in_order(const Envelope& envelope, std::uint64_t bytes) {
  const std::uint32_t here = job_.index_of_rank[envelope.destination];
  if (!order_.is_next(here, envelope, bytes)) return;
  take(envelope, bytes, false);
  if (order_.none_held()) [[likely]]
    return;
  while (const auto early = order_.release(here, envelope.source)) take(early->envelope, early->bytes, false);
}

void Host::crossed(const std::uint32_t& number) {
  const Crossing crossing = crossings_[number];
  crossings_.release(number);
  take(crossing.envelope, crossing.bytes, true);
}

void Host::sent(const network::Message& message) {
  Envelope envelope = Envelope::unpack(message.header);
  envelope.step = Step::sent;
  envelope.request = envelope.number;
  envelope.destination = envelope.source;
  take(envelope, message.bytes, false);
}

void Host::take(const Envelope& envelope, std::uint64_t bytes, bool local) {
  Rank& rank = ranks_[job_.index_of_rank[envelope.destination]];
  Arrival arrival{.envelope = envelope, .bytes = bytes, .rank = index_of(rank), .local = local};
  const bool matched_here = envelope.step == Step::eager || envelope.step == Step::ask;
  arrival.request = matched_here ? matcher_.match(arrival.rank, envelope) : envelope.request;
  if (job_.spec.offload) {
    if (envelope.step == Step::ask && arrival.request != none)
      return answer(rank, arrival.request, envelope, std::max(now(), requests_[arrival.request].began));
    if (envelope.step == Step::answer) return send_data(rank, envelope.request, envelope.number, now());
  }
  if (rank.state == Rank::State::waiting || rank.state == Rank::State::done) {
    process(rank, arrival, none);
    if (rank.state == Rank::State::waiting && rank.needs == 0 && !rank.probing) {
      finish_call(rank);
      advance(rank);
    }
    return;
  }
  const std::uint32_t number = arrivals_.take();
  arrivals_[number] = arrival;
  if (arrival.request == none) {
    matcher_.keep(number);
    // With offloading a message that nobody expects is put aside without the processor.
    if (job_.spec.offload && envelope.step == Step::ask) {
      arrivals_[number].seen = true;
      ++counts_.unexpected;
      return;
    }
  }
  (rank.last_in == none ? rank.first_in : arrivals_[rank.last_in].inbox_next) = number;
  rank.last_in = number;
}

// The processor sees to what came; `number` is none where it was not put aside.
void Host::process(Rank& rank, Arrival& arrival, std::uint32_t number) {
  const Envelope envelope = arrival.envelope;
  const MpiSpec& spec = job_.spec;
  if (rank.state == Rank::State::done)
    rank.time = std::max(rank.time, now());  // after its end; no longer accounted for
  else if (rank.time < now())
    idle(rank, arrival);
  const SoftwareCosts costs = this->costs();
  const Time overhead = costs.receive(arrival.local);
  switch (envelope.step) {
    case Step::eager:
    case Step::ask: {
      charge(rank, spec.match_overhead + (envelope.step == Step::eager ? overhead : 0));
      if (arrival.request == none) {
        ++counts_.unexpected;
        arrival.seen = true;
        if (number == none) {
          const std::uint32_t kept = arrivals_.take();
          arrivals_[kept] = arrival;
          matcher_.keep(kept);
        }
        if (rank.probing && found(rank, job_.program.operations[rank.operation])) rank.probing = false;
        return;
      }
      if (envelope.step == Step::ask) {
        charge(rank, costs.control(envelope.pages));
        answer(rank, arrival.request, envelope, rank.time);
        break;
      }
      [[fallthrough]];
    }
    case Step::data:
      if (envelope.step == Step::data) charge(rank, overhead);
      charge(rank, costs.receive_bytes(arrival.bytes, arrival.local));
      finish_receive(rank, arrival.request, envelope);
      break;
    case Step::piece: {
      charge(rank, overhead);
      charge(rank, costs.receive_bytes(arrival.bytes, arrival.local));
      Envelope ask = envelope;  // as the one that began it: its request is the sender's
      ask.request = envelope.number;
      answer(rank, arrival.request, ask, rank.time);
      break;
    }
    case Step::answer:
      charge(rank, costs.control(requests_[envelope.request].moved > 0
                                     ? 0
                                     : Envelope::pages_of(requests_[envelope.request].bytes)));
      send_data(rank, envelope.request, envelope.number, rank.time);
      break;
    case Step::sent:
      complete(envelope.request);
      break;
  }
  if (number != none) arrivals_.release(number);
}

void Host::drain(Rank& rank) {
  while (rank.first_in != none) {
    const std::uint32_t number = rank.first_in;
    rank.first_in = arrivals_[number].inbox_next;
    if (rank.first_in == none) rank.last_in = none;
    Arrival arrival = arrivals_[number];
    process(rank, arrival, number);
    // Unexpected ones stay, and are now known to the processor.
    if (arrival.request == none) arrivals_[number].seen = true;
  }
}

void Host::finish_receive(Rank& rank, std::uint32_t number, const Envelope& envelope) {
  Request& request = requests_[number];
  request.value = envelope.word;
  if (request.activity == none) {
    rank.last_source = envelope.source;
    rank.last_tag = envelope.tag;
    if (job_.recording.values)
      noting().completions.push_back(
          {rank.world, request.operation, envelope.source, envelope.tag, envelope.word});
  }
  if (!job_.recording.values) latencies_.record(rank.time - static_cast<Time>(envelope.word));
  complete(number);
}

void Host::complete(std::uint32_t number) {
  Request& request = requests_[number];
  if (request.type != Request::Type::collective && request.activity != none) {
    const std::uint32_t activity_number = request.activity;
    Activity& activity = activities_[activity_number];
    if (request.type == Request::Type::receive) activity.incoming += request.value;
    release(number);
    if (--activity.outstanding == 0 && activity.waiting) run_activity(activity_number, unlimited);
    return;
  }
  request.complete = true;
  request.active = false;
  Rank& rank = ranks_[request.rank];
  if (request.awaited && rank.needs > 0) --rank.needs;
  const std::uint32_t operation = request.operation;
  if (!request.in_slot || request.freed) release(number);
  if (!flows_.empty()) operation_ended(rank, operation);
}

void Host::release(std::uint32_t number) {
  requests_[number].context = none;
  requests_.release(number);
}

// The rank stood still until now; what came says whether its partner or the network kept it waiting.
void Host::idle(Rank& rank, const Arrival& arrival) {
  const Envelope& cause = arrival.envelope;
  const Time until = now();
  Time began = job_.recording.values ? until : static_cast<Time>(cause.word);
  std::uint32_t peer = cause.source;
  if (cause.step == Step::sent) began = rank.time;
  const Time partner = std::clamp(began, rank.time, until);
  rank.times.waiting += partner - rank.time;
  rank.times.transfer += until - partner;
  if (const std::uint32_t kept = job_.recording.waits_per_rank; kept > 0) {
    // Of a rendezvous whose receiver was the later of the two, the receive is the cause.
    if (cause.step == Step::data && requests_[arrival.request].began > began) {
      began = requests_[arrival.request].began;
      peer = rank.world;
    }
    noting().waits.add(index_of(rank), {until, began, peer, rank.operation}, ranks_.size(), kept);
  }
  rank.time = until;
}

}  // namespace manyscale::mpi
