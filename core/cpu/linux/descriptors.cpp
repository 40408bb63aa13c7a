// SPDX-License-Identifier: Apache-2.0
#include "cpu/linux/descriptors.hpp"

namespace manyscale::cpu {

OpenFile* file_of(Call& call, int descriptor) {
  const auto found = call.process.files.find(descriptor);
  return found == call.process.files.end() ? nullptr : found->second.get();
}

std::int64_t add_file(Call& call, std::shared_ptr<OpenFile> file, bool close_on_exec, int lowest) {
  if (lowest < 0 || lowest >= most_descriptors) return -EINVAL;
  int number = lowest;
  for (auto at = call.process.files.lower_bound(lowest);
       at != call.process.files.end() && at->first == number; ++at) {
    ++number;
  }
  if (number >= most_descriptors) return -EMFILE;
  call.process.files[number] = std::move(file);
  call.process.close_on_exec[number] = close_on_exec;
  return number;
}

std::int64_t put_facts(Call& call, std::uint64_t address, const FileFacts& facts) {
  struct {
    std::uint64_t device = 1;
    std::uint64_t identity = 0;
    std::uint32_t mode = 0, links = 0, user = 1000, group = 1000;
    std::uint64_t special_device = 0, padding = 0;
    std::int64_t bytes = 0;
    std::int32_t block_bytes = 4096, padding_2 = 0;
    std::int64_t blocks = 0;
    std::array<std::int64_t, 6> times{};
    std::array<std::uint32_t, 2> unused{};
  } status;
  static_assert(sizeof status == 128);
  status.identity = facts.identity;
  status.mode = facts.mode;
  status.links = facts.links;
  status.bytes = static_cast<std::int64_t>(facts.bytes);
  status.blocks = static_cast<std::int64_t>((facts.bytes + 511) / 512);
  return call.put(address, status) ? 0 : -EFAULT;
}

void refuse_memory(Call& call, std::uint64_t address) {
  if (!call.memory().exhausted()) return;
  call.kernel.fail(call.thread, "memory", address,
                   "out of memory: the process may touch " + std::to_string(call.memory().limit() >> 20) +
                       " MiB; a higher limit can be given");
}

}  // namespace manyscale::cpu
