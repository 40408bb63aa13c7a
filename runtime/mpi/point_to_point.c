/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that send, receive and look for messages. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static int attached_bytes; /* of the user's buffer for buffered sends; what is in use is not counted */
static void *attached;

static int check_send(int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  int error = msmpi_check_communicator(comm);
  if (!error) error = msmpi_check_buffer(count, type);
  if (error) return error;
  if (to != MPI_PROC_NULL && (to < 0 || to >= comm->size))
    return msmpi_error(MPI_ERR_RANK, "rank %d is not one of 0 to %d", to, comm->size - 1);
  if (tag < 0) return msmpi_error(MPI_ERR_TAG, "tag %d is negative", tag);
  return MPI_SUCCESS;
}

static int check_source(int from, int tag, MPI_Comm comm) {
  const int error = msmpi_check_communicator(comm);
  if (error) return error;
  if (from != MPI_PROC_NULL && from != MPI_ANY_SOURCE && (from < 0 || from >= comm->size))
    return msmpi_error(MPI_ERR_RANK, "rank %d is not one of 0 to %d", from, comm->size - 1);
  if (tag < 0 && tag != MPI_ANY_TAG) return msmpi_error(MPI_ERR_TAG, "tag %d is negative", tag);
  return MPI_SUCCESS;
}

static int check_receive(int count, MPI_Datatype type, int from, int tag, MPI_Comm comm) {
  const int error = check_source(from, tag, comm);
  return error ? error : msmpi_check_buffer(count, type);
}

static int check_attached(int count, MPI_Datatype type, enum mode mode) {
  if (mode != MODE_BUFFERED) return MPI_SUCCESS;
  const size_t needed = (size_t)count * type->bytes + MPI_BSEND_OVERHEAD;
  if (needed <= (size_t)attached_bytes) return MPI_SUCCESS;
  return msmpi_error(MPI_ERR_BUFFER, "a buffered send needs %zu bytes, the attached buffer has %d", needed,
                     attached_bytes);
}

static int isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, enum mode mode,
                 MPI_Request *request) {
  int error = check_send(count, type, to, tag, comm);
  if (!error) error = check_attached(count, type, mode);
  if (!error) *request = msmpi_start_send(data, count, type, to, tag, comm, comm->context, mode);
  return error;
}

static int irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
  const int error = check_receive(count, type, from, tag, comm);
  if (!error) *request = msmpi_start_receive(data, count, type, from, tag, comm, comm->context);
  return error;
}

static int send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, enum mode mode) {
  MPI_Request request;
  const int error = isend(data, count, type, to, tag, comm, mode, &request);
  return error ? error : msmpi_wait(&request, MPI_STATUS_IGNORE);
}

static int receive(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
  MPI_Request request;
  const int error = irecv(data, count, type, from, tag, comm, &request);
  return error ? error : msmpi_wait(&request, status);
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  CALL(Send, comm, send(data, count, type, to, tag, comm, MODE_STANDARD));
}

int MPI_Ssend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  CALL(Ssend, comm, send(data, count, type, to, tag, comm, MODE_SYNCHRONOUS));
}

int MPI_Bsend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  CALL(Bsend, comm, send(data, count, type, to, tag, comm, MODE_BUFFERED));
}

int MPI_Rsend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  CALL(Rsend, comm, send(data, count, type, to, tag, comm, MODE_STANDARD));
}

int MPI_Recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
  CALL(Recv, comm, receive(data, count, type, from, tag, comm, status));
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
  CALL(Isend, comm, isend(data, count, type, to, tag, comm, MODE_STANDARD, request));
}

int MPI_Issend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
  CALL(Issend, comm, isend(data, count, type, to, tag, comm, MODE_SYNCHRONOUS, request));
}

int MPI_Ibsend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
  CALL(Ibsend, comm, isend(data, count, type, to, tag, comm, MODE_BUFFERED, request));
}

int MPI_Irsend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
  CALL(Irsend, comm, isend(data, count, type, to, tag, comm, MODE_STANDARD, request));
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
  CALL(Irecv, comm, irecv(data, count, type, from, tag, comm, request));
}

/* Receives first and sends then, so that two that exchange do not wait for each other. */
static int exchange(const void *data, int count, MPI_Datatype type, int to, int tag, void *into, int most,
                    MPI_Datatype into_type, int from, int from_tag, MPI_Comm comm, MPI_Status *status) {
  int error = check_send(count, type, to, tag, comm);
  if (!error) error = check_receive(most, into_type, from, from_tag, comm);
  if (error) return error;
  MPI_Request receiving = msmpi_start_receive(into, most, into_type, from, from_tag, comm, comm->context);
  MPI_Request sending = msmpi_start_send(data, count, type, to, tag, comm, comm->context, MODE_STANDARD);
  error = msmpi_wait(&sending, MPI_STATUS_IGNORE);
  const int receive_error = msmpi_wait(&receiving, status);
  return error ? error : receive_error;
}

static int exchange_and_replace(void *data, int count, MPI_Datatype type, int to, int tag, int from, int from_tag,
                             MPI_Comm comm, MPI_Status *status) {
  int error = check_send(count, type, to, tag, comm);
  if (error) return error;
  const size_t bytes = (size_t)count * type->bytes;
  if (bytes > INT_MAX) return msmpi_error(MPI_ERR_COUNT, "%zu bytes are more than a message can have here", bytes);
  unsigned char *copy = msmpi_allocate(bytes);
  msmpi_pack(data, bytes, type, copy);
  error = exchange(copy, (int)bytes, MPI_BYTE, to, tag, data, count, type, from, from_tag, comm, status);
  free(copy);
  return error;
}

int MPI_Sendrecv(const void *data, int count, MPI_Datatype type, int to, int tag, void *into, int most,
                 MPI_Datatype into_type, int from, int from_tag, MPI_Comm comm, MPI_Status *status) {
  CALL(Sendrecv, comm,
       exchange(data, count, type, to, tag, into, most, into_type, from, from_tag, comm, status));
}

int MPI_Sendrecv_replace(void *data, int count, MPI_Datatype type, int to, int tag, int from, int from_tag,
                         MPI_Comm comm, MPI_Status *status) {
  CALL(Sendrecv_replace, comm, exchange_and_replace(data, count, type, to, tag, from, from_tag, comm, status));
}

static int look(int from, int tag, MPI_Comm comm, bool wait, int *flag, MPI_Status *status) {
  const int error = check_source(from, tag, comm);
  if (error) return error;
  if (from == MPI_PROC_NULL) {
    msmpi_set_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    *flag = 1;
    return MPI_SUCCESS;
  }
  while (!(*flag = msmpi_look(from, tag, comm, status)) && wait) msmpi_progress_or_sleep();
  return MPI_SUCCESS;
}

int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status) {
  int flag;
  CALL(Probe, comm, look(from, tag, comm, true, &flag, status));
}

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
  CALL(Iprobe, comm, look(from, tag, comm, false, flag, status));
}

static int make_send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, enum mode mode,
                     MPI_Request *request) {
  int error = check_send(count, type, to, tag, comm);
  if (!error) error = check_attached(count, type, mode);
  if (error) return error;
  *request = msmpi_describe(true, (void *)data, count, type, to, tag, comm, comm->context, mode);
  (*request)->persistent = true;
  return MPI_SUCCESS;
}

static int make_receive(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                        MPI_Request *request) {
  const int error = check_receive(count, type, from, tag, comm);
  if (error) return error;
  *request = msmpi_describe(false, data, count, type, from, tag, comm, comm->context, MODE_STANDARD);
  (*request)->persistent = true;
  return MPI_SUCCESS;
}

int MPI_Send_init(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                  MPI_Request *request) {
  CALL(Send_init, comm, make_send(data, count, type, to, tag, comm, MODE_STANDARD, request));
}

int MPI_Ssend_init(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request *request) {
  CALL(Ssend_init, comm, make_send(data, count, type, to, tag, comm, MODE_SYNCHRONOUS, request));
}

int MPI_Bsend_init(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request *request) {
  CALL(Bsend_init, comm, make_send(data, count, type, to, tag, comm, MODE_BUFFERED, request));
}

int MPI_Rsend_init(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request *request) {
  CALL(Rsend_init, comm, make_send(data, count, type, to, tag, comm, MODE_STANDARD, request));
}

int MPI_Recv_init(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
  CALL(Recv_init, comm, make_receive(data, count, type, from, tag, comm, request));
}

static int attach(void *buffer, int bytes) {
  if (attached) return msmpi_error(MPI_ERR_BUFFER, "a buffer is attached already");
  if (bytes < 0) return msmpi_error(MPI_ERR_ARG, "%d bytes", bytes);
  attached = buffer;
  attached_bytes = bytes;
  return MPI_SUCCESS;
}

static int detach(void *buffer, int *bytes) {
  msmpi_flush();
  memcpy(buffer, &attached, sizeof attached);
  *bytes = attached_bytes;
  attached = NULL;
  attached_bytes = 0;
  return MPI_SUCCESS;
}

int MPI_Buffer_attach(void *buffer, int bytes) { CALL(Buffer_attach, MPI_COMM_NULL, attach(buffer, bytes)); }
int MPI_Buffer_detach(void *buffer, int *bytes) { CALL(Buffer_detach, MPI_COMM_NULL, detach(buffer, bytes)); }
