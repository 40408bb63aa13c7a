// SPDX-License-Identifier: Apache-2.0
// Loads and stores of the lanes of a warp, by the type in memory and the one in the register.
#pragma once
#include <bit>
#include <cstring>

#include "gpu/exec/fault.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/memory_access.hpp"

namespace manyscale::gpu::memory_lanes {

struct Wide {  // 128 bits
  std::uint64_t low;
  std::uint64_t high;
};

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// to[lane] = word(lane) for all lanes, four at a time: a register is seldom in a cache, and the host can wait
// for few stores at a time.
template <class F>
inline void write_by_fours(std::uint32_t* to, F word) {
  using Four = std::uint32_t __attribute__((vector_size(16)));
  for (unsigned i = 0; i < kLanes; i += 4) {
    const Four four{word(i), word(i + 1), word(i + 2), word(i + 3)};
    std::memcpy(to + i, &four, sizeof four);
  }
}

// The values of all lanes, which are not contiguous.
template <class M, class R>
void read_lanes(const Located& located, R* result) {
  constexpr unsigned kHalf = kLanes / 2;
  const auto value = [&](unsigned i) { return static_cast<R>(read<M>(located.at(i))); };
  if (located.in_halves) {
    for (const unsigned first : {0U, kHalf}) {
      const std::byte* from = located.at(first);
#pragma GCC ivdep
      for (unsigned i = 0; i < kHalf; ++i) result[first + i] = static_cast<R>(read<M>(from + i * sizeof(M)));
    }
  } else if constexpr (sizeof(R) == 4) {
    write_by_fours(reinterpret_cast<std::uint32_t*>(result),
                   [&](unsigned i) { return static_cast<std::uint32_t>(value(i)); });
  } else {
    for (unsigned i = 0; i < kLanes; ++i) result[i] = value(i);
  }
}

// A value of M in memory becomes one of R in a register: extended as M says.
template <class M, class R>
void load(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, sizeof(M), Does::load);
  R* result = warp.lanes<R>(op.dst);
  if (located.contiguous) {
    const std::byte* from = located.at(0);
    for_lanes(warp, result, [=](unsigned i) { return static_cast<R>(read<M>(from + i * sizeof(M))); });
  } else if (located.uniform) {
    const R value = static_cast<R>(read<M>(located.at(0)));
    for_lanes(warp, result, [=](unsigned) { return value; });
  } else if (warp.mask == kAllLanes) {
    read_lanes<M>(located, result);
  } else {
    for_each_active(warp.mask, [&](unsigned i) { result[i] = static_cast<R>(read<M>(located.at(i))); });
  }
}

template <class M, class R>
void load_vector(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, sizeof(M) * op.count, Does::load);
  for (unsigned element = 0; element < op.count; ++element) {
    R* result = warp.lanes<R>(warp.listed(op, element));
    const std::size_t offset = element * sizeof(M);
    if (warp.mask == kAllLanes) {
      for (unsigned i = 0; i < kLanes; ++i) result[i] = static_cast<R>(read<M>(located.at(i) + offset));
    } else {
      for_each_active(warp.mask,
                      [&](unsigned i) { result[i] = static_cast<R>(read<M>(located.at(i) + offset)); });
    }
  }
}

// A kernel's parameter at a known offset: one value for all lanes.
template <class M, class R>
void load_parameter(Warp& warp, const Op& op) {
  const auto& parameters = warp.launch().parameters;
  const auto offset = static_cast<std::uint64_t>(op.immediate);
  if (offset > parameters.size() || parameters.size() - offset < sizeof(M))
    throw Fault("it reads behind the kernel's parameters", static_cast<unsigned>(std::countr_zero(warp.mask)),
                FaultKind::invalid_address);
  const R value = static_cast<R>(read<M>(parameters.data() + offset));
  for_lanes(warp, warp.lanes<R>(op.dst), [=](unsigned) { return value; });
}

template <class M, class R>
void store(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, sizeof(M), Does::store);
  const R* source = warp.lanes<R>(op.src[1]);
  auto write = [&](unsigned i) {
    const M value = static_cast<M>(source[i]);
    std::memcpy(located.at(i), &value, sizeof value);
  };
  if (warp.mask == kAllLanes) {
    if (located.contiguous) {
      std::byte* to = located.at(0);
      for (unsigned i = 0; i < kLanes; ++i) {
        const M value = static_cast<M>(source[i]);
        std::memcpy(to + i * sizeof(M), &value, sizeof value);
      }
    } else {
      for (unsigned i = 0; i < kLanes; ++i) write(i);
    }
  } else {
    for_each_active(warp.mask, write);
  }
}

template <class M, class R>
void store_vector(Warp& warp, const Op& op) {
  const Located located = locate(warp, op, sizeof(M) * op.count, Does::store);
  for (unsigned element = 0; element < op.count; ++element) {
    const R* source = warp.lanes<R>(warp.listed(op, element));
    for_each_active(warp.mask, [&](unsigned i) {
      const M value = static_cast<M>(source[i]);
      std::memcpy(located.at(i) + element * sizeof(M), &value, sizeof value);
    });
  }
}

}  // namespace manyscale::gpu::memory_lanes
