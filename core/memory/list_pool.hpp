// SPDX-License-Identifier: Apache-2.0
// Lists whose entries share one pool, so that nothing is allocated once the pool has grown.
#pragma once
#include <cstdint>
#include <vector>

namespace manyscale::memory {

template <class Value>
class ListPool {
 public:
  // First in, first out.
  class List {
   public:
    bool empty() const { return first_ == none; }

   private:
    friend class ListPool;
    std::uint32_t first_ = none, last_ = none;
  };

  void push(List& list, const Value& value) {
    const std::uint32_t at = take_node();
    nodes_[at] = {value, none};
    (list.empty() ? list.first_ : nodes_[list.last_].next) = at;
    list.last_ = at;
  }
  // Of a list that is not empty.
  const Value& front(const List& list) const { return nodes_[list.first_].value; }
  Value pop(List& list) {
    const std::uint32_t at = list.first_;
    list.first_ = nodes_[at].next;
    nodes_[at].next = free_;
    free_ = at;
    return nodes_[at].value;
  }
  // All of `more` comes behind `list`.
  void append(List& list, const List& more) {
    if (more.empty()) return;
    (list.empty() ? list.first_ : nodes_[list.last_].next) = more.first_;
    list.last_ = more.last_;
  }

 private:
  static constexpr std::uint32_t none = ~0u;

  struct Node {
    Value value;
    std::uint32_t next;
  };

  std::uint32_t take_node() {
    if (free_ == none) {
      nodes_.push_back({Value{}, none});
      return static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    const std::uint32_t at = free_;
    free_ = nodes_[at].next;
    return at;
  }

  std::vector<Node> nodes_;
  std::uint32_t free_ = none;
};

}  // namespace manyscale::memory
