// SPDX-License-Identifier: Apache-2.0
// Loads, stores and atomics.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cpu/riscv/handlers.hpp"
#include "cpu/riscv/machine.hpp"

namespace manyscale::cpu::riscv {

namespace {

// What a loaded value becomes in a register: extended by its type's sign, or boxed in a floating-point one.
template <class T>
u64 extended(T value) {
  if constexpr (std::is_signed_v<T>) {
    return static_cast<u64>(static_cast<i64>(value));
  } else {
    return value;
  }
}

template <class T, bool floating>
void put(Hart* h, std::uint8_t rd, T value) {
  if constexpr (!floating) {
    h->x[rd] = extended(value);
  } else if constexpr (sizeof(T) == 4) {
    h->f[rd] = 0xffffffff00000000 | value;
  } else {
    h->f[rd] = value;
  }
}

template <class Op>
u64 address_of(const Op* op, const Hart* h) {
  return h->x[op->rs1] + static_cast<u64>(static_cast<i64>(op->immediate));
}

// Calls visit(host, first, count) for the one or two pieces of an access that may cross pages; false, and
// nothing visited, if a byte of it is not allowed. `refused` is then the first such byte.
template <class Visit>
bool in_pieces(Machine* m, u64 address, u64 bytes, std::uint8_t permission, u64& refused, Visit visit) {
  const u64 first = std::min(bytes, page_bytes - address % page_bytes);
  std::uint8_t* low = m->memory.host(address, permission);
  refused = address;
  if (low == nullptr) return false;
  std::uint8_t* high = nullptr;
  if (first < bytes) {
    refused = address + first;
    high = m->memory.host(address + first, permission);
    if (high == nullptr) return false;
  }
  visit(low, u64{0}, first);
  if (first < bytes) visit(high, first, bytes - first);
  return true;
}

// A load from a page that was not used lately, or from two.
template <class Op, class T, bool floating>
[[gnu::noinline]] const Op* load_slowly(const Op* op, Hart* h, Machine* m) {
  const u64 address = address_of(op, h);
  u64 refused = 0;
  T value{};
  auto copy = [&value](const std::uint8_t* host, u64 first, u64 count) {
    std::memcpy(reinterpret_cast<std::uint8_t*>(&value) + first, host, count);
  };
  if (!in_pieces(m, address, sizeof(T), Permission::read, refused, copy)) {
    return fault(op, h, m, Fault::Cause::load, refused);
  }
  m->loads.fill(m->memory, address);
  note_access(op, m, m->loads.physical(address));
  put<T, floating>(h, op->rd, value);
  return op + 1;
}

template <class Op, class T, bool floating = false>
const Op* load(const Op* op, Hart* h, Machine* m) {
  const u64 address = address_of(op, h);
  const std::uint8_t* host = m->loads.find(address, sizeof(T));
  if (host == nullptr) [[unlikely]]
    return load_slowly<Op, T, floating>(op, h, m);
  T value;
  std::memcpy(&value, host, sizeof(T));
  note_access(op, m, m->loads.physical(address));
  put<T, floating>(h, op->rd, value);
  return next(op, h, m);
}

template <class Op, class T, bool floating>
[[gnu::noinline]] const Op* store_slowly(const Op* op, Hart* h, Machine* m) {
  const u64 address = address_of(op, h);
  u64 refused = 0;
  const T value = static_cast<T>(floating ? h->f[op->rs2] : h->x[op->rs2]);
  auto copy = [&value](std::uint8_t* host, u64 first, u64 count) {
    std::memcpy(host, reinterpret_cast<const std::uint8_t*>(&value) + first, count);
  };
  if (!in_pieces(m, address, sizeof(T), Permission::write, refused, copy)) {
    return fault(op, h, m, Fault::Cause::store, refused);
  }
  m->stores.fill(m->memory, address);
  note_access(op, m, m->stores.physical(address));
  return op + 1;
}

template <class Op, class T, bool floating = false>
const Op* store(const Op* op, Hart* h, Machine* m) {
  const u64 address = address_of(op, h);
  std::uint8_t* host = m->stores.find(address, sizeof(T));
  if (host == nullptr) [[unlikely]]
    return store_slowly<Op, T, floating>(op, h, m);
  const T value = static_cast<T>(floating ? h->f[op->rs2] : h->x[op->rs2]);
  std::memcpy(host, &value, sizeof(T));
  note_access(op, m, m->stores.physical(address));
  return next(op, h, m);
}

// The host's memory for an atomic; nullptr after a fault. Atomics must be aligned.
template <class T, class Op>
std::uint8_t* atomic_host(const Op* op, Hart* h, Machine* m, std::uint8_t permission) {
  const u64 address = h->x[op->rs1];
  const bool reads_only = permission == Permission::read;
  if (address % sizeof(T) != 0) {
    fault(op, h, m, Fault::Cause::misaligned, address);
    return nullptr;
  }
  std::uint8_t* host = m->memory.host(address, permission);
  if (host == nullptr) fault(op, h, m, reads_only ? Fault::Cause::load : Fault::Cause::store, address);
  return host;
}

// In a recording run the instruction is not executed: its record halts the stream here.
template <class Op>
const Op* halt_at_atomic(const Op* op, Hart* h, Machine* m) {
  note_access(op, m, m->memory.physical(h->x[op->rs1]));
  return stop_before(op, h, m, Stop::ordered);
}

template <class Op, class T>
const Op* load_reserved(const Op* op, Hart* h, Machine* m) {
  const std::uint8_t* host = atomic_host<T>(op, h, m, Permission::read);
  if (host == nullptr) return nullptr;
  if constexpr (Op::records) return halt_at_atomic(op, h, m);
  T value;
  std::memcpy(&value, host, sizeof(T));
  h->reserved_address = h->x[op->rs1];
  h->reserved_value = extended(value);
  h->x[op->rd] = h->reserved_value;
  return next(op, h, m);
}

template <class Op, class T>
const Op* store_conditional(const Op* op, Hart* h, Machine* m) {
  std::uint8_t* host = atomic_host<T>(op, h, m, Permission::read | Permission::write);
  if (host == nullptr) return nullptr;
  if constexpr (Op::records) return halt_at_atomic(op, h, m);
  T value;
  std::memcpy(&value, host, sizeof(T));
  const bool succeeds = h->reserved_address == h->x[op->rs1] && h->reserved_value == extended(value);
  if (succeeds) {
    value = static_cast<T>(h->x[op->rs2]);
    std::memcpy(host, &value, sizeof(T));
  }
  h->reserved_address = ~u64{0};
  h->x[op->rd] = succeeds ? 0 : 1;
  return next(op, h, m);
}

// T has the sign that `combine` wants.
template <class Op, class T, auto combine>
const Op* read_modify_write(const Op* op, Hart* h, Machine* m) {
  std::uint8_t* host = atomic_host<T>(op, h, m, Permission::read | Permission::write);
  if (host == nullptr) return nullptr;
  if constexpr (Op::records) return halt_at_atomic(op, h, m);
  T old;
  std::memcpy(&old, host, sizeof(T));
  const T changed = combine(old, static_cast<T>(h->x[op->rs2]));
  std::memcpy(host, &changed, sizeof(T));
  h->x[op->rd] = extended(static_cast<std::make_signed_t<T>>(old));
  return next(op, h, m);
}

constexpr auto swap = [](auto, auto b) { return b; };
constexpr auto add = [](auto a, auto b) { return a + b; };
constexpr auto exclusive_or = [](auto a, auto b) { return a ^ b; };
constexpr auto both = [](auto a, auto b) { return a & b; };
constexpr auto either = [](auto a, auto b) { return a | b; };
constexpr auto smaller = [](auto a, auto b) { return std::min(a, b); };
constexpr auto larger = [](auto a, auto b) { return std::max(a, b); };

}  // namespace

template <class Op>
std::span<const Handler<Op>> memory_handlers() {
  static constexpr auto handlers = std::to_array<Handler<Op>>({
      {"lb", load<Op, i8>},
      {"lh", load<Op, i16>},
      {"lw", load<Op, i32>},
      {"ld", load<Op, u64>},
      {"lbu", load<Op, u8>},
      {"lhu", load<Op, u16>},
      {"lwu", load<Op, u32>},
      {"flw", load<Op, u32, true>},
      {"fld", load<Op, u64, true>},
      {"sb", store<Op, u8>},
      {"sh", store<Op, u16>},
      {"sw", store<Op, u32>},
      {"sd", store<Op, u64>},
      {"fsw", store<Op, u32, true>},
      {"fsd", store<Op, u64, true>},
      {"lr.w", load_reserved<Op, i32>},
      {"sc.w", store_conditional<Op, i32>},
      {"amoswap.w", read_modify_write<Op, u32, swap>},
      {"amoadd.w", read_modify_write<Op, u32, add>},
      {"amoxor.w", read_modify_write<Op, u32, exclusive_or>},
      {"amoand.w", read_modify_write<Op, u32, both>},
      {"amoor.w", read_modify_write<Op, u32, either>},
      {"amomin.w", read_modify_write<Op, i32, smaller>},
      {"amomax.w", read_modify_write<Op, i32, larger>},
      {"amominu.w", read_modify_write<Op, u32, smaller>},
      {"amomaxu.w", read_modify_write<Op, u32, larger>},
      {"lr.d", load_reserved<Op, u64>},
      {"sc.d", store_conditional<Op, u64>},
      {"amoswap.d", read_modify_write<Op, u64, swap>},
      {"amoadd.d", read_modify_write<Op, u64, add>},
      {"amoxor.d", read_modify_write<Op, u64, exclusive_or>},
      {"amoand.d", read_modify_write<Op, u64, both>},
      {"amoor.d", read_modify_write<Op, u64, either>},
      {"amomin.d", read_modify_write<Op, i64, smaller>},
      {"amomax.d", read_modify_write<Op, i64, larger>},
      {"amominu.d", read_modify_write<Op, u64, smaller>},
      {"amomaxu.d", read_modify_write<Op, u64, larger>},
  });
  return handlers;
}

template std::span<const Handler<PlainOperation>> memory_handlers();
template std::span<const Handler<RecordingOperation>> memory_handlers();

}  // namespace manyscale::cpu::riscv
