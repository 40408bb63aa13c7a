// SPDX-License-Identifier: Apache-2.0
// A relay with credits: takes tokens on one side and hands them on at its clock, one a cycle, when the next
// stage has given it a credit. The smallest model with a clock, two roles, back pressure and, in a full ring,
// a deadlock.
#pragma once
#include <deque>

#include "engine/clock.hpp"
#include "engine/exchange.hpp"
#include "engine/port.hpp"

namespace manyscale::synthetic {

struct Token {
  std::int64_t hops_left = 0;
  Time born = 0;
};

struct Credit {
  std::int64_t slots = 1;
};

// Tokens go from producer to consumer, credits come back.
struct TokenProtocol {
  static constexpr std::string_view name = "token";
  static constexpr std::array<std::string_view, 2> roles{"producer", "consumer"};
  using First = Token;
  using Second = Credit;
};

struct RelaySpec {
  std::int64_t clock = 1'000'000'000;
  std::int64_t slots = 4;
  std::int64_t tokens = 0;
  std::int64_t hops = 100;
};

struct RelayStatistics {
  Counter passed;
  Counter retired;
  Counter stalled;
  Gauge waiting;
  Histogram age;
};

class Relay final : public Component, public Distributable {
 public:
  using Spec = RelaySpec;

  explicit Relay(const Spec& spec);
  void start() override;
  std::vector<Wait> waits() const override;

 private:
  struct Held {
    Token token;
    bool owes_credit;  // came over the link, so its slot belongs to the stage before
  };

  void receive(const Token& token, std::uint32_t lane);
  void refill(const Credit& credit, std::uint32_t lane);
  Cycle tick(Cycle now);

  const Spec spec_;
  RelayStatistics statistics_;
  Port<TokenProtocol, 1> in_{*this, "input", "where tokens come from", Links::optional};
  Port<TokenProtocol, 0> out_{*this, "output", "where tokens go next", Links::optional};
  Clock clock_;
  std::deque<Held> held_;
  std::int64_t credits_ = 0;
};

}  // namespace manyscale::synthetic

namespace manyscale {

template <>
struct describe<synthetic::Token> {
  using T = synthetic::Token;
  static constexpr auto fields = std::tuple{
      Field<T, std::int64_t>{"hops_left", &T::hops_left, Unit::count, "hops the token still has to make"},
      Field<T, Time>{"born", &T::born, Unit::time, "when it was made"}};
};

template <>
struct describe<synthetic::Credit> {
  using C = synthetic::Credit;
  static constexpr auto fields =
      std::tuple{Field<C, std::int64_t>{"slots", &C::slots, Unit::count, "slots that became free"}};
};

template <>
struct describe<synthetic::RelaySpec> {
  using Spec = synthetic::RelaySpec;
  static constexpr auto fields = std::tuple{
      Field<Spec, std::int64_t>{"clock", &Spec::clock, Unit::frequency, "one token is passed on per cycle", 1,
                                1e12},
      Field<Spec, std::int64_t>{"slots", &Spec::slots, Unit::count, "tokens it holds for the stage before", 1,
                                1e6},
      Field<Spec, std::int64_t>{"tokens", &Spec::tokens, Unit::count, "tokens that start here", 0, 1e6},
      Field<Spec, std::int64_t>{"hops", &Spec::hops, Unit::count, "hops each of its tokens makes", 0, 1e12}};
};

template <>
struct describe<synthetic::RelayStatistics> {
  using S = synthetic::RelayStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Counter>{"passed", &S::passed, "token", "tokens passed on"},
      Statistic<S, Counter>{"retired", &S::retired, "token", "tokens that ended here after their last hop"},
      Statistic<S, Counter>{"stalled", &S::stalled, "cycle", "ticks with a token waiting but no credit"},
      Statistic<S, Gauge>{"waiting", &S::waiting, "token", "tokens held after the last tick"},
      Statistic<S, Histogram>{"age", &S::age, "fs", "age of retired tokens"}};
};

}  // namespace manyscale
