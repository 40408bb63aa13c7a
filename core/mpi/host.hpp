// SPDX-License-Identifier: Apache-2.0
// A host: one node of the machine with its NIC and the ranks that run on it. It runs each rank's operations,
// sends and receives their messages and takes the time their processor needs for that. Ranks run ahead of the
// simulation's time by the overheads of calls that do not wait; what they send enters the network at the
// right time, and since matching depends only on the order of arrivals and the order of receives, nothing
// comes out differently. Each rank has a processor of its own; how ranks of a node slow each other down
// belongs into their compute times.
//
// The host joins stages that have a state of their own: MessageOrder and Matcher on the way in, SoftwareCosts
// for the time of a processor, Activities for collectives, RankNumbers and ReadyOperations for the course of
// a program, WaitLog for the critical path.
#pragma once
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "engine/component.hpp"
#include "engine/exchange.hpp"
#include "engine/timer.hpp"
#include "mpi/activities.hpp"
#include "mpi/job_context.hpp"
#include "mpi/matching.hpp"
#include "mpi/message_order.hpp"
#include "mpi/pair_numbers.hpp"
#include "mpi/pool.hpp"
#include "mpi/rank.hpp"
#include "mpi/rank_numbers.hpp"
#include "mpi/ready_operations.hpp"
#include "mpi/records.hpp"
#include "mpi/software_costs.hpp"
#include "network/nic.hpp"

namespace manyscale::mpi {

class Host : public Component, public Distributable {
 public:
  Host(const JobContext& job, network::Network& network, std::uint32_t node);

  void start() override;
  std::vector<Wait> waits() const override;

  const std::vector<Rank>& ranks() const { return ranks_; }
  // Nothing where nothing was noted.
  const Notes* notes() const { return notes_.get(); }
  const HostCounts& counts() const { return counts_; }
  const Latencies& latencies() const { return latencies_; }
  // MPI operations that ranks have come to, also those that they leave out. May be asked while the job runs.
  std::int64_t operations_begun() const { return operations_begun_.load(std::memory_order_relaxed); }
  // The recorded waits of a rank of this node, the last first; at most as many as are kept.
  std::vector<Release> releases(std::uint32_t index) const {
    return notes_ ? notes_->waits.releases(index, job_.recording.waits_per_rank) : std::vector<Release>{};
  }
  bool releases_forgotten(std::uint32_t index) const {
    return notes_ && notes_->waits.count(index) > job_.recording.waits_per_rank;
  }
  // The ranks that wait for something.
  std::vector<Blocked> blocked() const;

 private:
  // A message to be sent, or a receive to be posted.
  struct Transfer {
    std::uint32_t peer = 0;  // rank of the world, or any_rank
    std::int32_t tag = 0;
    std::uint32_t context = 0;
    std::uint64_t bytes = 0;
    std::uint64_t value = 0;
    std::uint32_t activity = none;
    bool synchronous = false;
    bool in_slot = false;
  };
  // A message on its way between ranks of this node.
  struct Crossing {
    Envelope envelope;
    std::uint64_t bytes = 0;
    std::uint32_t next = none;
  };

  // So many operations, or steps of a collective, without a wait or compute phase, then other ranks have
  // their turn: bounds how far a rank runs ahead of the simulation's time, and with it how much it has
  // pending.
  static constexpr int most_at_once = 256;
  static constexpr int unlimited = std::numeric_limits<int>::max();

  static constexpr std::uint32_t finished = none - 1;  // in a slot: a request that was complete at once

  // host.cpp: what arrives
  void arrived(const network::Message& message);
  void sent(const network::Message& message);
  void crossed(const std::uint32_t& crossing);
  void take_in_order(const Envelope& envelope, std::uint64_t bytes);
  void take(const Envelope& envelope, std::uint64_t bytes, bool local);
  void process(Rank& rank, Arrival& arrival, std::uint32_t number);
  void drain(Rank& rank);
  void finish_receive(Rank& rank, std::uint32_t request, const Envelope& envelope);
  void complete(std::uint32_t request);
  void release(std::uint32_t request);
  void idle(Rank& rank, const Arrival& arrival);

  // sending.cpp: the two protocols
  void fill(Request& request, Request::Type type, const Rank& rank, const Transfer& transfer) const;
  std::uint32_t post_send(Rank& rank, const Transfer& transfer);
  std::uint32_t begin_send(Rank& rank, std::uint32_t request, const Transfer& transfer);
  std::uint32_t post_receive(Rank& rank, const Transfer& transfer);
  void begin_receive(Rank& rank, std::uint32_t request);
  void answer(Rank& rank, std::uint32_t request, const Envelope& ask, Time at);
  void send_data(Rank& rank, std::uint32_t request, std::uint32_t receiver_request, Time at);
  Time transmit(Rank& rank, const Envelope& envelope, std::uint64_t bytes, Time at, bool tell_sent);

  // operations.cpp: what a rank does
  void advance(Rank& rank);
  void resumed(const std::uint32_t& index);
  bool execute(Rank& rank, const Operation& operation);
  bool compute(Rank& rank, const Operation& operation);
  bool point_to_point(Rank& rank, const Operation& operation);
  bool send_and_receive(Rank& rank, const Operation& operation);
  bool wait_for(Rank& rank, const Operation& operation);
  bool look(Rank& rank, const Operation& operation);
  bool probe(Rank& rank, const Operation& operation);
  bool found(Rank& rank, const Operation& operation);
  void finish_call(Rank& rank);
  bool block(Rank& rank);
  bool pause(Rank& rank);
  void next(Rank& rank);

  void count_begun(const Operation& operation) {  // on this host's thread alone
    if (operation.kind >= OperationKind::send)
      operations_begun_.store(operations_begun() + 1, std::memory_order_relaxed);
  }

  // flow.cpp: operations without an order
  void advance_flow(Rank& rank);
  bool begin_operation(Rank& rank, std::uint32_t operation);
  void operation_ended(Rank& rank, std::uint32_t operation) {
    flows_[index_of(rank)].ended(job_.program, operation, rank.time);
  }

  // requests.cpp: slots
  std::uint32_t& empty_slot(Rank& rank, const Operation& operation);
  std::pair<std::uint32_t, std::uint32_t> slot_range(const Rank& rank, const Operation& operation) const;
  bool slot_complete(std::uint32_t content) const;
  bool slot_active(std::uint32_t content) const;
  void clear_slot(std::uint32_t& content);
  void take_completed(Rank& rank, const Operation& operation);
  Transfer transfer_of(const Rank& rank, const Operation& operation, bool receiving) const;
  void make_persistent(Rank& rank, const Operation& operation);
  void start_persistent(Rank& rank, const Operation& operation);
  void free_request(Rank& rank, const Operation& operation);

  // collective_calls.cpp
  bool collective(Rank& rank, const Operation& operation);
  bool take_part(Rank& rank, std::uint32_t activity);
  Call make_call(Rank& rank, const Operation& operation);
  bool run_activity(std::uint32_t number, int budget);

  // Operands of the rank's present operation.
  std::int64_t value(const Rank& rank, std::int32_t column) const {
    return job_.program.value(column, rank.world, numbers_.iterations(index_of(rank)));
  }
  std::uint32_t peer_of(const Rank& rank, std::uint16_t communicator, std::int64_t wanted,
                        bool receiving) const;
  std::int32_t tag_of(const Rank& rank, std::int64_t wanted, bool receiving) const;
  std::uint64_t bytes_of(const Rank& rank, std::int32_t column) const;
  [[noreturn]] void fail(const Rank& rank, const std::string& what) const;

  std::uint32_t* slots(const Rank& rank) { return numbers_.slots(index_of(rank)); }
  std::uint32_t* iterations(const Rank& rank) { return numbers_.iterations(index_of(rank)); }

  // Made when there is something to note: most hosts of a large machine have nothing.
  Notes& noting() {
    if (!notes_) notes_ = std::make_unique<Notes>();
    return *notes_;
  }

  std::uint32_t index_of(const Rank& rank) const { return static_cast<std::uint32_t>(&rank - ranks_.data()); }
  bool is_local(std::uint32_t world_rank) const { return job_.node_of_rank[world_rank] == nic_.node(); }
  SoftwareCosts costs() const { return SoftwareCosts(job_.spec); }
  void charge(Rank& rank, Time cost) const {
    // Beyond the range of time the engine refuses what the rank does next.
    rank.time = add_saturating(rank.time, cost);
    rank.times.overhead = add_saturating(rank.times.overhead, cost);
  }

  const JobContext& job_;
  network::Nic nic_;
  std::vector<Rank> ranks_;
  RankNumbers numbers_;
  Pool<Request> requests_;
  Pool<Arrival> arrivals_;
  Pool<Crossing> crossings_;
  Activities activities_;
  Matcher matcher_;
  PairNumbers sent_numbers_;
  MessageOrder order_;
  Timer<std::uint32_t> resume_{*this};
  Timer<std::uint32_t> cross_{*this};
  HostCounts counts_;
  std::atomic<std::int64_t> operations_begun_ = 0;
  Latencies latencies_;
  std::unique_ptr<Notes> notes_;
  std::vector<ReadyOperations> flows_;  // [rank], where operations have no order
};

}  // namespace manyscale::mpi
