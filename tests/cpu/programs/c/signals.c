// SPDX-License-Identifier: Apache-2.0
// Signals: handlers, masks, an own stack, a fault that a handler repairs, and the ways a program can be ended
// by one.
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "programs.h"

static volatile sig_atomic_t seen, last;
static sigjmp_buf landing;
static char* page;
static char own_stack[65536];

static void count_it(int number) {
  ++seen;
  last = number;
}

static void leave(int number, siginfo_t* information, void* context) {
  (void)number, (void)context;
  siglongjmp(landing, information->si_addr == page + 24 ? 2 : 3);
}

static void repair(int number, siginfo_t* information, void* context) {
  (void)number, (void)context;
  ++seen;
  mprotect((char*)((uintptr_t)information->si_addr & ~4095ul), 4096, PROT_READ | PROT_WRITE);
}

static void on_own_stack(int number) {
  char here;
  last = &here >= own_stack && &here < own_stack + sizeof own_stack ? number : -1;
}

static void install(int number, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigaction(number, &action, NULL);
}

static int end_by(const char* how) {
  if (strcmp(how, "abort") == 0) abort();
  volatile uintptr_t nowhere = 16;
  if (strcmp(how, "segmentation") == 0) *(volatile int*)nowhere = 1;
  if (strcmp(how, "terminate") == 0) raise(SIGTERM);
  if (strcmp(how, "trap") == 0) __asm__ volatile("ebreak");
  if (strcmp(how, "illegal") == 0) __asm__ volatile(".word 0");
  return 3;
}

int run_signals(int argc, char** argv) {
  if (argc > 1) {
    printf("to be ended by %s\n", argv[1]);
    fflush(stdout);
    return end_by(argv[1]);
  }
  signal(SIGUSR1, count_it);
  raise(SIGUSR1);
  kill(getpid(), SIGUSR1);
  printf("seen %d last %d\n", seen, last == SIGUSR1);
  sigset_t set, pending;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  raise(SIGUSR1);
  sigpending(&pending);
  printf("blocked %d pending %d\n", seen, sigismember(&pending, SIGUSR1));
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  printf("unblocked %d\n", seen);
  signal(SIGUSR1, SIG_IGN);
  raise(SIGUSR1);
  printf("ignored %d\n", seen);
  page = (char*)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  install(SIGSEGV, leave, 0);
  int came = sigsetjmp(landing, 1);
  if (came == 0) page[24] = 1;
  printf("fault %d\n", came);
  install(SIGSEGV, repair, 0);
  page[40] = 5;
  printf("repaired %d %d\n", seen, page[40]);
  stack_t stack = {.ss_sp = own_stack, .ss_size = sizeof own_stack};
  sigaltstack(&stack, NULL);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_own_stack;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR2, &action, NULL);
  raise(SIGUSR2);
  printf("own stack %d\n", last == SIGUSR2);
  return 0;
}
