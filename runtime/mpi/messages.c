/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks. A short one is put into the ring to its receiver whole; of a long or synchronous one only
 * its envelope (an offer): when a receive matches it, its receiver grants it, and it follows in pieces. So a rank
 * stores nothing but short messages that it has not asked for yet. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { SHORT_BYTES = 4096, PIECE_BYTES = 8192, SPINS = 200 };

enum packet_kind { PACKET_WHOLE, PACKET_OFFER, PACKET_GRANT, PACKET_PIECE };

struct packet {
  uint32_t kind;
  uint32_t context;
  int32_t tag;
  uint32_t bytes;    /* that follow */
  uint64_t total;    /* of the message, or that the receiver wants of it */
  uint64_t sender;   /* its request, in its memory */
  uint64_t receiver; /* the same */
};

struct list {
  MPI_Request first;
  MPI_Request *end;
};

/* What waits for space in the ring to one rank. */
struct outgoing {
  struct list grants, envelopes, pieces;
};

/* A message that nothing has asked for yet. */
struct arrival {
  struct arrival *next;
  int source; /* in the world */
  struct packet packet;
  unsigned char *bytes; /* of a short message */
};

static struct outgoing *outgoing; /* by rank in the world */
static int waiting;               /* requests in there */
static struct list posted;        /* receives that nothing has matched, oldest first */
static struct arrival *arrivals, **arrivals_end = &arrivals;
static int detached_sends;

static void append(struct list *list, MPI_Request request) {
  if (!list->first) list->end = &list->first;
  request->next = NULL;
  *list->end = request;
  list->end = &request->next;
}

static MPI_Request take_first(struct list *list) {
  MPI_Request request = list->first;
  list->first = request->next;
  if (!list->first) list->end = &list->first;
  return request;
}

static void take_out(struct list *list, MPI_Request *link) {
  MPI_Request request = *link;
  *link = request->next;
  if (list->end == &request->next) list->end = link;
}

void msmpi_set_status(MPI_Status *status, int source, int tag, size_t bytes) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = source;
  status->MPI_TAG = tag;
  status->MPI_ERROR = MPI_SUCCESS;
  status->manyscale_cancelled = 0;
  status->manyscale_bytes = bytes;
}

void msmpi_forget(MPI_Request request) {
  msmpi_drop_type(request->type);
  msmpi_drop_communicator(request->comm);
  free(request);
}

static void complete(MPI_Request request) {
  if (!request->sends) {
    if (request->length > request->total) {
      request->status.MPI_ERROR =
          msmpi_error(MPI_ERR_TRUNCATE, "a message of %zu bytes came from rank %d with tag %d for a buffer of %zu",
                      request->length, request->status.MPI_SOURCE, request->status.MPI_TAG, request->total);
      request->length = request->total;
    }
    request->status.manyscale_bytes = request->length;
    if (request->bytes != request->data) msmpi_unpack(request->bytes, request->length, request->type, request->data);
  }
  if (request->bytes != request->data) free(request->bytes);
  request->bytes = NULL;
  request->complete = true;
  if (!request->detached) return;
  if (request->sends) --detached_sends;
  msmpi_forget(request);
}

/* ---- rings ---- */

static uint32_t space(struct ring *ring) {
  return RING_BYTES - (atomic_load_explicit(&ring->written, memory_order_relaxed) -
                       atomic_load_explicit(&ring->taken, memory_order_acquire));
}

static uint32_t padded(size_t bytes) { return (uint32_t)((bytes + 7) & ~(size_t)7); }

static void copy_in(struct ring *ring, uint32_t position, const void *from, size_t bytes) {
  if (!bytes) return; /* from nowhere, perhaps */
  position %= RING_BYTES;
  const size_t first = bytes < RING_BYTES - position ? bytes : RING_BYTES - position;
  memcpy(ring->bytes + position, from, first);
  memcpy(ring->bytes, (const unsigned char *)from + first, bytes - first);
}

static void copy_out(struct ring *ring, uint32_t position, void *to, size_t bytes) {
  if (!bytes) return;
  position %= RING_BYTES;
  const size_t first = bytes < RING_BYTES - position ? bytes : RING_BYTES - position;
  memcpy(to, ring->bytes + position, first);
  memcpy((unsigned char *)to + first, ring->bytes, bytes - first);
}

/* The caller has made sure that there is space. */
static void put(struct ring *ring, const struct packet *packet, const void *bytes) {
  const uint32_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
  copy_in(ring, written, packet, sizeof *packet);
  copy_in(ring, written + (uint32_t)sizeof *packet, bytes, packet->bytes);
  atomic_store_explicit(&ring->written, written + (uint32_t)sizeof *packet + padded(packet->bytes),
                        memory_order_release);
}

/* ---- sending ---- */

static bool sent_whole(MPI_Request request) {
  return request->total <= SHORT_BYTES && request->mode != MODE_SYNCHRONOUS;
}

/* Puts into the ring what it takes; returns whether that was anything. */
static bool push_some(struct outgoing *out, struct ring *ring) {
  bool moved = false;
  while (out->grants.first && space(ring) >= sizeof(struct packet)) {
    MPI_Request request = take_first(&out->grants);
    const size_t wanted = request->length < request->total ? request->length : request->total;
    const struct packet grant = {PACKET_GRANT, 0, 0, 0, wanted, request->partner, (uintptr_t)request};
    put(ring, &grant, NULL);
    --waiting;
    moved = true;
    if (wanted == 0) complete(request);
  }
  while (out->envelopes.first) {
    MPI_Request request = out->envelopes.first;
    const bool whole = sent_whole(request);
    if (space(ring) < sizeof(struct packet) + (whole ? padded(request->total) : 0)) break;
    take_first(&out->envelopes);
    --waiting;
    const struct packet envelope = {whole ? PACKET_WHOLE : PACKET_OFFER, request->context, request->tag,
                                    whole ? (uint32_t)request->total : 0, request->total, (uintptr_t)request, 0};
    put(ring, &envelope, request->bytes);
    moved = true;
    if (whole) complete(request);
  }
  while (out->pieces.first) {
    MPI_Request request = out->pieces.first;
    const size_t rest = request->total - request->moved;
    const size_t piece = rest < PIECE_BYTES ? rest : PIECE_BYTES;
    if (space(ring) < sizeof(struct packet) + padded(piece)) break;
    const struct packet packet = {PACKET_PIECE, 0, 0, (uint32_t)piece, 0, 0, request->partner};
    put(ring, &packet, request->bytes + request->moved);
    request->moved += piece;
    moved = true;
    if (request->moved < request->total) continue;
    take_first(&out->pieces);
    --waiting;
    complete(request);
  }
  return moved;
}

static bool pending(const struct outgoing *out) {
  return out->grants.first || out->envelopes.first || out->pieces.first;
}

static bool push(int to) {
  struct outgoing *out = &outgoing[to];
  struct ring *ring = msmpi_ring(msmpi_rank, to);
  bool moved = push_some(out, ring);
  if (pending(out)) {
    /* Asked for before the last look, so that bytes freed after it are reported. */
    atomic_store(&ring->sender_waits, 1);
    moved |= push_some(out, ring);
  }
  if (moved) msmpi_ring_bell(to);
  return moved;
}

static void set_up(void) {
  if (outgoing) return;
  outgoing = msmpi_allocate((size_t)msmpi_size * sizeof *outgoing);
  memset(outgoing, 0, (size_t)msmpi_size * sizeof *outgoing);
}

/* ---- receiving ---- */

static int rank_in(MPI_Comm comm, int world_rank) {
  if (!comm->members) return world_rank;
  for (int rank = 0; rank < comm->size; ++rank)
    if (comm->members[rank] == world_rank) return rank;
  return MPI_UNDEFINED;
}

static bool fits(int from, int tag, MPI_Comm comm, uint32_t context, int source, const struct packet *envelope) {
  return context == envelope->context && (tag == MPI_ANY_TAG || tag == envelope->tag) &&
         (from == MPI_ANY_SOURCE || msmpi_world_rank(comm, from) == source);
}

static void match(MPI_Request request, int source, const struct packet *envelope) {
  request->length = envelope->total;
  msmpi_set_status(&request->status, rank_in(request->comm, source), envelope->tag, 0);
  if (envelope->kind == PACKET_OFFER) {
    request->partner = envelope->sender;
    append(&outgoing[source].grants, request);
    ++waiting;
  }
}

static void receive_envelope(int source, const struct packet *envelope, struct ring *ring, uint32_t position) {
  for (MPI_Request *request = &posted.first; *request; request = &(*request)->next) {
    MPI_Request found = *request;
    if (!fits(found->peer, found->tag, found->comm, found->context, source, envelope)) continue;
    take_out(&posted, request);
    match(found, source, envelope);
    if (envelope->kind == PACKET_OFFER) return;
    copy_out(ring, position, found->bytes, found->length < found->total ? found->length : found->total);
    complete(found);
    return;
  }
  struct arrival *arrival = msmpi_allocate(sizeof *arrival);
  *arrival = (struct arrival){NULL, source, *envelope, NULL};
  if (envelope->bytes) {
    arrival->bytes = msmpi_allocate(envelope->bytes);
    copy_out(ring, position, arrival->bytes, envelope->bytes);
  }
  *arrivals_end = arrival;
  arrivals_end = &arrival->next;
}

static void receive_packet(int source, const struct packet *packet, struct ring *ring, uint32_t position) {
  if (packet->kind == PACKET_GRANT) {
    MPI_Request request = (MPI_Request)(uintptr_t)packet->sender;
    request->partner = packet->receiver;
    request->total = packet->total;
    if (request->total == 0) {
      complete(request);
    } else {
      append(&outgoing[source].pieces, request);
      ++waiting;
    }
  } else if (packet->kind == PACKET_PIECE) {
    MPI_Request request = (MPI_Request)(uintptr_t)packet->receiver;
    copy_out(ring, position, request->bytes + request->moved, packet->bytes);
    request->moved += packet->bytes;
    if (request->moved == (request->length < request->total ? request->length : request->total)) complete(request);
  } else {
    receive_envelope(source, packet, ring, position);
  }
}

static bool drain(int source) {
  struct ring *ring = msmpi_ring(source, msmpi_rank);
  uint32_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
  if (atomic_load_explicit(&ring->written, memory_order_relaxed) == taken) return false;
  while (atomic_load_explicit(&ring->written, memory_order_acquire) != taken) {
    struct packet packet;
    copy_out(ring, taken, &packet, sizeof packet);
    receive_packet(source, &packet, ring, taken + (uint32_t)sizeof packet);
    taken += (uint32_t)sizeof packet + padded(packet.bytes);
    atomic_store_explicit(&ring->taken, taken, memory_order_release);
  }
  atomic_thread_fence(memory_order_seq_cst);
  if (atomic_load_explicit(&ring->sender_waits, memory_order_relaxed)) {
    atomic_store_explicit(&ring->sender_waits, 0, memory_order_relaxed);
    msmpi_ring_bell(source);
  }
  return true;
}

static bool progress(void) {
  set_up();
  bool moved = false;
  if (msmpi_bell_rang())
    for (int source = 0; source < msmpi_size; ++source) moved |= drain(source);
  if (waiting)
    for (int to = 0; to < msmpi_size; ++to)
      if (pending(&outgoing[to])) moved |= push(to);
  return moved;
}

void msmpi_progress(void) { progress(); }

void msmpi_progress_or_sleep(void) {
  for (int spin = 0; spin < SPINS; ++spin)
    if (progress()) return;
  msmpi_sleep();
}

/* ---- requests ---- */

MPI_Request msmpi_describe(bool sends, void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                           uint32_t context, enum mode mode) {
  MPI_Request request = msmpi_allocate(sizeof *request);
  *request = (struct manyscale_mpi_request){.sends = sends, .mode = mode, .data = data, .count = count, .type = type,
                                            .peer = peer, .tag = tag, .comm = comm, .context = context};
  msmpi_hold_type(type);
  ++comm->uses;
  return request;
}

static void start_send(MPI_Request request) {
  if (request->mode == MODE_BUFFERED || !request->type->dense) {
    request->bytes = msmpi_allocate(request->total);
    msmpi_pack(request->data, request->total, request->type, request->bytes);
  }
  if (request->mode == MODE_BUFFERED) {
    /* The user's request is done with; the copy goes its own way. */
    MPI_Request copy = msmpi_describe(true, NULL, request->count, request->type, request->peer, request->tag,
                                      request->comm, request->context, MODE_STANDARD);
    copy->bytes = request->bytes;
    copy->total = request->total;
    copy->detached = copy->active = true;
    ++detached_sends;
    request->bytes = request->data;
    complete(request);
    request = copy;
  }
  const int to = msmpi_world_rank(request->comm, request->peer);
  append(&outgoing[to].envelopes, request);
  ++waiting;
  push(to);
}

static void start_receive(MPI_Request request) {
  if (!request->type->dense) request->bytes = msmpi_allocate(request->total);
  for (struct arrival **link = &arrivals; *link; link = &(*link)->next) {
    struct arrival *arrival = *link;
    if (!fits(request->peer, request->tag, request->comm, request->context, arrival->source, &arrival->packet))
      continue;
    *link = arrival->next;
    if (arrivals_end == &arrival->next) arrivals_end = link;
    match(request, arrival->source, &arrival->packet);
    if (arrival->packet.kind == PACKET_OFFER) {
      push(arrival->source);
    } else {
      const size_t bytes = request->length < request->total ? request->length : request->total;
      if (bytes) memcpy(request->bytes, arrival->bytes, bytes);
      complete(request);
    }
    free(arrival->bytes);
    free(arrival);
    return;
  }
  append(&posted, request);
}

void msmpi_start(MPI_Request request) {
  set_up();
  request->active = true;
  request->complete = false;
  request->bytes = request->data;
  request->total = (size_t)request->count * request->type->bytes;
  request->length = request->moved = 0;
  msmpi_set_status(&request->status, request->sends ? MPI_ANY_SOURCE : MPI_PROC_NULL, MPI_ANY_TAG, 0);
  NOTE(request->sends ? NOTE_SEND : NOTE_RECEIVE, (uintptr_t)request,
       request->peer < 0 ? -1 : msmpi_world_rank(request->comm, request->peer), request->tag, request->context,
       request->peer == MPI_PROC_NULL ? UINT64_MAX : request->total);
  if (!request->type->dense)
    NOTE(NOTE_BLOCKS, (uintptr_t)request, 0, 0, 0, (uint64_t)request->count * request->type->block_count);
  if (request->peer == MPI_PROC_NULL)
    request->complete = true;
  else if (request->sends)
    start_send(request);
  else
    start_receive(request);
}

MPI_Request msmpi_start_send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                             uint32_t context, enum mode mode) {
  MPI_Request request = msmpi_describe(true, (void *)data, count, type, to, tag, comm, context, mode);
  msmpi_start(request);
  return request;
}

MPI_Request msmpi_start_receive(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                                uint32_t context) {
  MPI_Request request = msmpi_describe(false, data, count, type, from, tag, comm, context, MODE_STANDARD);
  /* What has come first is matched first. */
  msmpi_progress();
  msmpi_start(request);
  return request;
}

int msmpi_take_result(MPI_Request *request, MPI_Status *status) {
  if (*request == MPI_REQUEST_NULL || !(*request)->active) {
    msmpi_set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    return MPI_SUCCESS;
  }
  const int error = (*request)->status.MPI_ERROR;
  NOTE(NOTE_COMPLETE, (uintptr_t)*request,
       (*request)->sends || (*request)->status.MPI_SOURCE < 0
           ? -1
           : msmpi_world_rank((*request)->comm, (*request)->status.MPI_SOURCE),
       (*request)->status.MPI_TAG, (*request)->context, (*request)->length);
  if (status != MPI_STATUS_IGNORE) *status = (*request)->status;
  (*request)->active = false;
  if (!(*request)->persistent) {
    msmpi_forget(*request);
    *request = MPI_REQUEST_NULL;
  }
  return error;
}

int msmpi_wait(MPI_Request *request, MPI_Status *status) {
  while (*request != MPI_REQUEST_NULL && (*request)->active && !(*request)->complete) msmpi_progress_or_sleep();
  return msmpi_take_result(request, status);
}

bool msmpi_withdraw(MPI_Request request) {
  for (MPI_Request *link = &posted.first; *link; link = &(*link)->next) {
    if (*link != request) continue;
    take_out(&posted, link);
    if (request->bytes != request->data) free(request->bytes);
    request->bytes = NULL;
    request->complete = true;
    request->status.manyscale_cancelled = 1;
    return true;
  }
  return false;
}

bool msmpi_look(int from, int tag, MPI_Comm comm, MPI_Status *status) {
  msmpi_progress();
  for (const struct arrival *arrival = arrivals; arrival; arrival = arrival->next) {
    if (!fits(from, tag, comm, comm->context, arrival->source, &arrival->packet)) continue;
    msmpi_set_status(status, rank_in(comm, arrival->source), arrival->packet.tag, arrival->packet.total);
    return true;
  }
  return false;
}

void msmpi_detach(MPI_Request request) {
  if (request->complete || !request->active) {
    msmpi_forget(request);
  } else {
    request->detached = true;
    if (request->sends) ++detached_sends;
  }
}

void msmpi_flush(void) {
  while (detached_sends) msmpi_progress_or_sleep();
}
