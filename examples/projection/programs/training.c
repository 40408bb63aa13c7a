/* SPDX-License-Identifier: Apache-2.0 */
/* Data-parallel training of a small neural network, organised as in Caffe's many-node version: gradients go to rank 0,
 * layer by layer, as they are known, and new weights come back. What travels is encoded as single precision, and only
 * if there is somebody to send it to; only rank 0 computes the new weights.
 *
 *     training [width [layers [images [steps]]]]      numbers of a layer, layers, images of a rank, training steps
 *
 * The loss must fall as the gradients say, and all ranks must have the same weights in the end. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "manyscale.h"
#include "programs.h"

static int width, layers, images, rank, size;
static double *weights, *gradients, *momentum; /* a square matrix for each layer */
static double *values;                         /* of each image: what enters each layer, and what leaves the last */
static double *errors, *before;                /* of all images, behind and before a layer */
static double *wanted;                         /* that the last layer gives, for each image */
static float *encoded, *summed;

static double *matrix(double *of, int layer) { return &of[(long)layer * width * width]; }
static double *value(int image, int layer) { return &values[((long)image * (layers + 1) + layer) * width]; }

/* All layers but the last cut off what is negative. */
static void forward(int layer) {
  const double *matrix_now = matrix(weights, layer);
  for (int image = 0; image < images; ++image) {
    const double *from = value(image, layer);
    double *to = value(image, layer + 1);
    for (int row = 0; row < width; ++row) {
      double sum = 0.0;
      for (int column = 0; column < width; ++column) sum += matrix_now[row * width + column] * from[column];
      to[row] = sum > 0.0 || layer + 1 == layers ? sum : 0.0;
    }
  }
}

/* The gradients of a layer's weights, and the errors before it from those behind it. */
static void backward(int layer) {
  double *gradient = matrix(gradients, layer);
  const double *matrix_now = matrix(weights, layer);
  memset(gradient, 0, (size_t)width * (size_t)width * sizeof *gradient);
  memset(before, 0, (size_t)images * (size_t)width * sizeof *before);
  for (int image = 0; image < images; ++image)
    for (int row = 0; row < width; ++row) {
      const double error = errors[image * width + row];
      const double *from = value(image, layer);
      if (error == 0.0 || (layer + 1 < layers && value(image, layer + 1)[row] == 0.0)) continue;
      for (int column = 0; column < width; ++column) {
        gradient[row * width + column] += error * from[column];
        before[image * width + column] += error * matrix_now[row * width + column];
      }
    }
  double *old = errors;
  errors = before;
  before = old;
}

static double loss(const char *site) {
  double mine = 0.0, sum;
  for (int image = 0; image < images; ++image)
    for (int row = 0; row < width; ++row) {
      const double error = value(image, layers)[row] - wanted[image * width + row];
      errors[image * width + row] = error / ((double)images * size);
      mine += 0.5 * error * error / ((double)images * size);
    }
  MANYSCALE_BEGIN(site);
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MANYSCALE_END(site);
  return sum;
}

/* Adds up the gradients of a layer on rank 0. */
static void gather_gradients(int layer) {
  const int count = width * width;
  double *gradient = matrix(gradients, layer);
  if (size == 1) return;
  for (int index = 0; index < count; ++index) encoded[index] = (float)gradient[index];
  MANYSCALE_BEGIN("gradients");
  MPI_Reduce(encoded, summed, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
  MANYSCALE_END("gradients");
  if (rank == 0)
    for (int index = 0; index < count; ++index) gradient[index] = summed[index];
}

/* New weights of a layer, from rank 0. */
static void spread_weights(int layer, double rate, double inertia) {
  const int count = width * width;
  double *weight = matrix(weights, layer), *moved = matrix(momentum, layer), *gradient = matrix(gradients, layer);
  if (rank == 0)
    for (int index = 0; index < count; ++index) {
      moved[index] = inertia * moved[index] - rate * gradient[index];
      /* As it travels, so that rank 0 has the weights that the others get. */
      weight[index] = (float)(weight[index] + moved[index]);
    }
  if (size == 1) return;
  if (rank == 0)
    for (int index = 0; index < count; ++index) encoded[index] = (float)weight[index];
  MANYSCALE_BEGIN("weights");
  MPI_Bcast(encoded, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  MANYSCALE_END("weights");
  if (rank != 0)
    for (int index = 0; index < count; ++index) weight[index] = encoded[index];
}

/* One step: backwards through the layers, then forwards with the new weights of each; returns the new loss. */
static double train(double rate, double inertia) {
  for (int layer = layers - 1; layer >= 0; --layer) {
    backward(layer);
    gather_gradients(layer);
  }
  for (int layer = 0; layer < layers; ++layer) {
    spread_weights(layer, rate, inertia);
    forward(layer);
  }
  return loss("loss");
}

static void set_up(void) {
  const long all = (long)layers * width * width;
  weights = zeros(all, sizeof *weights);
  gradients = zeros(all, sizeof *weights);
  momentum = zeros(all, sizeof *weights);
  values = zeros((long)images * (layers + 1) * width, sizeof *weights);
  errors = zeros((long)images * width, sizeof *weights);
  before = zeros((long)images * width, sizeof *weights);
  wanted = zeros((long)images * width, sizeof *weights);
  encoded = zeros((long)width * width, sizeof *encoded);
  summed = zeros((long)width * width, sizeof *summed);
  for (long index = 0; index < all; ++index) weights[index] = (float)((scattered(index) - 0.45) * 4.0 / width);
  for (int image = 0; image < images; ++image)
    for (int row = 0; row < width; ++row) {
      value(image, 0)[row] = scattered(((long)rank * images + image) * width + row);
      wanted[image * width + row] = value(image, 0)[(row + 1) % width];
    }
}

/* The loss that a step of the gradients' own direction should save, for each unit of its length. */
static double squared_gradient(void) {
  double sum = 0.0;
  for (long index = 0; index < (long)layers * width * width; ++index) sum += gradients[index] * gradients[index];
  return sum;
}

int training(int argc, char **argv) {
  width = argument(argc, argv, 1, "the width", 32, 1, 4096);
  layers = argument(argc, argv, 2, "the number of layers", 3, 1, 1000);
  images = argument(argc, argv, 3, "the number of images", 8, 1, 100000);
  const int steps = argument(argc, argv, 4, "the number of steps", 3, 1, 100000);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  set_up();
  for (int layer = 0; layer < layers; ++layer) forward(layer);
  const double start = loss("setup");
  double end = start;
  for (int step = 0; step < steps; ++step) end = train(0.05, 0.5);
  /* A last step without inertia: to first order it saves its rate times the square of the gradient's length. */
  const double rate = 1e-3, saved = end - train(rate, 0.0);
  double mine[3] = {0.0, 0.0, rank == 0 ? saved / (rate * squared_gradient()) : 0.0}, all[3];
  for (long index = 0; index < (long)layers * width * width; ++index) mine[0] += weights[index] * (double)(index % 7 + 1);
  mine[1] = -mine[0];
  MANYSCALE_BEGIN("check");
  MPI_Allreduce(mine, all, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MANYSCALE_END("check");
  MPI_Finalize();
  return verdict(rank, "training", end, end < start && all[0] == -all[1] && fabs(all[2] - 1.0) < 0.05);
}
