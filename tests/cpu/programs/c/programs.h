// SPDX-License-Identifier: Apache-2.0
// The programs of the C suite.
#pragma once
#include "suite.h"

int run_integer(int argc, char** argv);
int run_floating(int argc, char** argv);
int run_rounding(int argc, char** argv);
int run_mathematics(int argc, char** argv);
int run_strings(int argc, char** argv);
int run_allocation(int argc, char** argv);
int run_files(int argc, char** argv);
int run_formats(int argc, char** argv);
int run_control(int argc, char** argv);
int run_signals(int argc, char** argv);
int run_self_modifying(int argc, char** argv);
int run_process(int argc, char** argv);
int run_matrix(int argc, char** argv);
int run_sort(int argc, char** argv);
int run_conjugate_gradient(int argc, char** argv);
int run_stencil(int argc, char** argv);
int run_triad(int argc, char** argv);
int run_pointer_chase(int argc, char** argv);
int run_queens(int argc, char** argv);
int run_sha256(int argc, char** argv);
int run_mix(int argc, char** argv);
