// SPDX-License-Identifier: Apache-2.0
// System calls about a process's memory.
#include <sys/mman.h>

#include <algorithm>

#include "cpu/linux/load_program.hpp"
#include "cpu/linux/system_calls.hpp"

namespace manyscale::cpu {

namespace {

std::uint8_t permissions_of(std::uint64_t protection) {
  std::uint8_t permissions = 0;
  if ((protection & PROT_READ) != 0) permissions |= Permission::read;
  // Writable memory can be read, as RISC-V has no other.
  if ((protection & PROT_WRITE) != 0) permissions |= Permission::write | Permission::read;
  if ((protection & PROT_EXEC) != 0) permissions |= Permission::execute;
  return permissions;
}

bool is_free(const AddressSpace& memory, std::uint64_t address, std::uint64_t bytes) {
  return address != 0 && memory.find_free(bytes, address + bytes) == address;
}

// Where a mapping goes: where it was asked for if that can be, else below the
// stack; 0 if nowhere.
std::uint64_t address_for(Call& call, std::uint64_t bytes) {
  const std::uint64_t wanted = call[0];
  const std::uint64_t flags = call[3];
  const bool fits = wanted <= virtual_limit && bytes <= virtual_limit - wanted;
  if ((flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0) return fits && wanted % page_bytes == 0 ? wanted : 0;
  const std::uint64_t hint = wanted / page_bytes * page_bytes;
  if (hint != 0 && fits && is_free(call.memory(), hint, bytes)) return hint;
  return call.memory().find_free(bytes, Layout::mappings_top);
}

// Copies a file's bytes into a private mapping.
std::int64_t copy_file(Call& call, OpenFile& file, std::uint64_t address, std::uint64_t bytes,
                       std::uint64_t offset) {
  std::vector<std::uint8_t> buffer(std::min<std::uint64_t>(bytes, 1 << 16));
  for (std::uint64_t done = 0; done < bytes;) {
    const std::int64_t count =
        file.read_at({buffer.data(), std::min(buffer.size(), bytes - done)}, offset + done);
    if (count < 0) return -ENODEV;
    if (count == 0) break;
    if (!call.memory().copy_in(address + done, buffer.data(), static_cast<std::uint64_t>(count)))
      return -ENOMEM;
    done += static_cast<std::uint64_t>(count);
  }
  return 0;
}

}  // namespace

std::int64_t call_brk(Call& call) {
  Process& process = call.process;
  const std::uint64_t wanted = call[0];
  if (wanted < process.break_begin || wanted > Layout::mappings_top) {
    return static_cast<std::int64_t>(process.break_end);
  }
  const std::uint64_t old_end = page_ceiling(process.break_end);
  const std::uint64_t new_end = page_ceiling(wanted);
  if (new_end > old_end) {
    if (new_end - process.break_begin > process.memory.limit() ||
        !is_free(process.memory, old_end, new_end - old_end) ||
        !process.memory.map(old_end, new_end - old_end, Permission::read | Permission::write)) {
      return static_cast<std::int64_t>(process.break_end);
    }
  } else if (new_end < old_end) {
    process.memory.unmap(new_end, old_end - new_end);
  }
  process.break_end = wanted;
  return static_cast<std::int64_t>(wanted);
}

std::int64_t call_mmap(Call& call) {
  const std::uint64_t flags = call[3];
  const std::uint64_t offset = call[5];
  if (call[1] == 0 || offset % page_bytes != 0) return -EINVAL;
  if (call[1] > virtual_limit) return -ENOMEM;
  const std::uint64_t bytes = page_ceiling(call[1]);
  const bool shared = (flags & MAP_TYPE) == MAP_SHARED || (flags & MAP_TYPE) == MAP_SHARED_VALIDATE;
  const bool anonymous = (flags & MAP_ANONYMOUS) != 0;
  std::shared_ptr<OpenFile> file;
  if (!anonymous) {
    const auto found = call.process.files.find(call.whole(4));
    if (found == call.process.files.end()) return -EBADF;
    file = found->second;
  }
  std::shared_ptr<SharedSegment> segment;
  if (shared) {
    segment = anonymous ? call.kernel.make_segment(bytes) : file->segment();
    if (anonymous && !segment) return -ENOMEM;
    // Writes to a file of the host are not carried back, so only reading it so
    // is possible.
    if (!segment && (call[2] & PROT_WRITE) != 0) return -ENODEV;
  }
  const std::uint64_t address = address_for(call, bytes);
  if (address == 0) return (flags & MAP_FIXED) != 0 ? -EINVAL : -ENOMEM;
  if ((flags & MAP_FIXED_NOREPLACE) == MAP_FIXED_NOREPLACE && !is_free(call.memory(), address, bytes))
    return -EEXIST;
  const bool mapped =
      call.memory().map(address, bytes, permissions_of(call[2]), segment, segment && file ? offset : 0);
  if (!mapped) return -ENOMEM;
  if (file && !segment) {
    const std::int64_t error = copy_file(call, *file, address, bytes, offset);
    if (error != 0) {
      call.memory().unmap(address, bytes);
      return error;
    }
  }
  return static_cast<std::int64_t>(address);
}

std::int64_t call_munmap(Call& call) {
  if (call[0] % page_bytes != 0 || call[1] == 0 || call[1] > virtual_limit) return -EINVAL;
  return call.memory().unmap(call[0], page_ceiling(call[1])) ? 0 : -EINVAL;
}

std::int64_t call_mprotect(Call& call) {
  if (call[0] % page_bytes != 0) return -EINVAL;
  if (call[1] == 0) return 0;
  if (call[1] > virtual_limit) return -ENOMEM;
  return call.memory().protect(call[0], page_ceiling(call[1]), permissions_of(call[2])) ? 0 : -ENOMEM;
}

std::int64_t call_mremap(Call& call) {
  AddressSpace& memory = call.memory();
  const std::uint64_t address = call[0];
  if (address % page_bytes != 0 || call[1] == 0 || call[2] == 0) return -EINVAL;
  if (call[1] > virtual_limit || call[2] > virtual_limit) return -ENOMEM;
  const std::uint64_t old_bytes = page_ceiling(call[1]);
  const std::uint64_t new_bytes = page_ceiling(call[2]);
  const std::uint64_t flags = call[3];
  if (!memory.allows(address, old_bytes, 0)) return -EFAULT;
  if ((flags & MREMAP_FIXED) == 0 && new_bytes <= old_bytes) {
    if (new_bytes < old_bytes) memory.unmap(address + new_bytes, old_bytes - new_bytes);
    return static_cast<std::int64_t>(address);
  }
  const std::uint64_t more = new_bytes - std::min(old_bytes, new_bytes);
  std::uint8_t permissions = 0;
  for (const std::uint8_t each : {Permission::read, Permission::write, Permission::execute}) {
    if (memory.allows(address, page_bytes, each)) permissions |= each;
  }
  if ((flags & MREMAP_FIXED) == 0 && is_free(memory, address + old_bytes, more)) {
    return memory.map(address + old_bytes, more, permissions) ? static_cast<std::int64_t>(address) : -ENOMEM;
  }
  if ((flags & MREMAP_MAYMOVE) == 0) return -ENOMEM;
  std::uint64_t to = call[4];
  if ((flags & MREMAP_FIXED) != 0) {
    if (to % page_bytes != 0 || to > virtual_limit || new_bytes > virtual_limit - to) return -EINVAL;
    if (to < address + old_bytes && address < to + new_bytes) return -EINVAL;
    memory.unmap(to, new_bytes);
  } else {
    to = memory.find_free(new_bytes, Layout::mappings_top);
    if (to == 0) return -ENOMEM;
  }
  if (!memory.move(address, to, std::min(old_bytes, new_bytes))) return -ENOMEM;
  if (old_bytes > new_bytes) memory.unmap(address + new_bytes, old_bytes - new_bytes);
  if (more > 0 && !memory.map(to + old_bytes, more, permissions)) return -ENOMEM;
  return static_cast<std::int64_t>(to);
}

std::int64_t call_madvise(Call& call) {
  if (call[0] % page_bytes != 0) return -EINVAL;
  if (call[2] == MADV_DONTNEED && call[1] != 0 && call[1] <= virtual_limit) {
    call.memory().discard(call[0], page_ceiling(call[1]));
  }
  return 0;
}

}  // namespace manyscale::cpu
