/* Preloaded into a program: of what its own code asks of malloc, calloc, realloc and strdup's kind, the call of number
 * RDNA_TEST_FAIL gets no memory, and with RDNA_TEST_FAIL_SOON one soon behind each SIGUSR1. RDNA_TEST_CALLS names a
 * file that is written instead: for each call the place it comes from, as an offset in the program. */
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t size), *__libc_calloc(size_t count, size_t size),
    *__libc_realloc(void *p, size_t size);

enum { MOST_CALLS = 1 << 20 };
static uintptr_t begin, end;
static atomic_long calls;
static atomic_long failing;
static bool notes; /* the places of calls: else the process's memory stays as it is without them */
static unsigned places[MOST_CALLS];

/* The program is the first object. */
static int find_program(struct dl_phdr_info *info, size_t size, void *data) {
  begin = UINTPTR_MAX;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    if (at < begin) begin = at;
    if (at + info->dlpi_phdr[i].p_memsz > end) end = at + info->dlpi_phdr[i].p_memsz;
  }
  return 1;
}

static void fail_soon(int number) {
  enum { SOON = 600, FACTOR = 7919 };
  long now = calls;
  failing = now + 1 + (now * FACTOR) % SOON;
}

__attribute__((constructor)) static void start(void) {
  if (getenv("RDNA_TEST_FAIL_SOON")) signal(SIGUSR1, fail_soon);
  const char *number = getenv("RDNA_TEST_FAIL");
  failing = number ? atol(number) : -1;
  notes = getenv("RDNA_TEST_CALLS") != NULL;
  dl_iterate_phdr(find_program, NULL);
}

__attribute__((destructor)) static void write_calls(void) {
  const char *path = getenv("RDNA_TEST_CALLS");
  FILE *file = path ? fopen(path, "w") : NULL;
  for (long i = 0; file && i < calls && i < MOST_CALLS; i++) fprintf(file, "%x\n", places[i]);
  if (file) fclose(file);
}

static bool fails(const void *from) {
  if ((uintptr_t)from < begin || (uintptr_t)from >= end) return false;
  long call = atomic_fetch_add(&calls, 1);
  if (notes && call < MOST_CALLS) places[call] = (unsigned)((uintptr_t)from - begin);
  return call == failing;
}

__attribute__((visibility("default"))) void *malloc(size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}
__attribute__((visibility("default"))) void *calloc(size_t count, size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}
__attribute__((visibility("default"))) void *realloc(void *p, size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(p, size);
}
