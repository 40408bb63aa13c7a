// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// Instructions written by hand: logic of three operands, permutes, bit fields, carries, selections and predicates.

extern "C" __global__ void inline_instructions(const unsigned* a, const unsigned* b, const unsigned* c, unsigned* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    unsigned x = a[i];
    unsigned y = b[i];
    unsigned z = c[i];
    unsigned r;
    asm("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    out[0 * count + i] = r;
    asm("lop3.b32 %0, %1, %2, %3, 0x1b;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    out[1 * count + i] = r;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z & 0xffff));
    out[2 * count + i] = r;
    asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    out[3 * count + i] = r;
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y & 31), "r"(z & 31));
    out[4 * count + i] = r;
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y & 63), "r"(z & 63));
    out[5 * count + i] = r;
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(x), "r"(y), "r"(z & 31), "r"(x & 31));
    out[6 * count + i] = r;
    asm("bfind.u32 %0, %1;" : "=r"(r) : "r"(x));
    out[7 * count + i] = r;
    asm("bfind.shiftamt.s32 %0, %1;" : "=r"(r) : "r"(y));
    out[8 * count + i] = r;
    unsigned low;
    unsigned high;
    asm("mad.lo.cc.u32 %0, %2, %3, %4;\n\tmadc.hi.u32 %1, %2, %3, 0;" : "=r"(low), "=r"(high) : "r"(x), "r"(y), "r"(z));
    out[9 * count + i] = low;
    out[10 * count + i] = high;
    asm("add.cc.u32 %0, %1, %2;\n\taddc.u32 %0, %3, 0;" : "=&r"(r) : "r"(x), "r"(y), "r"(z));
    out[11 * count + i] = r;
    asm("{\n\t.reg .pred p, q, c;\n\tsetp.ne.u32 c, %3, 0;\n\tsetp.lt.and.u32 p|q, %1, %2, c;\n\t"
        "selp.u32 %0, %3, 5, p;\n\t@q add.u32 %0, %0, 9;\n\t}"
        : "=r"(r)
        : "r"(x), "r"(y), "r"(z));
    out[12 * count + i] = r;
    asm("slct.u32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    out[13 * count + i] = r;
    asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    out[14 * count + i] = r;
    asm("sad.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    out[15 * count + i] = r;
    asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
    out[16 * count + i] = r;
    asm("mad.hi.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    out[17 * count + i] = r;
    asm("{\n\t.reg .b16 l, h;\n\tmov.b32 {l, h}, %1;\n\tmov.b32 %0, {h, l};\n\t}" : "=r"(r) : "r"(x));
    out[18 * count + i] = r;
    asm("set.gt.u32.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
    out[19 * count + i] = r;
    asm("cnot.b32 %0, %1;" : "=r"(r) : "r"(x & 1));
    out[20 * count + i] = r;
}
