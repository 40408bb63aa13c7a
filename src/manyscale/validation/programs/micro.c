// SPDX-License-Identifier: Apache-2.0
// Small programs that show one property of a processor each, without a library: micro NAME COUNT [BYTES].
// What is measured is between the marks of the region "measured". Built by build.sh, which stands beside it.

#include "manyscale.h"

#define BEGIN MANYSCALE_BEGIN("measured")
#define END MANYSCALE_END("measured")
#define LINE 64

typedef unsigned long word;

static long call(long number, long a, long b, long c, long d, long e, long f) {
  register long a0 asm("a0") = a;
  register long a1 asm("a1") = b;
  register long a2 asm("a2") = c;
  register long a3 asm("a3") = d;
  register long a4 asm("a4") = e;
  register long a5 asm("a5") = f;
  register long a7 asm("a7") = number;
  asm volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5), "r"(a7) : "memory");
  return a0;
}

static void leave(int code) {
  for (;;) call(94, code, 0, 0, 0, 0, 0);
}

static char *memory(word bytes) {
  const long got = call(222, 0, (long)bytes, 3, 0x22, -1, 0);
  if (got < 0 && got > -4096) leave(3);
  return (char *)got;
}

static word number(const char *text) {
  word value = 0;
  while (*text >= '0' && *text <= '9') value = 10 * value + (word)(*text++ - '0');
  return value;
}

static int same(const char *a, const char *b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}

// Loads the word at an address to which the last word is added, one addition away from it.
#define LOAD_AFTER(value, address) \
  asm volatile("add %1, %1, %0\nld %0, (%1)" : "+r"(value), "+&r"(address) : : "memory")

// Loads, each of whose addresses needs the value of the last (which is 0): a number of lines that is a power of
// two, each of them once before any comes again, in an order that a prefetcher cannot guess. The triangular
// numbers have the first property, an odd factor gives them the second.
#define SCATTER 2654435761u
#define PLACE(i, lines) (((i) & ((lines) - 1)) * (((i) & ((lines) - 1)) + 1) / 2 * SCATTER & ((lines) - 1))
static void chase(char *base, word lines, word loads) {
  word value = 0;
  for (word i = 0; i < loads; ++i) {
    char *line = base + PLACE(i, lines) * LINE;
    LOAD_AFTER(value, line);
  }
}

// Two of them side by side, each through half of the lines.
static void chase_two(char *base, word lines, word loads) {
  word first = 0, second = 0;
  char *other = base + lines / 2 * LINE;
  for (word i = 0; i < loads; ++i) {
    char *one = base + PLACE(i, lines / 2) * LINE, *two = one + (other - base);
    LOAD_AFTER(first, one);
    LOAD_AFTER(second, two);
  }
}

static void run_chase(word loads, word bytes, int two) {
  const word lines = bytes / LINE;
  char *base = memory(bytes);
  for (word i = 0; i < lines; ++i) (void)*(volatile word *)(base + i * LINE);
  if (two) {
    chase_two(base, lines, lines / 2);
    BEGIN;
    chase_two(base, lines, loads);
  } else {
    chase(base, lines, lines);
    BEGIN;
    chase(base, lines, loads);
  }
  END;
}

// The same in memory that was never touched.
static void run_cold_chase(word loads, word bytes, int two) {
  char *base = memory(bytes);
  BEGIN;
  if (two) {
    chase_two(base, bytes / LINE, loads);
  } else {
    chase(base, bytes / LINE, loads);
  }
  END;
}

#define FOUR(x) x x x x
#define SIXTEEN(x) FOUR(FOUR(x))
// 64 operations that need each other's results.
#define CHAIN(name, text)                                                                        \
  static void name##_chain(word count) {                                                         \
    BEGIN;                                                                                       \
    for (; count; --count) asm volatile(FOUR(SIXTEEN(text))::: "t0", "t1", "ft0", "ft1", "ft2"); \
    END;                                                                                         \
  }

CHAIN(integer, "add t0, t0, t1\n")
CHAIN(multiply, "mul t0, t0, t1\n")
CHAIN(divide, "div t0, t0, t1\n")
CHAIN(float_add, "fadd.d ft0, ft0, ft1\n")
CHAIN(float_multiply, "fmul.d ft0, ft0, ft1\n")
CHAIN(float_fused, "fmadd.d ft0, ft1, ft2, ft0\n")
CHAIN(float_divide, "fdiv.d ft0, ft0, ft1\n")
CHAIN(float_root, "fsqrt.d ft0, ft0\n")

#define INTEGERS(op)                                                             \
  op " t0, t0, a6\n" op " t1, t1, a6\n" op " t2, t2, a6\n" op " t3, t3, a6\n" op \
     " t4, t4, a6\n" op " t5, t5, a6\n" op " t6, t6, a6\n" op " a7, a7, a6\n"
#define FLOATS(op)                                                                           \
  op " ft0, ft0, fa7\n" op " ft1, ft1, fa7\n" op " ft2, ft2, fa7\n" op " ft3, ft3, fa7\n" op \
     " ft4, ft4, fa7\n" op " ft5, ft5, fa7\n" op " ft6, ft6, fa7\n" op " ft7, ft7, fa7\n" op \
     " fa0, fa0, fa7\n" op " fa1, fa1, fa7\n" op " fa2, fa2, fa7\n" op " fa3, fa3, fa7\n" op \
     " fa4, fa4, fa7\n" op " fa5, fa5, fa7\n" op " ft8, ft8, fa7\n" op " ft9, ft9, fa7\n"
#define FUSE(register) "fmadd.d " register ", fa7, fa6, " register "\n"
#define FUSED                                                                                        \
  FUSE("ft0") FUSE("ft1") FUSE("ft2") FUSE("ft3") FUSE("ft4") FUSE("ft5") FUSE("ft6") FUSE("ft7")    \
  FUSE("fa0") FUSE("fa1") FUSE("fa2") FUSE("fa3") FUSE("fa4") FUSE("fa5") FUSE("ft8") FUSE("ft9")
#define LOADS                                                    \
  "ld t0, 0(sp)\nld t1, 8(sp)\nld t2, 16(sp)\nld t3, 24(sp)\n"   \
  "ld t4, 0(sp)\nld t5, 8(sp)\nld t6, 16(sp)\nld a7, 24(sp)\n"
#define EIGHT(x) x x x x x x x x
// 64 operations, few of which need each other's results.
#define STREAM(name, text)                                                                                 \
  static void name##_stream(word count) {                                                                  \
    BEGIN;                                                                                                 \
    for (; count; --count)                                                                                 \
      asm volatile(text ::                                                                                 \
                       : "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a6", "a7", "ft0", "ft1", "ft2", "ft3", \
                         "ft4", "ft5", "ft6", "ft7", "ft8", "ft9", "fa0", "fa1", "fa2", "fa3", "fa4",      \
                         "fa5", "fa6", "fa7");                                                             \
    END;                                                                                                   \
  }

STREAM(integer, EIGHT(INTEGERS("add")))
STREAM(multiply, EIGHT(INTEGERS("mul")))
STREAM(divide, EIGHT(INTEGERS("div")))
STREAM(float_add, FOUR(FLOATS("fadd.d")))
STREAM(float_multiply, FOUR(FLOATS("fmul.d")))
STREAM(float_fused, FOUR(FUSED))
STREAM(float_divide, FOUR(FLOATS("fdiv.d")))
STREAM(load, EIGHT(LOADS))

// A branch that goes one way or the other at random, or always one way.
static void run_branches(word count, word mask) {
  word state = 88172645463325252u, taken = 0;
  BEGIN;
  for (; count; --count) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    if (state & mask) asm volatile("addi %0, %0, 1" : "+r"(taken));
    asm volatile("nop\nnop");
  }
  END;
}

// A store and a load of the same word, each needing the other.
static void run_forwarding(word count) {
  word place = 0, value = 1;
  BEGIN;
  for (; count; --count) {
    asm volatile("sd %0, (%1)\nld %0, (%1)" : "+r"(value) : "r"(&place) : "memory");
  }
  END;
}

// a = b + s * c, an element of each line; `rounds` times over three arrays of `bytes` each.
static void run_triad(word rounds, word bytes) {
  char *a = memory(3 * bytes), *b = a + bytes, *c = b + bytes;
  for (word i = 0; i < 3 * bytes; i += 4096) *(volatile double *)(a + i) = 0.0;
  BEGIN;
  for (; rounds; --rounds) {
    for (word i = 0; i < bytes; i += LINE) {
      *(volatile double *)(a + i) = *(volatile double *)(b + i) + 3.0 * *(volatile double *)(c + i);
    }
  }
  END;
}

static const struct {
  const char *name;
  void (*run)(word);
} operations[] = {
    {"integer_chain", integer_chain},
    {"multiply_chain", multiply_chain},
    {"divide_chain", divide_chain},
    {"float_add_chain", float_add_chain},
    {"float_multiply_chain", float_multiply_chain},
    {"float_fused_chain", float_fused_chain},
    {"float_divide_chain", float_divide_chain},
    {"float_root_chain", float_root_chain},
    {"integer_stream", integer_stream},
    {"multiply_stream", multiply_stream},
    {"divide_stream", divide_stream},
    {"float_add_stream", float_add_stream},
    {"float_multiply_stream", float_multiply_stream},
    {"float_fused_stream", float_fused_stream},
    {"float_divide_stream", float_divide_stream},
    {"load_stream", load_stream},
    {"forwarding", run_forwarding},
};

__attribute__((used)) static void start(word *stack) {
  const word arguments = stack[0];
  const char **argument = (const char **)(stack + 1);
  if (arguments < 3) leave(2);
  const char *name = argument[1];
  const word count = number(argument[2]), bytes = arguments > 3 ? number(argument[3]) : 0;
  if (same(name, "chase")) {
    run_chase(count, bytes, 0);
  } else if (same(name, "chase_two")) {
    run_chase(count, bytes, 1);
  } else if (same(name, "cold_chase")) {
    run_cold_chase(count, bytes, 0);
  } else if (same(name, "cold_chase_two")) {
    run_cold_chase(count, bytes, 1);
  } else if (same(name, "random_branches")) {
    run_branches(count, 1 << 20);
  } else if (same(name, "steady_branches")) {
    run_branches(count, 0);
  } else if (same(name, "triad")) {
    run_triad(count, bytes);
  } else {
    word at = 0;
    while (at < sizeof operations / sizeof *operations && !same(name, operations[at].name)) ++at;
    if (at == sizeof operations / sizeof *operations) leave(2);
    operations[at].run(count);
  }
  leave(0);
}

asm(".globl _start\n_start:\nmv a0, sp\nandi sp, sp, -16\ntail start\n");
