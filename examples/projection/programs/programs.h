/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of this folder, one for each kind of parallel application; main.c chooses one. */
#ifndef PROGRAMS_H
#define PROGRAMS_H

int hpcg(int argc, char **argv);
int snap(int argc, char **argv);
int milc(int argc, char **argv);
int fft2d(int argc, char **argv);
int training(int argc, char **argv);

/* The argument at a place as a whole number from `least` to `most`, or what it is without one; ends the program with
 * a message if it is no such number. */
int argument(int argc, char **argv, int place, const char *what, int otherwise, int least, int most);

/* Memory that is zero; ends the program if there is none. */
void *zeros(long count, long bytes);

/* A number from 0 to 1 that only depends on `place` and is the same on every machine. */
double scattered(long place);

/* On rank 0, prints what a program found and whether that is right; what it returns is the program's exit code. */
int verdict(int rank, const char *program, double value, int right);

#endif
