// SPDX-License-Identifier: Apache-2.0
// OpenMP, construct by construct; the first argument is the number of threads.
#include <omp.h>
#include <string.h>

#include "programs.h"

static void use_threads(int argc, char** argv) {
  omp_set_dynamic(0);
  omp_set_num_threads((int)number_argument(argc, argv, 1, 4));
}

static long work(long i) {
  long value = i;
  for (long j = 0; j < i % 17; ++j) value = value * 31 % 10007;
  return value;
}

int run_loops(int argc, char** argv) {
  enum { n = 500 };
  static long results[n];
  use_threads(argc, argv);
  long sum = 0, largest = 0, all = -1;
  double product = 1;
#pragma omp parallel for schedule(static) reduction(+ : sum)
  for (int i = 0; i < n; ++i) sum += results[i] = work(i);
  printf("static %ld\n", sum);
  sum = 0;
#pragma omp parallel for schedule(static, 7) reduction(+ : sum) reduction(max : largest)
  for (int i = 0; i < n; ++i) {
    sum += work(i) ^ results[i];
    largest = results[i] > largest ? results[i] : largest;
  }
  printf("chunks %ld %ld\n", sum, largest);
  sum = 0;
#pragma omp parallel for schedule(dynamic, 4) reduction(+ : sum) reduction(& : all)
  for (int i = 0; i < n; ++i) {
    sum += work(i);
    all &= ~results[i] | 1023;
  }
  printf("dynamic %ld %ld\n", sum, all);
  sum = 0;
#pragma omp parallel for schedule(guided) reduction(+ : sum) reduction(* : product)
  for (int i = 0; i < n; ++i) {
    sum += work(i);
    product *= i % 50 == 0 ? 2.0 : 1.0;
  }
  printf("guided %ld %g\n", sum, product);
  omp_set_schedule(omp_sched_dynamic, 3);
  sum = 0;
#pragma omp parallel for schedule(runtime) collapse(2) reduction(+ : sum)
  for (int i = 0; i < 20; ++i)
    for (int j = 0; j < 25; ++j) sum += work(i * j);
  printf("collapsed %ld\n", sum);
  long last = -1, text = 0;
#pragma omp parallel for schedule(dynamic) ordered lastprivate(last)
  for (int i = 0; i < 60; ++i) {
    last = work(i);
#pragma omp ordered
    text = text * 3 % 100003 + last;
  }
  printf("ordered %ld last %ld\n", text, last);
#pragma omp parallel
  {
#pragma omp for schedule(dynamic) nowait
    for (int i = 0; i < n; ++i) results[i] = i;
#pragma omp for schedule(static)
    for (int i = 0; i < n; ++i)
#pragma omp atomic
      results[i % 10] += 1;
  }
  printf("nowait %d\n", results[11] == 11);
  return 0;
}

static long copied = 5;
#pragma omp threadprivate(copied)

int run_constructs(int argc, char** argv) {
  use_threads(argc, argv);
  int team = 0, singles = 0, masters = 0, parts[3] = {0};
  long critical = 0, atomic = 0, named = 0, shown = 0, copies = 0, barriers = 0, arrived = 0;
  copied = 9;
#pragma omp parallel copyin(copied) reduction(+ : copies)
  {
#pragma omp single
    team = omp_get_num_threads();
    for (int i = 0; i < 50; ++i) {
#pragma omp critical
      ++critical;
#pragma omp critical(other)
      named += 2;
#pragma omp atomic
      ++atomic;
    }
#pragma omp single nowait
    ++singles;
#pragma omp master
    ++masters;
    copies += copied;
    long value = 0;
#pragma omp single copyprivate(value)
    value = 13;
#pragma omp atomic
    shown += value;
#pragma omp atomic
    ++arrived;
#pragma omp barrier
    if (arrived == omp_get_num_threads())
#pragma omp atomic
      ++barriers;
#pragma omp sections
    {
#pragma omp section
      parts[0] = 1;
#pragma omp section
      parts[1] = 2;
#pragma omp section
      parts[2] = 3;
    }
  }
  printf("team %d critical %d named %d atomic %d\n", team, critical == 50 * team, named == 100 * team,
         atomic == 50 * team);
  printf("singles %d masters %d copies %d shown %d\n", singles, masters, copies == 9 * team,
         shown == 13 * team);
  printf("barriers %d sections %d%d%d\n", barriers == team, parts[0], parts[1], parts[2]);
  omp_lock_t lock;
  omp_init_lock(&lock);
  long locked = 0;
#pragma omp parallel num_threads(3)
  for (int i = 0; i < 20; ++i) {
    omp_set_lock(&lock);
    ++locked;
    omp_unset_lock(&lock);
  }
  omp_destroy_lock(&lock);
  double begin = omp_get_wtime();
  printf("locked %ld time %d level %d\n", locked, omp_get_wtime() >= begin, omp_get_level());
  return 0;
}

static long fibonacci(int n) {
  if (n < 2) return n;
  long left, right;
#pragma omp task shared(left) if (n > 6)
  left = fibonacci(n - 1);
  right = fibonacci(n - 2);
#pragma omp taskwait
  return left + right;
}

int run_tasks(int argc, char** argv) {
  use_threads(argc, argv);
  long result = 0, sum = 0, grouped = 0, looped = 0;
  int n = (int)number_argument(argc, argv, 2, 13);
#pragma omp parallel
#pragma omp single
  {
    result = fibonacci(n);
    for (int i = 0; i < 40; ++i) {
#pragma omp task firstprivate(i)
      {
#pragma omp atomic
        sum += work(i);
      }
    }
#pragma omp taskgroup
    {
      for (int i = 0; i < 10; ++i) {
#pragma omp task
        {
#pragma omp task
          {
#pragma omp atomic
            grouped += 3;
          }
        }
      }
    }
    if (grouped != 30) printf("the group did not wait\n");
#pragma omp taskloop grainsize(8) reduction(+ : looped)
    for (int i = 0; i < 100; ++i) looped += work(i);
  }
  printf("fibonacci %ld sum %ld grouped %ld looped %ld\n", result, sum, grouped, looped);
  return 0;
}

int run_dependences(int argc, char** argv) {
  enum { n = 6 };
  long blocks[n][n], chain = 1;
  use_threads(argc, argv);
#pragma omp parallel
#pragma omp single
  {
    // A wave over a square: each block needs the ones above and to the left.
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) {
        if (i == 0 || j == 0) {
#pragma omp task depend(out : blocks[i][j]) firstprivate(i, j)
          blocks[i][j] = i + j + 1;
        } else {
#pragma omp task depend(in : blocks[i - 1][j], blocks[i][j - 1]) depend(out : blocks[i][j]) firstprivate(i, j)
          blocks[i][j] = (blocks[i - 1][j] * 3 + blocks[i][j - 1] * 5 + work(i * j)) % 10007;
        }
      }
    for (int i = 0; i < 20; ++i) {
#pragma omp task depend(inout : chain) firstprivate(i)
      chain = (chain * 3 + i) % 100003;
    }
#pragma omp taskwait
  }
  printf("wave %ld chain %ld\n", blocks[n - 1][n - 1], chain);
  return 0;
}

int run_nested(int argc, char** argv) {
  long threads = number_argument(argc, argv, 1, 4), sum = 0, deepest = 0;
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2) reduction(+ : sum) reduction(max : deepest)
  {
    long outer = omp_get_thread_num() + 1;
#pragma omp parallel num_threads((int)(threads + 1) / 2) reduction(+ : sum) reduction(max : deepest)
    {
      sum += outer * 100;
      deepest = omp_get_active_level();
#pragma omp for
      for (int i = 0; i < 50; ++i) sum += work(i) * outer;
    }
  }
  printf("nested %ld levels %d\n", sum, deepest >= 1 && deepest <= 2);
  return 0;
}
