// SPDX-License-Identifier: Apache-2.0
// An event: something that reaches a component's handler at a time. Plain data, 48 bytes, never allocated one
// by one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/time.hpp"

namespace manyscale {

inline constexpr std::size_t payload_bytes = 24;

// What a payload must be: plain data that fits into an event. Larger things stay with their owner, which
// sends an index.
template <class T>
concept Payload = std::is_trivially_copyable_v<T> && sizeof(T) <= payload_bytes && alignof(T) <= 8;

// Events that meet at one time run in the order of this key: priority (low first), then source, then
// sequence. All three are properties of the model, none of the host, so the order is the same on any number
// of threads.
struct Order {
  static constexpr int source_bits = 24;
  static constexpr int sequence_bits = 32;
  static constexpr std::uint32_t max_source = (1u << source_bits) - 1;

  static constexpr std::uint64_t make(std::uint8_t priority, std::uint32_t source, std::uint32_t sequence) {
    return std::uint64_t{priority} << (source_bits + sequence_bits) | std::uint64_t{source} << sequence_bits |
           sequence;
  }
};

struct Event {
  Time time;
  std::uint64_t order;   // see Order
  std::uint32_t target;  // index of the endpoint (component and handler) that receives it
  std::uint32_t lane;    // which of the receiving port's links it came by
  alignas(8) std::byte payload[payload_bytes];

  template <Payload T>
  void store(const T& value) {
    std::memcpy(payload, &value, sizeof(T));
  }
  template <Payload T>
  T load() const {
    T value;
    std::memcpy(&value, payload, sizeof(T));
    return value;
  }
};
static_assert(sizeof(Event) == 48 && std::is_trivially_copyable_v<Event>);

// The order of all events of a simulation, total because no source uses a sequence number twice at one time.
// An object rather than a function, so that sorting inlines it.
struct Earlier {
  bool operator()(const Event& a, const Event& b) const {
    return a.time < b.time || (a.time == b.time && a.order < b.order);
  }
};
inline constexpr Earlier earlier{};

}  // namespace manyscale
