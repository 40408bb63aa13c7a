// SPDX-License-Identifier: Apache-2.0
// The side of a shared cache that faces memory: one or several channels, chosen by address.
#pragma once
#include "memory/protocol.hpp"

namespace manyscale::memory {

class MemorySide {
 public:
  MemorySide(Component& owner, std::int64_t interleave)
      : interleave_(static_cast<std::uint64_t>(interleave)),
        port_(owner, "memory", "memory channels below", Links::many) {}

  template <auto method>
  void on_receive() {
    port_.on_receive<method>();
  }

  void read(std::uint64_t line, std::uint8_t sectors, Time delay, Origin origin = nobody) {
    send({line, 0, Op::read, 0, sectors, 0, 0, 0, origin}, delay);
  }
  // Answered, if `flags` say so, when the channel has taken the write in.
  void write(std::uint64_t line, std::uint8_t sectors, Value value, Time delay, std::uint8_t flags = 0,
             Origin origin = nobody) {
    send({line, value, Op::write, flags, sectors, 0, 0, 0, origin}, delay);
  }

 private:
  void send(const Message& message, Time delay) {
    const std::uint32_t lane =
        port_.width() == 1 ? 0 : static_cast<std::uint32_t>(message.address / interleave_ % port_.width());
    port_.send(message, delay, lane);
  }

  std::uint64_t interleave_;
  RequesterPort port_;
};

}  // namespace manyscale::memory
