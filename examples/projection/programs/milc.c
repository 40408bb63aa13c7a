/* SPDX-License-Identifier: Apache-2.0 */
/* Conjugate gradients of an improved staggered operator on a four-dimensional lattice, as MILC does: matrices of 3 x 3
 * complex numbers on the links to the nearest and the third nearest sites, faces exchanged in eight directions.
 *
 *     milc [sites [iterations]]      sites of a rank along each axis, an even number of at least 4
 *
 * The operator is compared with one that is computed from global coordinates without any message, and the residual of
 * the solution with the one that the method carried along. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "manyscale.h"
#include "programs.h"

enum { AXES = 4, COLOURS = 3, REALS = 2 * COLOURS, LINK = 2 * COLOURS * COLOURS };
enum { SHORT, LONG, HOPS }; /* to the nearest site, and to the third nearest */

static const int reach[HOPS] = {1, 3};
static const double mass = 0.5;

static int side, sites, half, rank, sizes[AXES], place[AXES];
static int neighbours[AXES][2];               /* ranks behind and ahead; nobody along an axis that is not cut */
static int *partner[2];                       /* of the sites of a parity: where each of its 16 neighbours' vectors is */
static double *links[2];                      /* and the link to each, a matrix */
static int *face_sites[2][AXES][2][HOPS];     /* sites of a parity that a rank behind or ahead needs */
static int face_count[2][AXES][2][HOPS];
static int face_first[2][AXES][2][HOPS];      /* where what comes from behind or ahead begins, in vectors */
static int field_count[2];                    /* vectors of a parity: its sites and its faces */
static double *packed;

static void coordinates(int site, int into[AXES]) {
  for (int axis = 0; axis < AXES; ++axis, site /= side) into[axis] = site % side;
}

static int parity_of(const int at[AXES]) { return (at[0] + at[1] + at[2] + at[3]) & 1; }

static int site_of(const int at[AXES]) { return ((at[3] * side + at[2]) * side + at[1]) * side + at[0]; }

/* The number that a site has among all ranks' sites, which are periodic. */
static long global_of(const int at[AXES]) {
  long number = 0;
  for (int axis = AXES - 1; axis >= 0; --axis) {
    const int all = side * sizes[axis];
    number = number * all + (place[axis] * side + at[axis] + all) % all;
  }
  return number;
}

/* The link that leaves a site in a direction; any matrix will do. */
static void make_link(long global, int axis, int hop, double into[LINK]) {
  for (int entry = 0; entry < LINK; ++entry)
    into[entry] = (scattered(((global * AXES + axis) * HOPS + hop) * LINK + entry) - 0.5) * (hop == SHORT ? 1.0 : 0.1);
}

/* The link by which a site sees its neighbour ahead, or behind: that one's own, transposed, conjugate and negative. */
static void seen_link(const int at[AXES], int axis, int ahead, int hop, double into[LINK]) {
  if (ahead) {
    make_link(global_of(at), axis, hop, into);
    return;
  }
  int other[AXES];
  double theirs[LINK];
  memcpy(other, at, sizeof other);
  other[axis] -= reach[hop];
  make_link(global_of(other), axis, hop, theirs);
  for (int row = 0; row < COLOURS; ++row)
    for (int column = 0; column < COLOURS; ++column) {
      into[2 * (row * COLOURS + column)] = -theirs[2 * (column * COLOURS + row)];
      into[2 * (row * COLOURS + column) + 1] = theirs[2 * (column * COLOURS + row) + 1];
    }
}

static void apply_link(const double *link, const double *from, double *to) {
  for (int row = 0; row < COLOURS; ++row)
    for (int column = 0; column < COLOURS; ++column) {
      const double *entry = &link[2 * (row * COLOURS + column)], *value = &from[2 * column];
      to[2 * row] += entry[0] * value[0] - entry[1] * value[1];
      to[2 * row + 1] += entry[0] * value[1] + entry[1] * value[0];
    }
}

/* Faces: a rank ahead needs the last layers of a parity, one behind the first ones. */
static void list_faces(int parity) {
  int next = half;
  for (int axis = 0; axis < AXES; ++axis)
    for (int ahead = 0; ahead < 2; ++ahead)
      for (int hop = 0; hop < HOPS; ++hop) {
        int *list = zeros(sites, sizeof(int)), count = 0;
        for (int site = 0; site < sites; ++site) {
          int at[AXES];
          coordinates(site, at);
          if (parity_of(at) != parity) continue;
          if (sizes[axis] > 1 && (ahead ? at[axis] >= side - reach[hop] : at[axis] < reach[hop])) list[count++] = site;
        }
        face_sites[parity][axis][ahead][hop] = list;
        face_count[parity][axis][ahead][hop] = count;
        face_first[parity][axis][ahead][hop] = next;
        next += count;
      }
  field_count[parity] = next;
}

/* Where the vector of a neighbour is: among the sites of its parity or in a face. `numbers` has the place of each site
 * among those of its parity. */
static int find_partner(const int at[AXES], int axis, int ahead, int hop, const int *numbers) {
  int other[AXES];
  memcpy(other, at, sizeof other);
  other[axis] += ahead ? reach[hop] : -reach[hop];
  const int parity = parity_of(at) ^ 1;
  if (other[axis] >= 0 && other[axis] < side) return numbers[site_of(other)];
  /* What comes from ahead are the first layers there, and the other way round. */
  other[axis] += other[axis] < 0 ? side : -side;
  if (sizes[axis] == 1) return numbers[site_of(other)];
  const int *list = face_sites[parity][axis][!ahead][hop], wanted = site_of(other);
  int low = 0, high = face_count[parity][axis][!ahead][hop] - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (list[middle] < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return face_first[parity][axis][ahead][hop] + low;
}

static void set_up(void) {
  int *numbers = zeros(sites, sizeof(int)), count[2] = {0, 0};
  for (int site = 0; site < sites; ++site) {
    int at[AXES];
    coordinates(site, at);
    numbers[site] = count[parity_of(at)]++;
  }
  for (int parity = 0; parity < 2; ++parity) {
    list_faces(parity);
    partner[parity] = zeros((long)half * AXES * 2 * HOPS, sizeof(int));
    links[parity] = zeros((long)half * AXES * 2 * HOPS * LINK, sizeof(double));
  }
  packed = zeros((long)(field_count[0] - half) * REALS, sizeof(double));
  for (int site = 0; site < sites; ++site) {
    int at[AXES];
    coordinates(site, at);
    long entry = (long)numbers[site] * AXES * 2 * HOPS;
    for (int axis = 0; axis < AXES; ++axis)
      for (int ahead = 0; ahead < 2; ++ahead)
        for (int hop = 0; hop < HOPS; ++hop, ++entry) {
          partner[parity_of(at)][entry] = find_partner(at, axis, ahead, hop, numbers);
          seen_link(at, axis, ahead, hop, &links[parity_of(at)][entry * LINK]);
        }
  }
  for (int parity = 0; parity < 2; ++parity) /* from here on, faces name vectors of their parity */
    for (int face = 0; face < AXES * 2 * HOPS; ++face) {
      int *list = face_sites[parity][face / HOPS / 2][face / HOPS % 2][face % HOPS];
      for (int point = 0; point < face_count[parity][face / HOPS / 2][face / HOPS % 2][face % HOPS]; ++point)
        list[point] = numbers[list[point]];
    }
  free(numbers);
}

static void exchange(double *from, int parity, const char *site) {
  MPI_Request requests[2 * AXES * 2 * HOPS];
  int count = 0, next = 0;
  MANYSCALE_BEGIN(site);
  for (int axis = 0; axis < AXES; ++axis)
    for (int ahead = 0; ahead < 2; ++ahead)
      for (int hop = 0; hop < HOPS; ++hop)
        MPI_Irecv(&from[(long)face_first[parity][axis][ahead][hop] * REALS],
                  face_count[parity][axis][!ahead][hop] * REALS, MPI_DOUBLE, neighbours[axis][ahead],
                  (axis * 2 + !ahead) * HOPS + hop, MPI_COMM_WORLD, &requests[count++]);
  for (int axis = 0; axis < AXES; ++axis)
    for (int ahead = 0; ahead < 2; ++ahead)
      for (int hop = 0; hop < HOPS; ++hop) {
        const int points = face_count[parity][axis][ahead][hop], *list = face_sites[parity][axis][ahead][hop];
        double *message = &packed[(long)next * REALS];
        for (int point = 0; point < points; ++point)
          memcpy(&message[point * REALS], &from[(long)list[point] * REALS], REALS * sizeof(double));
        next += points;
        MPI_Isend(message, points * REALS, MPI_DOUBLE, neighbours[axis][ahead], (axis * 2 + ahead) * HOPS + hop,
                  MPI_COMM_WORLD, &requests[count++]);
      }
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  MANYSCALE_END(site);
}

/* The operator from one parity to the other. */
static void hop_to(int parity, double *from, double *to, const char *site) {
  exchange(from, parity ^ 1, site);
  const int *at = partner[parity];
  const double *link = links[parity];
  for (int site = 0; site < half; ++site) {
    double sum[REALS] = {0.0};
    for (int way = 0; way < AXES * 2 * HOPS; ++way, ++at, link += LINK) apply_link(link, &from[(long)*at * REALS], sum);
    memcpy(&to[site * REALS], sum, sizeof sum);
  }
}

/* mass^2 minus the operator twice: hermitian and positive. */
static void apply(double *x, double *between, double *result, const char *site) {
  hop_to(1, x, between, site);
  hop_to(0, between, result, site);
  for (int index = 0; index < half * REALS; ++index) result[index] = mass * mass * x[index] - result[index];
}

static double sum_of(double mine, const char *site) {
  double sum;
  MANYSCALE_BEGIN(site);
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MANYSCALE_END(site);
  return sum;
}

static double dot(const double *left, const double *right, const char *site) {
  double mine = 0.0;
  for (int index = 0; index < half * REALS; ++index) mine += left[index] * right[index];
  return sum_of(mine, site);
}

static double field_at(long global, int entry) { return scattered(global * REALS + entry + 77777) - 0.5; }

/* How far the operator with messages is from the one that needs none, on every seventh site. */
static double compare(double *from, double *to) {
  double worst = 0.0;
  int number[2] = {0, 0};
  for (int site = 0; site < sites; ++site) {
    int at[AXES];
    coordinates(site, at);
    if (parity_of(at)) continue;
    for (int entry = 0; entry < REALS; ++entry) from[number[0] * REALS + entry] = field_at(global_of(at), entry);
    ++number[0];
  }
  hop_to(1, from, to, "check faces");
  for (int site = 0; site < sites; ++site) {
    int at[AXES];
    coordinates(site, at);
    if (!parity_of(at) || number[1]++ % 7) continue;
    double sum[REALS] = {0.0};
    for (int way = 0; way < AXES * 2 * HOPS; ++way) {
      const int axis = way / HOPS / 2, ahead = way / HOPS % 2, hop = way % HOPS;
      int other[AXES];
      double link[LINK], value[REALS];
      seen_link(at, axis, ahead, hop, link);
      memcpy(other, at, sizeof other);
      other[axis] += ahead ? reach[hop] : -reach[hop];
      for (int entry = 0; entry < REALS; ++entry) value[entry] = field_at(global_of(other), entry);
      apply_link(link, value, sum);
    }
    for (int entry = 0; entry < REALS; ++entry)
      worst = fmax(worst, fabs(sum[entry] - to[(number[1] - 1) * REALS + entry]));
  }
  return worst;
}

static void find_neighbours(int size) {
  MPI_Dims_create(size, AXES, sizes);
  for (int axis = AXES - 1, rest = rank; axis >= 0; rest /= sizes[axis--]) place[axis] = rest % sizes[axis];
  for (int axis = AXES - 1, stride = 1; axis >= 0; stride *= sizes[axis--])
    for (int ahead = 0; ahead < 2; ++ahead) {
      const int there = (place[axis] + (ahead ? 1 : sizes[axis] - 1)) % sizes[axis];
      neighbours[axis][ahead] = sizes[axis] > 1 ? rank + (there - place[axis]) * stride : MPI_PROC_NULL;
    }
}

int milc(int argc, char **argv) {
  side = argument(argc, argv, 1, "the number of sites", 4, 4, 64);
  const int iterations = argument(argc, argv, 2, "the number of iterations", 5, 1, 100000);
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (side % 2) {
    if (rank == 0) verdict(0, "milc: the number of sites is odd;", side, 0);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  sites = side * side * side * side;
  half = sites / 2;
  find_neighbours(size);
  set_up();
  const int numbers = half * REALS;
  double *x = zeros(numbers, sizeof *x), *residual = zeros(numbers, sizeof *x), *product = zeros(numbers, sizeof *x);
  double *direction = zeros((long)field_count[0] * REALS, sizeof *x);
  double *between = zeros((long)field_count[1] * REALS, sizeof *x);
  for (int index = 0; index < numbers; ++index) residual[index] = scattered(index + (long)numbers * rank) - 0.5;
  memcpy(direction, residual, (size_t)numbers * sizeof *x);
  double now = dot(residual, residual, "setup");
  const double start = now;
  for (int step = 0; step < iterations; ++step) {
    apply(direction, between, product, "faces");
    const double energy = dot(direction, product, "sum");
    const double alpha = energy > 0.0 ? now / energy : 0.0; /* zero once it is solved exactly */
    for (int index = 0; index < numbers; ++index) {
      x[index] += alpha * direction[index];
      residual[index] -= alpha * product[index];
    }
    const double before = now;
    now = dot(residual, residual, "sum");
    const double beta = before > 0.0 ? now / before : 0.0;
    for (int index = 0; index < numbers; ++index) direction[index] = residual[index] + beta * direction[index];
  }
  memcpy(direction, x, (size_t)numbers * sizeof *x);
  apply(direction, between, product, "check faces");
  double wrong[2] = {0.0, 0.0}, worst[2];
  for (int index = 0; index < numbers; ++index) {
    const double right = scattered(index + (long)numbers * rank) - 0.5;
    wrong[0] = fmax(wrong[0], fabs(right - product[index] - residual[index]));
  }
  wrong[1] = compare(direction, between);
  MANYSCALE_BEGIN("check");
  MPI_Allreduce(wrong, worst, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MANYSCALE_END("check");
  MPI_Finalize();
  return verdict(rank, "milc", sqrt(now / start), worst[0] < 1e-10 && worst[1] < 1e-12 && isfinite(now));
}
