# SPDX-License-Identifier: Apache-2.0
"""Which instructions random programs are made of."""


def _opcodes(text: str) -> list[str]:
    return text.split()


INTEGER = _opcodes("""
add.s32 add.u32 add.s64 add.s16 add.sat.s32 sub.s32 sub.s64 sub.u16 sub.sat.s32 mul.lo.s32 mul.lo.u64
mul.lo.s16 mul.hi.s32 mul.hi.u32 mul.hi.u64 mul.hi.s64 mul.hi.s16 mul.wide.s32 mul.wide.u32 mul.wide.s16
mul.wide.u16 mad.lo.s32 mad.lo.u64 mad.lo.s16 mad.hi.u32 mad.hi.sat.s32 mad.wide.s32 mad.wide.u32
mad.wide.u16 sad.s32 sad.u64 sad.u16 abs.s32 abs.s64 abs.s16 neg.s32 neg.s64 neg.s16 min.s32 min.u32
min.s64 min.u16 max.s32 max.u64 max.s16 min.s16x2 max.u16x2 add.u16x2 max.relu.s32 popc.b32 popc.b64
clz.b32 clz.b64 bfind.u32 bfind.s64 bfind.shiftamt.s32 brev.b32 brev.b64 bfe.u32 bfe.s32 bfe.u64 bfe.s64
bfi.b32 bfi.b64 szext.clamp.s32 szext.wrap.u32 bmsk.clamp.b32 bmsk.wrap.b32 dp4a.s32.u32 dp4a.u32.u32
dp2a.lo.s32.s32 dp2a.hi.u32.u32 prmt.b32 prmt.b32.f4e prmt.b32.rc16 and.b32 or.b32 xor.b32 not.b32
cnot.b32 and.b64 or.b64 xor.b64 not.b64 and.b16 or.b16 xor.b16 not.b16 shl.b32 shl.b64 shl.b16 shr.u32
shr.s32 shr.u64 shr.s64 shr.s16 shr.u16 shf.l.wrap.b32 shf.r.clamp.b32 mov.b32 mov.b64 mov.b16 selp.b32
selp.s64 selp.u16 slct.u32.s32 slct.b64.s32 cvt.s64.s32 cvt.u64.u32 cvt.u32.u64 cvt.s32.s64 cvt.s32.s16
cvt.u32.u16 cvt.u16.u32 cvt.s16.s64 cvt.s32.s8 cvt.u32.u8 cvt.sat.s16.s32 cvt.sat.u32.s64 cvt.sat.u16.s32
cvt.sat.s32.u64 cvt.pack.sat.s16.s32 cvt.pack.sat.u8.s32.b32 lop3.b32 lop3.or.b32
""")
FLOAT = _opcodes("""
add.f32 sub.f32 mul.f32 fma.rn.f32 add.rz.f32 mul.rm.f32 fma.rp.f32 add.ftz.f32 mul.ftz.f32 div.rn.f32
div.rz.f32 rcp.rn.f32 sqrt.rn.f32 min.f32 max.f32 neg.f32 abs.f32 mov.f32 selp.f32 add.f64 sub.f64
mul.f64 fma.rn.f64 add.rm.f64 fma.rz.f64 div.rn.f64 sqrt.rp.f64 min.f64 max.f64 neg.f64 abs.f64 selp.f64
add.f16 mul.f16 fma.rn.f16 sub.f16 max.f16 cvt.rn.f32.s32 cvt.rz.f32.u64 cvt.rn.f64.s64 cvt.rn.f64.u32
cvt.rp.f32.s64 cvt.f64.f32 cvt.rn.f32.f64 cvt.rz.f32.f64 cvt.rzi.s32.f32 cvt.rni.u32.f32 cvt.rmi.s64.f32
cvt.rzi.s32.f64 cvt.rpi.u64.f64 cvt.rzi.s16.f32 cvt.rni.f32.f32 cvt.rmi.f64.f64 cvt.f32.f16
cvt.rn.f16.f32 cvt.rn.f16.s32 cvt.rzi.s32.f16 slct.f32.f32 slct.b32.f32 set.lt.u32.s32 set.ge.s32.f32
set.eq.f32.u64 set.ne.and.u32.u16
""")
PREDICATE = _opcodes("""
setp.eq.s32 setp.ne.u32 setp.lt.s32 setp.hi.u32 setp.ge.s64 setp.lo.u64 setp.gt.s16 setp.le.u16
setp.eq.b64 setp.lt.and.s32 setp.ge.or.u32 setp.ne.xor.s64 setp.lt.f32 setp.geu.f32 setp.num.f32
setp.nan.f64 setp.neu.f64 setp.gt.and.f64 setp.ltu.f16 and.pred or.pred xor.pred not.pred mov.pred
testp.finite.f32 testp.subnormal.f64 testp.normal.f32
""")
OPCODES = INTEGER + FLOAT + 2 * PREDICATE
