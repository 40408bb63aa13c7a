// SPDX-License-Identifier: Apache-2.0
// Shock hydrodynamics in the manner of LULESH: loops over the elements and the nodes of a mesh in turn, with
// the nodes of an element found through a table, and the smallest time step found by all.
#include <math.h>
#include <stdio.h>

#include "programs.h"

enum { corners = 8, steps = 3 };

int hydrodynamics(int n) {
  const int edge = n + 1, elements = n * n * n, nodes = edge * edge * edge;
  int *node = (int *)doubles((long)elements * corners / 2 + 1);
  double *x = doubles(nodes), *v = doubles(nodes), *force = doubles((long)elements * corners);
  double *volume = doubles(elements), *energy = doubles(elements), *pressure = doubles(elements);
  int *gathered = (int *)doubles((long)nodes * corners / 2 + 1);  // for each node, the corners that are there
#pragma omp parallel for
  for (int e = 0; e < elements; e++) {
    const int i = e % n, j = e / n % n, k = e / (n * n), first = i + edge * (j + edge * k);
    for (int c = 0; c < corners; c++)
      node[e * corners + c] = first + (c & 1) + edge * ((c >> 1 & 1) + edge * (c >> 2));
    volume[e] = 1;
    energy[e] = e == 0 ? 3.0 : 0.01;
    pressure[e] = 0;
  }
#pragma omp parallel for
  for (int p = 0; p < nodes; p++) {
    const int i = p % edge, j = p / edge % edge, k = p / (edge * edge);
    for (int c = 0; c < corners; c++) {
      const int a = i - (c & 1), b = j - (c >> 1 & 1), d = k - (c >> 2);
      const int inside = a >= 0 && a < n && b >= 0 && b < n && d >= 0 && d < n;
      gathered[p * corners + c] = inside ? (a + n * (b + n * d)) * corners + c : -1;
    }
    x[p] = i + 0.1 * uniform((uint64_t)p);
    v[p] = 0;
  }
  double dt = 0.01, smallest = 1;
  for (int step = 0; step < steps; step++) {
#pragma omp parallel for
    for (int e = 0; e < elements; e++) {
      pressure[e] = 0.4 * energy[e] / volume[e];
      for (int c = 0; c < corners; c++) force[e * corners + c] = pressure[e] * (c & 1 ? 1 : -1);
    }
#pragma omp parallel for
    for (int p = 0; p < nodes; p++) {
      double sum = 0;
      for (int c = 0; c < corners; c++) {
        const int corner = gathered[p * corners + c];
        if (corner >= 0) sum += force[corner];
      }
      v[p] += dt * sum;
      x[p] += dt * v[p];
    }
    smallest = 1;
#pragma omp parallel for reduction(min : smallest)
    for (int e = 0; e < elements; e++) {
      const int *corner = node + e * corners;
      double length = 0;
      for (int c = 0; c < corners; c += 2) length += x[corner[c + 1]] - x[corner[c]];
      const double grown = 0.25 * length - volume[e];
      volume[e] += grown;
      energy[e] -= pressure[e] * grown;
      const double allowed = 0.3 * volume[e] / sqrt(1e-9 + fabs(energy[e]));
      if (allowed < smallest) smallest = allowed;
    }
    dt = fmin(0.01, fabs(smallest));
  }
  double total = 0;
  for (int e = 0; e < elements; e++) total += energy[e] * (1 + e % 3);
  printf("hydrodynamics %d: %.9g, step %.6g\n", n, total, dt);
  return 0;
}
