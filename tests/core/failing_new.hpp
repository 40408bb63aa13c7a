// SPDX-License-Identifier: Apache-2.0
// Replaces operator new by one that fails on demand: one allocation, or all from some point on. To be
// included by one file of a program or of a library that is loaded before all others.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace manyscale::test {

inline constexpr std::int64_t never_fails = INT64_MAX;
inline std::atomic<bool> counts{true};  // whether allocations are counted, and can fail
inline std::atomic<std::int64_t> allocations{0};
inline std::atomic<std::int64_t> first_failure{never_fails};
inline std::atomic<std::int64_t> last_failure{never_fails};

inline void* allocate(std::size_t bytes, std::size_t alignment) {
  if (counts.load(std::memory_order_relaxed)) {
    const std::int64_t number = allocations.fetch_add(1, std::memory_order_relaxed);
    if (number >= first_failure.load(std::memory_order_relaxed) &&
        number <= last_failure.load(std::memory_order_relaxed))
      return nullptr;
  }
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes == 0 ? 1 : bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

inline void* allocate_or_throw(std::size_t bytes, std::size_t alignment = 1) {
  if (void* memory = allocate(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

// The allocations from number `first` of now on fail: all of them, or only that one.
inline void fail_from(std::int64_t first, bool only_one) {
  first_failure = last_failure = never_fails;
  allocations = 0;
  last_failure = only_one ? first : never_fails;
  first_failure = first;
}

// None fails from now on; how many there were since `fail_from`.
inline std::int64_t fail_none() {
  first_failure = never_fails;
  return allocations;
}

}  // namespace manyscale::test

void* operator new(std::size_t bytes) {
  return manyscale::test::allocate_or_throw(bytes);
}
void* operator new[](std::size_t bytes) {
  return manyscale::test::allocate_or_throw(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return manyscale::test::allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return manyscale::test::allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return manyscale::test::allocate(bytes, 1);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return manyscale::test::allocate(bytes, 1);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
