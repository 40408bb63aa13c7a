// SPDX-License-Identifier: Apache-2.0
// What the server says of a GPU now. Each question is a connection of its own, so that nothing of it is left
// in a process that forks, and asking does not make the process one that uses the GPUs.
#pragma once
#include <cstdint>
#include <vector>

#include "../wire.hpp"

namespace manyscale::nvml {

#pragma pack(push, 1)
struct RunningProcess {
  std::uint32_t process;
  std::uint64_t bytes;
};
#pragma pack(pop)

struct Status {
  cudart::wire::DeviceStatus::Answer fields{};
  std::vector<RunningProcess> processes;
};

enum class Outcome { answered, no_server, refused };

Outcome ask(unsigned device, Status& status);

}  // namespace manyscale::nvml
