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
namespace {

constexpr std::size_t kLongestString = 1 << 16;

const CallSite& site_of(Warp& warp, const Op& op) {
  return warp.code().calls[op.aux];
}

// The value of an argument of a call, from the frame of the caller.
template <class T>
T argument(Warp& warp, const Op& op, unsigned index, unsigned lane) {
  const ParameterPlace& place = site_of(warp, op).arguments[index];
  T value{};
  std::memcpy(&value, warp.local(lane) + warp.frame().local_base + place.offset,
              std::min<std::size_t>(sizeof value, place.bytes));
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
    const auto format_address = argument<std::uint64_t>(warp, op, 0, lane);
    const auto values = argument<std::uint64_t>(warp, op, 1, lane);
    const std::string format = read_string(warp, lane, format_address, kLongestString);
    const int written = format_print(warp, lane, format, values, warp.worker().printed);
    set_result(warp, op, lane, written);
  });
}

void allocate(Warp& warp, const Op& op) {
  for_each_active(warp.mask, [&](unsigned lane) {
    const auto bytes = argument<std::uint64_t>(warp, op, 0, lane);
    std::uint64_t address = 0;
    if (bytes <= warp.launch().memory->capacity() / 64) {
      try {
        address = warp.launch().memory->allocate(bytes, "memory from malloc in the kernel");
      } catch (const std::bad_alloc&) {
        address = 0;  // as malloc does
      }
    }
    set_result(warp, op, lane, address);
  });
}

void free_memory(Warp& warp, const Op& op) {
  for_each_active(warp.mask, [&](unsigned lane) {
    const auto address = argument<std::uint64_t>(warp, op, 0, lane);
    if (address == 0) return;
    if (!warp.launch().memory->free(address))
      throw Fault(
          "free of an address that malloc did not give: " + warp.launch().memory->describe(address, 1), lane);
    for (auto& range : warp.worker().ranges) range = {};
  });
}

void assertion_failed(Warp& warp, const Op& op) {
  const auto lane = static_cast<unsigned>(std::countr_zero(warp.mask));
  auto text = [&](unsigned index) {
    return read_string(warp, lane, argument<std::uint64_t>(warp, op, index, lane), kLongestString);
  };
  throw Fault("assertion failed: " + text(0) + "\n  in " + text(3) + " (" + text(1) + ":" +
                  std::to_string(argument<std::uint32_t>(warp, op, 2, lane)) + ")",
              lane);
}

struct Builtin {
  std::string_view name;
  Handler handler;
  std::vector<unsigned> argument_bytes;
};

const std::vector<Builtin>& builtins() {
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
  for (const Builtin& builtin : builtins()) {
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
