/* SPDX-License-Identifier: Apache-2.0 */
/* Marks regions of a program for Manyscale, which then reports time, instructions and a CPI stack for each.
 *
 *     MANYSCALE_BEGIN("assembly");
 *     ...
 *     MANYSCALE_END("assembly");
 *
 * On RISC-V a mark is one instruction that does nothing (a hint: `slti x0, register, code`), so the program runs
 * the same on any processor; elsewhere it is nothing at all. Regions nest; the end of a region ends those begun
 * within it. A name is a string that stays valid until the mark is executed. */
#ifndef MANYSCALE_H
#define MANYSCALE_H

#if defined(__riscv)
#define MANYSCALE_MARK(code, value) __asm__ volatile("slti x0, %0, " #code : : "r"(value) : "memory")
#else
#define MANYSCALE_MARK(code, value) ((void)(value))
#endif

/* The calling thread is in the region of this name from here on, and until there. */
#define MANYSCALE_BEGIN(name) MANYSCALE_MARK(1, (const char *)(name))
#define MANYSCALE_END(name) MANYSCALE_MARK(2, (const char *)(name))

/* What matters of the program: a region like others of the calling thread, named "region of interest". */
#define MANYSCALE_INTEREST_BEGIN() MANYSCALE_MARK(5, 0L)
#define MANYSCALE_INTEREST_END() MANYSCALE_MARK(6, 0L)

#ifdef __cplusplus
namespace manyscale {

/* A region that lasts as long as the object:  manyscale::Region region("assembly");  */
class Region {
 public:
  explicit Region(const char *name) : name_(name) { MANYSCALE_BEGIN(name_); }
  ~Region() { MANYSCALE_END(name_); }
  Region(const Region &) = delete;
  Region &operator=(const Region &) = delete;

 private:
  const char *name_;
};

}  // namespace manyscale
#endif

#endif
