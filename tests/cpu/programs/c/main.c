// SPDX-License-Identifier: Apache-2.0
// Programs in C: what the compiler, the C library and the system calls behind it do; and small computations.
#include "programs.h"

static const Entry entries[] = {
    {"integer", run_integer},
    {"floating", run_floating},
    {"rounding", run_rounding},
    {"mathematics", run_mathematics},
    {"strings", run_strings},
    {"allocation", run_allocation},
    {"files", run_files},
    {"formats", run_formats},
    {"control", run_control},
    {"signals", run_signals},
    {"self_modifying", run_self_modifying},
    {"process", run_process},
    {"matrix", run_matrix},
    {"sort", run_sort},
    {"conjugate_gradient", run_conjugate_gradient},
    {"stencil", run_stencil},
    {"triad", run_triad},
    {"pointer_chase", run_pointer_chase},
    {"queens", run_queens},
    {"sha256", run_sha256},
    {"mix", run_mix},
    {NULL, NULL},
};

int main(int argc, char** argv) {
  return run_suite(entries, argc, argv);
}
