/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this library share. Each rank is a process; all have mapped one segment of shared memory. */
#ifndef MANYSCALE_MPI_INTERNAL_H
#define MANYSCALE_MPI_INTERNAL_H

#include <complex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "calls.h"
#include "mpi.h"

/* ---- environment.c: this process, and errors ---- */

extern int msmpi_rank, msmpi_size; /* in the world */

/* Notes what is wrong, for the error handler's message, and gives the class. */
int msmpi_error(int error_class, const char *format, ...);
int msmpi_finish_call(MPI_Comm comm, const char *call, int result);
void *msmpi_allocate(size_t bytes); /* never fails, but ends the job */
_Noreturn void msmpi_abort_job(int code);

/* ---- segment.c: shared memory: a ring of bytes from each rank to each, and a bell for each ---- */

enum { RING_BYTES = 1 << 15, LINE_BYTES = 64 };

struct ring {
  _Alignas(LINE_BYTES) _Atomic uint32_t written; /* bytes ever, modulo 2^32; the sender's */
  _Atomic uint32_t sender_waits;                 /* the sender found too little space and wants to be rung */
  _Alignas(LINE_BYTES) _Atomic uint32_t taken;   /* the receiver's */
  _Alignas(LINE_BYTES) unsigned char bytes[RING_BYTES];
};

void msmpi_map_segment(void);
void msmpi_unmap_segment(void);
struct ring *msmpi_ring(int from, int to);
/* Wakes a rank, or makes it look at its rings if it is awake. */
void msmpi_ring_bell(int rank);
/* Whether this rank's bell was rung since this was last asked. */
bool msmpi_bell_rang(void);
/* Waits until the bell rings. */
void msmpi_sleep(void);
void msmpi_tell_abort(int code);

/* ---- types.c ---- */

/* The basic types: name, object (with manyscale_mpi_ before it) and type in C; then those of a value and an int. */
#define BASIC_TYPES(TYPE) \
  TYPE(CHAR, char, char) \
  TYPE(SIGNED_CHAR, signed_char, signed char) \
  TYPE(UNSIGNED_CHAR, unsigned_char, unsigned char) \
  TYPE(BYTE, byte, unsigned char) \
  TYPE(SHORT, short, short) \
  TYPE(UNSIGNED_SHORT, unsigned_short, unsigned short) \
  TYPE(INT, int, int) \
  TYPE(UNSIGNED, unsigned, unsigned) \
  TYPE(LONG, long, long) \
  TYPE(UNSIGNED_LONG, unsigned_long, unsigned long) \
  TYPE(LONG_LONG, long_long, long long) \
  TYPE(UNSIGNED_LONG_LONG, unsigned_long_long, unsigned long long) \
  TYPE(FLOAT, float, float) \
  TYPE(DOUBLE, double, double) \
  TYPE(LONG_DOUBLE, long_double, long double) \
  TYPE(C_BOOL, c_bool, bool) \
  TYPE(WCHAR, wchar, wchar_t) \
  TYPE(INT8_T, int8_t, int8_t) \
  TYPE(INT16_T, int16_t, int16_t) \
  TYPE(INT32_T, int32_t, int32_t) \
  TYPE(INT64_T, int64_t, int64_t) \
  TYPE(UINT8_T, uint8_t, uint8_t) \
  TYPE(UINT16_T, uint16_t, uint16_t) \
  TYPE(UINT32_T, uint32_t, uint32_t) \
  TYPE(UINT64_T, uint64_t, uint64_t) \
  TYPE(AINT, aint, MPI_Aint) \
  TYPE(C_FLOAT_COMPLEX, c_float_complex, float complex) \
  TYPE(C_DOUBLE_COMPLEX, c_double_complex, double complex)
#define PAIR_TYPES(TYPE) \
  TYPE(FLOAT_INT, float_int, float) \
  TYPE(DOUBLE_INT, double_int, double) \
  TYPE(LONG_INT, long_int, long) \
  TYPE(2INT, 2int, int) \
  TYPE(SHORT_INT, short_int, short)

#define BASIC_NAME(name, object, ctype) BASIC_##name,
enum basic_kind { BASIC_TYPES(BASIC_NAME) PAIR_TYPES(BASIC_NAME) BASIC_KINDS, BASIC_NONE = BASIC_KINDS };
#undef BASIC_NAME

/* Bytes without gaps, somewhere in an element. */
struct block {
  ptrdiff_t offset;
  size_t bytes;
};

struct manyscale_mpi_type {
  enum basic_kind basic; /* BASIC_NONE if derived */
  size_t bytes;          /* of data in one element */
  ptrdiff_t lower;
  ptrdiff_t extent;      /* from one element to the next */
  size_t basics;         /* values of basic types in one element */
  size_t block_count;
  struct block *blocks;
  int uses;              /* handles and requests that hold a derived type */
  bool dense;            /* elements follow each other without gaps */
};

void msmpi_hold_type(MPI_Datatype type);
void msmpi_drop_type(MPI_Datatype type);
/* Between elements in the user's memory and bytes without gaps. */
void msmpi_pack(const void *elements, size_t bytes, MPI_Datatype type, unsigned char *to);
void msmpi_unpack(const unsigned char *from, size_t bytes, MPI_Datatype type, void *elements);
/* Copies elements from one buffer to another, of types with the same values in them. */
void msmpi_copy(const void *from, size_t count, MPI_Datatype type, void *to, size_t most, MPI_Datatype to_type);
int msmpi_check_buffer(int count, MPI_Datatype type);
static inline unsigned char *msmpi_element(const void *elements, ptrdiff_t index, MPI_Datatype type) {
  return (unsigned char *)elements + index * type->extent;
}

/* ---- operations.c ---- */

enum operation_kind {
  OPERATION_MAX, OPERATION_MIN, OPERATION_SUM, OPERATION_PROD, OPERATION_LAND, OPERATION_BAND, OPERATION_LOR,
  OPERATION_BOR, OPERATION_LXOR, OPERATION_BXOR, OPERATION_MAXLOC, OPERATION_MINLOC, OPERATION_USER
};

struct manyscale_mpi_operation {
  enum operation_kind kind;
  bool commutes;
  MPI_User_function *function; /* the user's */
};

int msmpi_check_operation(MPI_Op op, MPI_Datatype type);
/* inout[i] = in[i] op inout[i] */
void msmpi_combine(const void *in, void *inout, int count, MPI_Datatype type, MPI_Op op);

/* ---- communicators.c ---- */

struct cartesian {
  int dimensions;
  int *sizes, *periods;
};

struct manyscale_mpi_communicator {
  uint32_t context; /* of point-to-point messages; the next number is for collective operations */
  int rank, size;
  int *members;     /* ranks in the world; null: the same numbers */
  MPI_Errhandler handler;
  struct cartesian *cartesian;
  int uses; /* the handle, and requests */
  char name[MPI_MAX_OBJECT_NAME];
};

void msmpi_set_up_communicators(void);
void msmpi_drop_communicator(MPI_Comm comm);
int msmpi_check_communicator(MPI_Comm comm);
/* A communicator of the ranks that give the same colour, in the order of keys. All of `comm` call it. */
int msmpi_split(MPI_Comm comm, int colour, int key, MPI_Comm *part);
static inline int msmpi_world_rank(MPI_Comm comm, int rank) { return comm->members ? comm->members[rank] : rank; }

struct cartesian *msmpi_copy_cartesian(const struct cartesian *original);
void msmpi_free_cartesian(struct cartesian *cartesian);

/* ---- collectives.c: what other files need of it ---- */

/* Messages of collective operations. All ranks of a communicator call these in the same order, so that they need no
 * tags. */
void msmpi_send(const void *data, int count, MPI_Datatype type, int to, MPI_Comm comm);
void msmpi_receive(void *data, int count, MPI_Datatype type, int from, MPI_Comm comm);
void msmpi_exchange(const void *data, int count, MPI_Datatype type, int to, void *into, int most,
                    MPI_Datatype into_type, int from, MPI_Comm comm);
void msmpi_barrier(MPI_Comm comm);
int msmpi_check_root(int root, MPI_Comm comm);
/* `into` gets `bytes` bytes from each rank, in their order. */
void msmpi_allgather(const void *data, int bytes, void *into, MPI_Comm comm);
/* Leaves the reduction of all ranks' elements in `elements` of `root`; those of others are used up. */
void msmpi_reduce(void *elements, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);
void msmpi_scatterv(const void *data, const int counts[], const int displacements[], MPI_Datatype type, void *into,
                    int into_count, MPI_Datatype into_type, int root, MPI_Comm comm);

/* Memory for elements of any type. */
struct room {
  void *memory, *elements;
};
struct room msmpi_make_room(int count, MPI_Datatype type);

/* ---- messages.c: sending, receiving, matching ---- */

enum mode { MODE_STANDARD, MODE_SYNCHRONOUS, MODE_BUFFERED };

struct manyscale_mpi_request {
  /* What is asked for; a persistent request keeps it. */
  bool sends;
  bool persistent;
  enum mode mode;
  void *data;
  int count;
  MPI_Datatype type;
  int peer; /* in comm */
  int tag;
  MPI_Comm comm;
  uint32_t context;
  /* How far it has come. */
  bool active;   /* started and not yet waited for */
  bool complete;
  bool detached; /* no rank waits for it */
  unsigned char *bytes; /* `data`, or its packed copy */
  size_t total;         /* to be sent, or that fit */
  size_t length;        /* of the message received */
  size_t moved;
  uint64_t partner; /* the other side's request, of a long message */
  MPI_Status status;
  struct manyscale_mpi_request *next; /* in a list of messages.c */
};

/* Makes a request, started. Type, rank, tag and communicator are right. */
MPI_Request msmpi_start_send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                             uint32_t context, enum mode mode);
MPI_Request msmpi_start_receive(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                                uint32_t context);
/* Makes one that msmpi_start starts, as often as wanted. */
MPI_Request msmpi_describe(bool sends, void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                           uint32_t context, enum mode mode);
void msmpi_start(MPI_Request request);
/* Moves what can be moved; returns at once. */
void msmpi_progress(void);
/* Waits until something has happened. */
void msmpi_progress_or_sleep(void);
/* Waits for a request, frees it unless it is persistent, and gives its error. */
int msmpi_wait(MPI_Request *request, MPI_Status *status);
/* What is left of waiting for a request that is complete. */
int msmpi_take_result(MPI_Request *request, MPI_Status *status);
void msmpi_forget(MPI_Request request);
/* Takes a receive that nothing has matched out of the list; false if it is too late. */
bool msmpi_withdraw(MPI_Request request);
/* Nobody will wait for the request any more; it is freed when it is complete. */
void msmpi_detach(MPI_Request request);
/* Whether a message that a receive would match is there. */
bool msmpi_look(int from, int tag, MPI_Comm comm, MPI_Status *status);
void msmpi_set_status(MPI_Status *status, int source, int tag, size_t bytes);
/* Waits until everything that was sent without a request has left. */
void msmpi_flush(void);

#endif
