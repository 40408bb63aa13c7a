// SPDX-License-Identifier: Apache-2.0
// The programs of the suite with threads.
#pragma once
#include "../c/suite.h"

int run_mutex(int argc, char** argv);
int run_condition(int argc, char** argv);
int run_barrier(int argc, char** argv);
int run_read_write(int argc, char** argv);
int run_cancellation(int argc, char** argv);
int run_loops(int argc, char** argv);
int run_constructs(int argc, char** argv);
int run_tasks(int argc, char** argv);
int run_dependences(int argc, char** argv);
int run_nested(int argc, char** argv);
int run_omp_triad(int argc, char** argv);
int run_omp_matrix(int argc, char** argv);
int run_omp_stencil(int argc, char** argv);
int run_omp_solver(int argc, char** argv);
int run_omp_compute(int argc, char** argv);
