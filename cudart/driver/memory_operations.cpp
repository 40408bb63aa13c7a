// SPDX-License-Identifier: Apache-2.0
// Operations of streams on single values in memory: writing one, and waiting for one.
#include <cstdint>

#include "runtime_calls.hpp"

using namespace manyscale::cuda_driver;

namespace {

using Address = std::uint64_t;  // CUdeviceptr

constexpr unsigned kFlush = 1u << 30;  // of a wait: writes over the link are there in their order anyway

Result write_value(void* stream, Address address, std::uint64_t value, unsigned bits, unsigned flags,
                   bool per_thread) {
  constexpr unsigned without_barrier = 1;
  if ((flags & ~without_barrier) != 0) return invalid_value;
  constexpr bool waits = false;
  const std::size_t one = 1, bytes = bits / 8;
  return runtime("__cudaFill", reinterpret_cast<void*>(address), bytes, value, static_cast<unsigned>(bytes),
                 one, one, stream, waits, per_thread);
}

Result wait_for_value(void* stream, Address address, std::uint64_t value, unsigned bits, unsigned flags,
                      bool per_thread) {
  constexpr unsigned last_comparison = 3;
  if ((flags & ~kFlush) > last_comparison) return invalid_value;
  return runtime("__cudaWaitForValue", reinterpret_cast<const void*>(address), value, bits, flags & ~kFlush,
                 stream, per_thread);
}

// CUstreamBatchMemOpParams
union Operation {
  enum Type : int { wait_32 = 1, write_32 = 2, flush = 3, wait_64 = 4, write_64 = 5, barrier = 6 };
  Type type;
  struct {
    Type type;
    Address address;
    std::uint64_t value;
    unsigned flags;
    Address alias;
  } value;
  std::uint64_t padding[6];
};
static_assert(sizeof(Operation) == 48);

Result perform(void* stream, const Operation& operation, bool per_thread) {
  const auto& given = operation.value;
  const auto narrow = static_cast<std::uint32_t>(given.value);
  switch (operation.type) {
    case Operation::wait_32:
      return wait_for_value(stream, given.address, narrow, 32, given.flags, per_thread);
    case Operation::write_32:
      return write_value(stream, given.address, narrow, 32, given.flags, per_thread);
    case Operation::wait_64:
      return wait_for_value(stream, given.address, given.value, 64, given.flags, per_thread);
    case Operation::write_64:
      return write_value(stream, given.address, given.value, 64, given.flags, per_thread);
    case Operation::flush:
    case Operation::barrier:
      return success;  // commands of a stream see what those before it wrote
  }
  return invalid_value;
}

Result perform_all(void* stream, unsigned count, const Operation* operations, unsigned flags,
                   bool per_thread) {
  constexpr unsigned most = 256;
  if (count > most || (count != 0 && operations == nullptr) || flags != 0) return invalid_value;
  for (unsigned i = 0; i < count; ++i)
    if (const Result error = perform(stream, operations[i], per_thread); error != success) return error;
  return success;
}

}  // namespace

#define IN_STREAM(ending, per_thread)                                                                  \
  extern "C" int cuStreamWriteValue32##ending(void* stream, Address address, std::uint32_t value,      \
                                              unsigned flags) {                                        \
    return write_value(stream, address, value, 32, flags, per_thread);                                 \
  }                                                                                                    \
  extern "C" int cuStreamWriteValue64##ending(void* stream, Address address, std::uint64_t value,      \
                                              unsigned flags) {                                        \
    return write_value(stream, address, value, 64, flags, per_thread);                                 \
  }                                                                                                    \
  extern "C" int cuStreamWaitValue32##ending(void* stream, Address address, std::uint32_t value,       \
                                             unsigned flags) {                                         \
    return wait_for_value(stream, address, value, 32, flags, per_thread);                              \
  }                                                                                                    \
  extern "C" int cuStreamWaitValue64##ending(void* stream, Address address, std::uint64_t value,       \
                                             unsigned flags) {                                         \
    return wait_for_value(stream, address, value, 64, flags, per_thread);                              \
  }                                                                                                    \
  extern "C" int cuStreamBatchMemOp##ending(void* stream, unsigned count, const Operation* operations, \
                                            unsigned flags) {                                          \
    return perform_all(stream, count, operations, flags, per_thread);                                  \
  }

IN_STREAM(, false)
IN_STREAM(_v2, false)
IN_STREAM(_ptsz, true)
IN_STREAM(_v2_ptsz, true)
