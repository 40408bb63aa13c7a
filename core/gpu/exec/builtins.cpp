// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/builtins.hpp"

#include <bit>
#include <cstring>
#include <new>

#include "gpu/exec/fault.hpp"
#include "gpu/exec/function_decoder.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/memory_access.hpp"
#include "gpu/exec/print.hpp"

namespace manyscale::gpu {
namespace builtins {

constexpr std::size_t kLongestString = 1 << 16;

int print(Warp& warp, unsigned lane, std::uint64_t format_address, std::uint64_t values) {
  const std::string format = read_string(warp, lane, format_address, kLongestString);
  return format_print(warp, lane, format, values, warp.worker().printed);
}

std::uint64_t allocate(Warp& warp, std::uint64_t bytes) {
  DeviceMemory& memory = *warp.launch().memory;
  if (bytes > memory.capacity() / 64) return 0;
  try {
    return memory.allocate(bytes, "memory from malloc in the kernel");
  } catch (const std::bad_alloc&) {
    return 0;  // as malloc does
  }
}

void free_memory(Warp& warp, unsigned lane, std::uint64_t address) {
  if (address == 0) return;
  if (!warp.launch().memory->free(address))
    throw Fault("free of an address that malloc did not give: " + warp.launch().memory->describe(address, 1),
                lane);
  for (auto& range : warp.worker().ranges) range = {};
}

void assertion_failed(Warp& warp, unsigned lane, const Assertion& assertion) {
  const auto text = [&](std::uint64_t address) { return read_string(warp, lane, address, kLongestString); };
  throw Fault("assertion failed: " + text(assertion.message) + "\n  in " + text(assertion.function) + " (" +
                  text(assertion.file) + ":" + std::to_string(assertion.line) + ")",
              lane, FaultKind::assertion);
}

}  // namespace builtins

namespace {

const CallSite& site_of(Warp& warp, const Op& op) {
  return warp.code().calls[op.aux];
}

// The value of an argument of a call, from the frame of the caller.
template <class T>
T argument(Warp& warp, const Op& op, unsigned index, unsigned lane) {
  const ParameterLocation& location = site_of(warp, op).arguments[index];
  T value{};
  std::memcpy(&value, warp.local(lane) + warp.frame().local_base + location.offset,
              std::min<std::size_t>(sizeof value, location.bytes));
  return value;
}

template <class T>
void set_result(Warp& warp, const Op& op, unsigned lane, T value) {
  const CallSite& site = site_of(warp, op);
  if (site.results.empty()) return;
  std::memcpy(warp.local(lane) + warp.frame().local_base + site.results[0].offset, &value,
              std::min<std::size_t>(sizeof value, site.results[0].bytes));
}

void print(Warp& warp, const Op& op) {
  for_each_active(warp.mask, [&](unsigned lane) {
    set_result(warp, op, lane,
               builtins::print(warp, lane, argument<std::uint64_t>(warp, op, 0, lane),
                               argument<std::uint64_t>(warp, op, 1, lane)));
  });
}

void allocate(Warp& warp, const Op& op) {
  for_each_active(warp.mask, [&](unsigned lane) {
    set_result(warp, op, lane, builtins::allocate(warp, argument<std::uint64_t>(warp, op, 0, lane)));
  });
}

void free_memory(Warp& warp, const Op& op) {
  for_each_active(warp.mask, [&](unsigned lane) {
    builtins::free_memory(warp, lane, argument<std::uint64_t>(warp, op, 0, lane));
  });
}

void assertion_failed(Warp& warp, const Op& op) {
  const auto lane = static_cast<unsigned>(std::countr_zero(warp.mask));
  builtins::assertion_failed(
      warp, lane,
      {argument<std::uint64_t>(warp, op, 0, lane), argument<std::uint64_t>(warp, op, 1, lane),
       argument<std::uint32_t>(warp, op, 2, lane), argument<std::uint64_t>(warp, op, 3, lane)});
}

struct Builtin {
  std::string_view name;
  Handler handler;
  std::vector<unsigned> argument_bytes;
};

const std::vector<Builtin>& all_builtins() {
  static const std::vector<Builtin> table{
      {"vprintf", print, {8, 8}},
      {"malloc", allocate, {8}},
      {"free", free_memory, {8}},
      {"__assertfail", assertion_failed, {8, 8, 4, 8, 8}},
      {"__assert_fail", assertion_failed, {8, 8, 4, 8}},
  };
  return table;
}

}  // namespace

void decode_builtin(Builder& builder, std::string_view name, CallSite site) {
  for (const Builtin& builtin : all_builtins()) {
    if (builtin.name != name) continue;
    if (site.arguments.size() != builtin.argument_bytes.size())
      builder.unsupported("it passes another number of values than " + std::string(name) + " takes");
    for (std::size_t i = 0; i < site.arguments.size(); ++i)
      if (site.arguments[i].bytes != builtin.argument_bytes[i])
        builder.unsupported("it passes a value of another size than " + std::string(name) + " takes");
    FunctionDecoder& decoder = builder.decoder();
    Op& op = builder.emit(builtin.handler, Class::other);
    op.aux = decoder.new_call(std::move(site));
    op.flags = kOrdered;  // what is printed or allocated first shows
    return;
  }
  if (name.starts_with("__cudaCDP") || name.starts_with("cudaLaunchDevice"))
    builder.unsupported("kernels launched from kernels are not supported");
  builder.unsupported("function " + std::string(name) + " is declared, but defined nowhere");
}

}  // namespace manyscale::gpu
