/* SPDX-License-Identifier: Apache-2.0 */
/* Reduction operations: the predefined ones on basic types, and the user's. */
#include <stdlib.h>

#include "internal.h"

#define DEFINE_OPERATION(name, object) \
  struct manyscale_mpi_operation manyscale_mpi_##object = {OPERATION_##name, true, NULL};
DEFINE_OPERATION(MAX, max)
DEFINE_OPERATION(MIN, min)
DEFINE_OPERATION(SUM, sum)
DEFINE_OPERATION(PROD, prod)
DEFINE_OPERATION(LAND, land)
DEFINE_OPERATION(BAND, band)
DEFINE_OPERATION(LOR, lor)
DEFINE_OPERATION(BOR, bor)
DEFINE_OPERATION(LXOR, lxor)
DEFINE_OPERATION(BXOR, bxor)
DEFINE_OPERATION(MAXLOC, maxloc)
DEFINE_OPERATION(MINLOC, minloc)

/* One case of a switch over operations: each element of `inout` becomes `result` of a (from `in`) and b. */
#define EACH(operation, ctype, result)                                                 \
  case OPERATION_##operation:                                                          \
    for (int index = 0; index < count; ++index) {                                      \
      const ctype a = ((const ctype *)in)[index], b = ((ctype *)inout)[index];         \
      ((ctype *)inout)[index] = (ctype)(result);                                       \
    }                                                                                  \
    return true;

#define ORDER(ctype) EACH(MAX, ctype, a > b ? a : b) EACH(MIN, ctype, a < b ? a : b)
#define ARITHMETIC(ctype) EACH(SUM, ctype, a + b) EACH(PROD, ctype, a * b)
#define LOGIC(ctype) EACH(LAND, ctype, a && b) EACH(LOR, ctype, a || b) EACH(LXOR, ctype, !a != !b)
#define BITS(ctype) EACH(BAND, ctype, a & b) EACH(BOR, ctype, a | b) EACH(BXOR, ctype, a ^ b)

/* A function that does an operation on one C type, and returns whether it is defined for it. */
#define DEFINE_FUNCTION(name, ctype, cases)                                                           \
  static bool combine_##name(enum operation_kind kind, const void *in, void *inout, int count) {      \
    switch (kind) {                                                                                   \
      cases default : return false;                                                                   \
    }                                                                                                 \
  }
#define DEFINE_INTEGER(name, ctype) \
  DEFINE_FUNCTION(name, ctype, ORDER(ctype) ARITHMETIC(ctype) LOGIC(ctype) BITS(ctype))
#define DEFINE_REAL(name, ctype) DEFINE_FUNCTION(name, ctype, ORDER(ctype) ARITHMETIC(ctype))
#define DEFINE_COMPLEX(name, ctype) DEFINE_FUNCTION(name, ctype, ARITHMETIC(ctype))

DEFINE_INTEGER(int8, int8_t)
DEFINE_INTEGER(int16, int16_t)
DEFINE_INTEGER(int32, int32_t)
DEFINE_INTEGER(int64, int64_t)
DEFINE_INTEGER(uint8, uint8_t)
DEFINE_INTEGER(uint16, uint16_t)
DEFINE_INTEGER(uint32, uint32_t)
DEFINE_INTEGER(uint64, uint64_t)
DEFINE_REAL(float, float)
DEFINE_REAL(double, double)
DEFINE_REAL(long_double, long double)
DEFINE_COMPLEX(float_complex, float complex)
DEFINE_COMPLEX(double_complex, double complex)
DEFINE_FUNCTION(bool, bool, LOGIC(bool))
DEFINE_FUNCTION(byte, unsigned char, BITS(unsigned char))

/* The larger (smaller) value with its index; of equal values the smaller index. */
#define DEFINE_PAIR(object, ctype)                                                                         \
  struct pair_##object {                                                                                   \
    ctype value;                                                                                           \
    int index;                                                                                             \
  };                                                                                                       \
  static bool combine_##object(enum operation_kind kind, const void *in, void *inout, int count) {         \
    if (kind != OPERATION_MAXLOC && kind != OPERATION_MINLOC) return false;                                \
    const struct pair_##object *a = in;                                                                    \
    struct pair_##object *b = inout;                                                                       \
    for (int index = 0; index < count; ++index) {                                                          \
      const bool better = kind == OPERATION_MAXLOC ? a[index].value > b[index].value                       \
                                                   : a[index].value < b[index].value;                      \
      if (better)                                                                                          \
        b[index] = a[index];                                                                               \
      else if (a[index].value == b[index].value && a[index].index < b[index].index)                        \
        b[index].index = a[index].index;                                                                   \
    }                                                                                                      \
    return true;                                                                                           \
  }
DEFINE_PAIR(float_int, float)
DEFINE_PAIR(double_int, double)
DEFINE_PAIR(long_int, long)
DEFINE_PAIR(2int, int)
DEFINE_PAIR(short_int, short)

/* Does a predefined operation; false if it is not defined for the type. No elements: only asks. */
static bool combine(enum operation_kind kind, enum basic_kind basic, const void *in, void *inout, int count) {
  switch (basic) {
    case BASIC_CHAR:
    case BASIC_SIGNED_CHAR:
    case BASIC_INT8_T:
      return combine_int8(kind, in, inout, count);
    case BASIC_SHORT:
    case BASIC_INT16_T:
      return combine_int16(kind, in, inout, count);
    case BASIC_INT:
    case BASIC_INT32_T:
      return combine_int32(kind, in, inout, count);
    case BASIC_LONG:
    case BASIC_LONG_LONG:
    case BASIC_INT64_T:
    case BASIC_AINT:
      return combine_int64(kind, in, inout, count);
    case BASIC_UNSIGNED_CHAR:
    case BASIC_UINT8_T:
      return combine_uint8(kind, in, inout, count);
    case BASIC_UNSIGNED_SHORT:
    case BASIC_UINT16_T:
      return combine_uint16(kind, in, inout, count);
    case BASIC_UNSIGNED:
    case BASIC_UINT32_T:
      return combine_uint32(kind, in, inout, count);
    case BASIC_UNSIGNED_LONG:
    case BASIC_UNSIGNED_LONG_LONG:
    case BASIC_UINT64_T:
      return combine_uint64(kind, in, inout, count);
    case BASIC_BYTE:
      return combine_byte(kind, in, inout, count);
    case BASIC_FLOAT:
      return combine_float(kind, in, inout, count);
    case BASIC_DOUBLE:
      return combine_double(kind, in, inout, count);
    case BASIC_LONG_DOUBLE:
      return combine_long_double(kind, in, inout, count);
    case BASIC_C_BOOL:
      return combine_bool(kind, in, inout, count);
    case BASIC_C_FLOAT_COMPLEX:
      return combine_float_complex(kind, in, inout, count);
    case BASIC_C_DOUBLE_COMPLEX:
      return combine_double_complex(kind, in, inout, count);
    case BASIC_FLOAT_INT:
      return combine_float_int(kind, in, inout, count);
    case BASIC_DOUBLE_INT:
      return combine_double_int(kind, in, inout, count);
    case BASIC_LONG_INT:
      return combine_long_int(kind, in, inout, count);
    case BASIC_2INT:
      return combine_2int(kind, in, inout, count);
    case BASIC_SHORT_INT:
      return combine_short_int(kind, in, inout, count);
    default:
      return false;
  }
}

_Static_assert(sizeof(long) == 8 && sizeof(int) == 4 && sizeof(short) == 2, "the table above takes LP64 for granted");

int msmpi_check_operation(MPI_Op op, MPI_Datatype type) {
  if (op == MPI_OP_NULL) return msmpi_error(MPI_ERR_OP, "it is MPI_OP_NULL");
  if (op->kind != OPERATION_USER && !combine(op->kind, type->basic, NULL, NULL, 0))
    return msmpi_error(MPI_ERR_OP, "the operation is not defined for this datatype");
  return MPI_SUCCESS;
}

void msmpi_combine(const void *in, void *inout, int count, MPI_Datatype type, MPI_Op op) {
  NOTE(NOTE_COMBINE, 0, 0, 0, 0, (uint64_t)count * type->bytes);
  if (op->kind == OPERATION_USER)
    op->function((void *)in, inout, &count, &type);
  else
    combine(op->kind, type->basic, in, inout, count);
}

static int create(MPI_User_function *function, int commutes, MPI_Op *op) {
  *op = msmpi_allocate(sizeof **op);
  **op = (struct manyscale_mpi_operation){OPERATION_USER, commutes != 0, function};
  return MPI_SUCCESS;
}

static int free_operation(MPI_Op *op) {
  if (*op == MPI_OP_NULL || (*op)->kind != OPERATION_USER)
    return msmpi_error(MPI_ERR_OP, "only the user's own operations can be freed");
  free(*op);
  *op = MPI_OP_NULL;
  return MPI_SUCCESS;
}

static int reduce_local(const void *data, void *inout, int count, MPI_Datatype type, MPI_Op op) {
  int error = msmpi_check_buffer(count, type);
  if (!error) error = msmpi_check_operation(op, type);
  if (!error) msmpi_combine(data, inout, count, type, op);
  return error;
}

int MPI_Op_create(MPI_User_function *function, int commutes, MPI_Op *op) {
  CALL(Op_create, MPI_COMM_NULL, create(function, commutes, op));
}

int MPI_Op_free(MPI_Op *op) { CALL(Op_free, MPI_COMM_NULL, free_operation(op)); }

int MPI_Reduce_local(const void *data, void *inout, int count, MPI_Datatype type, MPI_Op op) {
  CALL(Reduce_local, MPI_COMM_NULL, reduce_local(data, inout, count, type, op));
}
