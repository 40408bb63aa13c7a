// SPDX-License-Identifier: Apache-2.0
#include "engine/process_runner.hpp"

#include <algorithm>

namespace manyscale {

std::span<const std::byte> BytesReader::take(std::size_t size) {
  if (size > bytes_.size()) throw SimulationError("another process sent less than it had said");
  const auto front = bytes_.first(size);
  bytes_ = bytes_.subspan(size);
  return front;
}

ProcessRunner::ProcessRunner(Partition& own, const std::vector<Endpoint>& endpoints, Exchange& exchange)
    : own_(own),
      endpoints_(endpoints),
      exchange_(exchange),
      outgoing_(exchange.processes()),
      incoming_(exchange.processes()) {
  distributables_.reserve(endpoints.size());
  for (const Endpoint& endpoint : endpoints) {
    auto* distributable = dynamic_cast<Distributable*>(endpoint.component);
    distributables_.push_back(distributable != nullptr && distributable->has_payload() ? distributable
                                                                                       : nullptr);
  }
}

void ProcessRunner::run(Time lookahead, Time until, const RunWindow& run_window,
                        const std::function<bool()>& interrupted) {
  // The first barrier is about what the processes know before the first window.
  Report all = exchange(own_.stop_requested || own_.error);
  while (all.stop == 0 && all.next != never && all.next <= until) {
    ++windows_;
    run_window(own_, std::min(add_saturating(all.next, lookahead), add_saturating(until, 1)));
    all = exchange(own_.stop_requested || own_.error || interrupted());
  }
}

ProcessRunner::Report ProcessRunner::exchange(bool stop) {
  Partition::Outgoing& sent = own_.outgoing[own_.turn];
  const Report own{std::min(own_.queue->next_time(), sent.earliest), stop ? 1u : 0u};
  pack_events();
  exchange_.exchange({std::as_bytes(std::span(&own, 1)), outgoing_, records_, incoming_});
  for (auto& bytes : outgoing_) bytes.clear();
  Report all{never, 0};
  BytesReader reader(records_);
  for (std::uint32_t process = 0; process < exchange_.processes(); ++process) {
    const auto report = reader.take<Report>();
    all.next = std::min(all.next, report.next);
    all.stop |= report.stop;
  }
  for (const auto& bytes : incoming_) {
    if (!bytes.empty()) unpack_events(bytes);
  }
  return all;
}

// Events as they are, then what they refer to, in their order.
void ProcessRunner::pack_events() {
  Partition::Outgoing& sent = own_.outgoing[own_.turn];
  for (std::uint32_t process = 0; process < sent.to.size(); ++process) {
    auto& events = sent.to[process];
    if (events.empty()) continue;
    Bytes& bytes = outgoing_[process];
    put(bytes, static_cast<std::uint64_t>(events.size()));
    const auto plain = std::as_bytes(std::span(events));
    bytes.insert(bytes.end(), plain.begin(), plain.end());
    for (const Event& event : events) {
      Distributable* distributable = distributables_[event.target];
      if (distributable == nullptr) continue;
      payload_.clear();
      distributable->pack(event, payload_);
      put(bytes, static_cast<std::uint64_t>(payload_.size()));
      bytes.insert(bytes.end(), payload_.begin(), payload_.end());
    }
    events.clear();
  }
  sent.earliest = never;
  sent.receivers = 0;
}

void ProcessRunner::unpack_events(std::span<const std::byte> bytes) {
  BytesReader reader(bytes);
  const auto count = reader.take<std::uint64_t>();
  BytesReader events(reader.take(count * sizeof(Event)));
  for (std::uint64_t i = 0; i < count; ++i) {
    auto event = events.take<Event>();
    if (event.target >= endpoints_.size()) throw SimulationError("another process has built another system");
    if (Distributable* distributable = distributables_[event.target]; distributable != nullptr)
      distributable->unpack(event, reader.take(reader.take<std::uint64_t>()));
    own_.queue->push(event);
  }
}

std::vector<Bytes> share_with_all(Exchange& exchange, const Bytes& own) {
  std::vector<Bytes> outgoing(exchange.processes()), incoming(exchange.processes());
  for (std::uint32_t process = 0; process < exchange.processes(); ++process) {
    if (process != exchange.process()) outgoing[process] = own;
  }
  Bytes records;
  const std::byte nothing{};
  exchange.exchange({std::span(&nothing, 1), outgoing, records, incoming});
  incoming[exchange.process()] = own;
  return incoming;
}

}  // namespace manyscale
