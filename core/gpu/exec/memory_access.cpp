// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/memory_access.hpp"

#include <bit>
#include <string>

#include "gpu/exec/access_check.hpp"
#include "gpu/exec/builder.hpp"
#include "gpu/exec/fault.hpp"
#include "gpu/exec/hexadecimal.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/sass/address.hpp"

namespace manyscale::gpu {

using ptx::Space;

namespace {

std::string_view verb(Does does) {
  return does == Does::load ? "reads" : does == Does::store ? "writes" : "updates";
}

[[noreturn]] void misaligned(Space space, std::uint64_t address, unsigned bytes, Does does, unsigned lane) {
  throw Fault("misaligned access: it " + std::string(verb(does)) + " " + std::to_string(bytes) +
                  " bytes of " + std::string(ptx::name_of(space)) + " memory at " + hexadecimal(address) +
                  ", which is not a multiple of " + std::to_string(std::bit_floor(bytes)),
              lane, FaultKind::misaligned_address, address);
}

[[noreturn]] void out_of_window(Space space, std::uint64_t address, unsigned bytes, Does does,
                                std::uint64_t size, unsigned lane) {
  throw Fault("out of bounds: it " + std::string(verb(does)) + " " + std::to_string(bytes) + " bytes at " +
                  hexadecimal(address) + " of " + std::string(ptx::name_of(space)) + " memory, which has " +
                  std::to_string(size) + " bytes",
              lane, FaultKind::invalid_address, address);
}

[[noreturn]] void bad_global(const DeviceMemory& memory, std::uint64_t address, unsigned bytes, Does does,
                             unsigned lane) {
  throw Fault("invalid address: it " + std::string(verb(does)) + " " + std::to_string(bytes) + " bytes at " +
                  hexadecimal(address) + ": " + memory.describe(address, bytes),
              lane, FaultKind::invalid_address, address);
}

constexpr unsigned kHalf = kLanes / 2;

// What one look over all lanes' addresses tells.
struct Overview {
  std::uint64_t outside = 0;   // highest bit: some lane is not in [begin, begin + limit]
  std::uint64_t low_bits = 0;  // lowest bits: of any lane
  std::uint64_t not_in_halves = 0;
  std::uint64_t not_uniform = 0;
};

inline Overview look_over(const std::uint64_t* addresses, std::uint64_t begin, std::uint64_t limit,
                          unsigned bytes) {
  Overview overview;
  const std::uint64_t first = addresses[0];
  for (const std::uint64_t* half : {addresses, addresses + kHalf}) {
    const std::uint64_t first_of_half = half[0];
    for (unsigned i = 0; i < kHalf; ++i) {
      const std::uint64_t distance = half[i] - begin;
      overview.outside |= distance | (limit - distance);
      overview.low_bits |= half[i];
      overview.not_in_halves |= half[i] ^ (first_of_half + std::uint64_t{i} * bytes);
      overview.not_uniform |= half[i] ^ first;
    }
  }
  return overview;
}

constexpr std::uint64_t kTopBit = std::uint64_t{1} << 63;

// Which space a generic address means, and the address there.
Space classify(std::uint64_t& address) {
  if (in_window(address, kSharedWindow)) {
    address -= kSharedWindow;
    return Space::shared;
  }
  if (in_window(address, kLocalWindow)) {
    address -= kLocalWindow;
    return Space::local;
  }
  if (in_window(address, kParameterWindow)) {
    address -= kParameterWindow;
    return Space::param;
  }
  return Space::global;
}

struct Region {
  std::byte* origin;
  std::uint64_t size;
};

// Memory of a space other than global; local memory as its lane sees it.
Region region_of(Warp& warp, Space space, unsigned lane) {
  switch (space) {
    case Space::shared:
      return {warp.cta().shared(), warp.cta().shared_bytes()};
    case Space::local:
      return {warp.local(lane), warp.local_stride()};
    default: {
      const auto& parameters = warp.launch().parameters;
      return {const_cast<std::byte*>(parameters.data()), parameters.size()};
    }
  }
}

// One lane's access, checked by itself: the slow way, for lanes that are in different memories and for
// faults.
std::byte* locate_lane(Warp& warp, Space space, std::uint64_t address, unsigned bytes, Does does,
                       unsigned lane) {
  std::uint64_t inside = address;
  if (space == Space::generic) space = classify(inside);
  const unsigned alignment = std::bit_floor(bytes);
  if ((inside & (alignment - 1)) != 0) misaligned(space, inside, bytes, does, lane);
  if (space == Space::global || space == Space::constant) {
    const DeviceMemory& memory = *warp.launch().memory;
    std::byte* found = memory.checked(inside, bytes);
    if (found == nullptr) bad_global(memory, inside, bytes, does, lane);
    return found;
  }
  const Region region = region_of(warp, space, lane);
  if (bytes > region.size || inside > region.size - bytes)
    out_of_window(space, inside, bytes, does, region.size, lane);
  if (space == Space::param && does != Does::load)
    throw Fault("it writes to a parameter of the kernel", lane);
  return region.origin + inside;
}

// Lanes in different spaces, or some outside: each by itself.
Located locate_each(Warp& warp, const Op& op, Space space, unsigned bytes, Does does) {
  Worker& worker = warp.worker();
  const Mask lanes = warp.mask;
  for_each_active(lanes, [&](unsigned lane) {
    const std::byte* found = locate_lane(warp, space, warp.access->addresses[lane], bytes, does, lane);
    worker.offsets[lane] = reinterpret_cast<std::uintptr_t>(found);
  });
  const std::uint64_t first = worker.offsets[static_cast<unsigned>(std::countr_zero(lanes))];
  for_each_active(~lanes, [&](unsigned lane) { worker.offsets[lane] = first; });
  if (worker.checker != nullptr) check_access(warp, op, space, bytes, does);
  return {0, worker.offsets.data()};
}

}  // namespace

void compute_addresses(Warp& warp, Slot base, std::int64_t offset, std::uint64_t* addresses) {
  const auto added = static_cast<std::uint64_t>(offset);
  if (base == kNoSlot) {
    for (unsigned i = 0; i < kLanes; ++i) addresses[i] = added;
    return;
  }
  const auto* lanes = warp.lanes<std::uint64_t>(base);
  for (unsigned i = 0; i < kLanes; ++i) addresses[i] = lanes[i] + added;
}

Located locate(Warp& warp, const Op& op, unsigned bytes, Does does) {
  Space space = space_of(op);
  Access& access = *warp.access;
  std::uint64_t* addresses = access.addresses.data();
  if (op.flags & kSassAddress) {
    machine_addresses(warp, op, addresses);
  } else if (op.flags & kNarrowBase) {
    const auto* lanes = warp.lanes<std::uint32_t>(op.src[0]);
    const auto added = static_cast<std::uint32_t>(op.immediate);
    for (unsigned i = 0; i < kLanes; ++i) addresses[i] = static_cast<std::uint32_t>(lanes[i] + added);
  } else {
    const std::int64_t frame = op.flags & kInFrame ? warp.frame().local_base : 0;
    compute_addresses(warp, op.src[0], op.immediate + frame, addresses);
  }
  if (warp.mask != kAllLanes) {
    const std::uint64_t first = addresses[std::countr_zero(warp.mask)];
    for (unsigned i = 0; i < kLanes; ++i) addresses[i] = lane_active(warp.mask, i) ? addresses[i] : first;
  }
  access.mask = warp.mask;
  access.bytes = static_cast<std::uint8_t>(bytes);
  access.space = space;

  Worker& worker = warp.worker();
  const std::uint64_t* offsets = addresses;
  if (space == Space::generic) {
    std::uint64_t first = addresses[0];
    space = classify(first);
    if (space != Space::global) {
      const std::uint64_t window = addresses[0] - first;
      for (unsigned i = 0; i < kLanes; ++i) worker.offsets[i] = addresses[i] - window;
      offsets = worker.offsets.data();
    }
  }
  std::uintptr_t origin = 0;
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  if (space == Space::global || space == Space::constant) {
    DeviceMemory::Range& range = worker.ranges[op.info % worker.ranges.size()];
    DeviceMemory& memory = *warp.launch().memory;
    if (offsets[0] - range.begin >= range.size) range = memory.find(offsets[0]);
    origin = memory.origin();
    begin = range.begin;
    size = range.size;
  } else {
    const Region region = region_of(warp, space, 0);
    origin = reinterpret_cast<std::uintptr_t>(region.origin);
    size = region.size;
  }
  if (size < bytes) return locate_each(warp, op, space_of(op), bytes, does);
  const Overview overview = look_over(offsets, begin, size - bytes, bytes);
  if ((overview.outside & kTopBit) != 0 || (overview.low_bits & (std::bit_floor(bytes) - 1)) != 0 ||
      (space == Space::param && does != Does::load))
    return locate_each(warp, op, space_of(op), bytes, does);
  if (worker.checker != nullptr) [[unlikely]]
    check_access(warp, op, space_of(op), bytes, does);
  if (space != Space::local) {
    const bool in_halves = overview.not_in_halves == 0;
    const bool contiguous = in_halves && offsets[kHalf] - offsets[0] == std::uint64_t{kHalf} * bytes;
    return {origin, offsets, contiguous, overview.not_uniform == 0, in_halves};
  }
  const std::uint64_t stride = warp.local_stride();
  for (unsigned i = 0; i < kLanes; ++i) worker.offsets[i] = offsets[i] + i * stride;
  return {origin, worker.offsets.data()};
}

void resolve(Warp& warp, const Op& op, Space space, const std::uint64_t* addresses, Mask lanes,
             unsigned bytes, bool writes, LanePointers& pointers) {
  const Does does = writes ? Does::store : Does::load;
  for_each_active(lanes, [&](unsigned lane) {
    warp.access->addresses[lane] = addresses[lane];
    pointers.at[lane] = locate_lane(warp, space, addresses[lane], bytes, does, lane);
  });
  warp.access->mask = lanes;
  warp.access->bytes = static_cast<std::uint8_t>(bytes);
  warp.access->space = space;
  if (warp.worker().checker != nullptr) check_access(warp, op, space, bytes, does);
}

Space decode_space(Builder& builder) {
  switch (builder.accept_one_of(
      {"global", "shared", "shared::cta", "local", "const", "param", "param::entry", "param::func"})) {
    case 0:
      return Space::global;
    case 1:
    case 2:
      return Space::shared;
    case 3:
      return Space::local;
    case 4:
      return Space::constant;
    case 5:
    case 6:
    case 7:
      return Space::param;
    default:
      return Space::generic;
  }
}

AddressFields decode_address(Builder& builder, unsigned operand, Space space) {
  bool narrow = false;
  const Builder::Address address = builder.address(builder.operand(operand), space, &narrow);
  AddressFields fields{address.base, address.offset, 0};
  if (narrow) fields.flags |= kNarrowBase;
  if (address.is_frame) {
    fields.flags |= kInFrame;
    space = Space::local;
  } else if (address.is_variable && space == Space::generic) {
    space = address.space;  // [variable] without a space means the variable's own
  }
  fields.flags |= static_cast<std::uint8_t>(static_cast<unsigned>(space) << kSpaceShift);
  return fields;
}

void read_bytes(Warp& warp, unsigned lane, std::uint64_t address, void* to, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    static_cast<std::byte*>(to)[i] = *locate_lane(warp, Space::generic, address + i, 1, Does::load, lane);
}

std::string read_string(Warp& warp, unsigned lane, std::uint64_t address, std::size_t limit) {
  std::string text;
  while (text.size() < limit) {
    const std::byte* at = locate_lane(warp, Space::generic, address + text.size(), 1, Does::load, lane);
    if (*at == std::byte{0}) break;
    text.push_back(static_cast<char>(*at));
  }
  return text;
}

}  // namespace manyscale::gpu
