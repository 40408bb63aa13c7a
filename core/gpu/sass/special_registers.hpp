// SPDX-License-Identifier: Apache-2.0
// The registers that S2R, S2UR and CS2R read: launch indices, clocks, masks of lanes and the like.
#pragma once
#include <string>
#include <string_view>

namespace manyscale::sass {

// Number of the register with that name ("SR_TID.X"), for use in comparisons with Operand::value.
struct SpecialRegister {
  unsigned number;
  std::string_view name;
};

inline constexpr SpecialRegister kSpecialRegisters[] = {
    {0, "SR_LANEID"},
    {1, "SR_CLOCK"},
    {2, "SR_VIRTCFG"},
    {3, "SR_VIRTID"},
    {15, "SR_ORDERING_TICKET"},
    {16, "SR_PRIM_TYPE"},
    {17, "SR_INVOCATION_ID"},
    {18, "SR_Y_DIRECTION"},
    {19, "SR_THREAD_KILL"},
    {20, "SM_SHADER_TYPE"},
    {21, "SR_DIRECTCBEWRITEADDRESSLOW"},
    {22, "SR_DIRECTCBEWRITEADDRESSHIGH"},
    {23, "SR_DIRECTCBEWRITEENABLED"},
    {24, "SR_MACHINE_ID_0"},
    {25, "SR_MACHINE_ID_1"},
    {26, "SR_MACHINE_ID_2"},
    {27, "SR_MACHINE_ID_3"},
    {28, "SR_AFFINITY"},
    {29, "SR_INVOCATION_INFO"},
    {30, "SR_WSCALEFACTOR_XY"},
    {31, "SR_WSCALEFACTOR_Z"},
    {32, "SR_TID"},
    {33, "SR_TID.X"},
    {34, "SR_TID.Y"},
    {35, "SR_TID.Z"},
    {37, "SR_CTAID.X"},
    {38, "SR_CTAID.Y"},
    {39, "SR_CTAID.Z"},
    {40, "SR_NTID"},
    {41, "SR_CirQueueIncrMinusOne"},
    {42, "SR_NLATC"},
    {44, "SR_SM_SPA_VERSION"},
    {45, "SR_MULTIPASSSHADERINFO"},
    {46, "SR_LWINHI"},
    {47, "SR_SWINHI"},
    {48, "SR_SWINLO"},
    {49, "SR_SWINSZ"},
    {50, "SR_SMEMSZ"},
    {51, "SR_SMEMBANKS"},
    {52, "SR_LWINLO"},
    {53, "SR_LWINSZ"},
    {54, "SR_LMEMLOSZ"},
    {55, "SR_LMEMHIOFF"},
    {56, "SR_EQMASK"},
    {57, "SR_LTMASK"},
    {58, "SR_LEMASK"},
    {59, "SR_GTMASK"},
    {60, "SR_GEMASK"},
    {61, "SR_REGALLOC"},
    {62, "SR_BARRIERALLOC"},
    {64, "SR_GLOBALERRORSTATUS"},
    {65, "SR_CGAERRORSTATUS"},
    {66, "SR_WARPERRORSTATUS"},
    {67, "SR_VIRTUALSMID"},
    {68, "SR_VIRTUALENGINEID"},
    {80, "SR_CLOCKLO"},
    {81, "SR_CLOCKHI"},
    {82, "SR_GLOBALTIMERLO"},
    {83, "SR_GLOBALTIMERHI"},
    {84, "SR_ESR_PC"},
    {85, "SR_ESR_PC_HI"},
    {96, "SR_HWTASKID"},
    {97, "SR_CIRCULARQUEUEENTRYINDEX"},
    {98, "SR_CIRCULARQUEUEENTRYADDRESSLOW"},
    {99, "SR_CIRCULARQUEUEENTRYADDRESSHIGH"},
    {132, "SR_VARIABLE_RATE"},
    {134, "SR_WARPGROUP_INFO"},
    {135, "SR_WARPGROUPID"},
    {136, "SR_CgaCtaId"},
    {137, "SR_GpcLocalCgaId"},
    {139, "SR_CTARegPoolSz"},
    {255, "SRZ"},
};

consteval unsigned special_register(std::string_view name) {
  for (const SpecialRegister& known : kSpecialRegisters) {
    if (known.name == name) {
      return known.number;
    }
  }
  throw "no such special register";
}

// "SR_TID.X", or "SR36" for a register without a name.
std::string special_register_name(unsigned number);

}  // namespace manyscale::sass
