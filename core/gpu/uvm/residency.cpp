// SPDX-License-Identifier: Apache-2.0
#include "gpu/uvm/residency.hpp"

namespace manyscale::gpu {

void Residency::grow() {
  pages_.resize(std::size_t{ranges_->blocks()} * kPagesPerBlock);
  valid_.resize(pages_.size() / kPagesPerChunk);
}

PageLocation Residency::location(PageIndex page) const {
  const Page& at = pages_[page];
  if (at.is(Page::leaving) || (at.is(Page::arriving) && !at.is(Page::on_host))) return PageLocation::moving;
  if (at.is(Page::on_device)) return at.is(Page::on_host) ? PageLocation::both : PageLocation::device;
  return at.is(Page::on_host) ? PageLocation::host : PageLocation::nowhere;
}

PageIndex Residency::following(PageIndex page) const {
  const std::uint64_t address = ranges_->address_of(page);
  const ManagedRanges::Allocation* allocation = ranges_->find(address);
  const bool last = address + kPageBytes >= allocation->address + allocation->rounded;
  return last ? kNoPage : ranges_->page_of(address + kPageBytes);
}

void Residency::begin_arriving(PageIndex page) {
  pages_[page].set(Page::arriving);
  ++valid_[page / kPagesPerChunk];
}

void Residency::give_up_arriving(PageIndex page) {
  pages_[page].clear(Page::arriving);
  --valid_[page / kPagesPerChunk];
}

void Residency::arrive(PageIndex page, bool keep_host_copy) {
  Page& at = pages_[page];
  const bool backed = at.is(Page::on_host);
  at.clear(Page::arriving | Page::queued | Page::dirty | Page::backed | Page::unused_prefetch);
  at.set(Page::on_device);
  if (backed) at.set(Page::backed);
  if (!keep_host_copy) at.clear(Page::on_host);
}

void Residency::begin_leaving(PageIndex page) {
  Page& at = pages_[page];
  at.clear(Page::on_device);
  at.set(Page::leaving);
  --valid_[page / kPagesPerChunk];
}

void Residency::leave(PageIndex page, bool host_has_it) {
  Page& at = pages_[page];
  const bool keeps = at.is(Page::keeps_copy);
  at.clear(Page::leaving | Page::dirty | Page::backed | Page::keeps_copy | Page::on_host);
  if (host_has_it) at.set(Page::on_host);
  if (!keeps) return;
  at.set(Page::on_device | Page::backed);
  ++valid_[page / kPagesPerChunk];
}

void Residency::forget(PageIndex page) {
  if (pages_[page].is(Page::on_device | Page::arriving)) --valid_[page / kPagesPerChunk];
  pages_[page] = {};
}

}  // namespace manyscale::gpu
