// SPDX-License-Identifier: Apache-2.0
// Clustering of a stream of points: each new candidate for a centre is opened if the points that would move
// to it save more than it costs, which all threads work out together.
#include <stdio.h>
#include <string.h>

#include "programs.h"

enum { dimensions = 16, candidates = 24 };

static double distance(const double *a, const double *b) {
  double sum = 0;
  for (int d = 0; d < dimensions; d++) sum += (a[d] - b[d]) * (a[d] - b[d]);
  return sum;
}

int stream_cluster(int points) {
  double *at = doubles((long)points * dimensions), *cost = doubles(points);
  int opened = 1;
#pragma omp parallel for
  for (int i = 0; i < points * dimensions; i++) at[i] = uniform((uint64_t)i);
#pragma omp parallel for
  for (int i = 0; i < points; i++) cost[i] = distance(at + i * dimensions, at);
  for (int c = 1; c < candidates; c++) {
    const double *candidate = at + mixed((uint64_t)c) % (uint64_t)points * dimensions;
    double saved = -1.0;
#pragma omp parallel for reduction(+ : saved) schedule(static)
    for (int i = 0; i < points; i++) {
      const double other = distance(at + i * dimensions, candidate);
      if (other < cost[i]) saved += cost[i] - other;
    }
    if (saved < 0.02 * points) continue;
    opened++;
#pragma omp parallel for schedule(static)
    for (int i = 0; i < points; i++) {
      const double other = distance(at + i * dimensions, candidate);
      if (other < cost[i]) cost[i] = other;
    }
  }
  double sum = 0;
  for (int i = 0; i < points; i++) sum += cost[i];
  printf("stream cluster %d: %d centres, %.9f\n", points, opened, sum);
  return 0;
}
