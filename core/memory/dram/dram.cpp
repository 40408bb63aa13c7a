// SPDX-License-Identifier: Apache-2.0
#include "memory/dram/dram.hpp"

#include <array>
#include <string>

#include "engine/registry.hpp"

namespace manyscale::memory {

namespace {

const Registered<Dram> registered{"memory.dram", "One channel of DRAM with its memory controller."};

std::string op_name(Op op) {
  switch (op) {
    case Op::read:
      return "read";
    case Op::write:
      return "write";
    case Op::atomic:
      return "atomic";
    case Op::get_shared:
      return "get_shared";
    case Op::get_modified:
      return "get_modified";
    case Op::put:
      return "put";
    case Op::invalidate_ack:
      return "invalidate_ack";
    case Op::done:
      return "done";
    case Op::data:
      return "data";
    case Op::write_ack:
      return "write_ack";
    case Op::atomic_result:
      return "atomic_result";
    case Op::upgrade_ack:
      return "upgrade_ack";
    case Op::put_ack:
      return "put_ack";
    case Op::invalidate:
      return "invalidate";
    case Op::downgrade:
      return "downgrade";
  }
  return std::to_string(static_cast<int>(op));
}

std::string named(std::string_view name, std::int64_t value) {
  return std::string(name) + " (" + std::to_string(value) + ")";
}

// What no single field's range can say.
const DramSpec& checked(const DramSpec& spec) {
  const std::int64_t banks = spec.ranks * spec.bank_groups * spec.banks;
  if (banks > static_cast<std::int64_t>(most_banks)) {
    throw SimulationError("a channel has at most " + std::to_string(most_banks) + " banks, not " +
                          named("ranks", spec.ranks) + " x " + named("bank_groups", spec.bank_groups) +
                          " x " + named("banks", spec.banks));
  }
  if (spec.write_low >= spec.write_high) {
    throw SimulationError(named("write_low", spec.write_low) + " must be below " +
                          named("write_high", spec.write_high) + ": a drain goes from high to low");
  }
  if (spec.write_high > spec.write_queue) {
    throw SimulationError(named("write_high", spec.write_high) + " is more than " +
                          named("write_queue", spec.write_queue) + " holds, so no drain would begin");
  }
  if (spec.trc < spec.tras) {
    throw SimulationError(named("trc", spec.trc) + " is less than " + named("tras", spec.tras));
  }
  const std::array<std::array<std::pair<std::string_view, Cycle>, 2>, 3> pairs{
      {{{{"tccd_s", spec.tccd_s}, {"tccd_l", spec.tccd_l}}},
       {{{"trrd_s", spec.trrd_s}, {"trrd_l", spec.trrd_l}}},
       {{{"twtr_s", spec.twtr_s}, {"twtr_l", spec.twtr_l}}}}};
  for (const auto& [other, same] : pairs) {
    if (other.second > same.second) {
      throw SimulationError(named(other.first, other.second) + " is more than " +
                            named(same.first, same.second) + ": the same bank group is never faster");
    }
  }
  if (spec.trefi != 0 && spec.trefi <= spec.trfc + spec.trp + spec.tras) {
    throw SimulationError(named("trefi", spec.trefi) + " leaves no time between refreshes of " +
                          named("trfc", spec.trfc) + " cycles");
  }
  return spec;
}

}  // namespace

Dram::Dram(const Spec& spec) : spec_(checked(spec)), clock_(*this, period_of(spec.clock)) {
  declare(statistics_);
  requests_.on_receive<&Dram::receive>();
  clock_.on_tick<&Dram::tick>();
  if (spec.backend == "simple") {
    simple_ = std::make_unique<SimpleChannel>(spec);
  } else if (spec.backend == "banked") {
    banked_ = std::make_unique<BankedChannel>(spec);
  } else if (spec.backend == "timing") {
    controller_ = std::make_unique<DramController>(spec, statistics_, traffic_);
  } else {
    throw SimulationError("there is no backend '" + spec.backend + "'; known: simple, banked, timing");
  }
}

void Dram::receive(const Message& request, std::uint32_t lane) {
  const bool write = request.op == Op::write;
  if (!write && request.op != Op::read) {
    throw SimulationError(name() + " got '" + op_name(request.op) + "' for address " +
                          std::to_string(request.address) + "; memory takes read and write only");
  }
  if (request.sectors == 0) {
    throw SimulationError(name() + " got a " + (write ? "write" : "read") + " of no sectors for address " +
                          std::to_string(request.address));
  }
  Message answer = request;
  answer.op = write ? Op::write_ack : Op::data;
  answer.flags = 0;
  answer.value = 0;
  if (!write) answer.tag = static_cast<std::uint8_t>(Served::dram);
  answer.source = request.destination;
  answer.destination = request.source;
  const std::int64_t bytes = std::popcount(request.sectors) * std::int64_t{sector_bytes};
  DramCounts& counts = traffic_[request.origin];
  ++(write ? counts.writes : counts.reads);
  (write ? counts.write_bytes : counts.read_bytes) += bytes;
  if (spec_.keep_values) {
    // By the order of arrival: a later write is never seen by an earlier read, whatever order they are served
    // in.
    if (write) {
      values_[request.address] = request.value;
    } else if (const Value* found = values_.find(request.address)) {
      answer.value = *found;
    }
  }
  if (controller_) {
    const Cycle wanted = controller_->arrive(request.address, answer, write, request.has(Flag::wants_ack),
                                             lane, now(), clock_.cycle_at(now()));
    send_answers();
    if (wanted != never) clock_.wake_at(wanted);
  } else if (banked_) {
    serve_banked(request, answer, lane);
  } else {
    serve_simple(request, answer, lane);
  }
}

void Dram::serve_simple(const Message& request, const Message& answer, std::uint32_t lane) {
  const SimpleChannel::Served served = simple_->serve(request.sectors, now());
  statistics_.queueing_delay.record(served.started - now());
  traffic_[request.origin].bus_busy += served.moving;
  statistics_.note_bus(request.op == Op::write, served.started, served.moving);
  if (request.op == Op::read) {
    statistics_.read_latency.record(served.finished - now());
    requests_.send(answer, served.finished - now(), lane);
  } else if (request.has(Flag::wants_ack)) {
    requests_.send(answer, 0, lane);
  }
}

void Dram::serve_banked(const Message& request, const Message& answer, std::uint32_t lane) {
  const bool write = request.op == Op::write;
  const BankedChannel::Served served = banked_->serve(request.address, request.sectors, write,
                                                      clock_.cycle_at(now()), traffic_[request.origin]);
  statistics_.queueing_delay.record(clock_.edge(served.started) - now());
  statistics_.note_bus(write, clock_.edge(served.finished) - served.moving, served.moving);
  if (!write) {
    const Time delay = clock_.edge(served.finished) - now();
    statistics_.read_latency.record(delay);
    requests_.send(answer, delay, lane);
  } else if (request.has(Flag::wants_ack)) {
    requests_.send(answer, 0, lane);
  }
}

Cycle Dram::tick(Cycle now) {
  const Cycle wanted = controller_->tick(now);
  send_answers();
  return wanted;
}

void Dram::send_answers() {
  auto& answers = controller_->answers();
  for (const DramAnswer& answer : answers) {
    const Time delay = answer.cycle == DramAnswer::at_once ? 0 : clock_.edge(answer.cycle) - now();
    requests_.send(answer.message, delay, answer.lane);
  }
  answers.clear();
}

void Dram::settle() {
  if (controller_) controller_->catch_up(clock_.cycle());
  static_cast<DramCounts&>(statistics_) = traffic_.total();
}

const CommandLog& Dram::log() const {
  static const CommandLog empty;
  return controller_ ? controller_->log() : empty;
}

}  // namespace manyscale::memory
