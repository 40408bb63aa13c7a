// SPDX-License-Identifier: Apache-2.0
// The GMMU's remote accesses: reads, writes and atomics of the host's memory over the link.
#include <algorithm>
#include <bit>

#include "gpu/uvm/gmmu.hpp"

namespace manyscale::gpu {

using Answer = TranslationResponseKind;

namespace {

constexpr std::uint32_t kSectorBytes = 32;

std::uint32_t bytes_of(const Lookup& lookup) {
  return static_cast<std::uint32_t>(std::popcount(lookup.sectors)) * kSectorBytes;
}

}  // namespace

// The page can have migrated since the SM was sent to the host's memory.
void Gmmu::look_up_remote(const TranslationRequest& request, std::uint32_t lane) {
  const PageIndex page = shared_.ranges->page_of(request.address);
  const bool write = request.kind != TranslationRequestKind::remote_read;
  const auto sectors = std::max<std::uint8_t>(request.sectors, 1);
  ++(request.kind == TranslationRequestKind::remote_write ? statistics_.remote_writes
                                                          : statistics_.remote_reads);
  const Lookup lookup{page, request.tag, lane, write, false, sectors, now()};
  if (!shared_.one_memory && host_serves(entry(page), write))
    access_host(lookup, request.kind == TranslationRequestKind::remote_atomic);
  else
    look_up(lookup);
}

// Pinned memory of the host and memory of other devices has no entry in the page table of managed memory.
void Gmmu::access_unmanaged(const TranslationRequest& request, std::uint32_t lane) {
  if (request.kind == TranslationRequestKind::translate || request.kind == TranslationRequestKind::used)
    throw SimulationError(owner_.name() + ": an SM requested the translation of memory that is not managed");
  const bool write = request.kind != TranslationRequestKind::remote_read;
  ++(request.kind == TranslationRequestKind::remote_write ? statistics_.remote_writes
                                                          : statistics_.remote_reads);
  const Lookup lookup{kNoPage, request.tag, lane, write, false, request.sectors, now()};
  statistics_.remote_bytes += bytes_of(lookup);
  send_over_link({lookup, request.kind == TranslationRequestKind::remote_atomic}, write);
}

bool Gmmu::host_serves(const Page& page, bool write) {
  return page.is(Page::on_host) && !page.is(Page::on_device | Page::leaving) &&
         !(write && page.is(Page::arriving));
}

void Gmmu::access_host(const Lookup& lookup, bool atomic) {
  statistics_.remote_bytes += bytes_of(lookup);
  count_accesses(lookup.page, 1);
  shared_.add_to_log(lookup.write ? PageEventKind::remote_write : PageEventKind::remote_read,
                     PageEvent::Cause::host, lookup.page, 1, now(), now());
  send_over_link({lookup, atomic}, lookup.write);
}

void Gmmu::send_over_link(const RemoteAccess& access, bool to_host) {
  link_.send({.page = state_.remote_accesses.add(access) | kRemote,
              .bytes = bytes_of(access.lookup),
              .to_host = to_host,
              .between = true});
}

void Gmmu::remote_access_moved(std::uint64_t number) {
  const RemoteAccess access = state_.remote_accesses.take(static_cast<std::uint32_t>(number));
  const Lookup& lookup = access.lookup;
  if (access.returns) return send_over_link({lookup, false}, false);
  const std::uint64_t address = lookup.page == kNoPage ? 0 : address_of(lookup.page);
  sms_.send({address, lookup.tag, Answer::remote_done}, spec_.remote_latency * period_, lookup.lane);
}

}  // namespace manyscale::gpu
