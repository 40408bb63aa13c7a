// SPDX-License-Identifier: Apache-2.0
// The host's floating-point unit: its rounding mode and its flags, in RISC-V's terms. While instructions run,
// the host rounds as frm states and collects the flags; they are brought to fcsr only when it is read.
#pragma once
#include <cstdint>

#include "cpu/riscv/hart.hpp"
#include "cpu/riscv/instruction.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#else
#include <cfenv>
#endif

namespace manyscale::cpu::riscv {

namespace host_float {

#if defined(__SSE2__)

// All exceptions masked, subnormal numbers kept.
inline constexpr std::uint32_t quiet = 0x1f80, flag_bits = 0x3f, rounding_bits = 0x6000;

inline std::uint32_t control_of(std::uint8_t rounding) {
  constexpr std::uint32_t host[] = {0x0000, 0x6000, 0x2000, 0x4000};
  return rounding < 4 ? host[rounding] : 0;
}
inline std::uint8_t flags() {
  const std::uint32_t bits = _mm_getcsr();
  return (bits & 1) * FloatFlag::invalid | (bits >> 2 & 1) * FloatFlag::divide_by_zero |
         (bits >> 3 & 1) * FloatFlag::overflow | (bits >> 4 & 1) * FloatFlag::underflow |
         (bits >> 5 & 1) * FloatFlag::inexact;
}
inline void clear_flags() {
  _mm_setcsr(_mm_getcsr() & ~flag_bits);
}
inline void set_rounding(std::uint8_t rounding) {
  _mm_setcsr((_mm_getcsr() & ~rounding_bits) | control_of(rounding));
}
using Saved = std::uint32_t;
inline Saved begin() {
  const Saved saved = _mm_getcsr();
  _mm_setcsr(quiet);
  return saved;
}
inline void restore(const Saved& saved) {
  _mm_setcsr(saved);
}

#else

inline int control_of(std::uint8_t rounding) {
  constexpr int host[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  return rounding < 4 ? host[rounding] : FE_TONEAREST;
}
inline std::uint8_t flags() {
  const int raised = std::fetestexcept(FE_ALL_EXCEPT);
  return ((raised & FE_INVALID) != 0) * FloatFlag::invalid |
         ((raised & FE_DIVBYZERO) != 0) * FloatFlag::divide_by_zero |
         ((raised & FE_OVERFLOW) != 0) * FloatFlag::overflow |
         ((raised & FE_UNDERFLOW) != 0) * FloatFlag::underflow |
         ((raised & FE_INEXACT) != 0) * FloatFlag::inexact;
}
inline void clear_flags() {
  std::feclearexcept(FE_ALL_EXCEPT);
}
inline void set_rounding(std::uint8_t rounding) {
  std::fesetround(control_of(rounding));
}
using Saved = std::fenv_t;
inline Saved begin() {
  Saved saved;
  std::feholdexcept(&saved);
  return saved;
}
inline void restore(const Saved& saved) {
  std::fesetenv(&saved);
}

#endif

// Keeps the compiler from computing with a value before or after this point: changes of the rounding mode and
// branches around an operation then really are around it.
template <class T>
[[gnu::always_inline]] inline T held(T value) {
#if defined(__SSE2__)
  asm volatile("" : "+x"(value));
#else
  asm volatile("" : "+w"(value));
#endif
  return value;
}

// Brings the flags that the host has collected to fcsr.
inline void collect(Hart& hart) {
  if (const std::uint8_t raised = flags()) {
    hart.fcsr |= raised;
    clear_flags();
  }
}

}  // namespace host_float

inline std::uint8_t rounding_of(const Hart& hart) {
  return hart.fcsr >> 5 & 7;
}

}  // namespace manyscale::cpu::riscv
