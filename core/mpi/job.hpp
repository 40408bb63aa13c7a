// SPDX-License-Identifier: Apache-2.0
// A job: one program on the ranks of a simulated machine, from its description to what came out.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/simulation.hpp"
#include "mpi/host.hpp"
#include "mpi/job_context.hpp"
#include "network/network.hpp"

namespace manyscale::mpi {

class Job {
 public:
  Job(const network::NetworkDescription& description, const MpiSpec& spec, Program program,
      std::vector<std::uint32_t> node_of_rank, std::uint64_t seed, Recording recording);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  Simulation& simulation() { return simulation_; }
  const JobContext& context() const { return context_; }
  const network::Network& network() const { return network_; }
  std::uint32_t ranks() const { return context_.program.ranks; }
  const Rank& rank(std::uint32_t world_rank) const;
  const std::vector<Host*>& hosts() const { return hosts_; }

  // Of all hosts together.
  HostCounts counts() const;
  std::int64_t operations_begun() const;        // may be asked while the job runs
  std::vector<std::int64_t> latencies() const;  // in the buckets of a Histogram
  // Of all hosts together, in the order of ranks' nodes; those of one rank are in the order of time.
  std::vector<Completion> completions() const;
  std::vector<Span> spans() const;
  // The chain of work and messages that ends last, from its end backwards. `complete` says whether it reaches
  // back to the beginning; otherwise a rank had more waits than were kept.
  struct CriticalPath {
    std::vector<PathPiece> pieces;
    bool complete = true;
  };
  CriticalPath critical_path() const;
  // All ranks that wait.
  std::vector<Blocked> blocked() const;
  // Who waits for whom, for a person; empty when nobody waits.
  std::string explain_deadlock() const;

 private:
  Simulation simulation_;
  network::Network network_;
  JobContext context_;
  std::vector<Host*> hosts_;
};

}  // namespace manyscale::mpi
