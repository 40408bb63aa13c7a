// SPDX-License-Identifier: Apache-2.0
// A pipeline over images: cut it up, describe the pieces, look for the nearest in an index, rank. A stage of
// an image is a task that depends on the stage before it, and ranking goes in the order of the images.
#include <math.h>
#include <stdio.h>

#include "programs.h"

enum { pixels = 256, features = 16, entries = 64, most_images = 128 };

static double pixel[most_images][pixels], feature[most_images][features], ranked;
static int nearest[most_images];

static void cut(int image) {
  for (int p = 0; p < pixels; p++) pixel[image][p] = uniform((uint64_t)(image * pixels + p));
  for (int p = 1; p < pixels; p++) pixel[image][p] = 0.5 * (pixel[image][p] + pixel[image][p - 1]);
}

static void describe(int image) {
  for (int f = 0; f < features; f++) {
    double sum = 0;
    for (int p = 0; p < pixels; p++) sum += pixel[image][p] * ((p * (f + 1)) % 17 - 8);
    feature[image][f] = tanh(sum / 16);
  }
}

static void look_up(int image) {
  double best = 1e9;
  for (int e = 0; e < entries; e++) {
    double distance = 0;
    for (int f = 0; f < features; f++) {
      const double difference = feature[image][f] - (uniform((uint64_t)(e * features + f) + 999999) - 0.5);
      distance += difference * difference;
    }
    if (distance < best) best = distance, nearest[image] = e;
  }
}

int ferret(int images) {
  images = images < most_images ? images : most_images;
  static char stage[most_images], order;  // only their addresses matter
  (void)stage, (void)order;
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < images; i++) {
#pragma omp task depend(out : stage[i]) firstprivate(i)
    cut(i);
#pragma omp task depend(inout : stage[i]) firstprivate(i)
    describe(i);
#pragma omp task depend(inout : stage[i]) firstprivate(i)
    look_up(i);
#pragma omp task depend(in : stage[i]) depend(inout : order) firstprivate(i)
    ranked = 0.9 * ranked + nearest[i];
  }
  printf("ferret %d: %.12g\n", images, ranked);
  return 0;
}
