/* SPDX-License-Identifier: Apache-2.0 */
#include "recording.h"

#if !defined(__riscv)
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct note {
  uint32_t kind;
  int32_t peer;
  int32_t tag;
  uint32_t context;
  uint64_t subject;
  uint64_t bytes;
};

static FILE *file;
static enum { UNDECIDED, OFF, ON } state = UNDECIDED;

static void begin(void) {
  const char *folder = getenv("MANYSCALE_MPI_RECORD");
  const char *rank = getenv("MANYSCALE_MPI_RANK");
  state = OFF;
  if (!folder) return;
  char path[4096];
  if (snprintf(path, sizeof path, "%s/%s", folder, rank ? rank : "0") >= (int)sizeof path) {
    fprintf(stderr, "MANYSCALE_MPI_RECORD=%s: the path is too long\n", folder);
    exit(1);
  }
  file = fopen(path, "wb");
  if (!file) {
    perror(path);
    exit(1);
  }
  state = ON;
}

void msmpi_note(enum note_kind kind, uint64_t subject, int peer, int tag, uint32_t context, uint64_t bytes) {
  if (state == UNDECIDED) begin();
  if (state == OFF) return;
  const struct note note = {kind, peer, tag, context, subject, bytes};
  if (fwrite(&note, sizeof note, 1, file) != 1) {
    perror("MANYSCALE_MPI_RECORD");
    exit(1);
  }
  /* After the last call it would be too late. */
  if (kind == NOTE_RETURN && subject == CALL_Finalize) fflush(file);
}

/* Equal for calls from the same call stack. */
static uint64_t call_site(void) {
  extern char __executable_start, etext;
  enum { MOST_FRAMES = 64 };
  void *frames[MOST_FRAMES];
  const int count = backtrace(frames, MOST_FRAMES);
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  for (int frame = 0; frame < count; ++frame) {
    const char *at = frames[frame];
    /* Other libraries lie elsewhere in each process. */
    if (at < &__executable_start || at >= &etext) continue;
    hash = (hash ^ (uint64_t)(at - &__executable_start)) * 1099511628211u;
  }
  return hash;
}

void msmpi_note_call(uint64_t call) {
  if (state == UNDECIDED) begin();
  if (state == ON) msmpi_note(NOTE_CALL, call, 0, 0, 0, call_site());
}
#else
typedef int nothing_is_recorded; /* a file must not be empty */
#endif
