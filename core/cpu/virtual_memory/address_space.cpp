// SPDX-License-Identifier: Apache-2.0
#include "cpu/virtual_memory/address_space.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace manyscale::cpu {

namespace {

constexpr std::uint64_t offset_mask = page_bytes - 1;
constexpr std::uint64_t page_of(std::uint64_t address) {
  return address & ~offset_mask;
}

}  // namespace

SharedSegment::SharedSegment(std::uint32_t number, std::uint64_t bytes) : bytes_(bytes), number_(number) {}

std::uint8_t* SharedSegment::page(std::uint64_t offset) {
  if (offset >= bytes_) return nullptr;
  auto& page = pages_[offset / page_bytes];
  if (!page) page = std::make_unique<std::uint8_t[]>(page_bytes);
  return page.get();
}

void SharedSegment::resize(std::uint64_t bytes) {
  for (auto it = pages_.lower_bound(bytes / page_bytes); it != pages_.end(); ++it) {
    const std::uint64_t start = it->first * page_bytes;
    const std::uint64_t kept = bytes > start ? bytes - start : 0;
    std::memset(it->second.get() + kept, 0, page_bytes - kept);
  }
  bytes_ = bytes;
}

void PagePool::Release::operator()(std::uint8_t* piece) const {
  std::free(piece);
}

std::uint8_t* PagePool::take() {
  if (!free_.empty()) {
    std::uint8_t* page = free_.back();
    free_.pop_back();
    std::memset(page, 0, page_bytes);
    return page;
  }
  if (taken_of_last_ == pages_per_piece) {
    // calloc leaves it to the host to zero a page when it is first used.
    auto* piece = static_cast<std::uint8_t*>(std::calloc(pages_per_piece, page_bytes));
    if (piece == nullptr) throw std::bad_alloc();
    pieces_.emplace_back(piece);
    taken_of_last_ = 0;
  }
  return pieces_.back().get() + page_bytes * taken_of_last_++;
}

AddressSpace::AddressSpace(std::uint32_t number, std::uint64_t limit) : number_(number), limit_(limit) {}

AddressSpace::~AddressSpace() = default;

AddressSpace::Ranges::const_iterator AddressSpace::range_of(std::uint64_t address) const {
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return ranges_.end();
  const auto candidate = std::prev(after);
  return address < candidate->second.end ? candidate : ranges_.end();
}

bool AddressSpace::whole_pages(std::uint64_t address, std::uint64_t& bytes) const {
  if ((address & offset_mask) != 0 || bytes == 0 || bytes > virtual_limit) return false;
  bytes = page_of(bytes + offset_mask);
  return address <= virtual_limit - bytes;
}

void AddressSpace::split(std::uint64_t address) {
  const auto found = range_of(address);
  if (found == ranges_.end() || found->first == address) return;
  Range second = found->second;
  second.offset += address - found->first;
  ranges_[found->first].end = address;
  ranges_.emplace(address, std::move(second));
}

AddressSpace::Page* AddressSpace::find_page(std::uint64_t address) const {
  if (address >= virtual_limit) return nullptr;
  const std::uint64_t page = address / page_bytes;
  const auto& middle = top_[page >> (leaf_bits + middle_bits)];
  if (!middle) return nullptr;
  const auto& leaf = (*middle)[(page >> leaf_bits) & ((1U << middle_bits) - 1)];
  if (!leaf) return nullptr;
  Page& found = (*leaf)[page & ((1U << leaf_bits) - 1)];
  return found.host != nullptr ? &found : nullptr;
}

AddressSpace::Page* AddressSpace::touch(std::uint64_t address) {
  if (Page* page = find_page(address)) return page;
  const auto range = range_of(address);
  if (range == ranges_.end()) return nullptr;
  if (resident_bytes() + page_bytes > limit_) {
    exhausted_ = true;
    return nullptr;
  }
  const std::uint64_t start = page_of(address);
  Page made;
  if (const auto& segment = range->second.segment) {
    const std::uint64_t offset = start - range->first + range->second.offset;
    made.host = segment->page(offset);
    made.physical = segment->physical() | offset;
  } else {
    made.host = pool_.take();
    made.physical = (std::uint64_t{number_} + 1) << 40 | start;
  }
  if (made.host == nullptr) return nullptr;
  made.physical |= range->second.permissions;
  ++resident_pages_;
  return &(page_entry(address) = made);
}

AddressSpace::Page& AddressSpace::page_entry(std::uint64_t address) {
  const std::uint64_t page = address / page_bytes;
  auto& middle = top_[page >> (leaf_bits + middle_bits)];
  if (!middle) middle = std::make_unique<Middle>();
  auto& leaf = (*middle)[(page >> leaf_bits) & ((1U << middle_bits) - 1)];
  if (!leaf) leaf = std::make_unique<Leaf>();
  return (*leaf)[page & ((1U << leaf_bits) - 1)];
}

template <class Visit>
void AddressSpace::for_touched_pages(std::uint64_t address, std::uint64_t end, Visit visit) {
  constexpr std::uint64_t leaf_span = page_bytes << leaf_bits, middle_span = leaf_span << middle_bits;
  while (address < end) {
    const auto& middle = top_[address / middle_span];
    if (!middle) {
      address = (address / middle_span + 1) * middle_span;
      continue;
    }
    const auto& leaf = (*middle)[address / leaf_span % middle->size()];
    const std::uint64_t leaf_end = (address / leaf_span + 1) * leaf_span;
    if (leaf) {
      for (std::uint64_t at = address; at < std::min(end, leaf_end); at += page_bytes) {
        if (Page& page = (*leaf)[at / page_bytes % leaf->size()]; page.host != nullptr) visit(page);
      }
    }
    address = leaf_end;
  }
}

void AddressSpace::forget_pages(std::uint64_t address, std::uint64_t end) {
  for_touched_pages(address, end, [this](Page& page) {
    if (!page.shared()) pool_.give_back(page.host);
    page = {};
    --resident_pages_;
    ++version_;
  });
}

void AddressSpace::remove(std::uint64_t address, std::uint64_t end) {
  split(address);
  split(end);
  for (auto it = ranges_.lower_bound(address); it != ranges_.end() && it->first < end;) {
    if ((it->second.permissions & Permission::execute) != 0) ++code_version_;
    forget_pages(it->first, it->second.end);
    it = ranges_.erase(it);
  }
}

bool AddressSpace::map(std::uint64_t address, std::uint64_t bytes, std::uint8_t permissions,
                       std::shared_ptr<SharedSegment> segment, std::uint64_t offset) {
  if (!whole_pages(address, bytes) || (offset & offset_mask) != 0) return false;
  remove(address, address + bytes);
  ranges_[address] = {address + bytes, offset, std::move(segment), permissions};
  if ((permissions & Permission::execute) != 0) ++code_version_;
  // Neighbours that are alike become one, so that a heap grown step by step stays one range.
  if (const auto here = ranges_.find(address); here != ranges_.begin() && !here->second.segment) {
    const auto before = std::prev(here);
    if (before->second.end == address && !before->second.segment &&
        before->second.permissions == permissions) {
      before->second.end = address + bytes;
      ranges_.erase(here);
    }
  }
  return true;
}

bool AddressSpace::unmap(std::uint64_t address, std::uint64_t bytes) {
  if (!whole_pages(address, bytes)) return false;
  remove(address, address + bytes);
  return true;
}

bool AddressSpace::protect(std::uint64_t address, std::uint64_t bytes, std::uint8_t permissions) {
  if (!whole_pages(address, bytes) || !allows(address, bytes, 0)) return false;
  const std::uint64_t end = address + bytes;
  split(address);
  split(end);
  for (auto it = ranges_.lower_bound(address); it != ranges_.end() && it->first < end; ++it) {
    if (((it->second.permissions | permissions) & Permission::execute) != 0) ++code_version_;
    it->second.permissions = permissions;
  }
  for_touched_pages(address, end, [this, permissions](Page& page) {
    page.physical = page_of(page.physical) | permissions;
    ++version_;
  });
  return true;
}

bool AddressSpace::discard(std::uint64_t address, std::uint64_t bytes) {
  if (!whole_pages(address, bytes) || !allows(address, bytes, 0)) return false;
  for_touched_pages(address, address + bytes, [this](Page& page) {
    if (page.shared()) return;
    pool_.give_back(page.host);
    page = {};
    --resident_pages_;
    ++version_;
    ++code_version_;
  });
  return true;
}

bool AddressSpace::move(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
  if (!whole_pages(from, bytes) || !whole_pages(to, bytes) || !allows(from, bytes, 0)) return false;
  if (from < to + bytes && to < from + bytes) return false;
  remove(to, to + bytes);
  split(from);
  split(from + bytes);
  for (auto it = ranges_.lower_bound(from); it != ranges_.end() && it->first < from + bytes;) {
    Range range = it->second;
    const std::uint64_t start = it->first;
    for (std::uint64_t at = start; at < range.end; at += page_bytes) {
      Page* page = find_page(at);
      if (page == nullptr) continue;
      Page moved = *page;
      const std::uint64_t target = at - from + to;
      if (!moved.shared()) {
        moved.physical = (std::uint64_t{number_} + 1) << 40 | target | (moved.physical & offset_mask);
      }
      *page = {};
      page_entry(target) = moved;
    }
    it = ranges_.erase(it);
    range.end = range.end - from + to;
    ranges_.emplace(start - from + to, std::move(range));
  }
  ++version_;
  ++code_version_;
  return true;
}

std::uint64_t AddressSpace::find_free(std::uint64_t bytes, std::uint64_t below) const {
  if (bytes == 0 || bytes > virtual_limit) return 0;
  bytes = page_of(bytes + offset_mask);
  std::uint64_t end = page_of(std::min(below, virtual_limit));
  auto it = ranges_.lower_bound(end);
  while (end > bytes) {
    const std::uint64_t used = it == ranges_.begin() ? 0 : std::prev(it)->second.end;
    if (used <= end - bytes) return end - bytes;
    --it;
    end = std::min(end, it->first);
  }
  return 0;
}

bool AddressSpace::allows(std::uint64_t address, std::uint64_t bytes, std::uint8_t permissions) const {
  if (bytes > virtual_limit || address > virtual_limit - bytes) return false;
  for (const std::uint64_t end = address + bytes; address < end;) {
    const auto range = range_of(address);
    if (range == ranges_.end() || (range->second.permissions & permissions) != permissions) return false;
    address = range->second.end;
  }
  return true;
}

std::uint8_t* AddressSpace::host(std::uint64_t address, std::uint8_t permissions) {
  exhausted_ = false;
  const Page* page = find_page(address);
  if (page == nullptr) {
    // Permissions first, so that a refused access makes no page.
    const auto range = range_of(address);
    if (range == ranges_.end() || (range->second.permissions & permissions) != permissions) return nullptr;
    page = touch(address);
  }
  if (page == nullptr || (page->physical & permissions) != permissions) return nullptr;
  return page->host + (address & offset_mask);
}

template <class Step>
bool AddressSpace::across_pages(std::uint64_t address, std::uint64_t bytes, std::uint8_t permissions,
                                Step step) {
  // All of it is checked before the first byte moves.
  if (!allows(address, bytes, permissions)) {
    exhausted_ = false;
    return false;
  }
  for (std::uint64_t done = 0; done < bytes;) {
    std::uint8_t* here = host(address + done, permissions);
    if (here == nullptr) return false;
    const std::uint64_t piece = std::min(bytes - done, page_bytes - ((address + done) & offset_mask));
    step(here, done, piece);
    done += piece;
  }
  return true;
}

bool AddressSpace::read(std::uint64_t address, void* to, std::uint64_t bytes) {
  return across_pages(address, bytes, Permission::read,
                      [to](const std::uint8_t* here, auto done, auto piece) {
                        std::memcpy(static_cast<std::uint8_t*>(to) + done, here, piece);
                      });
}

bool AddressSpace::write(std::uint64_t address, const void* from, std::uint64_t bytes) {
  return across_pages(address, bytes, Permission::write, [from](std::uint8_t* here, auto done, auto piece) {
    std::memcpy(here, static_cast<const std::uint8_t*>(from) + done, piece);
  });
}

bool AddressSpace::copy_in(std::uint64_t address, const void* from, std::uint64_t bytes) {
  ++code_version_;
  return across_pages(address, bytes, 0, [from](std::uint8_t* here, auto done, auto piece) {
    std::memcpy(here, static_cast<const std::uint8_t*>(from) + done, piece);
  });
}

std::optional<std::string> AddressSpace::read_string(std::uint64_t address, std::size_t most) {
  std::string text;
  while (text.size() < most) {
    const std::uint8_t* here = host(address, Permission::read);
    if (here == nullptr) return std::nullopt;
    const std::size_t piece = std::min<std::size_t>(most - text.size(), page_bytes - (address & offset_mask));
    const void* end = std::memchr(here, 0, piece);
    const std::size_t length = end != nullptr ? static_cast<const std::uint8_t*>(end) - here : piece;
    text.append(reinterpret_cast<const char*>(here), length);
    if (end != nullptr) return text;
    address += piece;
  }
  return std::nullopt;  // longer than `most`
}

std::uint64_t AddressSpace::physical(std::uint64_t address) const {
  if (const Page* page = find_page(address)) return page_of(page->physical) | (address & offset_mask);
  const auto range = range_of(address);
  if (range != ranges_.end() && range->second.segment) {
    return range->second.segment->physical() | (address - range->first + range->second.offset);
  }
  return (std::uint64_t{number_} + 1) << 40 | address;
}

}  // namespace manyscale::cpu
