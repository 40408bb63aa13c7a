/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the program named by the first argument; it sees the arguments from there on. */
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs.h"

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int (*program)(int, char **);
  } all[] = {{"hpcg", hpcg}, {"snap", snap}, {"milc", milc}, {"fft2d", fft2d}, {"training", training}};
  for (unsigned index = 0; index < sizeof all / sizeof *all; ++index)
    if (argc > 1 && strcmp(argv[1], all[index].name) == 0) return all[index].program(argc - 1, argv + 1);
  fprintf(stderr, "give the name of a program: hpcg, snap, milc, fft2d or training\n");
  return 2;
}

int argument(int argc, char **argv, int place, const char *what, int otherwise, int least, int most) {
  if (place >= argc) return otherwise;
  char *end;
  errno = 0;
  const long value = strtol(argv[place], &end, 10);
  if (errno == 0 && *end == '\0' && end != argv[place] && value >= least && value <= most) return (int)value;
  fprintf(stderr, "%s: %s is \"%s\"; it must be a whole number from %d to %d\n", argv[0], what, argv[place], least,
          most);
  exit(2);
}

void *zeros(long count, long bytes) {
  void *memory = calloc((size_t)(count > 0 ? count : 1), (size_t)bytes);
  if (memory) return memory;
  fprintf(stderr, "there is no memory for %ld x %ld bytes\n", count, bytes);
  exit(3);
}

double scattered(long place) {
  uint64_t bits = (uint64_t)place + 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return (double)((bits ^ (bits >> 31)) >> 11) * 0x1p-53;
}

int verdict(int rank, const char *program, double value, int right) {
  if (rank == 0) printf("%s %.6e %s\n", program, value, right ? "verified" : "WRONG");
  return right ? 0 : 1;
}
