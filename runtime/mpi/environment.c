/* SPDX-License-Identifier: Apache-2.0 */
/* Beginning and end of a job, errors, and time. */
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "internal.h"

int msmpi_rank = 0, msmpi_size = 1;
static enum { BEFORE, DURING, AFTER } state = BEFORE;
static int thread_level = MPI_THREAD_SINGLE;
static char detail[256];

static const char *const error_names[] = {
    "no error",        "invalid buffer",        "invalid count",       "invalid datatype",
    "invalid tag",     "invalid communicator",  "invalid rank",        "invalid request",
    "invalid root",    "invalid operation",     "invalid topology",    "invalid dimension",
    "invalid argument", "message is longer than the buffer", "other error", "internal error",
    "error in a status", "pending request",     "unknown error"};

int msmpi_error(int error_class, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(detail, sizeof detail, format, arguments);
  va_end(arguments);
  return error_class;
}

static const char *error_name(int code) {
  return error_names[code < 0 || code > MPI_ERR_LASTCODE ? MPI_ERR_UNKNOWN : code];
}

int msmpi_finish_call(MPI_Comm comm, const char *call, int result) {
  if (result == MPI_SUCCESS) return result;
  if (comm == MPI_COMM_NULL) comm = MPI_COMM_WORLD;
  if (comm->handler == MPI_ERRORS_RETURN) return result;
  fprintf(stderr, "rank %d: %s: %s%s%s\n", msmpi_rank, call, error_name(result), detail[0] ? ": " : "", detail);
  msmpi_abort_job(result);
}

void msmpi_abort_job(int code) {
  fflush(NULL);
  if (state == DURING) msmpi_tell_abort(code);
  _Exit(code & 0xff ? code & 0xff : 1);
}

void *msmpi_allocate(size_t bytes) {
  void *memory = malloc(bytes ? bytes : 1);
  if (memory) return memory;
  fprintf(stderr, "rank %d: no memory for %zu bytes\n", msmpi_rank, bytes);
  msmpi_abort_job(MPI_ERR_OTHER);
}

static int number_from(const char *variable, int otherwise, int least, int most) {
  const char *text = getenv(variable);
  if (!text) return otherwise;
  char *end;
  const long value = strtol(text, &end, 10);
  if (end != text && *end == 0 && value >= least && value <= most) return (int)value;
  fprintf(stderr, "%s=%s: should be a whole number from %d to %d\n", variable, text, least, most);
  exit(1);
}

static int initialise(int required, int *provided) {
  if (state != BEFORE) return msmpi_error(MPI_ERR_OTHER, "MPI was initialized before");
  msmpi_size = number_from("MANYSCALE_MPI_SIZE", 1, 1, 4096);
  msmpi_rank = number_from("MANYSCALE_MPI_RANK", 0, 0, msmpi_size - 1);
  msmpi_map_segment();
  msmpi_set_up_communicators();
  thread_level = required > MPI_THREAD_SERIALIZED ? MPI_THREAD_SERIALIZED : required;
  if (provided) *provided = thread_level;
  state = DURING;
  return MPI_SUCCESS;
}

static int finalise(void) {
  if (state != DURING) return msmpi_error(MPI_ERR_OTHER, "MPI is not initialized");
  msmpi_flush();
  msmpi_barrier(MPI_COMM_WORLD); /* what one still has to send may need another's help */
  msmpi_unmap_segment();
  state = AFTER;
  return MPI_SUCCESS;
}

int MPI_Init(int *argc, char ***argv) {
  (void)argc, (void)argv;
  CALL(Init, MPI_COMM_NULL, initialise(MPI_THREAD_SINGLE, NULL));
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  (void)argc, (void)argv;
  CALL(Init_thread, MPI_COMM_NULL, initialise(required, provided));
}

int MPI_Finalize(void) { CALL(Finalize, MPI_COMM_NULL, finalise()); }
int MPI_Initialized(int *flag) { CALL(Initialized, MPI_COMM_NULL, (*flag = state != BEFORE, MPI_SUCCESS)); }
int MPI_Finalized(int *flag) { CALL(Finalized, MPI_COMM_NULL, (*flag = state == AFTER, MPI_SUCCESS)); }
int MPI_Query_thread(int *provided) { CALL(Query_thread, MPI_COMM_NULL, (*provided = thread_level, MPI_SUCCESS)); }

int MPI_Is_thread_main(int *flag) { CALL(Is_thread_main, MPI_COMM_NULL, (*flag = 1, MPI_SUCCESS)); }

static int abort_job(int code) {
  fprintf(stderr, "rank %d called MPI_Abort with code %d\n", msmpi_rank, code);
  msmpi_abort_job(code);
}

int MPI_Abort(MPI_Comm comm, int code) { CALL(Abort, comm, abort_job(code)); }

int MPI_Get_version(int *version, int *subversion) {
  CALL(Get_version, MPI_COMM_NULL, (*version = MPI_VERSION, *subversion = MPI_SUBVERSION, MPI_SUCCESS));
}

static int give_text(const char *text, size_t most, char *to, int *length) {
  *length = snprintf(to, most, "%s", text);
  return MPI_SUCCESS;
}

int MPI_Get_library_version(char *version, int *length) {
  CALL(Get_library_version, MPI_COMM_NULL,
       give_text("Manyscale MPI for one node", MPI_MAX_LIBRARY_VERSION_STRING, version, length));
}

int MPI_Get_processor_name(char *name, int *length) {
  CALL(Get_processor_name, MPI_COMM_NULL, give_text("node0", MPI_MAX_PROCESSOR_NAME, name, length));
}

static double seconds(int (*clock)(clockid_t, struct timespec *)) {
  struct timespec time;
  clock(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

double MPI_Wtime(void) {
  MANYSCALE_MARK(3, (long)CALL_Wtime);
  NOTE_CALL_OF(CALL_Wtime);
  const double time = seconds(clock_gettime);
  NOTE(NOTE_RETURN, CALL_Wtime, 0, 0, 0, 0);
  MANYSCALE_MARK(4, (long)CALL_Wtime);
  return time;
}

double MPI_Wtick(void) {
  MANYSCALE_MARK(3, (long)CALL_Wtick);
  NOTE_CALL_OF(CALL_Wtick);
  const double tick = seconds(clock_getres);
  NOTE(NOTE_RETURN, CALL_Wtick, 0, 0, 0, 0);
  MANYSCALE_MARK(4, (long)CALL_Wtick);
  return tick;
}

int MPI_Error_class(int code, int *error_class) {
  CALL(Error_class, MPI_COMM_NULL, (*error_class = code, MPI_SUCCESS));
}

int MPI_Error_string(int code, char *text, int *length) {
  CALL(Error_string, MPI_COMM_NULL, give_text(error_name(code), MPI_MAX_ERROR_STRING, text, length));
}
