// SPDX-License-Identifier: Apache-2.0
// What a process knows of itself: arguments, environment, exit, time, limits.
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "programs.h"

static void farewell(void) {
  printf("farewell\n");
}
static void adieu(void) {
  printf("adieu\n");
}
__attribute__((constructor)) static void before_main(void) {
  if (getenv("SHOW_CONSTRUCTOR")) printf("constructed\n");
}

int run_process(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) printf("argument %d: %s\n", i, argv[i]);
  printf("variable %s\n", getenv("SUITE_VARIABLE") ? getenv("SUITE_VARIABLE") : "none");
  setenv("SUITE_VARIABLE", "changed", 1);
  printf("variable %s\n", getenv("SUITE_VARIABLE"));
  atexit(farewell);
  atexit(adieu);
  struct utsname name;
  printf("uname %d %s %s\n", uname(&name), name.sysname, name.machine);
  printf("page %ld %lu\n", sysconf(_SC_PAGESIZE), getauxval(AT_PAGESZ));
  printf("processors %d\n", sysconf(_SC_NPROCESSORS_ONLN) >= 1);
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  struct timespec pause = {0, 2000000};
  printf("sleep %d\n", nanosleep(&pause, NULL));
  clock_gettime(CLOCK_MONOTONIC, &end);
  long long waited = (end.tv_sec - begin.tv_sec) * 1000000000ll + end.tv_nsec - begin.tv_nsec;
  printf("waited %d\n", waited >= 2000000);
  struct timeval day;
  printf("time %d %d\n", gettimeofday(&day, NULL), time(NULL) >= 0);
  struct rlimit limit;
  printf("stack limit %d %d\n", getrlimit(RLIMIT_STACK, &limit), limit.rlim_cur >= 65536);
  printf("random %d\n", getentropy(&end, 8));
  printf("own %d\n", getpid() == (int)syscall(SYS_gettid) && getppid() >= 0);
  int code = (int)number_argument(argc, argv, 1, 0);
  if (argc > 2) {
    fflush(stdout);
    _exit(code);
  }
  exit(code);
}
