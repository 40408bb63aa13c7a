// SPDX-License-Identifier: Apache-2.0
// Decoding: each row of the table is reached by its own bits and by no other's, and instructions read as
// GNU's assembler (binutils 2.40) wrote them.
#include <set>

#include "cpu/riscv/compressed.hpp"
#include "test_riscv.hpp"

using namespace manyscale::test;

namespace {

struct Assembled {
  std::uint32_t bits;
  std::string_view text;
};

// What the assembler made of each text; targets are for a pc of 0x20000000. Zicond is from the manual.
constexpr std::uint64_t assembled_at = 0x20000000;
constexpr Assembled assembled[] = {
    {0xf2a755b7, "lui a1,0xf2a75"},
    {0x65133297, "auipc t0,0x65133"},
    {0x80000aef, "jal s5,0x1ff00000"},
    {0xb03601e7, "jalr gp,-1277(a2)"},
    {0xfc2980e3, "beq s3,sp,0x1fffffc0"},
    {0x7e311f63, "bne sp,gp,0x200007fe"},
    {0xfc3740e3, "blt a4,gp,0x1fffffc0"},
    {0x7f21df63, "bge gp,s2,0x200007fe"},
    {0x81b16163, "bltu sp,s11,0x1ffff002"},
    {0x808ff163, "bgeu t6,s0,0x1ffff002"},
    {0x4b110983, "lb s3,1201(sp)"},
    {0x97d91403, "lh s0,-1667(s2)"},
    {0xc4252e03, "lw t3,-958(a0)"},
    {0xc9d93703, "ld a4,-867(s2)"},
    {0x1df94203, "lbu tp,479(s2)"},
    {0xdc825d83, "lhu s11,-568(tp)"},
    {0xe0366983, "lwu s3,-509(a2)"},
    {0xa0498123, "sb tp,-1534(s3)"},
    {0xe8281ba3, "sh sp,-361(a6)"},
    {0x5b6ca723, "sw s6,1454(s9)"},
    {0x6eb9b323, "sd a1,1766(s3)"},
    {0x39278f13, "addi t5,a5,914"},
    {0xdc042513, "slti a0,s0,-576"},
    {0xfcfcbb93, "sltiu s7,s9,-49"},
    {0x19b9c193, "xori gp,s3,411"},
    {0x2fd86893, "ori a7,a6,765"},
    {0x1367fc13, "andi s8,a5,310"},
    {0x00f19a13, "slli s4,gp,15"},
    {0x01575893, "srli a7,a4,21"},
    {0x4135dc93, "srai s9,a1,19"},
    {0x57e80f1b, "addiw t5,a6,1406"},
    {0x004f911b, "slliw sp,t6,4"},
    {0x01495c9b, "srliw s9,s2,20"},
    {0x416bd59b, "sraiw a1,s7,22"},
    {0x01380a33, "add s4,a6,s3"},
    {0x40378d33, "sub s10,a5,gp"},
    {0x01f19db3, "sll s11,gp,t6"},
    {0x017824b3, "slt s1,a6,s7"},
    {0x0021bb33, "sltu s6,gp,sp"},
    {0x00abcc33, "xor s8,s7,a0"},
    {0x0169dab3, "srl s5,s3,s6"},
    {0x40a7ddb3, "sra s11,a5,a0"},
    {0x01d6ebb3, "or s7,a3,t4"},
    {0x00167b33, "and s6,a2,ra"},
    {0x00c78fbb, "addw t6,a5,a2"},
    {0x404a033b, "subw t1,s4,tp"},
    {0x0071183b, "sllw a6,sp,t2"},
    {0x00555cbb, "srlw s9,a0,t0"},
    {0x40d45c3b, "sraw s8,s0,a3"},
    {0x0310000f, "fence"},
    {0x0000100f, "fence.i"},
    {0x00000073, "ecall"},
    {0x00100073, "ebreak"},
    {0xc00196f3, "csrrw a3,cycle,gp"},
    {0xc006a373, "csrrs t1,cycle,a3"},
    {0x003eb973, "csrrc s2,fcsr,t4"},
    {0xc008d2f3, "csrrwi t0,cycle,17"},
    {0xc00b6bf3, "csrrsi s7,cycle,22"},
    {0xc0077b73, "csrrci s6,cycle,14"},
    {0x026182b3, "mul t0,gp,t1"},
    {0x036412b3, "mulh t0,s0,s6"},
    {0x0300a433, "mulhsu s0,ra,a6"},
    {0x0269bdb3, "mulhu s11,s3,t1"},
    {0x021544b3, "div s1,a0,ra"},
    {0x032752b3, "divu t0,a4,s2"},
    {0x033a6633, "rem a2,s4,s3"},
    {0x025ff5b3, "remu a1,t6,t0"},
    {0x031e0bbb, "mulw s7,t3,a7"},
    {0x035a4fbb, "divw t6,s4,s5"},
    {0x022c5b3b, "divuw s6,s8,sp"},
    {0x03cee7bb, "remw a5,t4,t3"},
    {0x03cffcbb, "remuw s9,t6,t3"},
    {0x100d2b2f, "lr.w s6,(s10)"},
    {0x18d6a92f, "sc.w s2,a3,(a3)"},
    {0x08d226af, "amoswap.w a3,a3,(tp)"},
    {0x0156a82f, "amoadd.w a6,s5,(a3)"},
    {0x2071a12f, "amoxor.w sp,t2,(gp)"},
    {0x60f323af, "amoand.w t2,a5,(t1)"},
    {0x40ba222f, "amoor.w tp,a1,(s4)"},
    {0x8040a12f, "amomin.w sp,tp,(ra)"},
    {0xa05929af, "amomax.w s3,t0,(s2)"},
    {0xc1f6222f, "amominu.w tp,t6,(a2)"},
    {0xe011aa2f, "amomaxu.w s4,ra,(gp)"},
    {0x1003be2f, "lr.d t3,(t2)"},
    {0x18d2ba2f, "sc.d s4,a3,(t0)"},
    {0x089fbaaf, "amoswap.d s5,s1,(t6)"},
    {0x0146362f, "amoadd.d a2,s4,(a2)"},
    {0x2042382f, "amoxor.d a6,tp,(tp)"},
    {0x6107be2f, "amoand.d t3,a6,(a5)"},
    {0x4105382f, "amoor.d a6,a6,(a0)"},
    {0x805231af, "amomin.d gp,t0,(tp)"},
    {0xa0bc3c2f, "amomax.d s8,a1,(s8)"},
    {0xc10db4af, "amominu.d s1,a6,(s11)"},
    {0xe068bbaf, "amomaxu.d s7,t1,(a7)"},
    {0xe91fa087, "flw ft1,-367(t6)"},
    {0xcb7ba827, "fsw fs7,-848(s7)"},
    {0x8059c0c3, "fmadd.s ft1,fs3,ft5,fa6,rmm"},
    {0x71654bc7, "fmsub.s fs7,fa0,fs6,fa4,rmm"},
    {0x78c73acb, "fnmsub.s fs5,fa4,fa2,fa5,rup"},
    {0xb1f6074f, "fnmadd.s fa4,fa2,ft11,fs6,rne"},
    {0x0110b0d3, "fadd.s ft1,ft1,fa7,rup"},
    {0x09663853, "fsub.s fa6,fa2,fs6,rup"},
    {0x105b9b53, "fmul.s fs6,fs7,ft5,rtz"},
    {0x19e71353, "fdiv.s ft6,fa4,ft10,rtz"},
    {0x5806bad3, "fsqrt.s fs5,fa3,rup"},
    {0x216f0053, "fsgnj.s ft0,ft10,fs6"},
    {0x218392d3, "fsgnjn.s ft5,ft7,fs8"},
    {0x20bf2653, "fsgnjx.s fa2,ft10,fa1"},
    {0x285a8dd3, "fmin.s fs11,fs5,ft5"},
    {0x299e9cd3, "fmax.s fs9,ft9,fs9"},
    {0xa0a2ac53, "feq.s s8,ft5,fa0"},
    {0xa0141353, "flt.s t1,fs0,ft1"},
    {0xa09e82d3, "fle.s t0,ft9,fs1"},
    {0xe00f1a53, "fclass.s s4,ft10"},
    {0xe00b0b53, "fmv.x.w s6,fs6"},
    {0xf00904d3, "fmv.w.x fs1,s2"},
    {0xc0047953, "fcvt.w.s s2,fs0"},
    {0xc01340d3, "fcvt.wu.s ra,ft6,rmm"},
    {0xc0243c53, "fcvt.l.s s8,fs0,rup"},
    {0xc0361e53, "fcvt.lu.s t3,fa2,rtz"},
    {0xd00490d3, "fcvt.s.w ft1,s1,rtz"},
    {0xd0189953, "fcvt.s.wu fs2,a7,rtz"},
    {0xd024ca53, "fcvt.s.l fs4,s1,rmm"},
    {0xd03d9d53, "fcvt.s.lu fs10,s11,rtz"},
    {0x352eb187, "fld ft3,850(t4)"},
    {0x57ddbaa7, "fsd ft9,1397(s11)"},
    {0xe2149443, "fmadd.d fs0,fs1,ft1,ft8,rtz"},
    {0x4ab4b047, "fmsub.d ft0,fs1,fa1,fs1,rup"},
    {0xf341f3cb, "fnmsub.d ft7,ft3,fs4,ft10"},
    {0x8ac7f1cf, "fnmadd.d ft3,fa5,fa2,fa7"},
    {0x021e7353, "fadd.d ft6,ft8,ft1"},
    {0x0aca0e53, "fsub.d ft8,fs4,fa2,rne"},
    {0x13ee48d3, "fmul.d fa7,ft8,ft10,rmm"},
    {0x1ac837d3, "fdiv.d fa5,fa6,fa2,rup"},
    {0x5a0d7453, "fsqrt.d fs0,fs10"},
    {0x234e0cd3, "fsgnj.d fs9,ft8,fs4"},
    {0x23b79253, "fsgnjn.d ft4,fa5,fs11"},
    {0x2336a253, "fsgnjx.d ft4,fa3,fs3"},
    {0x2b7483d3, "fmin.d ft7,fs1,fs7"},
    {0x2a8814d3, "fmax.d fs1,fa6,fs0"},
    {0xa2eeafd3, "feq.d t6,ft9,fa4"},
    {0xa3931c53, "flt.d s8,ft6,fs9"},
    {0xa2af8ed3, "fle.d t4,ft11,fa0"},
    {0xe2071b53, "fclass.d s6,fa4"},
    {0xe20d8353, "fmv.x.d t1,fs11"},
    {0xf2058cd3, "fmv.d.x fs9,a1"},
    {0x40162d53, "fcvt.s.d fs10,fa2,rdn"},
    {0x42028a53, "fcvt.d.s fs4,ft5,rne"},
    {0xc200a653, "fcvt.w.d a2,ft1,rdn"},
    {0xc21eb953, "fcvt.wu.d s2,ft9,rup"},
    {0xc220bbd3, "fcvt.l.d s7,ft1,rup"},
    {0xc23945d3, "fcvt.lu.d a1,fs2,rmm"},
    {0xd2020253, "fcvt.d.w ft4,tp,rne"},
    {0xd2118353, "fcvt.d.wu ft6,gp,rne"},
    {0xd22118d3, "fcvt.d.l fa7,sp,rtz"},
    {0xd23c98d3, "fcvt.d.lu fa7,s9,rtz"},
    {0x09c70dbb, "add.uw s11,a4,t3"},
    {0x21bb2f33, "sh1add t5,s6,s11"},
    {0x20d4cfb3, "sh2add t6,s1,a3"},
    {0x21e962b3, "sh3add t0,s2,t5"},
    {0x2109a8bb, "sh1add.uw a7,s3,a6"},
    {0x2035cbbb, "sh2add.uw s7,a1,gp"},
    {0x21a164bb, "sh3add.uw s1,sp,s10"},
    {0x0b631b9b, "slli.uw s7,t1,54"},
    {0x4091feb3, "andn t4,gp,s1"},
    {0x4150efb3, "orn t6,ra,s5"},
    {0x409d41b3, "xnor gp,s10,s1"},
    {0x600a1193, "clz gp,s4"},
    {0x60141e13, "ctz t3,s0"},
    {0x60249193, "cpop gp,s1"},
    {0x60021e1b, "clzw t3,tp"},
    {0x6010979b, "ctzw a5,ra"},
    {0x6029159b, "cpopw a1,s2"},
    {0x0bef6733, "max a4,t5,t5"},
    {0x0a5a74b3, "maxu s1,s4,t0"},
    {0x0b78c133, "min sp,a7,s7"},
    {0x0a4fd433, "minu s0,t6,tp"},
    {0x60449313, "sext.b t1,s1"},
    {0x60531113, "sext.h sp,t1"},
    {0x080f43bb, "zext.h t2,t5"},
    {0x60aa9533, "rol a0,s5,a0"},
    {0x607cd8b3, "ror a7,s9,t2"},
    {0x6167d513, "rori a0,a5,22"},
    {0x61a614bb, "rolw s1,a2,s10"},
    {0x6024d0bb, "rorw ra,s1,sp"},
    {0x60c0d09b, "roriw ra,ra,12"},
    {0x28785893, "orc.b a7,a6"},
    {0x6b8f5413, "rev8 s0,t5"},
    {0x496217b3, "bclr a5,tp,s6"},
    {0x48eaddb3, "bext s11,s5,a4"},
    {0x69281b33, "binv s6,a6,s2"},
    {0x28de9db3, "bset s11,t4,a3"},
    {0x49b51893, "bclri a7,a0,27"},
    {0x4995d413, "bexti s0,a1,25"},
    {0x691e9d93, "binvi s11,t4,17"},
    {0x28661693, "bseti a3,a2,6"},
    {0x0ef55533, "czero.eqz a0,a0,a5"},
    {0x0e04f2b3, "czero.nez t0,s1,zero"},
};

// Compressed instructions with what they stand for, from the same assembler.
constexpr Assembled assembled_compressed[] = {
    {0x1ff4, "addi a3,sp,1020"},        {0x3cfc, "fld fa5,248(s1)"},
    {0x5c7c, "lw a5,124(s0)"},          {0x6588, "ld a0,8(a1)"},
    {0xa320, "fsd fs0,64(a4)"},         {0xc264, "sw s1,68(a2)"},
    {0xfffc, "sd a5,248(a5)"},          {0x1f81, "addi t6,t6,-32"},
    {0x28fd, "addiw a7,a7,31"},         {0x5d7d, "addi s10,zero,-1"},
    {0x7101, "addi sp,sp,-512"},        {0x617d, "addi sp,sp,496"},
    {0x7305, "lui t1,0xfffe1"},         {0x69fd, "lui s3,0x1f"},
    {0x9085, "srli s1,s1,33"},          {0x957d, "srai a0,a0,63"},
    {0x9b5d, "andi a4,a4,-9"},          {0x8c1d, "sub s0,s0,a5"},
    {0x8db1, "xor a1,a1,a2"},           {0x8e55, "or a2,a2,a3"},
    {0x8ef9, "and a3,a3,a4"},           {0x9f1d, "subw a4,a4,a5"},
    {0x9ca1, "addw s1,s1,s0"},          {0x12a2, "slli t0,t0,40"},
    {0x3ffe, "fld ft11,504(sp)"},       {0x51fe, "lw gp,252(sp)"},
    {0x70fe, "ld ra,504(sp)"},          {0x8382, "jalr zero,0(t2)"},
    {0x8d92, "add s11,zero,tp"},        {0x9002, "ebreak"},
    {0x9782, "jalr ra,0(a5)"},          {0x9856, "add a6,a6,s5"},
    {0xbfee, "fsd fs11,504(sp)"},       {0xdff2, "sw t3,252(sp)"},
    {0xe7ca, "sd s2,456(sp)"},          {0xaffd, "jal zero,0x200007fe"},
    {0xb001, "jal zero,0x1ffff800"},    {0xcd7d, "beq a0,zero,0x200000fe"},
    {0xf081, "bne s1,zero,0x1fffff00"}, {0xa949, "jal zero,0x20000492"},
};

TEST(texts_are_the_assemblers) {
  std::set<std::string_view> seen;
  for (const auto& [bits, text] : assembled) {
    const std::string found = disassemble(bits, assembled_at);
    check(found == text, std::string(text) + ": " + found);
    if (const Row* row = decode(bits).row) seen.insert(row->name);
  }
  check_equal(static_cast<std::int64_t>(seen.size()), static_cast<std::int64_t>(instruction_rows().size()),
              "each row has an example");
  for (const auto& [bits, text] : assembled_compressed) {
    const std::string found = disassemble(bits, assembled_at);
    check(found == text, std::string(text) + ": " + found);
    check_equal(decode(bits).length, 2, "length of " + std::string(text));
  }
}

TEST(rows_do_not_overlap) {
  const auto rows = instruction_rows();
  for (const Row& row : rows) {
    check(decode(row.encoding.match).row == &row, std::string(row.name) + " decodes to itself");
    check((row.encoding.match & ~row.encoding.mask) == 0, std::string(row.name) + " matches within its mask");
    for (const Row& other : rows) {
      if (&row == &other) continue;
      const std::uint32_t common = row.encoding.mask & other.encoding.mask;
      check((row.encoding.match & common) != (other.encoding.match & common),
            std::string(row.name) + " and " + std::string(other.name) + " share no bits");
    }
    for (const UnsupportedRow& other : unsupported_rows()) {
      const std::uint32_t common = row.encoding.mask & other.encoding.mask;
      check((row.encoding.match & common) != (other.encoding.match & common),
            std::string(row.name) + " is not also unsupported");
    }
  }
}

TEST(illegal_and_unsupported_are_told_apart) {
  auto unsupported = [](std::uint32_t bits) { return std::string(decode(bits).unsupported); };
  check(unsupported(0x0d007057).starts_with("V"), "vsetvli belongs to V");
  check(unsupported(0x02056087).starts_with("V"), "vle32.v belongs to V");
  check(unsupported(0x04b57553).starts_with("Zfh"), "fadd.h belongs to Zfh");
  for (const std::uint32_t bits :
       {0x00000000U, 0xffffffffU, 0x00007033U | 0x7f << 25, 0x10200073U, 0x00008000U}) {
    const Instruction instruction = decode(bits);
    check(instruction.row == nullptr && instruction.unsupported.empty(), hexadecimal(bits) + " is illegal");
  }
  // Rounding modes 5 and 6 do not exist.
  for (std::uint32_t rounding = 0; rounding < 8; ++rounding) {
    const bool legal = rounding != 5 && rounding != 6;
    check((decode(encode("fadd.d", 1, 2, 3) | rounding << 12).row != nullptr) == legal,
          "rounding mode " + std::to_string(rounding));
  }
}

TEST(compressed_rows_are_reached) {
  std::set<std::string_view> reached;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    if (!is_compressed(bits)) continue;
    for (const CompressedRow& row : compressed_rows()) {
      if ((bits & row.mask) != row.match) continue;
      if (row.expand(bits) != 0) reached.insert(row.name);
      break;
    }
    // What an expansion gives is an instruction, never a hole in the table.
    const std::uint32_t expanded = expand_compressed(static_cast<std::uint16_t>(bits));
    if (expanded != 0)
      check(decode(expanded).row != nullptr, hexadecimal(bits) + " expands to an instruction");
  }
  check_equal(static_cast<std::int64_t>(reached.size()), static_cast<std::int64_t>(compressed_rows().size()),
              "every compressed row can be reached");
}

}  // namespace
