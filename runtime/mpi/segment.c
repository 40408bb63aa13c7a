/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that all ranks share: a file that each maps. It begins as zeros, so the first rank can use it at once. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

/* What other ranks write for one rank. */
struct mailbox {
  _Alignas(LINE_BYTES) _Atomic uint32_t bell; /* counts the times it was rung; a futex */
  _Alignas(LINE_BYTES) _Atomic uint32_t sleeps;
  _Atomic uint32_t sleeps_at; /* the bell's count that it sleeps at, for who watches all ranks from outside */
};

struct job {
  _Alignas(LINE_BYTES) _Atomic uint32_t aborted; /* 0, or 1 + the code that the job ends with */
};

static unsigned char *segment;
static struct mailbox *mine;
static uint32_t last_bell; /* the bell's count when it was last looked at */

static struct job *job(void) { return (struct job *)segment; }
static struct mailbox *mailbox(int rank) { return (struct mailbox *)(segment + sizeof(struct job)) + rank; }
static size_t rings_at(void) { return sizeof(struct job) + (size_t)msmpi_size * sizeof(struct mailbox); }
static size_t segment_bytes(void) {
  return rings_at() + (size_t)msmpi_size * (size_t)msmpi_size * sizeof(struct ring);
}

struct ring *msmpi_ring(int from, int to) {
  return (struct ring *)(segment + rings_at()) + (size_t)to * (size_t)msmpi_size + (size_t)from;
}

static _Noreturn void cannot(const char *what, const char *path) {
  fprintf(stderr, "MANYSCALE_MPI_SEGMENT=%s: cannot %s it: %s\n", path, what, strerror(errno));
  exit(1);
}

void msmpi_map_segment(void) {
  const char *path = getenv("MANYSCALE_MPI_SEGMENT");
  int file = -1;
  if (path) {
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) cannot("open", path);
    if (ftruncate(file, (off_t)segment_bytes()) != 0) cannot("size", path);
  } else if (msmpi_size > 1) {
    fprintf(stderr, "MANYSCALE_MPI_SIZE=%d: needs MANYSCALE_MPI_SEGMENT, a file that all ranks share\n", msmpi_size);
    exit(1);
  }
  segment = mmap(NULL, segment_bytes(), PROT_READ | PROT_WRITE, path ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS,
                 file, 0);
  if (segment == MAP_FAILED) cannot("map", path ? path : "(none)");
  if (file >= 0) close(file);
  mine = mailbox(msmpi_rank);
  last_bell = 0;
}

void msmpi_unmap_segment(void) {
  munmap(segment, segment_bytes());
  segment = NULL;
}

static void end_if_aborted(void) {
  const uint32_t aborted = atomic_load_explicit(&job()->aborted, memory_order_relaxed);
  if (!aborted) return;
  fflush(NULL);
  _Exit((int)(aborted - 1) ? (int)(aborted - 1) : 1);
}

void msmpi_ring_bell(int rank) {
  struct mailbox *other = mailbox(rank);
  atomic_fetch_add(&other->bell, 1);
  if (atomic_load(&other->sleeps)) syscall(SYS_futex, &other->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

bool msmpi_bell_rang(void) {
  const uint32_t bell = atomic_load_explicit(&mine->bell, memory_order_relaxed);
  if (bell == last_bell) return false;
  last_bell = bell;
  atomic_thread_fence(memory_order_acquire);
  end_if_aborted();
  return true;
}

void msmpi_sleep(void) {
  end_if_aborted();
  atomic_store_explicit(&mine->sleeps_at, last_bell, memory_order_relaxed);
  atomic_store(&mine->sleeps, 1);
  /* The kernel compares the bell with the last count seen, so a ring in between is not missed. */
  syscall(SYS_futex, &mine->bell, FUTEX_WAIT, last_bell, NULL, NULL, 0);
  atomic_store(&mine->sleeps, 0);
}

void msmpi_tell_abort(int code) {
  atomic_store(&job()->aborted, 1 + (uint32_t)(code & 0xff));
  for (int rank = 0; rank < msmpi_size; ++rank) msmpi_ring_bell(rank);
}
