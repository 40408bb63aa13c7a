// SPDX-License-Identifier: Apache-2.0
// What decoders of plain instructions share: the choice among the instances of a handler by the C++ integer
// that stands for a PTX type, and operations with one destination and up to four sources.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>

#include "gpu/exec/builder.hpp"

namespace manyscale::gpu {

// The handler that `instance`, a generic lambda, gives for the unsigned integer as large as the type.
template <class F>
Handler for_size(const Builder& builder, ptx::Type type, F instance) {
  if (type == ptx::Type::u16x2 || type == ptx::Type::s16x2)
    builder.unsupported("not defined for packed integers");
  switch (ptx::size_of(type)) {
    case 2:
      return instance(std::uint16_t{});
    case 4:
      return instance(std::uint32_t{});
    case 8:
      return instance(std::uint64_t{});
    default:
      builder.unsupported("not defined for this type");
  }
}

// The same for the integer of the type's size and sign.
template <class F>
Handler for_integer(const Builder& builder, ptx::Type type, F instance) {
  switch (type) {
    case ptx::Type::s16:
      return instance(std::int16_t{});
    case ptx::Type::s32:
      return instance(std::int32_t{});
    case ptx::Type::s64:
      return instance(std::int64_t{});
    case ptx::Type::b16:
    case ptx::Type::b32:
    case ptx::Type::b64:
    case ptx::Type::u16:
    case ptx::Type::u32:
    case ptx::Type::u64:
      return for_size(builder, type, instance);
    default:
      builder.unsupported("not defined for this type");
  }
}

// The same without 16 bits.
template <class F>
Handler for_word(const Builder& builder, ptx::Type type, F instance) {
  switch (type) {
    case ptx::Type::s32:
      return instance(std::int32_t{});
    case ptx::Type::s64:
      return instance(std::int64_t{});
    case ptx::Type::b32:
    case ptx::Type::u32:
      return instance(std::uint32_t{});
    case ptx::Type::b64:
    case ptx::Type::u64:
      return instance(std::uint64_t{});
    default:
      builder.unsupported("not defined for this type");
  }
}

// Emits an operation whose operands are a destination and sources of these types.
inline Op& emit_plain(Builder& builder, Handler handler, Class kind, ptx::Type result,
                      std::initializer_list<ptx::Type> sources) {
  builder.expect_operands(static_cast<unsigned>(1 + sources.size()));
  const Slot dst = builder.destination(0, result);
  std::array<Slot, 4> slots{kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  unsigned index = 0;
  for (const ptx::Type type : sources) {
    slots[index] = builder.source(index + 1, type);
    ++index;
  }
  Op& op = builder.emit(handler, kind);
  op.dst = dst;
  op.src = slots;
  return op;
}

}  // namespace manyscale::gpu
