// SPDX-License-Identifier: Apache-2.0
// One simulation on several processes. Each builds the whole system and runs the events of its own share of
// the components; at the end of a window all meet, tell when their next event is, and hand over the events
// that they sent to components of others. How bytes travel between processes is the business of an Exchange.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/event.hpp"

namespace manyscale {

using Bytes = std::vector<std::byte>;

// How the processes of a simulation meet.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual std::uint32_t process() const = 0;
  virtual std::uint32_t processes() const = 0;
  // A barrier exchange of all processes: each gives a record of the same size and bytes for each of the
  // others (by process; none for itself), and gets the records of all, in order, and the bytes that were for
  // it.
  struct BarrierExchange {
    std::span<const std::byte> own;
    std::vector<Bytes>& outgoing;
    std::vector<std::byte>& records;
    std::vector<Bytes>& incoming;
  };
  virtual void exchange(const BarrierExchange& barrier) = 0;
};

// A component that may be in another process than the ones it is linked to: it reaches them by messages only,
// and what these refer to can be packed. A system with a component that is none is refused by several
// processes.
class Distributable {
 public:
  virtual ~Distributable() = default;
  // Told before the first run on several processes, in each of them, when it is known who runs what.
  virtual void distribute(std::uint32_t /*process*/, std::uint32_t /*processes*/) {}
  // Whether it has to be in one process with all others that say so, which is the first.
  virtual bool stays_with_first() const { return false; }
  // Whether events for it refer to something outside of them.
  virtual bool has_payload() const { return false; }
  // Adds what an event for it refers to; called where the sender is, on the component's double there.
  virtual void pack(const Event&, Bytes&) {}
  // Takes what was packed, and lets the event refer to it; called where the component is.
  virtual void unpack(Event&, std::span<const std::byte>) {}
};

// Plain values in a row of bytes.
template <class T>
  requires std::is_trivially_copyable_v<T>
void put(Bytes& bytes, const T& value) {
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof(T));
}

inline void put(Bytes& bytes, const std::string& text) {
  put(bytes, static_cast<std::uint64_t>(text.size()));
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  bytes.insert(bytes.end(), begin, begin + text.size());
}

// Takes values off the front of a row of bytes.
class BytesReader {
 public:
  explicit BytesReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
    requires std::is_trivially_copyable_v<T>
  T take() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string take_text() {
    const auto text = take(take<std::uint64_t>());
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }
  std::span<const std::byte> take(std::size_t size);
  bool empty() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace manyscale
