// SPDX-License-Identifier: Apache-2.0
#include "cpu/core/region_account.hpp"

#include <algorithm>

#include "cpu/stream/region_table.hpp"

namespace manyscale::cpu {

namespace {

// into += later - earlier
void add_difference(RegionAccount::Sum& into, const RegionAccount::Sum& later,
                    const RegionAccount::Sum& earlier) {
  into.time += later.time - earlier.time;
  into.away += later.away - earlier.away;
  into.instructions += later.instructions - earlier.instructions;
  for (std::size_t cause = 0; cause < causes; ++cause)
    into.stack.cycles[cause] += later.stack.cycles[cause] - earlier.stack.cycles[cause];
}

}  // namespace

RegionAccount::Thread& RegionAccount::thread(std::uint16_t number) {
  if (threads_.size() <= number) threads_.resize(number + std::size_t{1});
  Thread& thread = threads_[number];
  thread.seen = true;
  return thread;
}

RegionAccount::Account& RegionAccount::account(Thread& thread, std::uint32_t region) {
  if (region == outside) return thread.outside;
  if (thread.accounts.size() <= region) thread.accounts.resize(region + std::size_t{1});
  return thread.accounts[region];
}

RegionAccount::Account& RegionAccount::innermost(Thread& thread) {
  return account(thread, thread.open.empty() ? outside : thread.open.back().region);
}

void RegionAccount::settle(const Progress& now) {
  if (running_ != none) {
    Thread& thread = threads_[running_];
    Sum done{now.time, 0, now.instructions, now.stack};
    const Sum before{last_.time, 0, last_.instructions, last_.stack};
    // Before its first instruction and after its last a thread does not exist.
    const std::int64_t idle = now.stack[Cause::idle] - last_.stack[Cause::idle];
    if (idle != 0) {
      done.time -= idle * ((now.time - last_.time) / (now.stack.sum() - last_.stack.sum()));
      done.stack[Cause::idle] -= idle;
    }
    add_difference(innermost(thread).exclusive, done, before);
    add_difference(thread.total, done, before);
  }
  last_ = now;
}

void RegionAccount::run_thread(std::uint16_t number, const Progress& now) {
  if (running_ == number) return;
  settle(now);
  if (running_ != none) threads_[running_].left = now.time;
  Thread& next = thread(number);
  running_ = number;
  if (next.left != never) {
    const Time away = now.time - next.left;
    innermost(next).exclusive.away += away;
    next.total.away += away;
  }
}

void RegionAccount::commit(std::uint16_t number, std::uint64_t marker, const Progress& now) {
  run_thread(number, now);
  settle(now);
  Thread& current = threads_[number];
  const MarkerAction action = marker_action(marker);
  const std::uint64_t subject = marker_subject(marker);
  switch (action) {
    case MarkerAction::enter:
      if (subject < RegionTable::limit) enter(current, static_cast<std::uint32_t>(subject));
      break;
    case MarkerAction::leave:
      if (subject < RegionTable::limit) leave(current, static_cast<std::uint32_t>(subject));
      break;
    default:
      break;
  }
  if (log_limit_ == 0) return;
  if (log_.size() < log_limit_)
    log_.push_back({now.time, subject, number, action});
  else
    ++log_dropped_;
}

void RegionAccount::enter(Thread& thread, std::uint32_t region) {
  Account& entered = account(thread, region);
  ++entered.visits;
  ++entered.depth;
  thread.open.push_back({region, thread.total});
}

void RegionAccount::leave(Thread& thread, std::uint32_t region) {
  if (thread.open.empty() || thread.open.back().region != region) return;
  const Sum& begin = thread.open.back().begin;
  Account& left = account(thread, region);
  const Time lasted = thread.total.time + thread.total.away - begin.time - begin.away;
  left.shortest = std::min(left.shortest, lasted);
  left.longest = std::max(left.longest, lasted);
  if (--left.depth == 0) add_difference(left.inclusive, thread.total, begin);
  thread.open.pop_back();
}

std::vector<RegionAccount::Row> RegionAccount::rows() const {
  std::vector<Row> rows;
  for (std::size_t number = 0; number < threads_.size(); ++number) {
    const Thread& thread = threads_[number];
    if (!thread.seen) continue;
    const auto add = [&](std::uint32_t region, const Account& account) {
      rows.push_back({static_cast<std::uint16_t>(number), region, account.visits, account.exclusive,
                      account.inclusive, account.shortest, account.longest});
    };
    for (std::size_t region = 0; region < thread.accounts.size(); ++region) {
      const Account& account = thread.accounts[region];
      if (account.visits == 0) continue;
      add(static_cast<std::uint32_t>(region), account);
      // Of a region still open, the outermost visit began first.
      const auto visit = std::ranges::find(thread.open, region, &Visit::region);
      if (visit != thread.open.end()) add_difference(rows.back().inclusive, thread.total, visit->begin);
    }
    add(outside, thread.outside);
    rows.back().visits = 1;
    rows.back().inclusive = thread.total;
  }
  return rows;
}

}  // namespace manyscale::cpu
