// SPDX-License-Identifier: Apache-2.0
// Shock hydrodynamics in the manner of LULESH: loops over the elements and the nodes of a mesh in turn, with
// the nodes of an element found through a table, and the smallest time step found by all.
#include <math.h>
#include <stdio.h>

#include "programs.h"

enum { corners = 8, steps = 3, chunks = 64 };

struct mesh {
  int n, edge, elements, nodes;
  int *node;      // of each corner of each element
  int *gathered;  // for each node, the corners that are there; -1: none
  double *x, *v, *force, *volume, *energy, *pressure;
};

static struct mesh new_mesh(int n) {
  const int edge = n + 1, elements = n * n * n, nodes = edge * edge * edge;
  struct mesh m = {.n = n, .edge = edge, .elements = elements, .nodes = nodes};
  m.node = (int *)doubles((long)elements * corners / 2 + 1);
  m.x = doubles(nodes), m.v = doubles(nodes), m.force = doubles((long)elements * corners);
  m.volume = doubles(elements), m.energy = doubles(elements), m.pressure = doubles(elements);
  m.gathered = (int *)doubles((long)nodes * corners / 2 + 1);
  return m;
}

static inline void set_element(const struct mesh *m, int e) {
  const int n = m->n, edge = m->edge;
  const int i = e % n, j = e / n % n, k = e / (n * n), first = i + edge * (j + edge * k);
  for (int c = 0; c < corners; c++)
    m->node[e * corners + c] = first + (c & 1) + edge * ((c >> 1 & 1) + edge * (c >> 2));
  m->volume[e] = 1;
  m->energy[e] = e == 0 ? 3.0 : 0.01;
  m->pressure[e] = 0;
}

static inline void set_node(const struct mesh *m, int p) {
  const int n = m->n, edge = m->edge;
  const int i = p % edge, j = p / edge % edge, k = p / (edge * edge);
  for (int c = 0; c < corners; c++) {
    const int a = i - (c & 1), b = j - (c >> 1 & 1), d = k - (c >> 2);
    const int inside = a >= 0 && a < n && b >= 0 && b < n && d >= 0 && d < n;
    m->gathered[p * corners + c] = inside ? (a + n * (b + n * d)) * corners + c : -1;
  }
  m->x[p] = i + 0.1 * uniform((uint64_t)p);
  m->v[p] = 0;
}

static inline void press(const struct mesh *m, int e) {
  m->pressure[e] = 0.4 * m->energy[e] / m->volume[e];
  for (int c = 0; c < corners; c++) m->force[e * corners + c] = m->pressure[e] * (c & 1 ? 1 : -1);
}

static inline void move(const struct mesh *m, int p, double dt) {
  double sum = 0;
  for (int c = 0; c < corners; c++) {
    const int corner = m->gathered[p * corners + c];
    if (corner >= 0) sum += m->force[corner];
  }
  m->v[p] += dt * sum;
  m->x[p] += dt * m->v[p];
}

// Returns the time step that the element allows.
static inline double expand(const struct mesh *m, int e) {
  const int *corner = m->node + e * corners;
  double length = 0;
  for (int c = 0; c < corners; c += 2) length += m->x[corner[c + 1]] - m->x[corner[c]];
  const double grown = 0.25 * length - m->volume[e];
  m->volume[e] += grown;
  m->energy[e] -= m->pressure[e] * grown;
  return 0.3 * m->volume[e] / sqrt(1e-9 + fabs(m->energy[e]));
}

static int report(const struct mesh *m, double dt) {
  double total = 0;
  for (int e = 0; e < m->elements; e++) total += m->energy[e] * (1 + e % 3);
  printf("hydrodynamics %d: %.9g, step %.6g\n", m->n, total, dt);
  return 0;
}

int hydrodynamics(int n) {
  const struct mesh m = new_mesh(n);
#pragma omp parallel for
  for (int e = 0; e < m.elements; e++) set_element(&m, e);
#pragma omp parallel for
  for (int p = 0; p < m.nodes; p++) set_node(&m, p);
  double dt = 0.01, smallest = 1;
  for (int step = 0; step < steps; step++) {
#pragma omp parallel for
    for (int e = 0; e < m.elements; e++) press(&m, e);
#pragma omp parallel for
    for (int p = 0; p < m.nodes; p++) move(&m, p, dt);
    smallest = 1;
#pragma omp parallel for reduction(min : smallest)
    for (int e = 0; e < m.elements; e++) {
      const double allowed = expand(&m, e);
      if (allowed < smallest) smallest = allowed;
    }
    dt = fmin(0.01, fabs(smallest));
  }
  return report(&m, dt);
}

// Where a chunk of a loop begins; the last ends where the one behind it would begin.
static int chunk(int count, int number) {
  return (int)((long)count * number / chunks);
}

// The same with a task for each chunk of a loop, and a taskwait behind each loop.
int hydrodynamics_tasks(int n) {
  const struct mesh m = new_mesh(n);
  double dt = 0.01, allowed[chunks];
#pragma omp parallel
#pragma omp single
  {
    for (int k = 0; k < chunks; k++) {
#pragma omp task firstprivate(k) shared(m)
      for (int e = chunk(m.elements, k); e < chunk(m.elements, k + 1); e++) set_element(&m, e);
#pragma omp task firstprivate(k) shared(m)
      for (int p = chunk(m.nodes, k); p < chunk(m.nodes, k + 1); p++) set_node(&m, p);
    }
#pragma omp taskwait
    for (int step = 0; step < steps; step++) {
      for (int k = 0; k < chunks; k++)
#pragma omp task firstprivate(k) shared(m)
        for (int e = chunk(m.elements, k); e < chunk(m.elements, k + 1); e++) press(&m, e);
#pragma omp taskwait
      for (int k = 0; k < chunks; k++)
#pragma omp task firstprivate(k, dt) shared(m)
        for (int p = chunk(m.nodes, k); p < chunk(m.nodes, k + 1); p++) move(&m, p, dt);
#pragma omp taskwait
      for (int k = 0; k < chunks; k++)
#pragma omp task firstprivate(k) shared(m, allowed)
      {
        double smallest = 1;
        for (int e = chunk(m.elements, k); e < chunk(m.elements, k + 1); e++)
          smallest = fmin(smallest, expand(&m, e));
        allowed[k] = smallest;
      }
#pragma omp taskwait
      dt = 1;
      for (int k = 0; k < chunks; k++) dt = fmin(dt, allowed[k]);
      dt = fmin(0.01, fabs(dt));
    }
  }
  return report(&m, dt);
}
