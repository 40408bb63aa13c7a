// SPDX-License-Identifier: Apache-2.0
// Where fabrics tell NICs what has become of their messages.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/port.hpp"
#include "network/nic.hpp"

namespace manyscale::network {

class NoticePort : public PortBase {
 public:
  // `lanes` says by which link each node is reached; the fabrics of a network share it.
  NoticePort(Component& owner, const std::vector<std::uint32_t>& lanes)
      : PortBase(owner, "nics", std::string(NoticeProtocol::name), std::string(NoticeProtocol::roles[0]),
                 std::string(NoticeProtocol::roles[1]), Links::many, "the nodes' ends of the network"),
        lanes_(lanes) {}

  void tell(std::uint32_t node, const Notice& notice, Time delay, std::uint8_t priority = default_priority) {
    post(notice, delay, lanes_[node], priority);
  }

 private:
  const std::vector<std::uint32_t>& lanes_;
};

}  // namespace manyscale::network
