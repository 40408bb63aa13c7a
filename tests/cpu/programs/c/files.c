// SPDX-License-Identifier: Apache-2.0
// Files in the current directory: written, read, moved, removed; and what is refused.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "programs.h"

static int by_name(const void* a, const void* b) {
  return strcmp(*(char* const*)a, *(char* const*)b);
}

static void list(const char* path) {
  char* names[16];
  int count = 0;
  DIR* directory = opendir(path);
  if (!directory) {
    printf("no directory %s\n", path);
    return;
  }
  for (struct dirent* each; (each = readdir(directory)) && count < 16;)
    if (each->d_name[0] != '.') names[count++] = strdup(each->d_name);
  closedir(directory);
  qsort(names, (size_t)count, sizeof *names, by_name);
  printf("%s:", path);
  for (int i = 0; i < count; ++i) {
    printf(" %s", names[i]);
    free(names[i]);
  }
  printf("\n");
}

int run_files(int argc, char** argv) {
  (void)argc, (void)argv;
  printf("mkdir %d\n", mkdir("work", 0755));
  FILE* file = fopen("work/numbers.txt", "w+");
  if (!file) return 1;
  for (int i = 0; i < 2000; ++i) fprintf(file, "%d %x\n", i * i, i);
  printf("length %ld\n", ftell(file));
  fseek(file, 500, SEEK_SET);
  char line[64];
  if (!fgets(line, sizeof line, file) || !fgets(line, sizeof line, file)) return 1;
  printf("line %s", line);
  rewind(file);
  long long total = 0;
  int square;
  unsigned index;
  while (fscanf(file, "%d %x", &square, &index) == 2) total += square - (int)index;
  printf("total %lld eof %d\n", total, feof(file) != 0);
  fclose(file);
  file = fopen("work/numbers.txt", "a");
  fputs("the end\n", file);
  fclose(file);
  struct stat status;
  printf("stat %d %lld %d\n", stat("work/numbers.txt", &status), (long long)status.st_size,
         S_ISREG(status.st_mode));
  printf("rename %d\n", rename("work/numbers.txt", "work/moved.txt"));
  printf("absent %d %d\n", open("work/numbers.txt", O_RDONLY), errno == ENOENT);
  int descriptor = open("work/raw.bin", O_RDWR | O_CREAT | O_EXCL, 0600);
  printf("exclusive %d %d\n", open("work/raw.bin", O_RDWR | O_CREAT | O_EXCL, 0600), errno == EEXIST);
  char first[] = "first,", second[] = "second", got[32] = {0};
  struct iovec parts[] = {{first, 6}, {second, 6}};
  printf("writev %zd\n", writev(descriptor, parts, 2));
  printf("pwrite %zd pread %zd", pwrite(descriptor, "SEC", 3, 6), pread(descriptor, got, 20, 3));
  printf(" %s\n", got);
  printf("seek %lld %lld\n", (long long)lseek(descriptor, -4, SEEK_END),
         (long long)lseek(descriptor, 0, SEEK_CUR));
  printf("truncate %d %lld\n", ftruncate(descriptor, 100), (long long)lseek(descriptor, 0, SEEK_END));
  int twin = dup(descriptor);
  printf("dup %d\n", twin > descriptor && write(twin, "x", 1) == 1);
  close(twin);
  char* mapped = (char*)mmap(NULL, 101, PROT_READ, MAP_PRIVATE, descriptor, 0);
  printf("mapped %.12s %c\n", mapped, mapped[100]);
  munmap(mapped, 101);
  close(descriptor);
  printf("closed %zd %d\n", write(descriptor, "x", 1), errno == EBADF);
  printf("access %d %d\n", access("work/raw.bin", R_OK), access("work/none", R_OK));
  list("work");
  int pair[2];
  if (pipe(pair) == 0) {
    ssize_t sent = write(pair[1], "through a pipe", 14);
    memset(got, 0, sizeof got);
    ssize_t arrived = read(pair[0], got, sizeof got - 1);
    printf("pipe %zd %zd %s\n", sent, arrived, got);
  }
  printf("remove %d %d %d\n", unlink("work/raw.bin"), unlink("work/moved.txt"), rmdir("work"));
  list("work");
  return 0;
}
