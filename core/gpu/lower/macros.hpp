// SPDX-License-Identifier: Apache-2.0
// What one PTX instruction becomes when hardware has no such instruction: the sequences of the vendor's
// libraries, in letters. A capital needs the result before it, a small letter does not.
//   I integer  L logic  M multiply-add  W wide multiply-add  F fp32  D fp64  H fp16  S special function  C
//   convert B branch   X move
#pragma once
#include <string_view>

namespace manyscale::gpu {

struct Macro {
  std::string_view opcode;    // with the modifiers that matter, as a beginning
  std::string_view type;      // "" for any
  std::string_view rounding;  // a modifier that must be there; "" for any
  std::string_view sequence;
};

// Lengths and chains after the latencies that Arafa et al. measured on a Titan V (HPEC 2019) and the
// instructions that the CUDA assembler emits; the first row that fits counts.
inline constexpr Macro kMacros[] = {
    {"div", "u32", "", "CSICMWWMIiii"},
    {"div", "s32", "", "iiCSICMWWMIiiiL"},
    {"div", "u16", "", "CSFCi"},
    {"div", "s16", "", "iCSFCiL"},
    {"rem", "u32", "", "CSICMWWMIiii"},
    {"rem", "s32", "", "iiCSICMWWMIiiiL"},
    {"div", "u64", "", "BCSCWWWWWWWWMWWWMIIiiiiiiwwwwIIiiiiL"},
    {"div", "s64", "", "iiiBCSCWWWWWWWWMWWWMIIiiiiiiwwwwIIiiiiL"},
    {"rem", "u64", "", "BCSCWWWWWWWWMWWWMIIiiiiiiwwwwIIiiiiL"},
    {"rem", "s64", "", "iiiBCSCWWWWWWWWMWWWMIIiiiiiiwwwwIIiiiiL"},
    {"div", "f32", "approx", "fSF"},
    {"div", "f32", "full", "ffSFF"},
    {"div", "f32", "", "SFFFFFbF"},
    {"div", "f64", "", "SDDDDDDDDfbD"},
    {"rcp", "f32", "approx", "fSF"},
    {"rcp", "f32", "", "IIBSFFFF"},
    {"rcp", "f64", "approx", "S"},
    {"rcp", "f64", "", "SDDDDDI"},
    {"sqrt", "f32", "approx", "fSF"},
    {"sqrt", "f32", "", "IISFFFFFB"},
    {"sqrt", "f64", "", "SDDDDDDDDDDDI"},
    {"rsqrt", "f32", "", "fSF"},
    {"rsqrt", "f64", "", "S"},
    {"sin", "f32", "", "FS"},
    {"cos", "f32", "", "FS"},
    {"lg2", "f32", "ftz", "SF"},
    {"lg2", "f32", "", "fFSF"},
    {"ex2", "f32", "ftz", "S"},
    {"ex2", "f32", "", "fFSF"},
    {"tanh", "f32", "", "S"},
    {"mul.lo", "s64", "", "Wmm"},
    {"mul.lo", "u64", "", "Wmm"},
    {"mad.lo", "s64", "", "Wmm"},
    {"mad.lo", "u64", "", "Wmm"},
    {"mul.hi", "u64", "", "WWWWII"},
    {"mul.hi", "s64", "", "WWWWIIi"},
    {"mul24", "", "", "LM"},
    {"mad24", "", "", "LM"},
    {"bfe", "", "", "LLI"},
    {"bfi", "", "", "LLL"},
    {"brev", "", "", "C"},
    {"popc", "b64", "", "CcI"},
    {"popc", "b32", "", "C"},
    {"clz", "b64", "", "CcI"},
    {"clz", "b32", "", "CI"},
    {"bfind", "", "", "C"},
    {"sad", "", "", "II"},
    {"copysign", "", "", "L"},
    {"slct", "", "", "II"},
    {"cnot", "", "", "II"},
    {"fns", "", "", "LLIILLIILLIILLII"},
};

}  // namespace manyscale::gpu
