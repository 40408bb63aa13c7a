// SPDX-License-Identifier: Apache-2.0
// k-means clustering of points in 4 dimensions: each thread assigns its points and sums them up in a copy of
// its own, which it adds to the common one in a critical section.
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "programs.h"

enum { dimensions = 4, clusters = 8, rounds = 3 };

int k_means(int points) {
  double *at = doubles((long)points * dimensions);
  double centre[clusters][dimensions];
  long moved = 0;
  unsigned char *cluster = (unsigned char *)doubles(points / 8 + 1);
#pragma omp parallel for
  for (int i = 0; i < points * dimensions; i++) at[i] = uniform((uint64_t)i) + (i / dimensions) % clusters;
  memset(cluster, 0, (size_t)points);
  for (int c = 0; c < clusters; c++) memcpy(centre[c], at + c * dimensions, sizeof centre[c]);
  for (int round = 0; round < rounds; round++) {
    double sum[clusters][dimensions] = {{0}};
    int members[clusters] = {0};
#pragma omp parallel reduction(+ : moved)
    {
      double own_sum[clusters][dimensions] = {{0}};
      int own_members[clusters] = {0};
#pragma omp for
      for (int i = 0; i < points; i++) {
        double nearest = DBL_MAX;
        int best = 0;
        for (int c = 0; c < clusters; c++) {
          double distance = 0;
          for (int d = 0; d < dimensions; d++) {
            const double difference = at[i * dimensions + d] - centre[c][d];
            distance += difference * difference;
          }
          if (distance < nearest) nearest = distance, best = c;
        }
        moved += cluster[i] != best;
        cluster[i] = (unsigned char)best;
        own_members[best]++;
        for (int d = 0; d < dimensions; d++) own_sum[best][d] += at[i * dimensions + d];
      }
#pragma omp critical
      for (int c = 0; c < clusters; c++) {
        members[c] += own_members[c];
        for (int d = 0; d < dimensions; d++) sum[c][d] += own_sum[c][d];
      }
    }
    for (int c = 0; c < clusters; c++)
      for (int d = 0; d < dimensions; d++)
        if (members[c] > 0) centre[c][d] = sum[c][d] / members[c];
  }
  double total = 0;
  for (int c = 0; c < clusters; c++)
    for (int d = 0; d < dimensions; d++) total += centre[c][d];
  printf("k-means %d: %ld moved, %.6f\n", points, moved, total);
  return 0;
}
