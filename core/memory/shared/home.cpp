// SPDX-License-Identifier: Apache-2.0
#include "memory/shared/home.hpp"

#include <utility>

#include "engine/registry.hpp"

namespace manyscale::memory {

namespace {
const Registered<Home> registered{"memory.home",
                                  "A slice of a shared cache with the directory of a coherent system."};
}  // namespace

Home::Home(const Spec& spec)
    : spec_(spec),
      level_(spec.cache, period_of(spec.clock), 0, spec.slices),
      memory_(*this, spec.memory_interleave) {
  if (spec.cache.sectored) throw std::invalid_argument("cache.sectored: coherent lines are whole");
  declare(level_.statistics);
  declare(statistics_);
  if (spec.keep_values) values_.resize(level_.array.lines());
  requesters_.on_receive<&Home::receive>();
  memory_.on_receive<&Home::from_memory>();
}

void Home::start() {
  level_.array.reseed(random().next());
}

void Home::receive(const Message& message, std::uint32_t lane) {
  const std::uint32_t requester = requesters_.width() == 1 ? message.source : lane;
  if (requester >= RequesterSet::most) {
    throw SimulationError(name() + ": a directory tracks at most " + std::to_string(RequesterSet::most) +
                          " requesters");
  }
  switch (message.op) {
    case Op::invalidate_ack:
      acknowledged(message);
      return;
    case Op::done:
      finish(transaction_of(message.address, "a confirmation"));
      return;
    case Op::get_shared:
    case Op::get_modified:
    case Op::put:
      break;
    default:
      throw SimulationError(name() +
                            " is coherent: it takes get_shared, get_modified and put, not operation " +
                            std::to_string(static_cast<int>(message.op)));
  }
  if (const std::uint32_t* transaction = busy_.find(message.address)) {
    ++statistics_.queued;
    queued_.push(transactions_[*transaction]->queue, {message, requester});
    return;
  }
  begin({message, requester});
}

void Home::begin(Request request) {
  if (request.message.op == Op::put) {
    put(request);
  } else {
    begin_get(open_transaction(request, request.message.address));
  }
}

std::uint32_t Home::open_transaction(const Request& request, std::uint64_t line) {
  std::uint32_t index;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(transactions_.size());
    transactions_.push_back(std::make_unique<Transaction>());
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Transaction& transaction = *transactions_[index];
  transaction.request = request;
  transaction.line = line;
  // A line with a transaction is not replaced.
  transaction.at = level_.array.find_present(line);
  if (transaction.at != CacheArray::none) level_.array.line(transaction.at).pinned = true;
  transaction.recall = transaction.fresh = false;
  transaction.served = Served::shared;
  transaction.acks = 0;
  transaction.since = now();
  busy_.insert_new(line, index);
  show_outstanding();
  return index;
}

std::uint32_t Home::transaction_of(std::uint64_t line, const char* what) {
  const std::uint32_t* index = busy_.find(line);
  if (index == nullptr) throw SimulationError(name() + " got " + what + " for a line without a transaction");
  return *index;
}

void Home::begin_get(std::uint32_t index) {
  Transaction& transaction = *transactions_[index];
  const bool for_write = transaction.request.message.op == Op::get_modified;
  const std::uint32_t requester = transaction.request.requester;
  ++(for_write ? level_.statistics.writes : level_.statistics.reads);
  transaction.cause = level_.classifier.access(transaction.line);
  const Time when = level_.begin(transaction.line, now()) + level_.tag_time;
  const Holders holders = directory_.find(transaction.line);
  if (holders.owner == static_cast<int>(requester)) {
    throw SimulationError(name() + ": requester " + std::to_string(requester) +
                          " asks for a line that it owns");
  }
  RequesterSet asked;
  if (holders.owner >= 0) {
    asked.add(static_cast<std::uint32_t>(holders.owner));
  } else if (for_write) {
    asked = holders.sharers;
    asked.remove(requester);
  }
  if (!asked.empty()) {
    ask_holders(transaction, asked, for_write ? Op::invalidate : Op::downgrade, when);
  } else {
    supply(index, holders, when);
  }
}

void Home::ask_holders(Transaction& transaction, const RequesterSet& holders, Op op, Time when) {
  transaction.phase = Phase::acks;
  transaction.served = Served::peer;
  transaction.acks = holders.count();
  (op == Op::invalidate ? statistics_.invalidations_sent : statistics_.downgrades_sent) += transaction.acks;
  holders.for_each([&](std::uint32_t holder) { send(holder, {transaction.line, 0, op, 0, 0}, when); });
}

void Home::acknowledged(const Message& message) {
  const std::uint32_t index = transaction_of(message.address, "an acknowledgement");
  Transaction& transaction = *transactions_[index];
  if (message.has(Flag::dirty)) {
    transaction.fresh = true;
    transaction.value = message.value;
    level_.statistics.bytes_in += spec_.cache.line;
  }
  if (--transaction.acks > 0) return;
  const std::uint64_t line = transaction.line;
  const Time when = level_.begin(line, now()) + level_.tag_time;
  if (transaction.recall) {
    directory_.set(line, Holders{});
    if (transaction.fresh) absorb(line, transaction.value);
    if (transaction.at != CacheArray::none) drop(transaction.at);
    transaction.at = CacheArray::none;
    directory_.erase(line);
    finish(index);
    return;
  }
  const Holders before = directory_.find(line);
  Holders holders;
  if (transaction.request.message.op == Op::get_modified) {
    if (before.sharers.has(transaction.request.requester)) holders.sharers.add(transaction.request.requester);
  } else if (before.owner >= 0) {
    holders.sharers.add(static_cast<std::uint32_t>(before.owner));
  }
  directory_.set(line, holders);
  if (transaction.fresh) {
    transaction.at = absorb(line, transaction.value);
    if (transaction.at == CacheArray::none) {
      // No entry for it here: memory takes it, and the requester gets it straight away.
      memory_.write(line, spec_.cache.all_sectors(), transaction.value, when - now());
      grant(transaction, holders, Op::data, transaction.value, when);
      return;
    }
  }
  supply(index, holders, when);
}

// Gives the requester its answer, from the array or from memory.
void Home::supply(std::uint32_t index, const Holders& holders, Time when) {
  Transaction& transaction = *transactions_[index];
  const std::uint64_t line = transaction.line;
  const Message& message = transaction.request.message;
  if (message.op == Op::get_modified && message.has(Flag::has_data) &&
      holders.sharers.has(transaction.request.requester)) {
    ++statistics_.upgrades;
    ++level_.statistics.hits;
    grant(transaction, holders, Op::upgrade_ack, 0, when);
    return;
  }
  if (transaction.at != CacheArray::none) {
    ++level_.statistics.hits;
    level_.array.touch(transaction.at);
    grant(transaction, holders, Op::data, spec_.keep_values ? values_[transaction.at] : 0,
          when + level_.data_time);
    return;
  }
  const std::uint32_t at = make_room(line);
  if (at == CacheArray::none) {
    transaction.phase = Phase::room;
    without_room_.push_back(index);
    ++level_.statistics.blocked;
    return;
  }
  level_.statistics.count_miss(transaction.cause);
  level_.array.fill(at, line, LineState::pending, 0);
  transaction.at = at;
  transaction.phase = Phase::memory;
  memory_.read(line, spec_.cache.all_sectors(), when - now());
}

void Home::from_memory(const Message& message, std::uint32_t) {
  if (message.op != Op::data) return;
  const std::uint32_t index = transaction_of(message.address, "data");
  Transaction& transaction = *transactions_[index];
  CacheArray::Line& held = level_.array.line(transaction.at);
  held.state = LineState::exclusive;
  held.pinned = true;
  held.valid = spec_.cache.all_sectors();
  level_.statistics.bytes_in += spec_.cache.line;
  level_.statistics.miss_latency.record(now() - transaction.since);
  if (spec_.keep_values) values_[transaction.at] = message.value;
  transaction.served = message.served();
  grant(transaction, directory_.find(transaction.line), Op::data, message.value, now());
}

void Home::grant(Transaction& transaction, const Holders& before, Op op, Value value, Time when) {
  const std::uint32_t requester = transaction.request.requester;
  Message answer{transaction.line, value, op, 0, spec_.cache.all_sectors()};
  answer.tag = static_cast<std::uint8_t>(transaction.served);
  if (transaction.request.message.op == Op::get_modified) {
    directory_.set(transaction.line, {{}, static_cast<std::int32_t>(requester)});
    answer.flags = Flag::modified;
  } else if (!before.sharers.has(requester)) {
    Holders holders = before;
    if (holders.sharers.empty() && !transaction.request.message.has(Flag::fetch)) {
      holders.owner = static_cast<std::int32_t>(requester);
      answer.flags = Flag::exclusive;
    } else {
      holders.sharers.add(requester);
    }
    directory_.set(transaction.line, holders);
  }
  transaction.phase = Phase::confirmation;
  send(requester, answer, when);
}

void Home::put(const Request& request) {
  const std::uint64_t line = request.message.address;
  const Time when = level_.begin(line, now()) + level_.tag_time;
  if (directory_.erase_owned(line, request.requester)) {
    if (request.message.has(Flag::dirty)) {
      level_.statistics.bytes_in += spec_.cache.line;
      if (absorb(line, request.message.value) == CacheArray::none) {
        memory_.write(line, spec_.cache.all_sectors(), request.message.value, when - now());
      }
    }
  } else {
    ++statistics_.stale_puts;
  }
  send(request.requester, {line, 0, Op::put_ack, 0, 0}, when);
}

// Takes newer data into the array; returns its entry, `none` when there is none for it.
std::uint32_t Home::absorb(std::uint64_t line, Value value) {
  std::uint32_t at = level_.array.find_present(line);
  if (at == CacheArray::none) {
    at = make_room(line);
    if (at == CacheArray::none) return at;
    level_.array.fill(at, line, LineState::modified, spec_.cache.all_sectors());
    level_.array.line(at).pinned = busy_.find(line) != nullptr;
  }
  level_.array.line(at).state = LineState::modified;
  if (spec_.keep_values) values_[at] = value;
  return at;
}

// A free way of the line's set. Where private caches hold the line to replace and the slice is inclusive,
// they must give it up first: then there is no entry yet.
std::uint32_t Home::make_room(std::uint64_t line) {
  const std::uint32_t at = level_.array.victim(line);
  if (at == CacheArray::none || !is_present(level_.array.line(at).state)) return at;
  const std::uint64_t victim = level_.array.tag(at);
  if (spec_.inclusive && directory_.find(victim).any()) {
    recall(victim);
    return CacheArray::none;
  }
  drop(at);
  return at;
}

void Home::recall(std::uint64_t line) {
  const Holders holders = directory_.find(line);
  ++statistics_.recalls;
  Transaction& transaction = *transactions_[open_transaction(Request{}, line)];
  transaction.recall = true;
  const RequesterSet asked =
      holders.owner >= 0 ? RequesterSet::of(static_cast<std::uint32_t>(holders.owner)) : holders.sharers;
  ask_holders(transaction, asked, Op::invalidate, now() + level_.tag_time);
}

void Home::drop(std::uint32_t at) {
  CacheArray::Line& held = level_.array.line(at);
  ++level_.statistics.evictions;
  if (held.state == LineState::modified) {
    ++level_.statistics.writebacks;
    level_.statistics.bytes_out += spec_.cache.line;
    memory_.write(level_.array.tag(at), spec_.cache.all_sectors(), spec_.keep_values ? values_[at] : 0,
                  level_.tag_time);
  }
  level_.array.remove(at, LineState::invalid);
}

void Home::finish(std::uint32_t index) {
  Transaction& transaction = *transactions_[index];
  const std::uint64_t line = transaction.line;
  busy_.erase(line);
  if (transaction.at != CacheArray::none) level_.array.line(transaction.at).pinned = false;
  level_.statistics.line_time += now() - transaction.since;
  show_outstanding();
  free_.push_back(index);
  if (!transaction.queue.empty()) {
    // The next request for the line begins; a put ends at once, so that more may follow.
    auto queue = std::exchange(transaction.queue, {});
    while (!queue.empty() && busy_.find(line) == nullptr) begin(queued_.pop(queue));
    if (!queue.empty()) queued_.append(transactions_[*busy_.find(line)]->queue, queue);
  }
  if (!without_room_.empty()) retry_in_set(level_.array.set_of(line));
}

// An entry may have become free in this set: transactions that wait for one are tried again.
void Home::retry_in_set(std::uint32_t set) {
  std::vector<std::uint32_t> retry;
  std::erase_if(without_room_, [&](std::uint32_t waiting) {
    if (level_.array.set_of(transactions_[waiting]->line) != set) return false;
    retry.push_back(waiting);
    return true;
  });
  for (const std::uint32_t waiting : retry) {
    const std::uint64_t line = transactions_[waiting]->line;
    supply(waiting, directory_.find(line), level_.begin(line, now()) + level_.tag_time);
  }
}

void Home::show_outstanding() {
  const auto busy = static_cast<double>(busy_.size());
  level_.statistics.outstanding.set(busy);
  show_level("outstanding lines", busy);
}

void Home::send(std::uint32_t requester, Message message, Time when) {
  message.destination = static_cast<std::uint16_t>(requester);
  requesters_.send(message, when - now(), requesters_.width() == 1 ? 0 : requester);
}

std::vector<Wait> Home::waits() const {
  std::vector<Wait> waits;
  busy_.for_each([&](std::uint64_t line, std::uint32_t index) {
    static constexpr const char* phases[] = {"acknowledgements", "an entry in its set", "memory",
                                             "the requester's confirmation"};
    const Transaction& transaction = *transactions_[index];
    waits.push_back(
        {"line " + std::to_string(line) + " waits for " + phases[static_cast<int>(transaction.phase)], ""});
  });
  return waits;
}

}  // namespace manyscale::memory
