// SPDX-License-Identifier: Apache-2.0
#include "memory/dma/dma.hpp"

#include <algorithm>
#include <utility>

#include "engine/registry.hpp"

namespace manyscale::memory {

namespace {

const Registered<Dma> registered{"memory.dma",
                                 "Reads and writes memory for a device, at the rate of its link."};

PrivateCachesSpec caches_spec(const DmaSpec& spec) {
  PrivateCachesSpec caches;
  caches.levels.push_back(spec.buffer);
  caches.coherent = spec.coherent;
  caches.homes = spec.homes;
  caches.home_hash = spec.home_hash;
  return caches;
}

}  // namespace

Dma::Dma(const Spec& spec)
    : spec_(spec),
      line_(static_cast<std::uint64_t>(spec.buffer.line)),
      line_time_(std::max<Time>(1, spec.buffer.line * second / spec.bandwidth)),
      caches_(std::make_unique<PrivateCaches>(*this, caches_spec(spec), period_of(spec.clock), 1)) {
  declare(statistics_);
  declare(caches_->levels()[0]->statistics, "buffer.");
  memory_.on_receive<&Dma::receive>();
  device_.on_receive<&Dma::commanded>();
  timer_.on_expire<&Dma::wake>();
  const auto entries = static_cast<std::uint32_t>(spec.buffer.outstanding_misses);
  begun_.resize(entries);
  for (std::uint32_t token = entries; token-- > 0;) free_tokens_.push_back(token);
}

void Dma::start() {
  caches_->reseed(random());
}

void Dma::add(const Transfer& transfer) {
  if (transfer.bytes == 0) return;
  ++statistics_.transfers;
  queue_.push_back(transfer);
}

// What was added between two runs begins with the next.
void Dma::resume() {
  if (queue_.empty() || waiting_ || blocked_) return;
  waiting_ = true;
  timer_.after(0, Wake{});
}

void Dma::commanded(const Transfer& transfer, std::uint32_t) {
  add(transfer);
  pump();
}

void Dma::wake(const Wake&) {
  waiting_ = false;
  pump();
}

// Issues the lines whose time has come; the first one that has to wait decides when to look again.
void Dma::pump() {
  while (!queue_.empty() && !blocked_ && !free_tokens_.empty() && !waiting_) {
    if (next_issue_ > now()) {
      waiting_ = true;
      timer_.after(next_issue_ - now(), Wake{});
      return;
    }
    access(queue_.front());
  }
}

// The next line of a transfer.
void Dma::access(const Transfer& transfer) {
  const std::uint64_t within = transfer.address % line_;
  const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(transfer.bytes, line_ - within));
  Access access;
  access.address = transfer.address;
  access.size = bytes;
  access.kind = transfer.writes ? AccessKind::store : AccessKind::load;
  access.token = free_tokens_.back();
  const AccessResult result = caches_->access(access, now());
  if (result.status == AccessResult::Status::blocked) {
    blocked_ = true;
    return;
  }
  ++(transfer.writes ? statistics_.lines_written : statistics_.lines_read);
  if (result.status == AccessResult::Status::waiting) {
    begun_[access.token] = now();
    free_tokens_.pop_back();
  } else {
    statistics_.latency.record(result.ready - now());
  }
  next_issue_ = now() + line_time_;
  Transfer& rest = queue_.front();
  rest.address += bytes;
  rest.bytes -= bytes;
  if (rest.bytes == 0) queue_.pop_front();
}

void Dma::access_done(std::uint32_t token, Time ready, Value, Served) {
  statistics_.latency.record(ready - begun_[token]);
  free_tokens_.push_back(token);
}

void Dma::unblocked() {
  blocked_ = false;
}

void Dma::send_to_memory(const Message& message, Time when) {
  memory_.send(message, when - now());
}

void Dma::receive(const Message& message, std::uint32_t) {
  caches_->receive(message, now());
  pump();
}

// Nobody waits for a device's transfers, so none of them keeps a run from its end.
std::vector<Wait> Dma::waits() const {
  return {};
}

}  // namespace manyscale::memory
