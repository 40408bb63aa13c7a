// SPDX-License-Identifier: Apache-2.0
// LRU order of items, with updates in constant time.
#pragma once
#include <cstdint>
#include <vector>

#include "gpu/uvm/residency.hpp"

namespace manyscale::gpu {

// A linked list in an array that is indexed by item. A share of it, from the least recently used on, can be
// reserved from eviction.
class RecencyOrder {
 public:
  explicit RecencyOrder(double reserved_share = 0) : reserved_share_(reserved_share) {}

  void grow(std::uint32_t items) { links_.resize(items); }
  std::uint32_t size() const { return size_; }
  bool contains(std::uint32_t item) const { return links_[item].member; }
  bool reserved(std::uint32_t item) const { return links_[item].reserved; }
  // The least recently used of all, and of those that are not reserved; kNone if there is none.
  std::uint32_t oldest() const { return first_; }
  std::uint32_t oldest_unreserved() const { return first_unreserved_; }
  std::uint32_t newer(std::uint32_t item) const { return links_[item].newer; }

  // Makes an item the most recently used.
  void use(std::uint32_t item) {
    if (item == last_) return;
    if (contains(item)) unlink(item);
    Link& link = links_[item];
    link = {last_, kNone, true, false};
    (last_ == kNone ? first_ : links_[last_].newer) = item;
    last_ = item;
    if (first_unreserved_ == kNone) first_unreserved_ = item;
    ++size_;
    balance();
  }
  void remove(std::uint32_t item) {
    if (!contains(item)) return;
    unlink(item);
    links_[item] = {};
    balance();
  }

 private:
  struct Link {
    std::uint32_t older = kNone, newer = kNone;
    bool member = false, reserved = false;
  };

  void unlink(std::uint32_t item) {
    const Link link = links_[item];
    (link.older == kNone ? first_ : links_[link.older].newer) = link.newer;
    (link.newer == kNone ? last_ : links_[link.newer].older) = link.older;
    if (first_unreserved_ == item) first_unreserved_ = link.newer;
    if (link.reserved) --reserved_;
    --size_;
  }
  // The size changes by one at most, so this takes a step or two.
  void balance() {
    const auto wanted = static_cast<std::uint32_t>(static_cast<double>(size_) * reserved_share_);
    while (reserved_ < wanted) {
      Link& link = links_[first_unreserved_];
      link.reserved = true;
      first_unreserved_ = link.newer;
      ++reserved_;
    }
    while (reserved_ > wanted) {
      first_unreserved_ = first_unreserved_ == kNone ? last_ : links_[first_unreserved_].older;
      links_[first_unreserved_].reserved = false;
      --reserved_;
    }
  }

  double reserved_share_;
  std::vector<Link> links_;
  std::uint32_t first_ = kNone, last_ = kNone;
  std::uint32_t first_unreserved_ = kNone;
  std::uint32_t size_ = 0, reserved_ = 0;
};

}  // namespace manyscale::gpu
