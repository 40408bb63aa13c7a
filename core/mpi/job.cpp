// SPDX-License-Identifier: Apache-2.0
#include "mpi/job.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace manyscale::mpi {

namespace {

std::string describe_missing(const Missing& missing) {
  const std::uint32_t communicator = missing.context / 2;
  std::string text = missing.receive ? "a message from " : "an answer to its message to ";
  text += missing.peer == any_rank ? "any rank" : "rank " + std::to_string(missing.peer);
  if (missing.context % 2 == 1)
    text += " in collective " + std::to_string(missing.tag);
  else
    text += missing.tag == any_tag ? " with any tag" : " with tag " + std::to_string(missing.tag);
  if (communicator != 0) text += " of communicator " + std::to_string(communicator);
  return text;
}

}  // namespace

Job::Job(const network::NetworkDescription& description, const MpiSpec& spec, Program program,
         std::vector<std::uint32_t> node_of_rank, std::uint64_t seed, Recording recording)
    : simulation_(seed),
      network_(simulation_, description),
      context_(std::move(program), spec, std::move(node_of_rank), network_.nodes(), seed,
               std::move(recording)) {
  for (std::uint32_t node = 0; node < network_.nodes(); ++node) {
    auto host = std::make_unique<Host>(context_, network_, node);
    hosts_.push_back(host.get());
    simulation_.add("node[" + std::to_string(node) + "]", std::move(host));
  }
  network_.connect();
}

const Rank& Job::rank(std::uint32_t world_rank) const {
  return hosts_[context_.node_of_rank[world_rank]]->ranks()[context_.index_of_rank[world_rank]];
}

HostCounts Job::counts() const {
  HostCounts sum;
  for (const Host* host : hosts_) sum += host->counts();
  return sum;
}

std::int64_t Job::operations_begun() const {
  std::int64_t sum = 0;
  for (const Host* host : hosts_) sum += host->operations_begun();
  return sum;
}

std::vector<std::int64_t> Job::latencies() const {
  std::vector<std::int64_t> sum(Histogram::bucket_count);
  for (const Host* host : hosts_) host->latencies().add_to(sum);
  return sum;
}

std::vector<Completion> Job::completions() const {
  std::vector<Completion> all;
  for (const Host* host : hosts_)
    if (const Notes* notes = host->notes())
      all.insert(all.end(), notes->completions.begin(), notes->completions.end());
  return all;
}

std::vector<Span> Job::spans() const {
  std::vector<Span> all;
  for (const Host* host : hosts_)
    if (const Notes* notes = host->notes()) all.insert(all.end(), notes->spans.begin(), notes->spans.end());
  return all;
}

std::vector<Blocked> Job::blocked() const {
  std::vector<Blocked> all;
  for (const Host* host : hosts_)
    for (Blocked& blocked : host->blocked()) all.push_back(std::move(blocked));
  std::sort(all.begin(), all.end(), [](const Blocked& a, const Blocked& b) { return a.rank < b.rank; });
  return all;
}

Job::CriticalPath Job::critical_path() const {
  CriticalPath path;
  std::uint32_t at = 0;
  for (std::uint32_t i = 1; i < ranks(); ++i)
    if (rank(i).end > rank(at).end) at = i;
  Time time = rank(at).end;
  std::uint32_t operation = rank(at).operation;
  // Each rank's waits, the last first, and how many of them are behind.
  std::unordered_map<std::uint32_t, std::pair<std::vector<Release>, std::size_t>> known;
  while (time > 0) {
    const Host& host = *hosts_[context_.node_of_rank[at]];
    const std::uint32_t index = context_.index_of_rank[at];
    const auto [entry, fresh] = known.try_emplace(at);
    auto& [releases, next] = entry->second;
    if (fresh) releases = host.releases(index);
    while (next < releases.size() && releases[next].end > time) ++next;
    if (next == releases.size()) {
      path.pieces.push_back({at, at, operation, false, 0, time});
      if (context_.recording.waits_per_rank == 0 || host.releases_forgotten(index)) path.complete = false;
      break;
    }
    const Release release = releases[next++];
    if (release.end < time) path.pieces.push_back({at, at, release.operation, false, release.end, time});
    const Time sent = std::min(release.sent, release.end);
    if (sent < release.end)
      path.pieces.push_back({at, release.peer, release.operation, true, sent, release.end});
    at = release.peer;
    time = sent;
    operation = release.operation;
  }
  return path;
}

std::string Job::explain_deadlock() const {
  constexpr std::size_t most_named = 16;
  const std::vector<Blocked> all = blocked();
  if (all.empty()) return "";
  std::string text = std::to_string(all.size()) + " of " + std::to_string(ranks()) + " ranks wait for ever:";
  std::unordered_map<std::uint32_t, std::uint32_t> waits_for;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Blocked& blocked = all[i];
    for (const Missing& missing : blocked.missing)
      if (missing.peer != any_rank) waits_for.try_emplace(blocked.rank, missing.peer);
    if (i >= most_named) continue;
    text += "\n  rank " + std::to_string(blocked.rank) + " in " +
            std::string(kind_name(context_.program.operations[blocked.operation].kind)) + " (operation " +
            std::to_string(blocked.operation) + ") for ";
    for (std::size_t m = 0; m < blocked.missing.size(); ++m)
      text += (m == 0 ? "" : ", ") + describe_missing(blocked.missing[m]);
    if (blocked.missing.empty()) text += "nothing that could come";
  }
  if (all.size() > most_named) text += "\n  and " + std::to_string(all.size() - most_named) + " more";
  // A circle of ranks each of which waits for the next, if there is one.
  std::unordered_map<std::uint32_t, std::uint32_t> visited;  // in the walk from which rank
  for (const Blocked& start : all) {
    std::uint32_t at = start.rank;
    while (!visited.contains(at) && waits_for.contains(at)) {
      visited[at] = start.rank;
      at = waits_for[at];
    }
    if (!visited.contains(at) || visited[at] != start.rank) continue;
    text += "\n  in a circle: rank " + std::to_string(at);
    std::size_t named = 0;
    for (std::uint32_t next = waits_for[at]; next != at && named < most_named;
         next = waits_for[next], ++named)
      text += " waits for rank " + std::to_string(next) + ", which";
    text += named == most_named ? " …" : " waits for rank " + std::to_string(at);
    return text;
  }
  for (const auto& [rank_number, peer] : waits_for) {
    if (rank(peer).state == Rank::State::done) {
      text += "\n  some of those waited for have ended";
      break;
    }
  }
  return text;
}

}  // namespace manyscale::mpi
