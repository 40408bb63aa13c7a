// SPDX-License-Identifier: Apache-2.0
// Threads that the program makes itself, without OpenMP: a stencil whose threads meet at barriers, and a queue
// whose maker signals a condition to those who take from it.
#include <omp.h>
#include <pthread.h>
#include <stdio.h>

#include "programs.h"

enum { most_threads = 128, steps = 10, work_of_item = 2000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static double sum;

// How many threads the program is to have, its first one counted.
static int thread_count(void) {
  const int count = omp_get_max_threads();
  return count < most_threads ? count : most_threads;
}

static void add(double value) {
  pthread_mutex_lock(&mutex);
  sum += value;
  pthread_mutex_unlock(&mutex);
}

// Executes `body` with the numbers 1 to count - 1, each on a thread of its own, and `own` meanwhile.
static void run_threads(int count, void *(*body)(void *), void *(*own)(void *)) {
  pthread_t threads[most_threads];
  for (long t = 1; t < count; t++) pthread_create(&threads[t], NULL, body, (void *)t);
  own((void *)0);
  for (long t = 1; t < count; t++) pthread_join(threads[t], NULL);
}

static int side, members;
static double *now, *next;
static pthread_barrier_t barrier;

static void *smooth(void *number) {
  const long t = (long)number;
  const long first = 1 + t * (side - 2) / members, last = 1 + (t + 1) * (side - 2) / members;
  double mine = 0;
  for (int s = 0; s < steps; s++) {
    for (long i = first; i < last; i++)
      for (long j = 1; j < side - 1; j++) {
        const double *at = now + i * side + j;
        next[i * side + j] = 0.25 * (at[-side] + at[side] + at[-1] + at[1]);
      }
    pthread_barrier_wait(&barrier);
    for (long i = first; i < last; i++)
      for (long j = 1; j < side - 1; j++) mine += now[i * side + j] = next[i * side + j];
    pthread_barrier_wait(&barrier);
  }
  add(mine);
  return NULL;
}

int stencil_threads(int size) {
  side = size < 4 ? 4 : size;
  members = thread_count();
  now = doubles((long)side * side), next = doubles((long)side * side);
  for (int i = 0; i < side * side; i++) now[i] = uniform((uint64_t)i);
  pthread_barrier_init(&barrier, NULL, (unsigned)members);
  run_threads(members, smooth, smooth);
  printf("stencil by threads %d: %.6f\n", side, sum);
  return 0;
}

static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int items, made, taken;

static double work(int item) {
  double x = item;
  for (int i = 0; i < work_of_item; i++) x = x * 0.99 + uniform((uint64_t)i);
  return x;
}

static void *consume(void *number) {
  (void)number;
  for (;;) {
    pthread_mutex_lock(&mutex);
    while (taken == made && made < items) pthread_cond_wait(&more, &mutex);
    const int item = taken < made ? taken++ : -1;
    pthread_mutex_unlock(&mutex);
    if (item < 0) return NULL;
    add(work(item));
  }
}

static void *produce(void *number) {
  for (int item = 0; item < items; item++) {
    add(work(item % 8) * 0.5);
    pthread_mutex_lock(&mutex);
    made++;
    if (made == items)
      pthread_cond_broadcast(&more);
    else
      pthread_cond_signal(&more);
    pthread_mutex_unlock(&mutex);
  }
  return consume(number);
}

int queue_threads(int size) {
  items = size;
  run_threads(thread_count(), consume, produce);
  printf("queue of threads %d: %.4f\n", items, sum);
  return 0;
}
