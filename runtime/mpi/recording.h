/* SPDX-License-Identifier: Apache-2.0 */
/* Notes what a rank does, so that the job can be replayed on a simulated network. Only on this machine: simulated
 * ranks execute nothing of it. */
#ifndef MANYSCALE_MPI_RECORDING_H
#define MANYSCALE_MPI_RECORDING_H

#include <stdint.h>

/* The same in src/manyscale/studies/projection/recorded_job.py. */
enum note_kind {
  NOTE_CALL,     /* a call begins: its number, and as bytes where in the program it is made (calls around it, too) */
  NOTE_RETURN,   /* it ends */
  NOTE_SEND,     /* a message is started: request, peer in the world, tag, context, bytes */
  NOTE_RECEIVE,  /* the same; the peer may be unknown (-1), the bytes are those that fit */
  NOTE_COMPLETE, /* the caller learns that a request is complete: request, the peer of a receive, its bytes */
  NOTE_BLOCKS,   /* of a message that was just started: the pieces that it has in memory, if it has gaps */
  NOTE_COMBINE,  /* a reduction combines two operands: their bytes */
};

#if defined(__riscv)
#define NOTE(...) ((void)0)
#define NOTE_CALL_OF(call) ((void)0)
#else
/* Writes a note to the file MANYSCALE_MPI_RECORD/rank; nothing if there is no such variable. */
void msmpi_note(enum note_kind kind, uint64_t subject, int peer, int tag, uint32_t context, uint64_t bytes);
#define NOTE(...) msmpi_note(__VA_ARGS__)
/* Notes that a call begins. */
void msmpi_note_call(uint64_t call);
#define NOTE_CALL_OF(call) msmpi_note_call(call)
#endif

#endif
