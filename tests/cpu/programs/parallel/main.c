// SPDX-License-Identifier: Apache-2.0
// Programs with threads: pthreads and OpenMP. What they print does not depend on the order in which threads
// run.
#include "programs.h"

static const Entry entries[] = {
    {"mutex", run_mutex},
    {"condition", run_condition},
    {"barrier", run_barrier},
    {"read_write", run_read_write},
    {"cancellation", run_cancellation},
    {"loops", run_loops},
    {"constructs", run_constructs},
    {"tasks", run_tasks},
    {"dependences", run_dependences},
    {"nested", run_nested},
    {"omp_triad", run_omp_triad},
    {"omp_matrix", run_omp_matrix},
    {"omp_stencil", run_omp_stencil},
    {"omp_solver", run_omp_solver},
    {"omp_compute", run_omp_compute},
    {NULL, NULL},
};

int main(int argc, char** argv) {
  return run_suite(entries, argc, argv);
}
