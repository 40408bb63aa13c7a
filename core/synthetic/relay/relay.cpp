// SPDX-License-Identifier: Apache-2.0
#include "synthetic/relay/relay.hpp"

#include "engine/registry.hpp"

namespace manyscale::synthetic {

namespace {
const Registered<Relay> registered{"synthetic.relay", "Passes tokens on at its clock, as credits allow."};
}

Relay::Relay(const Spec& spec) : spec_(spec), clock_(*this, period_of(spec.clock)) {
  declare(statistics_);
  in_.on_receive<&Relay::receive>();
  out_.on_receive<&Relay::refill>();
  clock_.on_tick<&Relay::tick>();
}

void Relay::start() {
  if (in_.width() > 0) in_.send(Credit{spec_.slots});
  for (std::int64_t i = 0; i < spec_.tokens; ++i) held_.push_back({Token{spec_.hops, 0}, false});
  if (spec_.tokens > 0) clock_.wake();
}

void Relay::receive(const Token& token, std::uint32_t) {
  held_.push_back({token, true});
  clock_.wake();
}

void Relay::refill(const Credit& credit, std::uint32_t) {
  credits_ += credit.slots;
  if (!held_.empty()) clock_.wake();
}

Cycle Relay::tick(Cycle now_cycle) {
  if (held_.empty()) return Clock::asleep;
  Held& first = held_.front();
  const bool last_hop = first.token.hops_left == 0;
  if (!last_hop && credits_ == 0) {
    ++statistics_.stalled;
    return Clock::asleep;  // a credit wakes it
  }
  if (last_hop) {
    ++statistics_.retired;
    statistics_.age.record(now() - first.token.born);
  } else {
    --credits_;
    ++statistics_.passed;
    out_.send(Token{first.token.hops_left - 1, first.token.born});
  }
  if (Timeline* lines = timeline()) {
    lines->span(lines->name(last_hop ? "retire" : "pass"), now(), now() + clock_.period());
    lines->counter(lines->name("held"), now(), static_cast<double>(held_.size()));
  }
  if (first.owes_credit) in_.send(Credit{1});
  held_.pop_front();
  statistics_.waiting.set(static_cast<double>(held_.size()));
  return held_.empty() ? Clock::asleep : now_cycle + 1;
}

std::vector<Wait> Relay::waits() const {
  if (held_.empty()) return {};
  const std::string what = std::to_string(held_.size()) +
                           (held_.size() == 1 ? " token waits" : " tokens wait") +
                           " for a credit at port output";
  return {{what, out_.width() > 0 ? out_.lanes()[0].peer->owner().name() : "nobody (not connected)"}};
}

}  // namespace manyscale::synthetic
