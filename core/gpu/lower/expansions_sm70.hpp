// SPDX-License-Identifier: Apache-2.0
// Expansions of PTX instructions that hardware does not have: the sequences that ptxas of CUDA 12.9 emits for
// sm_70, on the path that ordinary operands take. tools/make_expansions.py compares them with ptxas, and
// makes the rows of other architectures.
#pragma once
#include <string_view>

#include "gpu/lower/expansion.hpp"

namespace manyscale::gpu {

struct ExpandedInstruction {
  std::string_view opcode;
  std::string_view modifier;  // one that must be there; "" for any
  std::string_view type;      // "" for any
  Expansion expansion;
  bool constant = false;  // only if its last operand is one
};

// The first row that fits counts.
inline constexpr ExpandedInstruction kExpansions[] = {
    {"div", "", "u32",
     ">I2F IADD3 >MUFU >IADD3 >F2I >IMAD >IMAD.WIDE >IMAD.WIDE >IMAD >IADD3 >IADD3 IADD3 "
     ">IADD3 >IADD3"_steps,
     true},
    {"div", "", "u32",
     ">I2F IADD3 IADD3 IADD3 >MUFU >IADD3 >F2I >IMAD >IMAD.WIDE >IMAD.WIDE >IADD3 >IADD3 "
     ">IMAD >IADD3 >IADD3 IADD3 >IADD3 >IADD3 >LOP3"_steps},
    {"div", "", "s32",
     ">I2F IADD3 >MUFU >IADD3 >F2I >IMAD >IMAD.WIDE IADD3 LOP3 >IMAD.WIDE IADD3 >IMAD >IADD3 "
     ">IADD3 IADD3 >IADD3 >IADD3 IADD3 >IADD3"_steps,
     true},
    {"div", "", "s32",
     "IADD3 IADD3 >I2F IADD3 LOP3 IADD3 >MUFU >IADD3 IADD3 >F2I >IADD3 >IMAD IADD3 >IMAD.WIDE "
     "IADD3 >IMAD.WIDE >IMAD >IADD3 >IADD3 IADD3 IADD3 >IADD3 >IADD3 >IADD3 >LOP3"_steps},
    {"rem", "", "u32",
     ">I2F IADD3 >MUFU >IADD3 >F2I >IMAD >IMAD.WIDE >IMAD.WIDE >IMAD >IADD3 >IADD3 >IADD3 "
     ">IADD3"_steps,
     true},
    {"rem", "", "u32",
     ">I2F IADD3 IADD3 IADD3 >MUFU >IADD3 >F2I >IMAD >IMAD.WIDE >IMAD.WIDE >IADD3 >IMAD "
     ">IADD3 >IADD3 >IADD3 >IADD3 >LOP3"_steps},
    {"rem", "", "s32",
     ">I2F IADD3 >MUFU >IADD3 >F2I >IMAD >IMAD.WIDE IADD3 IADD3 >IMAD.WIDE >IMAD >IADD3 "
     ">IADD3 >IADD3 >IADD3 IADD3 >IADD3"_steps,
     true},
    {"rem", "", "s32",
     "IADD3 IADD3 >I2F IADD3 IADD3 >MUFU >IADD3 IADD3 >F2I >IADD3 >IMAD >IMAD.WIDE IADD3 "
     ">IMAD.WIDE >IMAD >IADD3 >IADD3 IADD3 >IADD3 >IADD3 IADD3 IADD3 >IADD3 >LOP3"_steps},
    {"div", "", "u16",
     "IADD3 BRA NOP I2F IADD3 I2F FFMA FFMA FFMA >FFMA IADD3 FFMA >MUFU >FFMA >IADD3 IADD3 "
     "FFMA IMAD >F2I >LOP3 IMAD BRA"_steps},
    {"div", "", "s16",
     "IADD3 LOP3 LOP3 BRA NOP IADD3 IMAD I2F >FFMA FFMA FFMA >FFMA IADD3 FFMA IADD3 LOP3 "
     ">MUFU LOP3 I2F FFMA >IADD3 >FFMA IMAD IMAD >F2I >LOP3 >IMAD IMAD IMAD BRA"_steps},
    {"rem", "", "u16",
     "IADD3 BRA NOP I2F IMAD FFMA FFMA FFMA >FFMA IADD3 FFMA I2F >MUFU >FFMA >IADD3 >FFMA "
     "IMAD >F2I >LOP3 >IADD3 >IMAD IADD3 IMAD BRA"_steps},
    {"rem", "", "s16",
     "IADD3 LOP3 LOP3 BRA NOP IADD3 IMAD IADD3 LOP3 I2F >FFMA FFMA FFMA >FFMA IADD3 FFMA I2F "
     ">MUFU >FFMA >IADD3 >FFMA IADD3 IADD3 >F2I IMAD LOP3 IADD3 IMAD >LOP3 >IMAD IMAD IMAD "
     "BRA"_steps},
    {"div", "", "u64",
     "IADD3 BRA NOP >I2F >MUFU >IADD3 >F2I >IMAD.WIDE >IMAD IADD3 IMAD >IMAD.WIDE IMAD IADD3 "
     "IMAD IMAD >IMAD.WIDE >IMAD.WIDE >IMAD.WIDE >IADD3 IADD3 >IMAD.WIDE IADD3 IMAD IADD3 "
     "IMAD >IMAD.WIDE IMAD IADD3 IMAD >IMAD.WIDE >IMAD.WIDE >IMAD.WIDE IMAD IADD3 >IADD3 "
     ">IMAD.WIDE IMAD IADD3 IMAD >IMAD.WIDE >IMAD.WIDE >IMAD.WIDE >IADD3 IADD3 >IMAD.WIDE "
     "IMAD IADD3 IMAD IADD3 IMAD >IADD3 IADD3 IADD3 >IADD3 IMAD IADD3 IADD3 >IADD3 IADD3 "
     "IADD3 >IADD3 IADD3 IADD3 IMAD IADD3 >IADD3 IADD3 IADD3 IADD3 IMAD IADD3 IADD3 >IADD3 "
     "BRA IADD3 IADD3"_steps},
    {"div", "", "s64",
     "IADD3 BRA NOP IADD3 IADD3 IADD3 IMAD IADD3 IADD3 >I2F >MUFU >IADD3 >F2I >IMAD.WIDE "
     ">IMAD IADD3 IMAD >IMAD.WIDE >IMAD IADD3 IMAD >IMAD.WIDE IMAD >IMAD.WIDE >IMAD.WIDE "
     "IADD3 IMAD >IMAD.WIDE IADD3 IMAD IADD3 IMAD >IMAD.WIDE IMAD IMAD IADD3 >IMAD.WIDE IADD3 "
     ">IMAD.WIDE IMAD >IMAD.WIDE IADD3 IADD3 IMAD >IMAD.WIDE IMAD IADD3 IADD3 IMAD IADD3 "
     ">IMAD.WIDE IMAD >IMAD.WIDE >IMAD.WIDE IADD3 IMAD >IMAD.WIDE IADD3 IMAD IADD3 IADD3 IMAD "
     "IADD3 IMAD >IADD3 IADD3 IADD3 IMAD IADD3 IADD3 >IADD3 IADD3 IADD3 >IADD3 IADD3 IADD3 "
     "LOP3 IMAD IADD3 >IADD3 IADD3 IADD3 >IADD3 IADD3 IADD3 IMAD IADD3 IADD3 IMAD IADD3 IADD3 "
     ">IADD3 BRA IADD3 IADD3"_steps},
    {"rem", "", "u64",
     "IADD3 BRA NOP >I2F >MUFU >IADD3 >F2I >IMAD.WIDE >IMAD IADD3 IMAD >IMAD.WIDE IADD3 IMAD "
     "IADD3 IMAD >IMAD.WIDE >IMAD.WIDE >IMAD.WIDE IMAD IADD3 >IADD3 >IMAD.WIDE >IMAD IADD3 "
     "IMAD >IMAD.WIDE IADD3 IMAD >IMAD.WIDE IMAD >IMAD.WIDE >IMAD.WIDE IADD3 IADD3 >IMAD.WIDE "
     "IADD3 IMAD IADD3 IMAD >IMAD.WIDE >IMAD.WIDE >IMAD.WIDE >IMAD IADD3 >IADD3 >IMAD.WIDE "
     ">IMAD IADD3 IMAD IADD3 IMAD >IADD3 IADD3 IADD3 >IADD3 IADD3 IADD3 >IADD3 IADD3 IMAD "
     "IADD3 >IADD3 IADD3 IADD3 >IADD3 IADD3 IADD3 >IADD3 BRA IADD3 IADD3"_steps},
    {"rem", "", "s64",
     "IADD3 BRA NOP IADD3 IADD3 IMAD IADD3 IADD3 >I2F >MUFU >IADD3 >F2I >IMAD.WIDE >IMAD "
     "IADD3 IMAD >IMAD.WIDE IADD3 IMAD IMAD IMAD >IMAD.WIDE >IMAD.WIDE >IMAD.WIDE IADD3 IADD3 "
     ">IADD3 >IMAD.WIDE IADD3 IMAD IADD3 IMAD >IMAD.WIDE IMAD IMAD IADD3 >IMAD.WIDE IADD3 "
     ">IMAD.WIDE IMAD >IMAD.WIDE IADD3 IADD3 IMAD IMAD IADD3 >IMAD.WIDE IADD3 IADD3 IMAD IMAD "
     ">IMAD.WIDE >IMAD.WIDE >IMAD.WIDE IADD3 IMAD >IMAD.WIDE IADD3 IMAD IADD3 IMAD IADD3 IMAD "
     ">IADD3 IADD3 IADD3 >IADD3 IADD3 IADD3 >IADD3 IADD3 IMAD IADD3 >IADD3 IADD3 IADD3 >IADD3 "
     "IADD3 IADD3 IMAD IADD3 IADD3 >IADD3 >IADD3 BRA IADD3 IADD3"_steps},
    {"div", "full", "f32", "FFMA FFMA FFMA FFMA FFMA FFMA >MUFU >FFMA"_steps},
    {"div", "approx", "f32", "FFMA FFMA FFMA >MUFU >FFMA"_steps},
    {"div", "", "f32", "BRA BRA >MUFU FFMA >FFMA >FFMA >FFMA >FFMA >FFMA BRA BRA"_steps},
    {"div", "", "f64",
     "BRA BRA IADD3 >MUFU FFMA >DFMA >DFMA >DFMA >DFMA >DFMA >DFMA >DFMA >DFMA FFMA FFMA BRA "
     "BRA"_steps},
    {"rcp", "approx", "f32", "IADD3 FFMA FFMA >FFMA >FFMA >FFMA >MUFU >FFMA"_steps},
    {"rcp", "", "f32", "BRA BRA >IADD3 >LOP3 >IADD3 BRA >MUFU >FFMA >FFMA >FFMA BRA"_steps},
    {"rcp", "approx", "f64", "IADD3 >MUFU"_steps},
    {"rcp", "", "f64", "BRA BRA >MUFU IADD3 FFMA >DFMA >DFMA >DFMA >DFMA >DFMA BRA BRA"_steps},
    {"sqrt", "approx", "f32", "FFMA >FFMA >MUFU >FFMA"_steps},
    {"sqrt", "", "f32", "BRA BRA >IADD3 >MUFU IADD3 BRA >FFMA FFMA >FFMA >FFMA BRA"_steps},
    {"sqrt", "", "f64",
     "BRA BRA IADD3 IADD3 >MUFU >IADD3 IADD3 >DFMA >DFMA >DFMA >DFMA >DFMA >DFMA IADD3 IADD3 "
     ">DFMA >DFMA BRA BRA"_steps},
    {"rsqrt", "", "f32", "FFMA >FFMA >MUFU >FFMA"_steps},
    {"rsqrt", "ftz", "f64", ">MUFU"_steps},
    {"rsqrt", "", "f64",
     "BRA BRA IADD3 IADD3 IADD3 >MUFU >IADD3 IADD3 >DFMA >DFMA >DFMA >DFMA >DFMA BRA BRA"_steps},
    {"sin", "", "f32", ">FFMA >MUFU"_steps},
    {"cos", "", "f32", ">FFMA >MUFU"_steps},
    {"lg2", "", "f32", "FFMA >FFMA >MUFU >FFMA"_steps},
    {"ex2", "", "f32", "FFMA >FFMA >MUFU >FFMA"_steps},
    {"tanh", "", "f32", ">MUFU"_steps},
    {"min", "", "f64", "IADD3 >DFMA IADD3 >FFMA IADD3 >LOP3 >IADD3"_steps},
    {"max", "", "f64", "IADD3 >DFMA IADD3 >FFMA IADD3 >LOP3 >IADD3"_steps},
    {"min", "", "s32", ">IADD3 >IADD3"_steps},
    {"min", "", "u32", ">IADD3 >IADD3"_steps},
    {"max", "", "s32", ">IADD3 >IADD3"_steps},
    {"max", "", "u32", ">IADD3 >IADD3"_steps},
    {"min", "", "s64", ">IADD3 >IADD3 >IADD3 IADD3"_steps},
    {"min", "", "u64", ">IADD3 >IADD3 >IADD3 IADD3"_steps},
    {"max", "", "s64", ">IADD3 >IADD3 >IADD3 IADD3"_steps},
    {"max", "", "u64", ">IADD3 >IADD3 >IADD3 IADD3"_steps},
    {"min", "", "s16", "LOP3 LOP3 >IADD3 >IADD3"_steps},
    {"min", "", "u16", "LOP3 LOP3 >IADD3 >IADD3"_steps},
    {"max", "", "s16", "LOP3 LOP3 >IADD3 >IADD3"_steps},
    {"max", "", "u16", "LOP3 LOP3 >IADD3 >IADD3"_steps},
    {"mul", "wide", "u16", ">IMAD"_steps},
    {"mul", "", "s16", "LOP3 LOP3 >IMAD"_steps},
    {"mul", "", "u16", "LOP3 LOP3 >IMAD"_steps},
    {"mad", "", "s16", "LOP3 LOP3 >IMAD"_steps},
    {"mad", "", "u16", "LOP3 LOP3 >IMAD"_steps},
    {"mul", "lo", "s64", ">IMAD >IMAD.WIDE >IADD3"_steps, true},
    {"mul", "lo", "u64", ">IMAD >IMAD.WIDE >IADD3"_steps, true},
    {"mul", "lo", "s64", ">IMAD >IMAD.WIDE >IMAD >IADD3"_steps},
    {"mul", "lo", "u64", ">IMAD >IMAD.WIDE >IMAD >IADD3"_steps},
    {"mad", "lo", "s64", ">IMAD >IMAD.WIDE >IMAD >IADD3"_steps},
    {"mad", "lo", "u64", ">IMAD >IMAD.WIDE >IMAD >IADD3"_steps},
    {"mul", "hi", "u64", ">IMAD.WIDE >IMAD.WIDE IMAD.WIDE IADD3 IADD3 >IADD3 >IMAD.WIDE"_steps},
    {"mul", "hi", "s64",
     ">IMAD.WIDE IADD3 >IMAD.WIDE IMAD.WIDE IADD3 IADD3 >IADD3 >IMAD.WIDE >IADD3 >IADD3 IADD3 "
     "IADD3 >IADD3 IADD3 >IADD3 IADD3 >IADD3"_steps},
    {"mad", "hi", "u64", ">IMAD.WIDE >IMAD.WIDE IMAD.WIDE IADD3 IADD3 >IADD3 >IMAD.WIDE >IADD3 >IADD3"_steps},
    {"mad", "hi", "s64",
     ">IMAD.WIDE IADD3 >IMAD.WIDE IMAD.WIDE IADD3 IADD3 >IADD3 >IMAD.WIDE >IADD3 >IADD3 IADD3 "
     "IADD3 >IADD3 IADD3 >IADD3 IADD3 >IADD3 >IADD3 >IADD3"_steps},
    {"mul24", "", "", "LOP3 LOP3 >IMAD"_steps},
    {"mad24", "", "", "LOP3 LOP3 >IMAD"_steps},
    {"abs", "", "s64", ">IADD3 IADD3 >IADD3 >IADD3 IADD3"_steps},
    {"neg", "", "s64", ">IADD3 >IADD3"_steps},
    {"bfe", "", "", ">LOP3 >LOP3"_steps, true},
    {"bfe", "", "", "LOP3 LOP3 LOP3 >LOP3 >LOP3"_steps},
    {"bfi", "", "", ">LOP3 >LOP3"_steps, true},
    {"bfi", "", "", "LOP3 LOP3 LOP3 >LOP3 >LOP3 >LOP3"_steps},
    {"brev", "", "b64", ">BREV BREV"_steps},
    {"brev", "", "", ">BREV"_steps},
    {"popc", "", "b64", ">POPC POPC >IADD3"_steps},
    {"popc", "", "b32", ">POPC"_steps},
    {"clz", "", "b64", "IADD3 >IADD3 >FLO >IADD3 IADD3 >IADD3"_steps},
    {"clz", "", "b32", ">FLO >IADD3"_steps},
    {"bfind", "", "u64", "IADD3 >IADD3 >FLO >IADD3 IADD3 >IADD3"_steps},
    {"bfind", "", "s64", "IADD3 >IADD3 >FLO >IADD3 IADD3 >IADD3"_steps},
    {"bfind", "", "", ">FLO"_steps},
    {"sad", "", "", ">IADD3"_steps},
    {"copysign", "", "", ">LOP3"_steps},
    {"slct", "", "", ">IADD3 >IADD3"_steps},
    {"cnot", "", "", ">IADD3 >IADD3"_steps},
    {"shr", "", "s16", "LOP3 >LOP3"_steps},
    {"fns", "", "",
     ">LOP3 >LOP3 >IADD3 >IADD3 >LOP3 >LOP3 >IADD3 >IADD3 >LOP3 >LOP3 >IADD3 >IADD3 >LOP3 "
     ">LOP3 >IADD3 >IADD3"_steps},
};

// A warp-aggregated atomic operation: all lanes use one word, the warp computes their value together, and one
// lane carries it out.
struct WarpAggregatedAtomic {
  std::string_view operation;
  bool has_result;
  bool constant;             // all lanes bring the same constant
  Expansion before;          // the operation
  Expansion after;           // gives each lane the value that it would have seen
  bool alone_first = false;  // an instruction of its own for the case that lanes are missing
};

inline constexpr WarpAggregatedAtomic kWarpAggregatedAtomics[] = {
    {"add", false, true, "S2R VOTE >POPC POPC IADD3"_steps, ""_steps},
    {"add", true, true, "S2R VOTE >POPC POPC IADD3"_steps, "S2R LOP3 POPC >SHFL >IADD3"_steps},
    {"add", false, false,
     "VOTE IADD3 BRA >SHFL S2R >IADD3 IADD3 >SHFL >IADD3 >SHFL >IADD3 >SHFL >IADD3 >SHFL "
     ">IADD3"_steps,
     ""_steps, true},
    {"add", true, false,
     "VOTE IADD3 BRA >SHFL IMAD S2R >IADD3 IADD3 >SHFL >IADD3 >SHFL >IADD3 >SHFL >IADD3 >SHFL "
     ">IADD3"_steps,
     ">SHFL >SHFL >IADD3"_steps, true},
    {"and", false, false,
     "VOTE IADD3 BRA >SHFL S2R >LOP3 IADD3 >SHFL >LOP3 >SHFL >LOP3 >SHFL >LOP3 >SHFL >LOP3"_steps, ""_steps,
     true},
    {"or", false, false,
     "VOTE IADD3 BRA >SHFL S2R >LOP3 IADD3 >SHFL >LOP3 >SHFL >LOP3 >SHFL >LOP3 >SHFL >LOP3"_steps, ""_steps,
     true},
    {"xor", false, false,
     "VOTE IADD3 BRA >SHFL S2R >LOP3 IADD3 >SHFL >LOP3 >SHFL >LOP3 >SHFL >LOP3 >SHFL >LOP3"_steps, ""_steps,
     true},
    {"min", false, false,
     "VOTE IADD3 BRA >SHFL S2R >IADD3 >IADD3 >SHFL >IADD3 >IADD3 >SHFL >IADD3 >IADD3 >SHFL "
     ">IADD3 >IADD3 IADD3 >SHFL >IADD3 >IADD3"_steps,
     ""_steps, true},
    {"max", false, false,
     "VOTE IADD3 BRA >SHFL S2R >IADD3 >IADD3 >SHFL >IADD3 >IADD3 >SHFL >IADD3 >IADD3 >SHFL "
     ">IADD3 >IADD3 IADD3 >SHFL >IADD3 >IADD3"_steps,
     ""_steps, true},
};

}  // namespace manyscale::gpu
