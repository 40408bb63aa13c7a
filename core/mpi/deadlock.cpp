// SPDX-License-Identifier: Apache-2.0
// What ranks wait for when nothing moves any more.
#include "mpi/host.hpp"

namespace manyscale::mpi {

namespace {
constexpr std::size_t most_missing = 8;  // named per rank
}

std::vector<Blocked> Host::blocked() const {
  std::vector<Blocked> result;
  std::vector<std::size_t> entry(ranks_.size());
  for (const Rank& rank : ranks_) {
    if (rank.state != Rank::State::waiting) continue;
    entry[index_of(rank)] = result.size();
    Blocked& blocked = result.emplace_back();
    blocked.rank = rank.world;
    blocked.operation = rank.operation;
    if (rank.probing) {
      const Transfer wanted = transfer_of(rank, job_.program.operations[rank.operation], true);
      blocked.missing.push_back({true, wanted.peer, wanted.tag, wanted.context});
    }
  }
  for (std::uint32_t number = 0; number < requests_.limit(); ++number) {
    const Request& request = requests_[number];
    if (request.context == none || request.complete || request.type == Request::Type::collective) continue;
    const Rank& rank = ranks_[request.rank];
    if (rank.state != Rank::State::waiting) continue;
    const std::uint32_t whole = request.activity == none
                                    ? number
                                    : activities_[request.activity].request;  // the collective it is part of
    if (!requests_[whole].awaited) continue;
    auto& missing = result[entry[request.rank]].missing;
    // Without an order a rank is in no operation; the first that has not ended stands for it.
    if (!flows_.empty() && missing.empty()) result[entry[request.rank]].operation = request.operation;
    if (missing.size() < most_missing)
      missing.push_back({request.type == Request::Type::receive, request.peer, request.tag, request.context});
  }
  return result;
}

std::vector<Wait> Host::waits() const {
  std::vector<Wait> result;
  for (const Blocked& blocked : this->blocked()) {
    result.push_back({"rank " + std::to_string(blocked.rank) + " waits in operation " +
                          std::to_string(blocked.operation) + " (" +
                          std::string(kind_name(job_.program.operations[blocked.operation].kind)) + ")",
                      ""});
  }
  return result;
}

}  // namespace manyscale::mpi
