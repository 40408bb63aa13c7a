# SPDX-License-Identifier: Apache-2.0
"""Pieces of PTX in which threads part and meet, for the tests of control flow.

Bodies use what the kernel around them declares: %thread, the word %x of the thread, the predicates %odd and %third, and
leave their results in %a and %b.
"""

STRUCTURED = {
    "if": """
    @!%odd bra JOIN;
    add.u32 %a, %a, %x;
JOIN:
    add.u32 %b, %a, 1;""",
    "if and else": """
    @%odd bra ELSE;
    add.u32 %a, %a, %x;
    bra JOIN;
ELSE:
    xor.b32 %a, %a, %x;
JOIN:
    add.u32 %b, %a, 1;""",
    "nested": """
    @%odd bra ELSE;
    @%third bra INNER_ELSE;
    add.u32 %a, %a, 10;
    bra INNER_JOIN;
INNER_ELSE:
    add.u32 %a, %a, 20;
INNER_JOIN:
    add.u32 %b, %b, 1;
    bra JOIN;
ELSE:
    setp.lt.s32 %p, %x, 0;
    @%p bra DEEP;
    add.u32 %a, %a, 30;
    @%third bra JOIN;
DEEP:
    add.u32 %a, %a, 40;
JOIN:
    add.u32 %b, %b, %a;""",
    "loop of different lengths": """
    mov.u32 %i, 0;
AGAIN:
    mad.lo.u32 %a, %a, 3, %i;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, %thread;
    @%p bra AGAIN;
    mov.u32 %b, %i;""",
    "loop that may not run": """
    mov.u32 %i, 0;
HEAD:
    setp.ge.u32 %p, %i, %thread;
    @%p bra DONE;
    add.u32 %a, %a, %i;
    add.u32 %i, %i, 1;
    bra HEAD;
DONE:
    mov.u32 %b, %i;""",
    "loop with break and continue": """
    mov.u32 %i, 0;
HEAD:
    add.u32 %i, %i, 1;
    setp.gt.u32 %p, %i, 20;
    @%p bra DONE;
    and.b32 %t, %i, 3;
    setp.eq.u32 %p, %t, 2;
    @%p bra HEAD;
    add.u32 %a, %a, %i;
    setp.eq.u32 %p, %i, %thread;
    @%p bra DONE;
    add.u32 %b, %b, 1;
    bra HEAD;
DONE:""",
    "loops within loops": """
    mov.u32 %i, 0;
OUTER:
    mov.u32 %j, 0;
INNER:
    mad.lo.u32 %a, %a, 5, %j;
    add.u32 %j, %j, 1;
    and.b32 %t, %thread, 7;
    setp.le.u32 %p, %j, %t;
    @%p bra INNER;
    @%odd add.u32 %b, %b, 1;
    add.u32 %i, %i, 1;
    and.b32 %t, %thread, 3;
    setp.le.u32 %p, %i, %t;
    @%p bra OUTER;""",
}

UNSTRUCTURED = {
    "jump into the other side": """
    @%odd bra ODD;
    add.u32 %a, %a, 2;
    @%third bra SHARED;
    add.u32 %a, %a, 4;
    bra JOIN;
ODD:
    add.u32 %a, %a, 8;
SHARED:
    add.u32 %a, %a, 16;
JOIN:
    add.u32 %b, %a, 1;""",
    "two conditions, one target": """
    @%odd bra TARGET;
    add.u32 %a, %a, 2;
    @%third bra TARGET;
    add.u32 %a, %a, 4;
    setp.lt.s32 %p, %x, 0;
    @%p bra LAST;
TARGET:
    add.u32 %a, %a, 8;
LAST:
    add.u32 %b, %a, 1;""",
    "loop with two entries": """
    mov.u32 %i, 0;
    @%odd bra MIDDLE;
FIRST:
    add.u32 %a, %a, 3;
MIDDLE:
    mad.lo.u32 %a, %a, 7, 1;
    add.u32 %i, %i, 1;
    and.b32 %t, %thread, 7;
    setp.le.u32 %p, %i, %t;
    @%p bra FIRST;
    mov.u32 %b, %i;""",
    "loop with two exits to different labels": """
    mov.u32 %i, 0;
AGAIN:
    add.u32 %i, %i, 1;
    and.b32 %t, %thread, 7;
    setp.gt.u32 %p, %i, %t;
    @%p bra OUT;
    and.b32 %t, %x, 31;
    setp.eq.u32 %p, %i, %t;
    @%p bra ELSEWHERE;
    bra AGAIN;
ELSEWHERE:
    add.u32 %a, %a, 100;
OUT:
    add.u32 %a, %a, %i;
    mov.u32 %b, 5;""",
    "backward jumps that cross": """
    mov.u32 %i, 0;
ONE:
    add.u32 %i, %i, 1;
    add.u32 %a, %a, 1;
TWO:
    add.u32 %i, %i, 1;
    mad.lo.u32 %a, %a, 3, 0;
    setp.lt.u32 %p, %i, 4;
    @%p bra ONE;
    add.u32 %b, %b, 1;
    and.b32 %t, %thread, 7;
    setp.lt.u32 %p, %i, %t;
    @%p bra TWO;""",
}

ADD_AND_SCALE = """
.func (.param .b32 result) add_and_scale(.param .b32 first, .param .b32 second)
{
    .reg .b32 %a, %b;
    .reg .pred %p;
    ld.param.u32 %a, [first];
    ld.param.u32 %b, [second];
    setp.lt.u32 %p, %a, %b;
    @%p bra SMALLER;
    add.u32 %a, %a, 1000;
SMALLER:
    mad.lo.u32 %a, %a, 3, %b;
    st.param.b32 [result], %a;
    ret;
}
.func (.param .b32 result) return_early(.param .b32 first, .param .b32 second)
{
    .reg .b32 %a, %b;
    .reg .pred %p;
    ld.param.u32 %a, [first];
    ld.param.u32 %b, [second];
    st.param.b32 [result], %b;
    and.b32 %a, %a, 1;
    setp.eq.u32 %p, %a, 0;
    @%p ret;
    add.u32 %b, %b, 500;
    st.param.b32 [result], %b;
    ret;
}
"""
"""Two functions of two integers: one whose threads part and meet, one with two returns."""

RECURSIVE = """
.func (.param .b32 result) fibonacci(.param .b32 n)
{
    .reg .b32 %n, %a, %b;
    .reg .b64 %own;
    .reg .pred %p;
    .local .align 4 .b8 kept[8];
    ld.param.u32 %n, [n];
    mov.u64 %own, kept;
    setp.lt.u32 %p, %n, 2;
    @%p bra LEAF;
    st.local.u32 [%own], %n;
    sub.u32 %a, %n, 1;
    {
    .param .b32 p0;
    .param .b32 back;
    st.param.b32 [p0], %a;
    call (back), fibonacci, (p0);
    ld.param.b32 %a, [back];
    }
    st.local.u32 [%own+4], %a;
    ld.local.u32 %n, [%own];
    sub.u32 %b, %n, 2;
    {
    .param .b32 p0;
    .param .b32 back;
    st.param.b32 [p0], %b;
    call (back), fibonacci, (p0);
    ld.param.b32 %b, [back];
    }
    ld.local.u32 %a, [%own+4];
    add.u32 %n, %a, %b;
LEAF:
    st.param.b32 [result], %n;
    ret;
}
"""

SWAP = """
.func (.param .align 8 .b8 result[16]) swap(.param .align 8 .b8 pair[16])
{
    .reg .b64 %a, %b;
    ld.param.b64 %a, [pair];
    ld.param.b64 %b, [pair+8];
    st.param.b64 [result], %b;
    st.param.b64 [result+8], %a;
    ret;
}
"""

PICK = """
.func (.param .b32 result) pick(.param .align 8 .b8 items[16], .param .b32 index)
{
    .reg .b32 %i;
    .reg .b64 %own;
    ld.param.u32 %i, [index];
    mov.b64 %own, items;
    mad.wide.u32 %own, %i, 4, %own;
    ld.local.u32 %i, [%own];
    st.param.b32 [result], %i;
    ret;
}
"""

LEAVE_IF_ODD = """
.func leave_if_odd(.param .b32 value)
{
    .reg .b32 %v;
    .reg .pred %p;
    ld.param.u32 %v, [value];
    and.b32 %v, %v, 1;
    setp.eq.u32 %p, %v, 1;
    @%p exit;
    ret;
}
"""
