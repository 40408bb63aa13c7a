/* SPDX-License-Identifier: Apache-2.0 */
/* OpenMP constructs and marked regions, each a known number of times; `regions THREADS`. */
#include <omp.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include "manyscale.h"
#include "programs.h"

static long total;

__attribute__((noinline)) static void work(int amount) {
  for (volatile int step = 0; step < amount; ++step) continue;
}

/* A function to be watched by its name. */
__attribute__((noinline)) void watched_function(int amount) { work(amount); }

/* Leaves frames without returning through them. */
static jmp_buf back;
__attribute__((noinline)) void jumps_out(void) {
  work(10);
  longjmp(back, 1);
}

/* 3 parallel regions in all of `threads` threads; 12 iterations of the loop; 2 barriers that are spelt out. */
static void worksharing(int threads) {
  for (int turn = 0; turn < 3; ++turn) {
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(dynamic)
      for (int index = 0; index < 12; ++index) {
        work(50);
#pragma omp critical
        total += index;
      }
#pragma omp barrier
#pragma omp single
      work(100);
#pragma omp sections
      {
#pragma omp section
        work(20);
#pragma omp section
        work(20);
      }
#pragma omp critical(other)
      total += 1;
#pragma omp barrier
    }
  }
}

static void combined(int threads) {
#pragma omp parallel for num_threads(threads) schedule(guided)
  for (int index = 0; index < 64; ++index) work(index);
#pragma omp parallel for num_threads(threads) ordered schedule(static, 1)
  for (int index = 0; index < 10; ++index) {
#pragma omp ordered
    total += index;
  }
#pragma omp parallel sections num_threads(threads)
  {
#pragma omp section
    work(30);
#pragma omp section
    work(30);
  }
}

/* 8 tasks that write, each with 1 that reads what it wrote, a chain of 5, and a loop of 4 tasks. */
static void tasks(int threads) {
  static int cells[8], chain;
#pragma omp parallel num_threads(threads)
#pragma omp single
  {
    for (int index = 0; index < 8; ++index) {
#pragma omp task depend(out : cells[index]) firstprivate(index)
      {
        work(40);
        cells[index] = index;
      }
#pragma omp task depend(in : cells[index]) firstprivate(index)
      {
        work(30);
#pragma omp atomic
        total += cells[index];
      }
    }
#pragma omp taskwait
    for (int index = 0; index < 5; ++index) {
#pragma omp task depend(inout : chain)
      chain = chain * 3 + 1;
    }
#pragma omp taskgroup
    {
#pragma omp taskloop num_tasks(4)
      for (int index = 0; index < 40; ++index) work(5);
    }
  }
  total += chain;
}

/* A task that makes tasks: 2^(depth + 1) - 2 of them, one of each two executed at once. */
static long leaves(int depth) {
  if (depth == 0) return 1;
  long left, right;
#pragma omp task shared(left)
  left = leaves(depth - 1);
#pragma omp task shared(right) if (0)
  right = leaves(depth - 1);
#pragma omp taskwait
  return left + right;
}

static void recursion(int threads) {
  long found = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
  found = leaves(4);
  total += found;
}

static void locks_and_copies(int threads) {
  omp_lock_t lock;
  omp_init_lock(&lock);
#pragma omp parallel num_threads(threads)
  {
    int shared_value;
    for (int turn = 0; turn < 5; ++turn) {
      omp_set_lock(&lock);
      total += 1;
      omp_unset_lock(&lock);
    }
#pragma omp single copyprivate(shared_value)
    shared_value = 7;
#pragma omp critical
    total += shared_value;
  }
  omp_destroy_lock(&lock);
}

static void nested(void) {
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
  {
#pragma omp parallel num_threads(2)
    {
#pragma omp critical
      total += 1;
    }
  }
}

static void marks(void) {
  MANYSCALE_BEGIN("outer");
  for (int turn = 0; turn < 4; ++turn) {
    MANYSCALE_BEGIN("inner");
    work(25);
    MANYSCALE_END("inner");
    watched_function(15);
  }
  if (setjmp(back) == 0) jumps_out();
  watched_function(15);
  MANYSCALE_BEGIN("never ended");
  MANYSCALE_END("outer");
  MANYSCALE_END("never begun");
}

int regions(int argc, char **argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 2;
  worksharing(threads);
  combined(threads);
  tasks(threads);
  recursion(threads);
  locks_and_copies(threads);
  nested();
  marks();
  printf("total %ld\n", total);
  return 0;
}
