// SPDX-License-Identifier: Apache-2.0
// What one PTX instruction becomes when hardware has no such instruction: the sequences that the CUDA 12.9
// assembler emits for sm_70, on the path that ordinary operands take, in letters. A capital needs the result
// before it, a small letter does not; the last capital has the result.
//   I integer  L logic  M multiply-add  W wide multiply-add  F fp32  D fp64  H fp16  S special function
//   C convert  B branch  N other  V vote  X shuffle  R special register
// tools/compare_with_ptxas.py shows where they differ from an assembler's.
#pragma once
#include <string_view>

namespace manyscale::gpu {

struct Macro {
  std::string_view opcode;
  std::string_view modifier;  // one that must be there; "" for any
  std::string_view type;      // "" for any
  std::string_view sequence;
  bool constant = false;  // only if its last operand is one
};

// The first row that fits counts.
inline constexpr Macro kMacros[] = {
    {"div", "", "u32", "CiSICMWWMIIiII", true},
    {"div", "", "u32", "CiiiSICMWWIIMIIiIIL"},
    {"div", "", "s32", "CiSICMWilWiMIIiIIiI", true},
    {"div", "", "s32", "iiCiliSIiCIMiWiWMIIiiIIIL"},
    {"rem", "", "u32", "CiSICMWWMIIII", true},
    {"rem", "", "u32", "CiiiSICMWWIMIIIIL"},
    {"rem", "", "s32", "CiSICMWiiWMIIIIiI", true},
    {"rem", "", "s32", "iiCiiSIiCIMWiWMIIiIIiiIL"},
    {"div", "", "u16", "ibncicfffFifSFIifmCLmb"},
    {"div", "", "s16", "illbnimcFffFifilSlcfIFmmCLMmmb"},
    {"rem", "", "u16", "ibncmfffFifcSFIFmCLIMimb"},
    {"rem", "", "s16", "illbnimilcFffFifcSFIFiiCmlimLMmmb"},
    {"div", "", "u64", "ibnCSICWMimWmimmWWWIiWimimWmimWWWmiIWmimWWWIiWmimimIiiImiiIiiIiimiIiiimiiIbii"},
    {"div", "", "s64",
     "ibniiimiiCSICWMimWMimWmWWimWimimWmmiWiWmWiimWmiimiWmWWimWimiimimIiimiiIiiIiilmiIiiIiimiimiiIbii"},
    {"rem", "", "u64", "ibnCSICWMimWimimWWWmiIWMimWimWmWWiiWimimWWWMiIWMimimIiiIiiIimiIiiIiiIbii"},
    {"rem", "", "s64",
     "ibniimiiCSICWMimWimmmWWWiiIWimimWmmiWiWmWiimmiWiimmWWWimWimimimIiiIiiIimiIiiIiimiiIIbii"},
    {"div", "full", "f32", "ffffffSF"},
    {"div", "approx", "f32", "fffSF"},
    {"div", "", "f32", "bbSfFFFFFbb"},
    {"div", "", "f64", "bbiSfDDDDDDDDffbb"},
    {"rcp", "approx", "f32", "iffFFFSF"},
    {"rcp", "", "f32", "bbILIbSFFFb"},
    {"rcp", "approx", "f64", "iS"},
    {"rcp", "", "f64", "bbSifDDDDDbb"},
    {"sqrt", "approx", "f32", "fFSF"},
    {"sqrt", "", "f32", "bbISibFfFFb"},
    {"sqrt", "", "f64", "bbiiSIiDDDDDDiiDDbb"},
    {"rsqrt", "", "f32", "fFSF"},
    {"rsqrt", "ftz", "f64", "S"},
    {"rsqrt", "", "f64", "bbiiiSIiDDDDDbb"},
    {"sin", "", "f32", "FS"},
    {"cos", "", "f32", "FS"},
    {"lg2", "", "f32", "fFSF"},
    {"ex2", "", "f32", "fFSF"},
    {"tanh", "", "f32", "S"},
    {"min", "", "f64", "iDiFiLI"},
    {"max", "", "f64", "iDiFiLI"},
    {"min", "", "s32", "II"},
    {"min", "", "u32", "II"},
    {"max", "", "s32", "II"},
    {"max", "", "u32", "II"},
    {"min", "", "s64", "IIIi"},
    {"min", "", "u64", "IIIi"},
    {"max", "", "s64", "IIIi"},
    {"max", "", "u64", "IIIi"},
    {"min", "", "s16", "llII"},
    {"min", "", "u16", "llII"},
    {"max", "", "s16", "llII"},
    {"max", "", "u16", "llII"},
    {"mul", "wide", "u16", "M"},
    {"mul", "", "s16", "llM"},
    {"mul", "", "u16", "llM"},
    {"mad", "", "s16", "llM"},
    {"mad", "", "u16", "llM"},
    {"mul", "lo", "s64", "MWI", true},
    {"mul", "lo", "u64", "MWI", true},
    {"mul", "lo", "s64", "MWMI"},
    {"mul", "lo", "u64", "MWMI"},
    {"mad", "lo", "s64", "MWMI"},
    {"mad", "lo", "u64", "MWMI"},
    {"mul", "hi", "u64", "WWwiiIW"},
    {"mul", "hi", "s64", "WiWwiiIWIIiiIiIiI"},
    {"mad", "hi", "u64", "WWwiiIWII"},
    {"mad", "hi", "s64", "WiWwiiIWIIiiIiIiIII"},
    {"mul24", "", "", "llM"},
    {"mad24", "", "", "llM"},
    {"abs", "", "s64", "IiIIi"},
    {"neg", "", "s64", "II"},
    {"bfe", "", "", "LL", true},
    {"bfe", "", "", "lllLL"},
    {"bfi", "", "", "LL", true},
    {"bfi", "", "", "lllLLL"},
    {"brev", "", "b64", "Cc"},
    {"brev", "", "", "C"},
    {"popc", "", "b64", "CcI"},
    {"popc", "", "b32", "C"},
    {"clz", "", "b64", "iICIiI"},
    {"clz", "", "b32", "CI"},
    {"bfind", "", "u64", "iICIiI"},
    {"bfind", "", "s64", "iICIiI"},
    {"bfind", "", "", "C"},
    {"sad", "", "", "I"},
    {"copysign", "", "", "L"},
    {"slct", "", "", "II"},
    {"cnot", "", "", "II"},
    {"shr", "", "s16", "lL"},
    {"fns", "", "", "LLIILLIILLIILLII"},
};

// An atomic operation on one word for all lanes: the warp computes what they do together, and one lane does
// it.
struct CombinedAtomic {
  std::string_view operation;
  bool has_result;
  bool constant;             // all lanes bring the same constant
  std::string_view before;   // the operation
  std::string_view after;    // gives each lane the value that it would have seen
  bool alone_first = false;  // an instruction of its own for the case that lanes are missing
};

inline constexpr CombinedAtomic kCombinedAtomics[] = {
    {"add", false, true, "rvCci", ""},
    {"add", true, true, "rvCci", "rlcXI"},
    {"add", false, false, "vibXrIiXIXIXIXI", "", true},
    {"add", true, false, "vibXmrIiXIXIXIXI", "XXI", true},
    {"and", false, false, "vibXrLiXLXLXLXL", "", true},
    {"or", false, false, "vibXrLiXLXLXLXL", "", true},
    {"xor", false, false, "vibXrLiXLXLXLXL", "", true},
    {"min", false, false, "vibXrIIXIIXIIXIIiXII", "", true},
    {"max", false, false, "vibXrIIXIIXIIXIIiXII", "", true},
};

}  // namespace manyscale::gpu
