/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of MPI's calls, which marker instructions pass to the simulator; the same list as in its core
 * (core/cpu/mpi/mpi_calls.hpp). */
#ifndef MANYSCALE_MPI_CALLS_H
#define MANYSCALE_MPI_CALLS_H

#include "manyscale.h"
#include "recording.h"

enum {
  CALL_Init = 0,
  CALL_Init_thread = 1,
  CALL_Finalize = 2,
  CALL_Initialized = 3,
  CALL_Finalized = 4,
  CALL_Abort = 5,
  CALL_Query_thread = 6,
  CALL_Is_thread_main = 7,
  CALL_Get_version = 8,
  CALL_Get_library_version = 9,
  CALL_Get_processor_name = 10,
  CALL_Wtime = 11,
  CALL_Wtick = 12,
  CALL_Error_class = 13,
  CALL_Error_string = 14,
  CALL_Comm_rank = 15,
  CALL_Comm_size = 16,
  CALL_Comm_dup = 17,
  CALL_Comm_split = 18,
  CALL_Comm_split_type = 19,
  CALL_Comm_free = 20,
  CALL_Comm_compare = 21,
  CALL_Comm_set_errhandler = 22,
  CALL_Comm_get_errhandler = 23,
  CALL_Comm_set_name = 24,
  CALL_Comm_get_name = 25,
  CALL_Dims_create = 26,
  CALL_Cart_create = 27,
  CALL_Cart_coords = 28,
  CALL_Cart_rank = 29,
  CALL_Cart_shift = 30,
  CALL_Cart_sub = 31,
  CALL_Cart_get = 32,
  CALL_Cartdim_get = 33,
  CALL_Topo_test = 34,
  CALL_Send = 35,
  CALL_Ssend = 36,
  CALL_Bsend = 37,
  CALL_Rsend = 38,
  CALL_Recv = 39,
  CALL_Isend = 40,
  CALL_Issend = 41,
  CALL_Ibsend = 42,
  CALL_Irsend = 43,
  CALL_Irecv = 44,
  CALL_Sendrecv = 45,
  CALL_Sendrecv_replace = 46,
  CALL_Probe = 47,
  CALL_Iprobe = 48,
  CALL_Wait = 49,
  CALL_Waitall = 50,
  CALL_Waitany = 51,
  CALL_Waitsome = 52,
  CALL_Test = 53,
  CALL_Testall = 54,
  CALL_Testany = 55,
  CALL_Testsome = 56,
  CALL_Cancel = 57,
  CALL_Test_cancelled = 58,
  CALL_Request_free = 59,
  CALL_Request_get_status = 60,
  CALL_Send_init = 61,
  CALL_Ssend_init = 62,
  CALL_Bsend_init = 63,
  CALL_Rsend_init = 64,
  CALL_Recv_init = 65,
  CALL_Start = 66,
  CALL_Startall = 67,
  CALL_Get_count = 68,
  CALL_Get_elements = 69,
  CALL_Buffer_attach = 70,
  CALL_Buffer_detach = 71,
  CALL_Barrier = 72,
  CALL_Bcast = 73,
  CALL_Reduce = 74,
  CALL_Allreduce = 75,
  CALL_Gather = 76,
  CALL_Gatherv = 77,
  CALL_Scatter = 78,
  CALL_Scatterv = 79,
  CALL_Allgather = 80,
  CALL_Allgatherv = 81,
  CALL_Alltoall = 82,
  CALL_Alltoallv = 83,
  CALL_Reduce_scatter = 84,
  CALL_Reduce_scatter_block = 85,
  CALL_Scan = 86,
  CALL_Exscan = 87,
  CALL_Reduce_local = 88,
  CALL_Type_contiguous = 89,
  CALL_Type_vector = 90,
  CALL_Type_create_hvector = 91,
  CALL_Type_indexed = 92,
  CALL_Type_create_struct = 93,
  CALL_Type_create_resized = 94,
  CALL_Type_commit = 95,
  CALL_Type_free = 96,
  CALL_Type_size = 97,
  CALL_Type_get_extent = 98,
  CALL_Get_address = 99,
  CALL_Op_create = 100,
  CALL_Op_free = 101,
};

/* The body of a call of MPI: marks its beginning and its end around an expression that gives its result. What the
 * communicator's error handler is called for results other than success. */
#define CALL(name, comm, work)                                                     \
  do {                                                                             \
    MANYSCALE_MARK(3, (long)CALL_##name);                                          \
    NOTE_CALL_OF(CALL_##name);                                                     \
    const MPI_Comm call_comm = (comm);                                             \
    const int call_work = (work);                                                  \
    const int call_result = msmpi_finish_call(call_comm, "MPI_" #name, call_work); \
    NOTE(NOTE_RETURN, CALL_##name, 0, 0, 0, 0);                                    \
    MANYSCALE_MARK(4, (long)CALL_##name);                                          \
    return call_result;                                                            \
  } while (0)

#endif
