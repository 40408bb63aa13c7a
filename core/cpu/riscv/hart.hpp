// SPDX-License-Identifier: Apache-2.0
// The state of one RISC-V hardware thread (RV64GC, user mode), as a software thread sees it.
#pragma once
#include <array>
#include <cstdint>

namespace manyscale::cpu::riscv {

struct Hart {
  std::array<std::uint64_t, 32> x{};  // x[0] is always 0
  std::array<std::uint64_t, 32> f{};  // single precision is NaN-boxed
  std::uint64_t pc = 0;
  std::uint32_t fcsr = 0;                              // rounding mode in bits 7:5, flags in 4:0
  std::uint64_t reserved_address = ~std::uint64_t{0};  // of the last load-reserved, none if all ones
  std::uint64_t reserved_value = 0;
  std::uint64_t retired = 0;  // instructions executed so far, for instret
};

}  // namespace manyscale::cpu::riscv
