/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of this folder; main.c chooses one. */
#ifndef PROGRAMS_H
#define PROGRAMS_H

int point_to_point(int argc, char **argv);
int collectives(int argc, char **argv);
int groups_and_types(int argc, char **argv);
int heat(int argc, char **argv);
int hybrid(int argc, char **argv);
int abort_job(int argc, char **argv);
int mistake(int argc, char **argv);
int regions(int argc, char **argv);

#endif
