// SPDX-License-Identifier: Apache-2.0
// POSIX threads: the first argument is their number.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "programs.h"

enum { most_threads = 64 };

static long thread_count(int argc, char** argv) {
  long count = number_argument(argc, argv, 1, 4);
  return count < 1 ? 1 : count > most_threads ? most_threads : count;
}

static void run_on(long count, void* (*body)(void*), void** results) {
  pthread_t threads[most_threads];
  for (long i = 0; i < count; ++i)
    if (pthread_create(&threads[i], NULL, body, (void*)i) != 0) exit(9);
  for (long i = 0; i < count; ++i) pthread_join(threads[i], results ? &results[i] : NULL);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spin;
static long counter, spun, once_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static __thread long own;
static long destroyed;

static void first_time(void) {
  ++once_count;
}

static void destroy(void* value) {
  pthread_mutex_lock(&mutex);
  destroyed += (long)value;
  pthread_mutex_unlock(&mutex);
}

static void* add(void* number) {
  pthread_once(&once, first_time);
  pthread_setspecific(key, (void*)((long)number + 1));
  for (int i = 0; i < 300; ++i) {
    pthread_mutex_lock(&mutex);
    counter += (long)number + 1;
    pthread_mutex_unlock(&mutex);
    pthread_spin_lock(&spin);
    ++spun;
    pthread_spin_unlock(&spin);
    own += i;
    if (i % 64 == 0) sched_yield();
  }
  return (void*)(own + (long)number);
}

int run_mutex(int argc, char** argv) {
  long count = thread_count(argc, argv), sum = 0;
  void* results[most_threads];
  pthread_spin_init(&spin, 0);
  pthread_key_create(&key, destroy);
  run_on(count, add, results);
  for (long i = 0; i < count; ++i) sum += (long)results[i];
  printf("counter %ld spun %ld results %ld own %ld once %ld destroyed %ld\n", counter, spun, sum, own,
         once_count, destroyed);
  pthread_mutexattr_t attributes;
  pthread_mutex_t again;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&again, &attributes);
  pthread_mutex_lock(&again);
  printf("recursive %d try %d\n", pthread_mutex_lock(&again), pthread_mutex_trylock(&mutex));
  printf("busy %d\n", pthread_mutex_trylock(&mutex) == EBUSY);
  return 0;
}

enum { slots = 8 };
static long ring[slots], put_at, taken_from, filled, consumed;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static long producers;
enum { items = 200 };

static void* produce_or_consume(void* number) {
  int produces = (long)number % 2 == 0;
  for (int i = 0; i < items; ++i) {
    pthread_mutex_lock(&mutex);
    if (produces) {
      while (filled == slots) pthread_cond_wait(&not_full, &mutex);
      ring[put_at++ % slots] = (long)number * 1000 + i;
      ++filled;
      pthread_cond_signal(&not_empty);
    } else {
      while (filled == 0) pthread_cond_wait(&not_empty, &mutex);
      consumed += ring[taken_from++ % slots];
      --filled;
      pthread_cond_signal(&not_full);
    }
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

int run_condition(int argc, char** argv) {
  producers = (thread_count(argc, argv) + 1) / 2;
  run_on(2 * producers, produce_or_consume, NULL);
  printf("consumed %ld left %ld\n", consumed, filled);
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 1000000;
  if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, ++until.tv_sec;
  pthread_mutex_lock(&mutex);
  printf("timed out %d\n", pthread_cond_timedwait(&not_empty, &mutex, &until) == ETIMEDOUT);
  pthread_mutex_unlock(&mutex);
  return 0;
}

static pthread_barrier_t barrier;
static long cells[most_threads], cell_count, serial;

static void* relax(void* number) {
  long me = (long)number;
  for (int i = 0; i < 30; ++i) {
    long next = cells[(me + 1) % cell_count] * 3 + cells[me];
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) ++serial;
    cells[me] = next % 1000003;
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

int run_barrier(int argc, char** argv) {
  cell_count = thread_count(argc, argv);
  for (long i = 0; i < cell_count; ++i) cells[i] = i + 1;
  pthread_barrier_init(&barrier, NULL, (unsigned)cell_count);
  run_on(cell_count, relax, NULL);
  long sum = 0;
  for (long i = 0; i < cell_count; ++i) sum = sum * 7 % 1000003 + cells[i];
  printf("cells %ld serial %ld\n", sum, serial);
  return 0;
}

static pthread_rwlock_t guard = PTHREAD_RWLOCK_INITIALIZER;
static sem_t tokens;
static long table[4], wrong, inside, too_many;

static void* read_or_write(void* number) {
  for (long i = 0; i < 100; ++i) {
    if ((i + (long)number) % 5 == 0) {
      pthread_rwlock_wrlock(&guard);
      for (int j = 0; j < 4; ++j) ++table[j];
      pthread_rwlock_unlock(&guard);
    } else {
      pthread_rwlock_rdlock(&guard);
      for (int j = 1; j < 4; ++j)
        if (table[j] != table[0]) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
      pthread_rwlock_unlock(&guard);
    }
    sem_wait(&tokens);
    if (__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) > 2)
      __atomic_fetch_add(&too_many, 1, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
    sem_post(&tokens);
  }
  return NULL;
}

int run_read_write(int argc, char** argv) {
  sem_init(&tokens, 0, 2);
  run_on(thread_count(argc, argv), read_or_write, NULL);
  printf("table %ld wrong %ld too many %ld\n", table[3], wrong, too_many);
  return 0;
}

static long cleaned;
static sem_t started;

static void clean(void* amount) {
  __atomic_fetch_add(&cleaned, (long)amount, __ATOMIC_RELAXED);
}

static void* wait_forever(void* number) {
  pthread_cleanup_push(clean, (void*)((long)number + 1));
  sem_post(&started);
  if ((long)number == 0) pthread_exit((void*)77);
  for (;;) pause();
  pthread_cleanup_pop(0);
  return NULL;
}

int run_cancellation(int argc, char** argv) {
  long count = thread_count(argc, argv);
  pthread_t threads[most_threads];
  void* result[most_threads];
  sem_init(&started, 0, 0);
  for (long i = 0; i < count; ++i) pthread_create(&threads[i], NULL, wait_forever, (void*)i);
  for (long i = 0; i < count; ++i) sem_wait(&started);
  long cancelled = 0;
  for (long i = 1; i < count; ++i) pthread_cancel(threads[i]);
  for (long i = 0; i < count; ++i) {
    pthread_join(threads[i], &result[i]);
    cancelled += result[i] == PTHREAD_CANCELED;
  }
  printf("cancelled %ld cleaned %ld exit %ld\n", cancelled, cleaned, (long)result[0]);
  return 0;
}
