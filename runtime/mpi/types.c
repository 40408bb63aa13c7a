/* SPDX-License-Identifier: Apache-2.0 */
/* Datatypes: basic ones, and derived ones. Each is a list of blocks of bytes, in the order in which they are sent. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define DEFINE_BASIC(name, object, ctype)                                                        \
  static struct block blocks_of_##object[] = {{0, sizeof(ctype)}};                               \
  struct manyscale_mpi_type manyscale_mpi_##object = {.basic = BASIC_##name,                     \
                                                      .bytes = sizeof(ctype),                    \
                                                      .extent = sizeof(ctype),                   \
                                                      .basics = 1,                               \
                                                      .block_count = 1,                          \
                                                      .blocks = blocks_of_##object,              \
                                                      .dense = true};
BASIC_TYPES(DEFINE_BASIC)

#define DEFINE_PAIR(name, object, ctype)                                                          \
  struct pair_##object {                                                                          \
    ctype value;                                                                                  \
    int index;                                                                                    \
  };                                                                                              \
  static struct block blocks_of_##object[] = {{0, sizeof(ctype)},                                 \
                                              {offsetof(struct pair_##object, index), sizeof(int)}}; \
  struct manyscale_mpi_type manyscale_mpi_##object = {                                            \
      .basic = BASIC_##name,                                                                      \
      .bytes = sizeof(ctype) + sizeof(int),                                                       \
      .extent = sizeof(struct pair_##object),                                                     \
      .basics = 2,                                                                                \
      .block_count = 2,                                                                           \
      .blocks = blocks_of_##object,                                                               \
      .dense = sizeof(struct pair_##object) == sizeof(ctype) + sizeof(int)};
PAIR_TYPES(DEFINE_PAIR)

void msmpi_hold_type(MPI_Datatype type) {
  if (type->basic == BASIC_NONE) ++type->uses;
}

void msmpi_drop_type(MPI_Datatype type) {
  if (type->basic != BASIC_NONE || --type->uses > 0) return;
  free(type->blocks);
  free(type);
}

int msmpi_check_buffer(int count, MPI_Datatype type) {
  if (count < 0) return msmpi_error(MPI_ERR_COUNT, "count %d is negative", count);
  if (type == MPI_DATATYPE_NULL) return msmpi_error(MPI_ERR_TYPE, "it is MPI_DATATYPE_NULL");
  return MPI_SUCCESS;
}

/* Moves `bytes` bytes between elements and a dense buffer; the last element may be incomplete. */
static void transfer(unsigned char *elements, size_t bytes, MPI_Datatype type, unsigned char *dense, bool pack) {
  if (type->dense) {
    if (bytes) memcpy(pack ? dense : elements, pack ? elements : dense, bytes);
    return;
  }
  while (bytes) {
    for (size_t index = 0; index < type->block_count && bytes; ++index) {
      const size_t piece = type->blocks[index].bytes < bytes ? type->blocks[index].bytes : bytes;
      unsigned char *block = elements + type->blocks[index].offset;
      memcpy(pack ? dense : block, pack ? block : dense, piece);
      dense += piece;
      bytes -= piece;
    }
    elements += type->extent;
  }
}

void msmpi_pack(const void *elements, size_t bytes, MPI_Datatype type, unsigned char *to) {
  transfer((unsigned char *)elements, bytes, type, to, true);
}

void msmpi_unpack(const unsigned char *from, size_t bytes, MPI_Datatype type, void *elements) {
  transfer(elements, bytes, type, (unsigned char *)from, false);
}

void msmpi_copy(const void *from, size_t count, MPI_Datatype type, void *to, size_t most, MPI_Datatype to_type) {
  size_t bytes = count * type->bytes;
  if (bytes > most * to_type->bytes) bytes = most * to_type->bytes;
  if (type->dense) {
    msmpi_unpack(from, bytes, to_type, to);
  } else if (to_type->dense) {
    msmpi_pack(from, bytes, type, to);
  } else {
    unsigned char *dense = msmpi_allocate(bytes);
    msmpi_pack(from, bytes, type, dense);
    msmpi_unpack(dense, bytes, to_type, to);
    free(dense);
  }
}

/* ---- making types ---- */

/* A type in the making: pieces of other types are added to it, and their blocks joined where they touch. */
struct maker {
  MPI_Datatype type;
  size_t room;
  ptrdiff_t upper;
  bool any;
};

static struct maker begin(void) {
  MPI_Datatype type = msmpi_allocate(sizeof *type);
  *type = (struct manyscale_mpi_type){.basic = BASIC_NONE, .uses = 1};
  return (struct maker){type, 0, 0, false};
}

static void add_block(struct maker *maker, ptrdiff_t offset, size_t bytes) {
  MPI_Datatype type = maker->type;
  if (!bytes) return;
  type->bytes += bytes;
  if (type->block_count) {
    struct block *last = &type->blocks[type->block_count - 1];
    if (last->offset + (ptrdiff_t)last->bytes == offset) {
      last->bytes += bytes;
      return;
    }
  }
  if (type->block_count == maker->room) {
    maker->room = maker->room ? 2 * maker->room : 4;
    struct block *blocks = msmpi_allocate(maker->room * sizeof *blocks);
    if (type->blocks) memcpy(blocks, type->blocks, type->block_count * sizeof *blocks);
    free(type->blocks);
    type->blocks = blocks;
  }
  type->blocks[type->block_count++] = (struct block){offset, bytes};
}

/* Adds `count` elements of a type, one after the other. */
static void add(struct maker *maker, ptrdiff_t offset, int count, MPI_Datatype of) {
  for (int element = 0; element < count; ++element, offset += of->extent) {
    for (size_t index = 0; index < of->block_count; ++index)
      add_block(maker, offset + of->blocks[index].offset, of->blocks[index].bytes);
    maker->type->basics += of->basics;
    const ptrdiff_t lower = offset + of->lower, upper = lower + of->extent;
    if (!maker->any || lower < maker->type->lower) maker->type->lower = lower;
    if (!maker->any || upper > maker->upper) maker->upper = upper;
    maker->any = true;
  }
}

static void set_dense(MPI_Datatype type) {
  type->dense = type->bytes == 0 ||
                (type->block_count == 1 && type->blocks[0].offset == 0 && (size_t)type->extent == type->bytes);
}

static int finish(struct maker *maker, MPI_Datatype *type) {
  maker->type->extent = maker->upper - maker->type->lower;
  set_dense(maker->type);
  *type = maker->type;
  return MPI_SUCCESS;
}

static int make_hvector(int count, int length, MPI_Aint stride, MPI_Datatype of, MPI_Datatype *type) {
  int error = msmpi_check_buffer(count, of);
  if (!error) error = msmpi_check_buffer(length, of);
  if (error) return error;
  struct maker maker = begin();
  for (int index = 0; index < count; ++index) add(&maker, index * stride, length, of);
  return finish(&maker, type);
}

static int make_vector(int count, int length, int stride, MPI_Datatype of, MPI_Datatype *type) {
  const int error = msmpi_check_buffer(count, of);
  return error ? error : make_hvector(count, length, stride * of->extent, of, type);
}

static int make_indexed(int count, const int lengths[], const int displacements[], MPI_Datatype of, MPI_Datatype *type) {
  int error = msmpi_check_buffer(count, of);
  for (int index = 0; index < count && !error; ++index) error = msmpi_check_buffer(lengths[index], of);
  if (error) return error;
  struct maker maker = begin();
  for (int index = 0; index < count; ++index) add(&maker, displacements[index] * of->extent, lengths[index], of);
  return finish(&maker, type);
}

static int make_struct(int count, const int lengths[], const MPI_Aint displacements[], const MPI_Datatype of[],
                       MPI_Datatype *type) {
  if (count < 0) return msmpi_error(MPI_ERR_COUNT, "count %d is negative", count);
  ptrdiff_t alignment = 1;
  for (int index = 0; index < count; ++index) {
    const int error = msmpi_check_buffer(lengths[index], of[index]);
    if (error) return error;
  }
  struct maker maker = begin();
  for (int index = 0; index < count; ++index) {
    add(&maker, displacements[index], lengths[index], of[index]);
    /* As a C compiler would, so that an array of structures has the extent of its type. */
    if (of[index]->basic != BASIC_NONE && of[index]->extent > alignment && of[index]->extent <= 16)
      alignment = of[index]->extent;
  }
  const ptrdiff_t beyond = (maker.upper - maker.type->lower) % alignment;
  if (beyond) maker.upper += alignment - beyond;
  return finish(&maker, type);
}

static int make_resized(MPI_Datatype of, MPI_Aint lower, MPI_Aint extent, MPI_Datatype *type) {
  const int error = msmpi_check_buffer(1, of);
  if (error) return error;
  struct maker maker = begin();
  add(&maker, 0, 1, of);
  finish(&maker, type);
  (*type)->lower = lower;
  (*type)->extent = extent;
  set_dense(*type);
  return MPI_SUCCESS;
}

static int make_contiguous(int count, MPI_Datatype of, MPI_Datatype *type) {
  const int error = msmpi_check_buffer(count, of);
  return error ? error : make_hvector(1, count, 0, of, type);
}

static int free_type(MPI_Datatype *type) {
  if (*type == MPI_DATATYPE_NULL || (*type)->basic != BASIC_NONE)
    return msmpi_error(MPI_ERR_TYPE, "only derived types can be freed");
  msmpi_drop_type(*type);
  *type = MPI_DATATYPE_NULL;
  return MPI_SUCCESS;
}

int MPI_Type_contiguous(int count, MPI_Datatype of, MPI_Datatype *type) {
  CALL(Type_contiguous, MPI_COMM_NULL, make_contiguous(count, of, type));
}

int MPI_Type_vector(int count, int length, int stride, MPI_Datatype of, MPI_Datatype *type) {
  CALL(Type_vector, MPI_COMM_NULL, make_vector(count, length, stride, of, type));
}

int MPI_Type_create_hvector(int count, int length, MPI_Aint stride, MPI_Datatype of, MPI_Datatype *type) {
  CALL(Type_create_hvector, MPI_COMM_NULL, make_hvector(count, length, stride, of, type));
}

int MPI_Type_indexed(int count, const int lengths[], const int displacements[], MPI_Datatype of, MPI_Datatype *type) {
  CALL(Type_indexed, MPI_COMM_NULL, make_indexed(count, lengths, displacements, of, type));
}

int MPI_Type_create_struct(int count, const int lengths[], const MPI_Aint displacements[], const MPI_Datatype of[],
                           MPI_Datatype *type) {
  CALL(Type_create_struct, MPI_COMM_NULL, make_struct(count, lengths, displacements, of, type));
}

int MPI_Type_create_resized(MPI_Datatype of, MPI_Aint lower, MPI_Aint extent, MPI_Datatype *type) {
  CALL(Type_create_resized, MPI_COMM_NULL, make_resized(of, lower, extent, type));
}

int MPI_Type_commit(MPI_Datatype *type) { CALL(Type_commit, MPI_COMM_NULL, msmpi_check_buffer(0, *type)); }
int MPI_Type_free(MPI_Datatype *type) { CALL(Type_free, MPI_COMM_NULL, free_type(type)); }

int MPI_Type_size(MPI_Datatype type, int *bytes) {
  CALL(Type_size, MPI_COMM_NULL, (*bytes = (int)type->bytes, MPI_SUCCESS));
}

int MPI_Type_get_extent(MPI_Datatype type, MPI_Aint *lower, MPI_Aint *extent) {
  CALL(Type_get_extent, MPI_COMM_NULL, (*lower = type->lower, *extent = type->extent, MPI_SUCCESS));
}

int MPI_Get_address(const void *location, MPI_Aint *address) {
  CALL(Get_address, MPI_COMM_NULL, (*address = (MPI_Aint)(intptr_t)location, MPI_SUCCESS));
}

/* How many whole elements (or values of basic types) the bytes of a message are; MPI_UNDEFINED if not whole. */
static int count_of(const MPI_Status *status, MPI_Datatype type, size_t per_element, int *count) {
  if (type->bytes == 0) {
    *count = status->manyscale_bytes == 0 ? 0 : MPI_UNDEFINED;
    return MPI_SUCCESS;
  }
  const size_t whole = status->manyscale_bytes / type->bytes * per_element;
  *count = status->manyscale_bytes % type->bytes || whole > INT_MAX ? MPI_UNDEFINED : (int)whole;
  return MPI_SUCCESS;
}

int MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count) {
  CALL(Get_count, MPI_COMM_NULL, count_of(status, type, 1, count));
}

int MPI_Get_elements(const MPI_Status *status, MPI_Datatype type, int *count) {
  CALL(Get_elements, MPI_COMM_NULL, count_of(status, type, type->basics, count));
}
