/* SPDX-License-Identifier: Apache-2.0 */
/* A small MPI for programs that run on one node: point-to-point, collective operations, Cartesian topologies and
 * simple derived types, with the names and meanings of the MPI standard. Not there: one-sided communication, files,
 * dynamic processes, intercommunicators, groups as objects, nonblocking collectives, and Fortran. */
#ifndef MANYSCALE_MPI_H
#define MANYSCALE_MPI_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MPI_VERSION 3
#define MPI_SUBVERSION 1

typedef struct manyscale_mpi_communicator *MPI_Comm;
typedef struct manyscale_mpi_type *MPI_Datatype;
typedef struct manyscale_mpi_operation *MPI_Op;
typedef struct manyscale_mpi_request *MPI_Request;
typedef int MPI_Errhandler;
typedef int MPI_Info;
typedef ptrdiff_t MPI_Aint;

typedef struct {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int manyscale_cancelled;
  size_t manyscale_bytes;
} MPI_Status;

typedef void MPI_User_function(void *in, void *inout, int *count, MPI_Datatype *type);

/* Handles that always exist. */
extern struct manyscale_mpi_communicator manyscale_mpi_world, manyscale_mpi_self;
#define MPI_COMM_WORLD (&manyscale_mpi_world)
#define MPI_COMM_SELF (&manyscale_mpi_self)
#define MPI_COMM_NULL ((MPI_Comm)0)
#define MPI_REQUEST_NULL ((MPI_Request)0)
#define MPI_DATATYPE_NULL ((MPI_Datatype)0)
#define MPI_OP_NULL ((MPI_Op)0)
#define MPI_INFO_NULL 0
#define MPI_ERRHANDLER_NULL 0
#define MPI_ERRORS_ARE_FATAL 1
#define MPI_ERRORS_RETURN 2

/* Predefined types. */
extern struct manyscale_mpi_type manyscale_mpi_char, manyscale_mpi_signed_char, manyscale_mpi_unsigned_char,
    manyscale_mpi_byte, manyscale_mpi_short, manyscale_mpi_unsigned_short, manyscale_mpi_int,
    manyscale_mpi_unsigned, manyscale_mpi_long, manyscale_mpi_unsigned_long, manyscale_mpi_long_long,
    manyscale_mpi_unsigned_long_long, manyscale_mpi_float, manyscale_mpi_double, manyscale_mpi_long_double,
    manyscale_mpi_c_bool, manyscale_mpi_wchar, manyscale_mpi_int8_t, manyscale_mpi_int16_t,
    manyscale_mpi_int32_t, manyscale_mpi_int64_t, manyscale_mpi_uint8_t, manyscale_mpi_uint16_t,
    manyscale_mpi_uint32_t, manyscale_mpi_uint64_t, manyscale_mpi_aint, manyscale_mpi_c_float_complex,
    manyscale_mpi_c_double_complex, manyscale_mpi_float_int, manyscale_mpi_double_int, manyscale_mpi_long_int,
    manyscale_mpi_2int, manyscale_mpi_short_int;
#define MPI_CHAR (&manyscale_mpi_char)
#define MPI_SIGNED_CHAR (&manyscale_mpi_signed_char)
#define MPI_UNSIGNED_CHAR (&manyscale_mpi_unsigned_char)
#define MPI_BYTE (&manyscale_mpi_byte)
#define MPI_SHORT (&manyscale_mpi_short)
#define MPI_UNSIGNED_SHORT (&manyscale_mpi_unsigned_short)
#define MPI_INT (&manyscale_mpi_int)
#define MPI_UNSIGNED (&manyscale_mpi_unsigned)
#define MPI_LONG (&manyscale_mpi_long)
#define MPI_UNSIGNED_LONG (&manyscale_mpi_unsigned_long)
#define MPI_LONG_LONG (&manyscale_mpi_long_long)
#define MPI_UNSIGNED_LONG_LONG (&manyscale_mpi_unsigned_long_long)
#define MPI_FLOAT (&manyscale_mpi_float)
#define MPI_DOUBLE (&manyscale_mpi_double)
#define MPI_LONG_DOUBLE (&manyscale_mpi_long_double)
#define MPI_C_BOOL (&manyscale_mpi_c_bool)
#define MPI_WCHAR (&manyscale_mpi_wchar)
#define MPI_INT8_T (&manyscale_mpi_int8_t)
#define MPI_INT16_T (&manyscale_mpi_int16_t)
#define MPI_INT32_T (&manyscale_mpi_int32_t)
#define MPI_INT64_T (&manyscale_mpi_int64_t)
#define MPI_UINT8_T (&manyscale_mpi_uint8_t)
#define MPI_UINT16_T (&manyscale_mpi_uint16_t)
#define MPI_UINT32_T (&manyscale_mpi_uint32_t)
#define MPI_UINT64_T (&manyscale_mpi_uint64_t)
#define MPI_AINT (&manyscale_mpi_aint)
#define MPI_C_FLOAT_COMPLEX (&manyscale_mpi_c_float_complex)
#define MPI_C_DOUBLE_COMPLEX (&manyscale_mpi_c_double_complex)
#define MPI_FLOAT_INT (&manyscale_mpi_float_int)
#define MPI_DOUBLE_INT (&manyscale_mpi_double_int)
#define MPI_LONG_INT (&manyscale_mpi_long_int)
#define MPI_2INT (&manyscale_mpi_2int)
#define MPI_SHORT_INT (&manyscale_mpi_short_int)
#define MPI_LONG_LONG_INT MPI_LONG_LONG
#define MPI_C_COMPLEX MPI_C_FLOAT_COMPLEX

/* Predefined operations. */
extern struct manyscale_mpi_operation manyscale_mpi_max, manyscale_mpi_min, manyscale_mpi_sum,
    manyscale_mpi_prod, manyscale_mpi_land, manyscale_mpi_band, manyscale_mpi_lor, manyscale_mpi_bor,
    manyscale_mpi_lxor, manyscale_mpi_bxor, manyscale_mpi_maxloc, manyscale_mpi_minloc;
#define MPI_MAX (&manyscale_mpi_max)
#define MPI_MIN (&manyscale_mpi_min)
#define MPI_SUM (&manyscale_mpi_sum)
#define MPI_PROD (&manyscale_mpi_prod)
#define MPI_LAND (&manyscale_mpi_land)
#define MPI_BAND (&manyscale_mpi_band)
#define MPI_LOR (&manyscale_mpi_lor)
#define MPI_BOR (&manyscale_mpi_bor)
#define MPI_LXOR (&manyscale_mpi_lxor)
#define MPI_BXOR (&manyscale_mpi_bxor)
#define MPI_MAXLOC (&manyscale_mpi_maxloc)
#define MPI_MINLOC (&manyscale_mpi_minloc)

#define MPI_ANY_SOURCE (-1)
#define MPI_PROC_NULL (-2)
#define MPI_ROOT (-3)
#define MPI_ANY_TAG (-1)
#define MPI_UNDEFINED (-32766)
#define MPI_BOTTOM ((void *)0)
#define MPI_IN_PLACE ((void *)-1)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)
#define MPI_BSEND_OVERHEAD 64
#define MPI_MAX_PROCESSOR_NAME 64
#define MPI_MAX_ERROR_STRING 128
#define MPI_MAX_LIBRARY_VERSION_STRING 64
#define MPI_MAX_OBJECT_NAME 64

#define MPI_THREAD_SINGLE 0
#define MPI_THREAD_FUNNELED 1
#define MPI_THREAD_SERIALIZED 2
#define MPI_THREAD_MULTIPLE 3

#define MPI_IDENT 0
#define MPI_CONGRUENT 1
#define MPI_SIMILAR 2
#define MPI_UNEQUAL 3
#define MPI_CART 1
#define MPI_COMM_TYPE_SHARED 1

#define MPI_SUCCESS 0
#define MPI_ERR_BUFFER 1
#define MPI_ERR_COUNT 2
#define MPI_ERR_TYPE 3
#define MPI_ERR_TAG 4
#define MPI_ERR_COMM 5
#define MPI_ERR_RANK 6
#define MPI_ERR_REQUEST 7
#define MPI_ERR_ROOT 8
#define MPI_ERR_OP 9
#define MPI_ERR_TOPOLOGY 10
#define MPI_ERR_DIMS 11
#define MPI_ERR_ARG 12
#define MPI_ERR_TRUNCATE 13
#define MPI_ERR_OTHER 14
#define MPI_ERR_INTERN 15
#define MPI_ERR_IN_STATUS 16
#define MPI_ERR_PENDING 17
#define MPI_ERR_UNKNOWN 18
#define MPI_ERR_LASTCODE 18

int MPI_Init(int *argc, char ***argv);
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int MPI_Finalize(void);
int MPI_Initialized(int *flag);
int MPI_Finalized(int *flag);
int MPI_Abort(MPI_Comm comm, int code);
int MPI_Query_thread(int *provided);
int MPI_Is_thread_main(int *flag);
int MPI_Get_version(int *version, int *subversion);
int MPI_Get_library_version(char *version, int *length);
int MPI_Get_processor_name(char *name, int *length);
double MPI_Wtime(void);
double MPI_Wtick(void);
int MPI_Error_class(int code, int *error_class);
int MPI_Error_string(int code, char *text, int *length);

int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Comm_size(MPI_Comm comm, int *size);
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy);
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *part);
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part);
int MPI_Comm_free(MPI_Comm *comm);
int MPI_Comm_compare(MPI_Comm one, MPI_Comm other, int *result);
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler);
int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *handler);
int MPI_Comm_set_name(MPI_Comm comm, const char *name);
int MPI_Comm_get_name(MPI_Comm comm, char *name, int *length);

int MPI_Dims_create(int nodes, int dimensions, int sizes[]);
int MPI_Cart_create(MPI_Comm comm, int dimensions, const int sizes[], const int periods[], int reorder,
                    MPI_Comm *cart);
int MPI_Cart_coords(MPI_Comm cart, int rank, int most, int coordinates[]);
int MPI_Cart_rank(MPI_Comm cart, const int coordinates[], int *rank);
int MPI_Cart_shift(MPI_Comm cart, int dimension, int distance, int *source, int *destination);
int MPI_Cart_sub(MPI_Comm cart, const int remain[], MPI_Comm *part);
int MPI_Cart_get(MPI_Comm cart, int most, int sizes[], int periods[], int coordinates[]);
int MPI_Cartdim_get(MPI_Comm cart, int *dimensions);
int MPI_Topo_test(MPI_Comm comm, int *topology);

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm);
int MPI_Ssend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm);
int MPI_Bsend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm);
int MPI_Rsend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm);
int MPI_Recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status);
int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Issend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Ibsend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Irsend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Sendrecv(const void *data, int count, MPI_Datatype type, int to, int tag, void *into, int most,
                 MPI_Datatype into_type, int from, int from_tag, MPI_Comm comm, MPI_Status *status);
int MPI_Sendrecv_replace(void *data, int count, MPI_Datatype type, int to, int tag, int from, int from_tag,
                         MPI_Comm comm, MPI_Status *status);
int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status);
int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status);

int MPI_Wait(MPI_Request *request, MPI_Status *status);
int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]);
int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status);
int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]);
int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status);
int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[]);
int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status);
int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]);
int MPI_Cancel(MPI_Request *request);
int MPI_Test_cancelled(const MPI_Status *status, int *flag);
int MPI_Request_free(MPI_Request *request);
int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status);
int MPI_Send_init(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                  MPI_Request *request);
int MPI_Ssend_init(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request *request);
int MPI_Bsend_init(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request *request);
int MPI_Rsend_init(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request *request);
int MPI_Recv_init(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Start(MPI_Request *request);
int MPI_Startall(int count, MPI_Request requests[]);
int MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count);
int MPI_Get_elements(const MPI_Status *status, MPI_Datatype type, int *count);
int MPI_Buffer_attach(void *buffer, int bytes);
int MPI_Buffer_detach(void *buffer, int *bytes);

int MPI_Barrier(MPI_Comm comm);
int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm);
int MPI_Reduce(const void *data, void *result, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);
int MPI_Allreduce(const void *data, void *result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int MPI_Gather(const void *data, int count, MPI_Datatype type, void *into, int into_count, MPI_Datatype into_type,
               int root, MPI_Comm comm);
int MPI_Gatherv(const void *data, int count, MPI_Datatype type, void *into, const int counts[], const int displacements[],
                MPI_Datatype into_type, int root, MPI_Comm comm);
int MPI_Scatter(const void *data, int count, MPI_Datatype type, void *into, int into_count, MPI_Datatype into_type,
                int root, MPI_Comm comm);
int MPI_Scatterv(const void *data, const int counts[], const int displacements[], MPI_Datatype type, void *into,
                 int into_count, MPI_Datatype into_type, int root, MPI_Comm comm);
int MPI_Allgather(const void *data, int count, MPI_Datatype type, void *into, int into_count,
                  MPI_Datatype into_type, MPI_Comm comm);
int MPI_Allgatherv(const void *data, int count, MPI_Datatype type, void *into, const int counts[],
                   const int displacements[], MPI_Datatype into_type, MPI_Comm comm);
int MPI_Alltoall(const void *data, int count, MPI_Datatype type, void *into, int into_count, MPI_Datatype into_type,
                 MPI_Comm comm);
int MPI_Alltoallv(const void *data, const int counts[], const int displacements[], MPI_Datatype type, void *into,
                  const int into_counts[], const int into_displacements[], MPI_Datatype into_type, MPI_Comm comm);
int MPI_Reduce_scatter(const void *data, void *result, const int counts[], MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm);
int MPI_Reduce_scatter_block(const void *data, void *result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int MPI_Scan(const void *data, void *result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int MPI_Exscan(const void *data, void *result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int MPI_Reduce_local(const void *data, void *inout, int count, MPI_Datatype type, MPI_Op op);

int MPI_Type_contiguous(int count, MPI_Datatype of, MPI_Datatype *type);
int MPI_Type_vector(int count, int length, int stride, MPI_Datatype of, MPI_Datatype *type);
int MPI_Type_create_hvector(int count, int length, MPI_Aint stride, MPI_Datatype of, MPI_Datatype *type);
int MPI_Type_indexed(int count, const int lengths[], const int displacements[], MPI_Datatype of, MPI_Datatype *type);
int MPI_Type_create_struct(int count, const int lengths[], const MPI_Aint displacements[], const MPI_Datatype of[],
                           MPI_Datatype *type);
int MPI_Type_create_resized(MPI_Datatype of, MPI_Aint lower, MPI_Aint extent, MPI_Datatype *type);
int MPI_Type_commit(MPI_Datatype *type);
int MPI_Type_free(MPI_Datatype *type);
int MPI_Type_size(MPI_Datatype type, int *bytes);
int MPI_Type_get_extent(MPI_Datatype type, MPI_Aint *lower, MPI_Aint *extent);
int MPI_Get_address(const void *location, MPI_Aint *address);

int MPI_Op_create(MPI_User_function *function, int commutes, MPI_Op *op);
int MPI_Op_free(MPI_Op *op);

#ifdef __cplusplus
}
#endif

#endif
