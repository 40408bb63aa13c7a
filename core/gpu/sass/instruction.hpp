// SPDX-License-Identifier: Apache-2.0
// A machine instruction of the GPUs sm_70 to sm_90, as NVIDIA's disassembler names its parts.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "gpu/sass/words.hpp"

namespace manyscale::sass {

// What the compiler tells the issue logic with each instruction.
struct Schedule {
  static constexpr std::uint8_t kNoBarrier = 7;

  std::uint8_t stall = 0;                   // cycles until the warp's next instruction may issue
  bool yield = false;                       // prefer another warp after this instruction
  std::uint8_t write_barrier = kNoBarrier;  // the dependence counter (0..5) released when results are written
  std::uint8_t read_barrier = kNoBarrier;   // the one released when source registers have been read
  std::uint8_t wait_mask = 0;               // the counters that must be zero before issue, one bit each
  std::uint8_t reuse = 0;  // source slots (bit 0: Ra, 1: Rb, 2: Rc) that stay in the operand cache

  bool operator==(const Schedule&) const = default;
};

// The machine's names for "nothing": they read as zero or true, and writes to them are lost.
constexpr std::uint8_t kZeroRegister = 255;        // RZ
constexpr std::uint8_t kZeroUniformRegister = 63;  // URZ
constexpr std::uint8_t kTruePredicate = 7;         // PT, UPT

enum class OperandKind : std::uint8_t {
  none,
  general,             // R0..R254, RZ
  uniform,             // UR0..UR62, URZ
  predicate,           // P0..P6, PT
  uniform_predicate,   // UP0..UP6, UPT
  convergence,         // B0..B15, a convergence barrier
  dependence,          // SB0..SB5, a dependence counter (of DEPBAR)
  special,             // SR_TID.X and the like: the number is in `value`
  immediate,           // the bits are in `value`; `format` says how they are meant
  constant,            // c[bank][register + value]; with `descriptor` a cx[UR][value] of a bound table
  address,             // [register + uniform + value]
  target,              // a position in the code: bytes from the start of the function, in `value`
  word,                // a word of the instruction that is printed among the operands: in `suffix`
  predicates,          // PR: all predicates at once
  uniform_predicates,  // UPR: all uniform predicates at once
  flag_mask,           // a set of dependence counters {0,2}, in `value`
  policy,              // desc[UR]: how caches are to treat what is moved
  matrices,            // gdesc[UR]: where matrices lie in shared memory
};

// One operand. An instruction's operands stand at fixed positions whether they are printed or not: `shown`
// says whether the disassembler prints this one (it leaves out RZ, PT and zero where they are the usual
// case).
struct Operand {
  enum class Format : std::uint8_t {
    integer,
    float16x2,
    bfloat16x2,
    float32,
    float64_high,
    signs,  // of the lanes of a quad, two bits each
  };
  static constexpr std::uint8_t kNone = 255;  // no uniform register here

  OperandKind kind = OperandKind::none;
  Format format = Format::integer;
  bool shown = true;
  bool written = false;   // a destination
  bool negated = false;   // -x, or !p of a predicate
  bool inverted = false;  // ~x
  bool absolute = false;  // |x|
  bool reuse = false;     // .reuse
  std::uint8_t index =
      0;  // number of the register, predicate or barrier; base register of an address or constant
  std::uint8_t count = 1;            // how many registers from `index` on
  std::uint8_t uniform = kNone;      // uniform register that is added to an address
  std::uint8_t descriptor = kNone;   // uniform register of desc[UR] or cx[UR]
  std::uint8_t bank = 0;             // of a constant
  bool signed_offset = false;        // a constant's offset is printed with a sign, as before sm_90
  bool indexed = false;              // a base register is printed even if it is RZ
  std::array<Modifier, 4> suffix{};  // .H0_H0, .64, .X8, .U32 and the like, in printed order
  std::int64_t value = 0;

  bool has(Modifier wanted) const { return std::ranges::find(suffix, wanted) != suffix.end(); }
  bool operator==(const Operand&) const = default;
};

// The 128 bits of an instruction.
struct Words {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  // The bits from `first` on, at most 64 of them, as a number.
  constexpr std::uint64_t bits(unsigned first, unsigned count) const {
    const std::uint64_t value = first >= 64  ? high >> (first - 64)
                                : first == 0 ? low
                                             : (low >> first) | (high << (64 - first));
    return count >= 64 ? value : value & ((std::uint64_t{1} << count) - 1);
  }
  constexpr bool bit(unsigned position) const { return bits(position, 1) != 0; }
  bool operator==(const Words&) const = default;
};

struct Instruction {
  static constexpr unsigned kBytes = 16;
  static constexpr unsigned kMaximumOperands = 10;
  static constexpr unsigned kMaximumModifiers = 10;

  Opcode opcode{};                                      // Opcode{} when the bits mean nothing we know
  std::array<Modifier, kMaximumModifiers> modifiers{};  // in printed order, Modifier{} after the last
  std::array<std::uint16_t, 3> shape{};  // rows, columns and depth of a product of matrices; 0: none
  std::uint8_t guard = kTruePredicate;
  bool guard_negated = false;
  bool guard_uniform = false;  // the guard is a UP (uniform datapath instructions)
  std::uint8_t operand_count = 0;
  std::array<Operand, kMaximumOperands> operands{};
  Schedule schedule;
  Words words;
  std::uint32_t offset = 0;  // bytes from the start of the function

  bool known() const { return opcode != Opcode{}; }
  bool has(Modifier wanted) const;
  bool operator==(const Instruction&) const = default;
};

// Which instructions exist and what they are called: 70, 72, 75, 80, 86, 87, 89 or 90.
struct Architecture {
  std::uint16_t number = 70;
};

// The instruction of those bits at that offset of its function; `known()` is false where they are no
// instruction of the architecture that we can read.
Instruction decode(Words words, Architecture architecture, std::uint32_t offset);

// The instruction as the disassembler prints it, without its semicolon: "@!P0 FFMA.FTZ R1, R2, -R3,
// c[0x0][0x160]". A target is printed as its offset, "0x1a0".
std::string text(const Instruction& instruction);

// The instruction's name and modifiers alone: "LDG.E.64".
std::string mnemonic(const Instruction& instruction);

}  // namespace manyscale::sass
