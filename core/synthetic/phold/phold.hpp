// SPDX-License-Identifier: Apache-2.0
// PHOLD, the usual load for measuring an event engine: jobs wander between components at random, each hop
// taking the link's latency and an exponentially distributed delay. Stands for no hardware.
#pragma once
#include "engine/exchange.hpp"
#include "engine/port.hpp"
#include "engine/timer.hpp"

namespace manyscale::synthetic {

struct Job {
  std::int64_t hops = 0;
};

// Jobs handed between equals.
struct JobProtocol {
  static constexpr std::string_view name = "job";
  static constexpr std::array<std::string_view, 2> roles{"peer", "peer"};
  using First = Job;
  using Second = Job;
};

struct PholdSpec {
  std::int64_t jobs = 16;
  Time mean_delay = nanosecond;
  double remote = 0.5;
};

struct PholdStatistics {
  Counter received;
  Series arrivals;
};

class Phold final : public Component, public Distributable {
 public:
  using Spec = PholdSpec;

  explicit Phold(const Spec& spec);
  void start() override;

 private:
  void receive(const Job& job, std::uint32_t lane);
  void come_back(const Job& job);
  void pass_on(const Job& job);

  const Spec spec_;
  PholdStatistics statistics_;
  double lanes_per_draw_ = 0;
  Port<JobProtocol, 0> peers_{*this, "peers", "other components that jobs go to", Links::many};
  Timer<Job> own_{*this};
};

}  // namespace manyscale::synthetic

namespace manyscale {

template <>
struct describe<synthetic::Job> {
  using Job = synthetic::Job;
  static constexpr auto fields =
      std::tuple{Field<Job, std::int64_t>{"hops", &Job::hops, Unit::count, "hops made so far"}};
};

template <>
struct describe<synthetic::PholdSpec> {
  using Spec = synthetic::PholdSpec;
  static constexpr auto fields = std::tuple{
      Field<Spec, std::int64_t>{"jobs", &Spec::jobs, Unit::count, "jobs that start here", 0, 1e9},
      Field<Spec, Time>{"mean_delay", &Spec::mean_delay, Unit::time, "mean of the random part of a hop", 1,
                        1e15},
      Field<Spec, double>{"remote", &Spec::remote, Unit::ratio, "share of the hops that go to a peer", 0, 1}};
};

template <>
struct describe<synthetic::PholdStatistics> {
  using S = synthetic::PholdStatistics;
  static constexpr auto fields =
      std::tuple{Statistic<S, Counter>{"received", &S::received, "job", "jobs that arrived"},
                 Statistic<S, Series>{"arrivals", &S::arrivals, "job", "jobs that arrived, per interval"}};
};

}  // namespace manyscale
