// SPDX-License-Identifier: Apache-2.0
#include "mpi/matching.hpp"

namespace manyscale::mpi {

std::uint32_t Matcher::probe(std::uint32_t rank, const Request& wanted) const {
  if (!wild(wanted)) {
    return unexpected_.find(
        hash_key(rank, wanted.peer, wanted.tag, wanted.context),
        [&](const Arrival& arrival) { return arrival.rank == rank && wanted.fits(arrival.envelope); });
  }
  for (std::uint32_t at = lists_[rank].first_unexpected; at != none; at = arrivals_[at].after) {
    if (wanted.fits(arrivals_[at].envelope)) return at;
  }
  return none;
}

std::uint32_t Matcher::post(std::uint32_t number) {
  Request& request = requests_[number];
  Lists& lists = lists_[request.rank];
  if (lists.first_unexpected != none) {
    const std::uint32_t found = probe(request.rank, request);
    if (found != none) {
      unlink(found);
      return found;
    }
  }
  request.order = posts_++;
  if (wild(request)) {
    request.next = none;
    (lists.last_wild == none ? lists.first_wild : requests_[lists.last_wild].next) = number;
    lists.last_wild = number;
  } else {
    posted_.append(number, hash_of(request));
  }
  return none;
}

std::uint32_t Matcher::match(std::uint32_t rank, const Envelope& envelope) {
  const std::uint64_t hash = hash_key(rank, envelope.source, envelope.tag, envelope.context);
  const std::uint32_t exact = posted_.find(
      hash, [&](const Request& request) { return request.rank == rank && request.fits(envelope); });
  Lists& lists = lists_[rank];
  std::uint32_t before = none;
  std::uint32_t found = lists.first_wild;
  while (found != none && !requests_[found].fits(envelope)) {
    before = found;
    found = requests_[found].next;
  }
  // Counted in 32 bits, which may have wrapped around between the two.
  const bool wild_first =
      found != none &&
      (exact == none || static_cast<std::int32_t>(requests_[found].order - requests_[exact].order) < 0);
  if (!wild_first) {
    if (exact != none) posted_.remove(exact, hash);
    return exact;
  }
  (before == none ? lists.first_wild : requests_[before].next) = requests_[found].next;
  if (lists.last_wild == found) lists.last_wild = before;
  return found;
}

void Matcher::keep(std::uint32_t number) {
  Arrival& arrival = arrivals_[number];
  unexpected_.append(number, hash_of(arrival));
  Lists& lists = lists_[arrival.rank];
  arrival.before = lists.last_unexpected;
  arrival.after = none;
  (lists.last_unexpected == none ? lists.first_unexpected : arrivals_[lists.last_unexpected].after) = number;
  lists.last_unexpected = number;
}

void Matcher::unlink(std::uint32_t number) {
  const Arrival& arrival = arrivals_[number];
  unexpected_.remove(number, hash_of(arrival));
  Lists& lists = lists_[arrival.rank];
  (arrival.before == none ? lists.first_unexpected : arrivals_[arrival.before].after) = arrival.after;
  (arrival.after == none ? lists.last_unexpected : arrivals_[arrival.after].before) = arrival.before;
}

}  // namespace manyscale::mpi
