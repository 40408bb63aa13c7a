// SPDX-License-Identifier: Apache-2.0
// The words of the machine language: names of instructions and of their modifiers, each spelled once.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace manyscale::sass {

// An instruction's name, e.g. op("FFMA"); Opcode{} is "unknown".
enum class Opcode : std::uint8_t {};

// A word after a dot, e.g. mod("FTZ") or mod("64"); Modifier{} is none.
enum class Modifier : std::uint16_t {};

constexpr std::array<std::string_view, 197> kOpcodeNames = {
    "", "ACQBULK", "ARRIVES", "ATOM", "ATOMG", "ATOMS", "B2R", "BAR", "BMMA", "BMOV", "BPT", "BRA", "BREAK",
    "BREV", "BRX", "BRXU", "BSSY", "BSYNC", "CALL", "CCTL", "CCTLL", "CCTLT", "CS2R", "CS2UR", "DADD",
    "DEPBAR", "DFMA", "DMMA", "DMUL", "DSETP", "ELECT", "ENDCOLLECTIVE", "ERRBAR", "EXIT", "F2F", "F2FP",
    "F2I", "F2IP", "FADD", "FCHK", "FENCE", "FFMA", "FLO", "FMNMX", "FMUL", "FRND", "FSEL", "FSET", "FSETP",
    "FSWZADD", "GETLMEMBASE", "HADD2", "HFMA2", "HGMMA", "HMMA", "HMNMX2", "HMUL2", "HSET2", "HSETP2", "I2F",
    "I2FP", "I2I", "I2IP", "IABS", "IADD", "IADD3", "IDP", "IGMMA", "IMAD", "IMMA", "IMNMX", "IPA", "ISBERD",
    "ISETP", "JMP", "JMX", "JMXU", "KILL", "LD", "LDC", "LDG", "LDGDEPBAR", "LDGMC", "LDGSTS", "LDL", "LDS",
    "LDSM", "LDTRAM", "LEA", "LEPC", "LOP3", "MATCH", "MEMBAR", "MOV", "MOVM", "MUFU", "NANOSLEEP",
    "NANOTRAP", "NOP", "P2R", "PLOP3", "PMTRIG", "POPC", "PREEXIT", "PRMT", "QGMMA", "QMMA", "QSPC", "R2B",
    "R2P", "R2UR", "RED", "REDG", "REDAS", "REDUX", "RET", "RPCMOV", "RTT", "S2R", "S2UR", "SEL", "SETCTAID",
    "SETLMEMBASE", "SGXT", "SHF", "SHFL", "ST", "STAS", "STG", "STL", "STS", "STSM", "SUATOM", "SULD",
    "SUQUERY", "SURED", "SUST", "SYNCS", "TEX", "TLD", "TLD4", "TMML", "TXA", "TXD", "TXQ", "UBLKCP",
    "UBLKPF", "UBLKRED", "UBMSK", "UBREV", "UCGABAR_ARV", "UCGABAR_WAIT", "UCLEA", "UF2FP", "UFLO", "UIADD3",
    "UIMAD", "UIMNMX", "UISETP", "ULDC", "ULEA", "ULEPC", "ULOP", "ULOP3", "UMOV", "UP2UR", "UPLOP3", "UPOPC",
    "UPRMT", "UR2UP", "USEL", "USETMAXREG", "USGXT", "USHF", "USHL", "USHR", "UTMACCTL", "UTMACMDFLUSH",
    "UTMALDG", "UTMAPF", "UTMAREDG", "UTMASTG", "VABSDIFF", "VABSDIFF4", "VHMNMX", "VIADD", "VIADDMNMX",
    "VIMNMX", "VIMNMX3", "VOTE", "VOTEU", "WARPGROUP", "WARPGROUPSET", "WARPSYNC", "BMSK", "CGAERRBAR",
    "YIELD",
};

constexpr std::array<std::string_view, 257> kModifierNames = {
    "", "FTZ", "SAT", "F32", "H0_H0", "H1_H1", "X4", "X8", "X16", "64", "U32", "BF16_V2", "NAN", "XORSIGN", "BF",
    "FMZ", "DIVIDE", "F16", "NDV", "RELU", "MMA", "H_AND", "NTZ", "RM", "RP", "RZ", "F", "LT", "EQ", "LE",
    "GT", "NE", "GE", "NUM", "LTU", "EQU", "LEU", "GTU", "NEU", "GEU", "T", "MIN", "MAX", "AND", "OR", "XOR",
    "FSEL", "D8", "D4", "D2", "?", "M2", "M4", "M8", "COS", "SIN", "EX2", "LG2", "RCP", "RSQ", "RCP64H",
    "RSQ64H", "SQRT", "TANH", "B1", "B2", "B3", "FLOOR", "CEIL", "TRUNC", "F8", "F64", "U8", "U16", "U64",
    "S8", "S16", "S64", "X", "MOV", "IADD", "SHL", "HI", "SX32", "LUT", "PAND", "W", "SIGN", "WIDE", "S32",
    "EX", "SH", "F4E", "B4E", "RC8", "ECL", "ECR", "RC16", "L", "R", "4A", "2A", "LO", "E", "U", "16", "IL",
    "IS", "ISL", "M88", "MT88", "2", "4", "S", "SC", "ALL", "CTA", "SM", "GPU", "SYS", "VC", "PF1", "PF2",
    "WB", "IV", "IVALL", "RS", "IVALLP", "WBALL", "WBALLP", "32", "128", "U.128", "EF", "EL", "LU", "EU",
    "NA", "LTC64B", "LTC128B", "LTC256B", "CONSTANT", "STRONG", "MMIO", "NOINC", "DEFER_BLOCKING", "ABS",
    "REL", "NODEC", "EXCLUSIVE", "COLLECTIVE", "CLEAR", "WARP", "SYNC", "ARV", "RED", "SCAN", "SYNCALL",
    "POPC", "DIV", "CONV", "KEEPREFCOUNT", "PREEMPTED", "BAR", "RESULT", "DRAIN", "PAUSE", "TRAP", "INT",
    "ACC", "SUM", "ANY", "IDX", "UP", "DOWN", "BFLY", "RN", "CAS", "INC", "BYPASS", "ZFILL", "F16x2", "ADD",
    "DEC", "EXCH", "SAFEADD", "CAST", "SPIN", "PACK_AB", "BF16", "884", "ROW", "COL", "STEP0", "STEP1",
    "STEP2", "STEP3", "1688", "16816", "1684", "TF32", "8816", "8832", "16832", "16864", "U4", "S4", "88128",
    "168128", "168256", "8x8x4", "16x8x4", "16x8x8", "16x8x16", "TEX_HEADER_DIMENSION", "1D", "2D", "3D",
    "CUBE", "ARRAY_1D", "ARRAY_2D", "ARRAY_CUBE", "SCR", "AOFFI", "DC", "NODEP", "B", "MS", "LZ", "LB", "LL",
    "LC", "LB.LC", "G", "A", "PTP", "UNPACK_B", "H1", "SATFINITE", "PACK_AB_MERGE_C", "E5M2", "E4M3",
    "ARRIVE", "LDGSTSBAR", "TRANSCNT", "TRANS64", "PHASECHK", "TRYWAIT", "VIEW", "ASYNC", "A1T0", "A0T1",
    "A0TR", "ART0", "16x2", "U16x2", "S16x2",
};

// Words are looked up when the simulator is compiled, so that a misspelled one is an error there.
template <std::size_t count>
constexpr std::size_t position_of(const std::array<std::string_view, count>& names, std::string_view name) {
  for (std::size_t at = 0; at < count; ++at) {
    if (names[at] == name) {
      return at;
    }
  }
  throw "no such word of the machine language";
}

consteval Opcode op(std::string_view name) { return static_cast<Opcode>(position_of(kOpcodeNames, name)); }
consteval Modifier mod(std::string_view name) { return static_cast<Modifier>(position_of(kModifierNames, name)); }

constexpr std::string_view name_of(Opcode opcode) { return kOpcodeNames[static_cast<std::size_t>(opcode)]; }
constexpr std::string_view name_of(Modifier modifier) { return kModifierNames[static_cast<std::size_t>(modifier)]; }

}  // namespace manyscale::sass
