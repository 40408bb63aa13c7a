// SPDX-License-Identifier: Apache-2.0
#include "cpu/openmp/thread_events.hpp"

#include <algorithm>

namespace manyscale::cpu {

std::uint64_t ThreadEvents::create(std::uint16_t creator, std::uint64_t function, std::uint64_t argument) {
  begun_.insert(creator);
  pending_.push_back({function, argument, next_});
  next_ += 2;
  return pending_.back().begin;
}

void ThreadEvents::give_up(std::uint64_t begin) {
  std::erase_if(pending_, [&](const Pending& each) { return each.begin == begin; });
}

void ThreadEvents::name(std::uint64_t name, std::uint64_t begin) {
  ends_[name] = begin + 1;
}

std::optional<ThreadEvents::Beginning> ThreadEvents::begin(std::uint16_t thread, std::uint64_t function,
                                                           std::uint64_t argument) {
  if (!begun_.insert(thread).second) return std::nullopt;
  const auto found = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& each) {
    return each.function == function && each.argument == argument;
  });
  if (found == pending_.end()) return std::nullopt;
  const std::uint64_t begin = found->begin;
  pending_.erase(found);
  return Beginning{begin, begin + 1};
}

std::optional<std::uint64_t> ThreadEvents::end_of(std::uint64_t name) const {
  const auto found = ends_.find(name);
  return found == ends_.end() ? std::nullopt : std::optional(found->second);
}

std::uint64_t ThreadEvents::signal(std::uint64_t condition) {
  return signals_[condition] = next_++;
}

std::optional<std::uint64_t> ThreadEvents::signalled(std::uint64_t condition, std::uint64_t since) const {
  const auto found = signals_.find(condition);
  return found == signals_.end() || found->second < since ? std::nullopt : std::optional(found->second);
}

std::uint64_t ThreadEvents::arrive(std::uint64_t barrier) {
  const auto [found, added] = barriers_.try_emplace(barrier);
  if (found->second.arrivals++ == 0) found->second.event = next_++;
  return found->second.event;
}

// No thread arrives at the next barrier before one has gone on from this one: the first that goes on finds
// all arrivals counted.
ThreadEvents::BarrierArrival ThreadEvents::meet(std::uint64_t barrier, std::uint64_t event) {
  Barrier& current = barriers_[barrier];
  if (current.arrivals > 0 && current.event == event) {
    met_[event] = {current.arrivals, current.arrivals};
    current.arrivals = 0;
  }
  const auto met = met_.find(event);
  if (met == met_.end()) return {event, 0};
  const std::uint64_t arrivals = met->second.arrivals;
  if (--met->second.to_go_on == 0) met_.erase(met);
  return {event, arrivals};
}

std::uint64_t ThreadEvents::post(std::uint64_t semaphore) {
  std::deque<std::uint64_t>& posts = posts_[semaphore];
  if (posts.size() == most_posts) posts.pop_front();
  posts.push_back(next_);
  return next_++;
}

std::optional<std::uint64_t> ThreadEvents::take(std::uint64_t semaphore) {
  const auto found = posts_.find(semaphore);
  if (found == posts_.end() || found->second.empty()) return std::nullopt;
  const std::uint64_t oldest = found->second.front();
  found->second.pop_front();
  return oldest;
}

}  // namespace manyscale::cpu
