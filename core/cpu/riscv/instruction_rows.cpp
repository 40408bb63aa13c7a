// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "cpu/riscv/instruction.hpp"

namespace manyscale::cpu::riscv {

namespace {

constexpr File x = File::integer, f = File::floating, no = File::none;
using I = Immediate;

constexpr Shape nothing{.text = ""};
constexpr Shape r{x, x, x, no, I::none, false, "d,1,2"};
constexpr Shape r_unary{x, x, no, no, I::none, false, "d,1"};
constexpr Shape i_type{x, x, no, no, I::i, false, "d,1,i"};
constexpr Shape shift_6{x, x, no, no, I::shift6, false, "d,1,i"};
constexpr Shape shift_5{x, x, no, no, I::shift5, false, "d,1,i"};
constexpr Shape u_type{x, no, no, no, I::u, false, "d,i"};
constexpr Shape load{x, x, no, no, I::i, false, "d,i(1)"};
constexpr Shape store{no, x, x, no, I::s, false, "2,i(1)"};
constexpr Shape branch{no, x, x, no, I::b, false, "1,2,t"};
constexpr Shape jump{x, no, no, no, I::j, false, "d,t"};
constexpr Shape csr_register{x, x, no, no, I::csr, false, "d,c,1"};
constexpr Shape csr_number{x, no, no, no, I::csr, false, "d,c,z"};
constexpr Shape amo{x, x, x, no, I::none, false, "d,2,(1)"};
constexpr Shape reserve{x, x, no, no, I::none, false, "d,(1)"};
constexpr Shape f_load{f, x, no, no, I::i, false, "d,i(1)"};
constexpr Shape f_store{no, x, f, no, I::s, false, "2,i(1)"};
constexpr Shape f_binary{f, f, f, no, I::none, false, "d,1,2"};
constexpr Shape f_compare{x, f, f, no, I::none, false, "d,1,2"};
constexpr Shape f_arithmetic{f, f, f, no, I::none, true, "d,1,2r"};
constexpr Shape f_fused{f, f, f, f, I::none, true, "d,1,2,3r"};
constexpr Shape f_unary{f, f, no, no, I::none, true, "d,1r"};
constexpr Shape f_to_x{x, f, no, no, I::none, true, "d,1r"};
constexpr Shape f_from_x{f, x, no, no, I::none, true, "d,1r"};
constexpr Shape f_move_to_x{x, f, no, no, I::none, false, "d,1"};
constexpr Shape f_move_from_x{f, x, no, no, I::none, false, "d,1"};

// Encodings by the fields they fix: the opcode (bits 6:0), funct3 (14:12), funct7 (31:25), rs2 (24:20).
constexpr Encoding op(std::uint32_t opcode) {
  return {0x7f, opcode};
}
constexpr Encoding op3(std::uint32_t opcode, std::uint32_t funct3) {
  return {0x707f, opcode | funct3 << 12};
}
constexpr Encoding op37(std::uint32_t opcode, std::uint32_t funct3, std::uint32_t funct7) {
  return {0xfe00707f, opcode | funct3 << 12 | funct7 << 25};
}
constexpr Encoding op36(std::uint32_t opcode, std::uint32_t funct3, std::uint32_t funct6) {
  return {0xfc00707f, opcode | funct3 << 12 | funct6 << 26};
}
constexpr Encoding op372(std::uint32_t opcode, std::uint32_t funct3, std::uint32_t funct7,
                         std::uint32_t rs2) {
  return {0xfff0707f, opcode | funct3 << 12 | funct7 << 25 | rs2 << 20};
}
constexpr Encoding whole(std::uint32_t bits) {
  return {0xffffffff, bits};
}
// Atomics: funct5 in bits 31:27; the acquire and release bits are free.
constexpr Encoding atomic(std::uint32_t funct3, std::uint32_t funct5) {
  return {0xf800707f, 0x2f | funct3 << 12 | funct5 << 27};
}
constexpr Encoding reserving(std::uint32_t funct3) {
  return {0xf9f0707f, 0x2f | funct3 << 12 | 2U << 27};
}
// Floating point: funct7 with a rounding mode, also with rs2 fixed, and with funct3 fixed.
constexpr Encoding fp(std::uint32_t funct7) {
  return {0xfe00007f, 0x53 | funct7 << 25};
}
constexpr Encoding fp2(std::uint32_t funct7, std::uint32_t rs2) {
  return {0xfff0007f, 0x53 | funct7 << 25 | rs2 << 20};
}
constexpr Encoding fp3(std::uint32_t funct7, std::uint32_t funct3) {
  return op37(0x53, funct3, funct7);
}
constexpr Encoding fp32(std::uint32_t funct7, std::uint32_t funct3, std::uint32_t rs2) {
  return op372(0x53, funct3, funct7, rs2);
}
constexpr Encoding fused(std::uint32_t opcode, std::uint32_t format) {
  return {0x0600007f, opcode | format << 25};
}

constexpr auto rows = std::to_array<Row>({
    // RV64I: constants, jumps and branches
    {"lui", op(0x37), &u_type, InstructionClass::integer},
    {"auipc", op(0x17), &u_type, InstructionClass::integer},
    {"jal", op(0x6f), &jump, InstructionClass::jump},
    {"jalr", op3(0x67, 0), &load, InstructionClass::indirect},
    {"beq", op3(0x63, 0), &branch, InstructionClass::branch},
    {"bne", op3(0x63, 1), &branch, InstructionClass::branch},
    {"blt", op3(0x63, 4), &branch, InstructionClass::branch},
    {"bge", op3(0x63, 5), &branch, InstructionClass::branch},
    {"bltu", op3(0x63, 6), &branch, InstructionClass::branch},
    {"bgeu", op3(0x63, 7), &branch, InstructionClass::branch},
    // loads and stores
    {"lb", op3(0x03, 0), &load, InstructionClass::load, 1},
    {"lh", op3(0x03, 1), &load, InstructionClass::load, 2},
    {"lw", op3(0x03, 2), &load, InstructionClass::load, 4},
    {"ld", op3(0x03, 3), &load, InstructionClass::load, 8},
    {"lbu", op3(0x03, 4), &load, InstructionClass::load, 1},
    {"lhu", op3(0x03, 5), &load, InstructionClass::load, 2},
    {"lwu", op3(0x03, 6), &load, InstructionClass::load, 4},
    {"sb", op3(0x23, 0), &store, InstructionClass::store, 1},
    {"sh", op3(0x23, 1), &store, InstructionClass::store, 2},
    {"sw", op3(0x23, 2), &store, InstructionClass::store, 4},
    {"sd", op3(0x23, 3), &store, InstructionClass::store, 8},
    // arithmetic with an immediate
    {"addi", op3(0x13, 0), &i_type, InstructionClass::integer},
    {"slti", op3(0x13, 2), &i_type, InstructionClass::integer},
    {"sltiu", op3(0x13, 3), &i_type, InstructionClass::integer},
    {"xori", op3(0x13, 4), &i_type, InstructionClass::integer},
    {"ori", op3(0x13, 6), &i_type, InstructionClass::integer},
    {"andi", op3(0x13, 7), &i_type, InstructionClass::integer},
    {"slli", op36(0x13, 1, 0x00), &shift_6, InstructionClass::integer},
    {"srli", op36(0x13, 5, 0x00), &shift_6, InstructionClass::integer},
    {"srai", op36(0x13, 5, 0x10), &shift_6, InstructionClass::integer},
    {"addiw", op3(0x1b, 0), &i_type, InstructionClass::integer},
    {"slliw", op37(0x1b, 1, 0x00), &shift_5, InstructionClass::integer},
    {"srliw", op37(0x1b, 5, 0x00), &shift_5, InstructionClass::integer},
    {"sraiw", op37(0x1b, 5, 0x20), &shift_5, InstructionClass::integer},
    // arithmetic with two registers
    {"add", op37(0x33, 0, 0x00), &r, InstructionClass::integer},
    {"sub", op37(0x33, 0, 0x20), &r, InstructionClass::integer},
    {"sll", op37(0x33, 1, 0x00), &r, InstructionClass::integer},
    {"slt", op37(0x33, 2, 0x00), &r, InstructionClass::integer},
    {"sltu", op37(0x33, 3, 0x00), &r, InstructionClass::integer},
    {"xor", op37(0x33, 4, 0x00), &r, InstructionClass::integer},
    {"srl", op37(0x33, 5, 0x00), &r, InstructionClass::integer},
    {"sra", op37(0x33, 5, 0x20), &r, InstructionClass::integer},
    {"or", op37(0x33, 6, 0x00), &r, InstructionClass::integer},
    {"and", op37(0x33, 7, 0x00), &r, InstructionClass::integer},
    {"addw", op37(0x3b, 0, 0x00), &r, InstructionClass::integer},
    {"subw", op37(0x3b, 0, 0x20), &r, InstructionClass::integer},
    {"sllw", op37(0x3b, 1, 0x00), &r, InstructionClass::integer},
    {"srlw", op37(0x3b, 5, 0x00), &r, InstructionClass::integer},
    {"sraw", op37(0x3b, 5, 0x20), &r, InstructionClass::integer},
    // fences and the system
    {"fence", op3(0x0f, 0), &nothing, InstructionClass::fence},
    {"fence.i", op3(0x0f, 1), &nothing, InstructionClass::fence},
    {"ecall", whole(0x00000073), &nothing, InstructionClass::system},
    {"ebreak", whole(0x00100073), &nothing, InstructionClass::system},
    {"csrrw", op3(0x73, 1), &csr_register, InstructionClass::integer},
    {"csrrs", op3(0x73, 2), &csr_register, InstructionClass::integer},
    {"csrrc", op3(0x73, 3), &csr_register, InstructionClass::integer},
    {"csrrwi", op3(0x73, 5), &csr_number, InstructionClass::integer},
    {"csrrsi", op3(0x73, 6), &csr_number, InstructionClass::integer},
    {"csrrci", op3(0x73, 7), &csr_number, InstructionClass::integer},
    // M: multiplication and division
    {"mul", op37(0x33, 0, 0x01), &r, InstructionClass::multiply},
    {"mulh", op37(0x33, 1, 0x01), &r, InstructionClass::multiply},
    {"mulhsu", op37(0x33, 2, 0x01), &r, InstructionClass::multiply},
    {"mulhu", op37(0x33, 3, 0x01), &r, InstructionClass::multiply},
    {"div", op37(0x33, 4, 0x01), &r, InstructionClass::divide},
    {"divu", op37(0x33, 5, 0x01), &r, InstructionClass::divide},
    {"rem", op37(0x33, 6, 0x01), &r, InstructionClass::divide},
    {"remu", op37(0x33, 7, 0x01), &r, InstructionClass::divide},
    {"mulw", op37(0x3b, 0, 0x01), &r, InstructionClass::multiply},
    {"divw", op37(0x3b, 4, 0x01), &r, InstructionClass::divide},
    {"divuw", op37(0x3b, 5, 0x01), &r, InstructionClass::divide},
    {"remw", op37(0x3b, 6, 0x01), &r, InstructionClass::divide},
    {"remuw", op37(0x3b, 7, 0x01), &r, InstructionClass::divide},
    // A: atomics
    {"lr.w", reserving(2), &reserve, InstructionClass::atomic, 4},
    {"sc.w", atomic(2, 0x03), &amo, InstructionClass::atomic, 4},
    {"amoswap.w", atomic(2, 0x01), &amo, InstructionClass::atomic, 4},
    {"amoadd.w", atomic(2, 0x00), &amo, InstructionClass::atomic, 4},
    {"amoxor.w", atomic(2, 0x04), &amo, InstructionClass::atomic, 4},
    {"amoand.w", atomic(2, 0x0c), &amo, InstructionClass::atomic, 4},
    {"amoor.w", atomic(2, 0x08), &amo, InstructionClass::atomic, 4},
    {"amomin.w", atomic(2, 0x10), &amo, InstructionClass::atomic, 4},
    {"amomax.w", atomic(2, 0x14), &amo, InstructionClass::atomic, 4},
    {"amominu.w", atomic(2, 0x18), &amo, InstructionClass::atomic, 4},
    {"amomaxu.w", atomic(2, 0x1c), &amo, InstructionClass::atomic, 4},
    {"lr.d", reserving(3), &reserve, InstructionClass::atomic, 8},
    {"sc.d", atomic(3, 0x03), &amo, InstructionClass::atomic, 8},
    {"amoswap.d", atomic(3, 0x01), &amo, InstructionClass::atomic, 8},
    {"amoadd.d", atomic(3, 0x00), &amo, InstructionClass::atomic, 8},
    {"amoxor.d", atomic(3, 0x04), &amo, InstructionClass::atomic, 8},
    {"amoand.d", atomic(3, 0x0c), &amo, InstructionClass::atomic, 8},
    {"amoor.d", atomic(3, 0x08), &amo, InstructionClass::atomic, 8},
    {"amomin.d", atomic(3, 0x10), &amo, InstructionClass::atomic, 8},
    {"amomax.d", atomic(3, 0x14), &amo, InstructionClass::atomic, 8},
    {"amominu.d", atomic(3, 0x18), &amo, InstructionClass::atomic, 8},
    {"amomaxu.d", atomic(3, 0x1c), &amo, InstructionClass::atomic, 8},
    // F: single precision
    {"flw", op3(0x07, 2), &f_load, InstructionClass::load, 4, 4},
    {"fsw", op3(0x27, 2), &f_store, InstructionClass::store, 4, 4},
    {"fmadd.s", fused(0x43, 0), &f_fused, InstructionClass::float_fused, 0, 4},
    {"fmsub.s", fused(0x47, 0), &f_fused, InstructionClass::float_fused, 0, 4},
    {"fnmsub.s", fused(0x4b, 0), &f_fused, InstructionClass::float_fused, 0, 4},
    {"fnmadd.s", fused(0x4f, 0), &f_fused, InstructionClass::float_fused, 0, 4},
    {"fadd.s", fp(0x00), &f_arithmetic, InstructionClass::float_add, 0, 4},
    {"fsub.s", fp(0x04), &f_arithmetic, InstructionClass::float_add, 0, 4},
    {"fmul.s", fp(0x08), &f_arithmetic, InstructionClass::float_multiply, 0, 4},
    {"fdiv.s", fp(0x0c), &f_arithmetic, InstructionClass::float_divide, 0, 4},
    {"fsqrt.s", fp2(0x2c, 0), &f_unary, InstructionClass::float_root, 0, 4},
    {"fsgnj.s", fp3(0x10, 0), &f_binary, InstructionClass::float_add, 0, 4},
    {"fsgnjn.s", fp3(0x10, 1), &f_binary, InstructionClass::float_add, 0, 4},
    {"fsgnjx.s", fp3(0x10, 2), &f_binary, InstructionClass::float_add, 0, 4},
    {"fmin.s", fp3(0x14, 0), &f_binary, InstructionClass::float_add, 0, 4},
    {"fmax.s", fp3(0x14, 1), &f_binary, InstructionClass::float_add, 0, 4},
    {"feq.s", fp3(0x50, 2), &f_compare, InstructionClass::float_add, 0, 4},
    {"flt.s", fp3(0x50, 1), &f_compare, InstructionClass::float_add, 0, 4},
    {"fle.s", fp3(0x50, 0), &f_compare, InstructionClass::float_add, 0, 4},
    {"fclass.s", fp32(0x70, 1, 0), &f_move_to_x, InstructionClass::float_convert, 0, 4},
    {"fmv.x.w", fp32(0x70, 0, 0), &f_move_to_x, InstructionClass::float_convert, 0, 4},
    {"fmv.w.x", fp32(0x78, 0, 0), &f_move_from_x, InstructionClass::float_convert, 0, 4},
    {"fcvt.w.s", fp2(0x60, 0), &f_to_x, InstructionClass::float_convert, 0, 4},
    {"fcvt.wu.s", fp2(0x60, 1), &f_to_x, InstructionClass::float_convert, 0, 4},
    {"fcvt.l.s", fp2(0x60, 2), &f_to_x, InstructionClass::float_convert, 0, 4},
    {"fcvt.lu.s", fp2(0x60, 3), &f_to_x, InstructionClass::float_convert, 0, 4},
    {"fcvt.s.w", fp2(0x68, 0), &f_from_x, InstructionClass::float_convert, 0, 4},
    {"fcvt.s.wu", fp2(0x68, 1), &f_from_x, InstructionClass::float_convert, 0, 4},
    {"fcvt.s.l", fp2(0x68, 2), &f_from_x, InstructionClass::float_convert, 0, 4},
    {"fcvt.s.lu", fp2(0x68, 3), &f_from_x, InstructionClass::float_convert, 0, 4},
    // D: double precision
    {"fld", op3(0x07, 3), &f_load, InstructionClass::load, 8, 8},
    {"fsd", op3(0x27, 3), &f_store, InstructionClass::store, 8, 8},
    {"fmadd.d", fused(0x43, 1), &f_fused, InstructionClass::float_fused, 0, 8},
    {"fmsub.d", fused(0x47, 1), &f_fused, InstructionClass::float_fused, 0, 8},
    {"fnmsub.d", fused(0x4b, 1), &f_fused, InstructionClass::float_fused, 0, 8},
    {"fnmadd.d", fused(0x4f, 1), &f_fused, InstructionClass::float_fused, 0, 8},
    {"fadd.d", fp(0x01), &f_arithmetic, InstructionClass::float_add, 0, 8},
    {"fsub.d", fp(0x05), &f_arithmetic, InstructionClass::float_add, 0, 8},
    {"fmul.d", fp(0x09), &f_arithmetic, InstructionClass::float_multiply, 0, 8},
    {"fdiv.d", fp(0x0d), &f_arithmetic, InstructionClass::float_divide, 0, 8},
    {"fsqrt.d", fp2(0x2d, 0), &f_unary, InstructionClass::float_root, 0, 8},
    {"fsgnj.d", fp3(0x11, 0), &f_binary, InstructionClass::float_add, 0, 8},
    {"fsgnjn.d", fp3(0x11, 1), &f_binary, InstructionClass::float_add, 0, 8},
    {"fsgnjx.d", fp3(0x11, 2), &f_binary, InstructionClass::float_add, 0, 8},
    {"fmin.d", fp3(0x15, 0), &f_binary, InstructionClass::float_add, 0, 8},
    {"fmax.d", fp3(0x15, 1), &f_binary, InstructionClass::float_add, 0, 8},
    {"feq.d", fp3(0x51, 2), &f_compare, InstructionClass::float_add, 0, 8},
    {"flt.d", fp3(0x51, 1), &f_compare, InstructionClass::float_add, 0, 8},
    {"fle.d", fp3(0x51, 0), &f_compare, InstructionClass::float_add, 0, 8},
    {"fclass.d", fp32(0x71, 1, 0), &f_move_to_x, InstructionClass::float_convert, 0, 8},
    {"fmv.x.d", fp32(0x71, 0, 0), &f_move_to_x, InstructionClass::float_convert, 0, 8},
    {"fmv.d.x", fp32(0x79, 0, 0), &f_move_from_x, InstructionClass::float_convert, 0, 8},
    {"fcvt.s.d", fp2(0x20, 1), &f_unary, InstructionClass::float_convert, 0, 8},
    {"fcvt.d.s", fp2(0x21, 0), &f_unary, InstructionClass::float_convert, 0, 8},
    {"fcvt.w.d", fp2(0x61, 0), &f_to_x, InstructionClass::float_convert, 0, 8},
    {"fcvt.wu.d", fp2(0x61, 1), &f_to_x, InstructionClass::float_convert, 0, 8},
    {"fcvt.l.d", fp2(0x61, 2), &f_to_x, InstructionClass::float_convert, 0, 8},
    {"fcvt.lu.d", fp2(0x61, 3), &f_to_x, InstructionClass::float_convert, 0, 8},
    {"fcvt.d.w", fp2(0x69, 0), &f_from_x, InstructionClass::float_convert, 0, 8},
    {"fcvt.d.wu", fp2(0x69, 1), &f_from_x, InstructionClass::float_convert, 0, 8},
    {"fcvt.d.l", fp2(0x69, 2), &f_from_x, InstructionClass::float_convert, 0, 8},
    {"fcvt.d.lu", fp2(0x69, 3), &f_from_x, InstructionClass::float_convert, 0, 8},
    // Zba: addresses
    {"add.uw", op37(0x3b, 0, 0x04), &r, InstructionClass::integer},
    {"sh1add", op37(0x33, 2, 0x10), &r, InstructionClass::integer},
    {"sh2add", op37(0x33, 4, 0x10), &r, InstructionClass::integer},
    {"sh3add", op37(0x33, 6, 0x10), &r, InstructionClass::integer},
    {"sh1add.uw", op37(0x3b, 2, 0x10), &r, InstructionClass::integer},
    {"sh2add.uw", op37(0x3b, 4, 0x10), &r, InstructionClass::integer},
    {"sh3add.uw", op37(0x3b, 6, 0x10), &r, InstructionClass::integer},
    {"slli.uw", op36(0x1b, 1, 0x02), &shift_6, InstructionClass::integer},
    // Zbb: basic bit manipulation
    {"andn", op37(0x33, 7, 0x20), &r, InstructionClass::integer},
    {"orn", op37(0x33, 6, 0x20), &r, InstructionClass::integer},
    {"xnor", op37(0x33, 4, 0x20), &r, InstructionClass::integer},
    {"clz", op372(0x13, 1, 0x30, 0), &r_unary, InstructionClass::integer},
    {"ctz", op372(0x13, 1, 0x30, 1), &r_unary, InstructionClass::integer},
    {"cpop", op372(0x13, 1, 0x30, 2), &r_unary, InstructionClass::integer},
    {"clzw", op372(0x1b, 1, 0x30, 0), &r_unary, InstructionClass::integer},
    {"ctzw", op372(0x1b, 1, 0x30, 1), &r_unary, InstructionClass::integer},
    {"cpopw", op372(0x1b, 1, 0x30, 2), &r_unary, InstructionClass::integer},
    {"max", op37(0x33, 6, 0x05), &r, InstructionClass::integer},
    {"maxu", op37(0x33, 7, 0x05), &r, InstructionClass::integer},
    {"min", op37(0x33, 4, 0x05), &r, InstructionClass::integer},
    {"minu", op37(0x33, 5, 0x05), &r, InstructionClass::integer},
    {"sext.b", op372(0x13, 1, 0x30, 4), &r_unary, InstructionClass::integer},
    {"sext.h", op372(0x13, 1, 0x30, 5), &r_unary, InstructionClass::integer},
    {"zext.h", op372(0x3b, 4, 0x04, 0), &r_unary, InstructionClass::integer},
    {"rol", op37(0x33, 1, 0x30), &r, InstructionClass::integer},
    {"ror", op37(0x33, 5, 0x30), &r, InstructionClass::integer},
    {"rori", op36(0x13, 5, 0x18), &shift_6, InstructionClass::integer},
    {"rolw", op37(0x3b, 1, 0x30), &r, InstructionClass::integer},
    {"rorw", op37(0x3b, 5, 0x30), &r, InstructionClass::integer},
    {"roriw", op37(0x1b, 5, 0x30), &shift_5, InstructionClass::integer},
    {"orc.b", op372(0x13, 5, 0x14, 7), &r_unary, InstructionClass::integer},
    {"rev8", op372(0x13, 5, 0x35, 24), &r_unary, InstructionClass::integer},
    // Zbs: single bits
    {"bclr", op37(0x33, 1, 0x24), &r, InstructionClass::integer},
    {"bext", op37(0x33, 5, 0x24), &r, InstructionClass::integer},
    {"binv", op37(0x33, 1, 0x34), &r, InstructionClass::integer},
    {"bset", op37(0x33, 1, 0x14), &r, InstructionClass::integer},
    {"bclri", op36(0x13, 1, 0x12), &shift_6, InstructionClass::integer},
    {"bexti", op36(0x13, 5, 0x12), &shift_6, InstructionClass::integer},
    {"binvi", op36(0x13, 1, 0x1a), &shift_6, InstructionClass::integer},
    {"bseti", op36(0x13, 1, 0x0a), &shift_6, InstructionClass::integer},
    // Zicond: conditional moves
    {"czero.eqz", op37(0x33, 5, 0x07), &r, InstructionClass::integer},
    {"czero.nez", op37(0x33, 7, 0x07), &r, InstructionClass::integer},
});

constexpr auto unsupported = std::to_array<UnsupportedRow>({
    {"V (vectors)", op(0x57)},
    {"V (vector loads)", op3(0x07, 0)},
    {"V (vector loads)", op3(0x07, 5)},
    {"V (vector loads)", op3(0x07, 6)},
    {"V (vector loads)", op3(0x07, 7)},
    {"V (vector stores)", op3(0x27, 0)},
    {"V (vector stores)", op3(0x27, 5)},
    {"V (vector stores)", op3(0x27, 6)},
    {"V (vector stores)", op3(0x27, 7)},
    {"Zvk (vector cryptography)", op(0x77)},
    {"Zfh (half precision)", op3(0x07, 1)},
    {"Zfh (half precision)", op3(0x27, 1)},
    {"Zfh (half precision)", {0x0600007f, 0x04000053}},
    {"Zfh (half precision)", {0x0600007f, 0x04000043}},
    {"Zfh (half precision)", {0x0600007f, 0x04000047}},
    {"Zfh (half precision)", {0x0600007f, 0x0400004b}},
    {"Zfh (half precision)", {0x0600007f, 0x0400004f}},
    {"Q (quadruple precision)", op3(0x07, 4)},
    {"Q (quadruple precision)", op3(0x27, 4)},
    {"Q (quadruple precision)", {0x0600007f, 0x06000053}},
    {"Q (quadruple precision)", {0x0600007f, 0x06000043}},
    {"Q (quadruple precision)", {0x0600007f, 0x06000047}},
    {"Q (quadruple precision)", {0x0600007f, 0x0600004b}},
    {"Q (quadruple precision)", {0x0600007f, 0x0600004f}},
    {"Zbc (carry-less multiplication)", op37(0x33, 1, 0x05)},
    {"Zbc (carry-less multiplication)", op37(0x33, 2, 0x05)},
    {"Zbc (carry-less multiplication)", op37(0x33, 3, 0x05)},
    {"Zicbom (cache blocks)", op3(0x0f, 2)},
    {"Zacas (compare and swap)", atomic(2, 0x05)},
    {"Zacas (compare and swap)", atomic(3, 0x05)},
    {"H (hypervisor)", op3(0x73, 4)},
});

}  // namespace

std::span<const Row> instruction_rows() {
  return rows;
}

std::span<const UnsupportedRow> unsupported_rows() {
  return unsupported;
}

}  // namespace manyscale::cpu::riscv
