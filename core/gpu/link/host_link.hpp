// SPDX-License-Identifier: Apache-2.0
// The link between host and GPU, such as PCIe or NVLink.
#pragma once
#include "gpu/link/page_protocol.hpp"

namespace manyscale::gpu {

struct HostLinkSpec {
  std::int64_t bandwidth = 1;
  Time data_latency = 0;
};

struct HostLinkStatistics {
  Counter pages_to_device, pages_to_host;
  Counter bytes_to_device, bytes_to_host;
  Counter busy_to_device, busy_to_host;
};

// Carries pages, in each direction one after the other in the order they come: a page takes the wires for as
// long as its bytes need and arrives a latency later; who knows better how long a transfer takes says so with
// the page. A few bytes may pass between the packets of a page in flight: they wait for their like only.
// Leaves out the host's memory.
class HostLink final : public Component {
 public:
  using Spec = HostLinkSpec;

  explicit HostLink(const Spec& spec);

 private:
  void move(const PageMove& page, std::uint32_t lane);

  const Spec spec_;
  HostLinkStatistics statistics_;
  Port<PageProtocol, 1> engines_{*this, "engines", "the copy engines whose pages it carries", Links::many};
  struct Direction {
    Time free = 0;          // from when on the wires are free
    Time free_between = 0;  // … for what passes between others
  };
  std::array<Direction, 2> directions_{};  // to the device, to the host
};

}  // namespace manyscale::gpu

namespace manyscale {

template <>
struct describe<gpu::HostLinkSpec> {
  using S = gpu::HostLinkSpec;
  static constexpr bool required = true;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"bandwidth", &S::bandwidth, Unit::bandwidth, "in one direction", 1, 2e12},
      Field<S, Time>{"data_latency", &S::data_latency, Unit::time,
                     "from the last byte of a page on one side to the other", 0, 1e15}};
};

template <>
struct describe<gpu::HostLinkStatistics> {
  using S = gpu::HostLinkStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Counter>{"pages_to_device", &S::pages_to_device, "1", "pages carried to the device"},
      Statistic<S, Counter>{"pages_to_host", &S::pages_to_host, "1", "pages carried to the host"},
      Statistic<S, Counter>{"bytes_to_device", &S::bytes_to_device, "B", "bytes carried to the device"},
      Statistic<S, Counter>{"bytes_to_host", &S::bytes_to_host, "B", "bytes carried to the host"},
      Statistic<S, Counter>{"busy_to_device", &S::busy_to_device, "fs",
                            "time for which the way to the device was taken"},
      Statistic<S, Counter>{"busy_to_host", &S::busy_to_host, "fs",
                            "time for which the way to the host was taken"}};
};

}  // namespace manyscale
