// SPDX-License-Identifier: Apache-2.0
// Addresses that are reserved first and get memory later: kernels, copies and fills over several mappings,
// memory at two addresses, memory of the host, handles for other processes, and what is refused.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.hpp"

FUNCTION(cuInit)
FUNCTION(cuCtxSynchronize)
FUNCTION(cuDeviceGetAttribute)
FUNCTION(cuLaunchKernel)
FUNCTION(cuMemAddressFree)
FUNCTION(cuMemAddressReserve)
FUNCTION(cuMemCreate)
FUNCTION(cuMemExportToShareableHandle)
FUNCTION(cuMemFree_v2)
FUNCTION(cuMemGetAccess)
FUNCTION(cuMemGetAllocationGranularity)
FUNCTION(cuMemGetAllocationPropertiesFromHandle)
FUNCTION(cuMemGetInfo_v2)
FUNCTION(cuMemImportFromShareableHandle)
FUNCTION(cuMemMap)
FUNCTION(cuMemRelease)
FUNCTION(cuMemRetainAllocationHandle)
FUNCTION(cuMemSetAccess)
FUNCTION(cuMemUnmap)
FUNCTION(cuMemcpyDtoH_v2)
FUNCTION(cuMemcpyHtoD_v2)
FUNCTION(cuMemsetD32_v2)
FUNCTION(cuModuleGetFunction)
FUNCTION(cuModuleLoadData)
FUNCTION(cuPointerGetAttribute)

namespace {

enum : int { invalid_value = 1, out_of_memory = 2, not_supported = 801 };

struct Location {
  int type, id;
};

struct Properties {
  int type = 1, handles = 0;
  Location location{1, 0};
  void* windows = nullptr;
  std::uint64_t flags = 0;
};

struct Access {
  Location location;
  unsigned flags;
};

constexpr Access kReadWrite{{1, 0}, 3};

const char kAddOne[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry add_one(.param .u64 x) {
  .reg .b32 %r<6>; .reg .b64 %rd<4>;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd1, %r4, 4; ld.param.u64 %rd2, [x]; add.u64 %rd2, %rd2, %rd1;
  ld.global.u32 %r5, [%rd2]; add.u32 %r5, %r5, 1; st.global.u32 [%rd2], %r5; ret;
}
)";

Size granularity;

Size free_memory() {
  Size free = 0, total = 0;
  MUST(cuMemGetInfo_v2(&free, &total));
  return free;
}

std::uint64_t created(Size bytes, const Properties& properties = {}) {
  std::uint64_t handle = 0;
  MUST(cuMemCreate(&handle, bytes, &properties, 0ull));
  return handle;
}

Address reserved(Size bytes) {
  Address address = 0;
  MUST(cuMemAddressReserve(&address, bytes, Size{0}, Address{0}, 0ull));
  EXPECT(address % granularity == 0);
  return address;
}

unsigned word_at(Address address) {
  unsigned value = 0;
  MUST(cuMemcpyDtoH_v2(&value, address, sizeof value));
  return value;
}

void add_one_around(Address middle) {
  void *module = nullptr, *kernel = nullptr;
  MUST(cuModuleLoadData(&module, kAddOne));
  MUST(cuModuleGetFunction(&kernel, module, "add_one"));
  Address from = middle - 512;
  void* arguments[] = {&from};
  MUST(cuLaunchKernel(kernel, 2, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr));
  MUST(cuCtxSynchronize());
}

// A segment grows by mappings side by side, as an allocator's; what it holds stays.
void a_segment_grows() {
  const Size before = free_memory();
  const Address address = reserved(64 * granularity);
  const std::uint64_t first = created(granularity), second = created(2 * granularity);
  EXPECT(before - free_memory() == 3 * granularity);
  MUST(cuMemMap(address, granularity, Size{0}, first, 0ull));
  GIVES(invalid_value, cuMemsetD32_v2(address, 5u, Size{1}));  // nobody may access it
  MUST(cuMemSetAccess(address, granularity, &kReadWrite, Size{1}));
  MUST(cuMemsetD32_v2(address, 5u, granularity / 4));
  MUST(cuMemMap(address + granularity, 2 * granularity, Size{0}, second, 0ull));
  MUST(cuMemSetAccess(address + granularity, 2 * granularity, &kReadWrite, Size{1}));
  MUST(cuMemRelease(first));  // the mapping keeps it
  add_one_around(address + granularity);
  std::vector<unsigned> words(1024);
  MUST(cuMemcpyDtoH_v2(words.data(), address + granularity - 2048, Size{4096}));
  for (Size i = 0; i < words.size(); ++i)
    EXPECT(words[i] == (i < 384 ? 5u : i < 512 ? 6u : i < 640 ? 1u : 0u));
  MUST(cuMemcpyHtoD_v2(address + granularity - 2048, words.data(), Size{4096}));
  int type = 0;
  MUST(cuPointerGetAttribute(&type, 2, address + granularity));
  EXPECT(type == 2);
  GIVES(invalid_value, cuMemFree_v2(address));
  GIVES(invalid_value, cuMemMap(address, granularity, Size{0}, second, 0ull));
  GIVES(invalid_value, cuMemAddressFree(address, 64 * granularity));
  GIVES(invalid_value, cuMemUnmap(address + granularity, granularity));
  MUST(cuMemUnmap(address, 3 * granularity));
  GIVES(invalid_value, cuMemsetD32_v2(address, 5u, Size{1}));
  EXPECT(before - free_memory() == 2 * granularity);
  MUST(cuMemMap(address, granularity, granularity, second, 0ull));
  MUST(cuMemSetAccess(address, granularity, &kReadWrite, Size{1}));
  MUST(cuMemUnmap(address, granularity));
  MUST(cuMemAddressFree(address, 64 * granularity));
  MUST(cuMemRelease(second));
  GIVES(invalid_value, cuMemRelease(second));
  EXPECT(free_memory() == before);
}

// The same memory at two addresses, side by side, as a ring.
void memory_is_at_two_addresses() {
  const Address address = reserved(2 * granularity);
  const std::uint64_t handle = created(granularity);
  for (int i = 0; i < 2; ++i) MUST(cuMemMap(address + i * granularity, granularity, Size{0}, handle, 0ull));
  MUST(cuMemSetAccess(address, 2 * granularity, &kReadWrite, Size{1}));
  MUST(cuMemsetD32_v2(address, 7u, Size{16}));
  EXPECT(word_at(address + granularity) == 7);
  add_one_around(address + granularity);
  EXPECT(word_at(address) == 8 && word_at(address + 2 * granularity - 4) == 1);
  std::uint64_t same = 0;
  MUST(cuMemRetainAllocationHandle(&same, reinterpret_cast<void*>(address + granularity + 4)));
  EXPECT(same == handle);
  MUST(cuMemRelease(handle));
  MUST(cuMemRelease(handle));
  unsigned long long flags = 0;
  MUST(cuMemGetAccess(&flags, &kReadWrite.location, address));
  EXPECT(flags == 3);
  MUST(cuMemUnmap(address, 2 * granularity));
  MUST(cuMemAddressFree(address, 2 * granularity));
}

void memory_of_the_host_is_mapped() {
  Properties of_host;
  of_host.location.type = 2;
  const Address address = reserved(granularity);
  const std::uint64_t handle = created(granularity, of_host);
  MUST(cuMemMap(address, granularity, Size{0}, handle, 0ull));
  const Access both[] = {{{2, 0}, 3}, {{1, 0}, 3}};
  MUST(cuMemSetAccess(address, granularity, both, Size{2}));
  auto* words = reinterpret_cast<unsigned*>(address);
  words[512] = 41;
  add_one_around(address + 2048);
  EXPECT(words[512] == 42);
  MUST(cuMemUnmap(address, granularity));
  MUST(cuMemRelease(handle));
  MUST(cuMemAddressFree(address, granularity));
}

void handles_are_exported() {
  Properties shared;
  shared.handles = 1;
  const std::uint64_t handle = created(granularity, shared), own = created(granularity);
  Properties known;
  MUST(cuMemGetAllocationPropertiesFromHandle(&known, handle));
  EXPECT(known.type == 1 && known.handles == 1 && known.location.type == 1 && known.location.id == 0);
  int file = -1;
  GIVES(invalid_value, cuMemExportToShareableHandle(&file, own, 1, 0ull));
  GIVES(not_supported, cuMemExportToShareableHandle(&file, handle, 8, 0ull));
  MUST(cuMemExportToShareableHandle(&file, handle, 1, 0ull));
  std::uint64_t imported = 0;
  GIVES(invalid_value, cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(0), 1));
  MUST(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(std::intptr_t{file}), 1));
  close(file);
  MUST(cuMemRelease(handle));
  const Address address = reserved(granularity);
  MUST(cuMemMap(address, granularity, Size{0}, imported, 0ull));
  MUST(cuMemRelease(imported));
  MUST(cuMemUnmap(address, granularity));
  GIVES(invalid_value, cuMemRelease(imported));
  MUST(cuMemRelease(own));
  MUST(cuMemAddressFree(address, granularity));
}

// Gives a file to another process, as programs do.
void send_file(int to, int file) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof file)] = {};
  msghdr message{nullptr, 0, &part, 1, control, sizeof control, 0};
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  EXPECT(sendmsg(to, &message, 0) == 1);
}

int receive_file(int from) {
  char byte = 0;
  int file = -1;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof file)] = {};
  msghdr message{nullptr, 0, &part, 1, control, sizeof control, 0};
  EXPECT(recvmsg(from, &message, 0) == 1);
  std::memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
  return file;
}

Address mapped(std::uint64_t handle) {
  const Address address = reserved(granularity);
  MUST(cuMemMap(address, granularity, Size{0}, handle, 0ull));
  MUST(cuMemSetAccess(address, granularity, &kReadWrite, Size{1}));
  return address;
}

void begin() {
  MUST(cuInit(0));
  const Properties properties;
  MUST(cuMemGetAllocationGranularity(&granularity, &properties, 0));
}

// In a process of its own: adds one to the memory that it is given.
int import_memory(int from) {
  const int file = receive_file(from);
  begin();
  std::uint64_t handle = 0;
  MUST(cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(std::intptr_t{file}), 1));
  const Address address = mapped(handle);
  EXPECT(word_at(address) == 20);
  add_one_around(address + 512);
  return 0;  // what it has ends with it
}

void another_process_has_it_too(int to, pid_t process) {
  Properties shared;
  shared.handles = 1;
  const std::uint64_t handle = created(granularity, shared);
  const Address address = mapped(handle);
  MUST(cuMemsetD32_v2(address, 20u, Size{1}));
  int file = -1, status = -1;
  MUST(cuMemExportToShareableHandle(&file, handle, 1, 0ull));
  send_file(to, file);
  EXPECT(waitpid(process, &status, 0) == process && status == 0);
  EXPECT(word_at(address) == 21);
  MUST(cuMemUnmap(address, granularity));
  MUST(cuMemAddressFree(address, granularity));
  MUST(cuMemRelease(handle));
}

void mistakes_are_refused() {
  Properties properties;
  std::uint64_t handle = 0;
  Address address = 0;
  GIVES(invalid_value, cuMemCreate(&handle, Size{4096}, &properties, 0ull));
  GIVES(out_of_memory, cuMemCreate(&handle, Size{1} << 42, &properties, 0ull));
  properties.handles = 8;
  GIVES(not_supported, cuMemCreate(&handle, granularity, &properties, 0ull));
  properties.handles = 0;
  properties.location.id = 9;
  GIVES(101, cuMemCreate(&handle, granularity, &properties, 0ull));
  GIVES(invalid_value, cuMemAddressReserve(&address, granularity, Size{3}, Address{0}, 0ull));
  GIVES(invalid_value, cuMemAddressReserve(&address, Size{4097}, Size{0}, Address{0}, 0ull));
  GIVES(invalid_value, cuMemMap(granularity, granularity, Size{0}, Address{1}, 0ull));
}

}  // namespace

int main() {
  int ends[2] = {};
  EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const pid_t process = fork();
  if (process == 0) return import_memory(ends[1]);
  begin();
  int supported = 0;
  MUST(cuDeviceGetAttribute(&supported, 102, 0));
  EXPECT(supported == 1);
  a_segment_grows();
  memory_is_at_two_addresses();
  memory_of_the_host_is_mapped();
  handles_are_exported();
  another_process_has_it_too(ends[0], process);
  mistakes_are_refused();
  std::puts("ok");
}
