/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the program named by the first argument; it sees the arguments from there on. */
#include <stdio.h>
#include <string.h>

#include "programs.h"

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int (*program)(int, char **);
  } all[] = {{"point_to_point", point_to_point}, {"collectives", collectives}, {"groups_and_types", groups_and_types},
             {"heat", heat},  {"hybrid", hybrid}, {"abort", abort_job}, {"mistake", mistake}, {"regions", regions}};
  for (unsigned index = 0; index < sizeof all / sizeof *all; ++index)
    if (argc > 1 && strcmp(argv[1], all[index].name) == 0) return all[index].program(argc - 1, argv + 1);
  fprintf(stderr, "give one of the programs' names\n");
  return 2;
}
