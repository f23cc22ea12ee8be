#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files that become shorter ---- */

enum { MOST_GUARDED = 1024 };

/* What is mapped, for a signal's handler, which takes no lock. A place is free while |data| is 0. */
static struct {
  atomic_uintptr_t data;
  atomic_size_t size;
} guarded[MOST_GUARDED];
static atomic_bool guards;
static atomic_ullong lost_pages;

static void note_mapped(const void *data, size_t size) {
  for (int i = 0; i < MOST_GUARDED && atomic_load(&guards); i++) {
    uintptr_t none = 0;
    if (!atomic_compare_exchange_strong(&guarded[i].data, &none, (uintptr_t)data)) continue;
    atomic_store(&guarded[i].size, size);
    return;
  }
}

static void note_unmapped(const void *data) {
  for (int i = 0; i < MOST_GUARDED && atomic_load(&guards); i++) {
    if (atomic_load(&guarded[i].data) != (uintptr_t)data) continue;
    atomic_store(&guarded[i].size, 0);
    atomic_store(&guarded[i].data, 0);
    return;
  }
}

static bool is_guarded(uintptr_t place) {
  for (int i = 0; i < MOST_GUARDED; i++) {
    uintptr_t data = atomic_load(&guarded[i].data);
    if (data && place >= data && place - data < atomic_load(&guarded[i].size)) return true;
  }
  return false;
}

static void give_zeros(int number, siginfo_t *info, void *context) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  uintptr_t place = (uintptr_t)info->si_addr;
  int before = errno;
  void *at = (void *)(place / page * page);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  if (is_guarded(place) && mmap(at, page, PROT_READ, flags, -1, 0) != MAP_FAILED)
    atomic_fetch_add(&lost_pages, 1);
  else
    signal(number, SIG_DFL); /* and the access, made again, ends the process as it would have */
  errno = before;
}

rdna_status rdna__file_guard(void) {
  struct sigaction action = {.sa_sigaction = give_zeros, .sa_flags = SA_SIGINFO};
  sigemptyset(&action.sa_mask);
  atomic_store(&guards, true);
  if (sigaction(SIGBUS, &action, NULL) == 0) return RDNA_OK;
  return rdna__fail(RDNA_UNAVAILABLE, "the system gives no handler for SIGBUS: %s", strerror(errno));
}

uint64_t rdna__file_lost_pages(void) { return atomic_load(&lost_pages); }

/* ---- maps ---- */

/* A file that is mapped, and open so that it can be read. */
typedef struct mapped_file {
  struct mapped_file *next;
  const uint8_t *data;
  size_t size;
  int descriptor;
  struct timespec written; /* when, last */
  char path[];
} mapped_file;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mapped_file *mapped; /* under the lock */

static rdna_status map(const char *path, int descriptor, rdna__file *out) {
  struct stat info;
  if (fstat(descriptor, &info) != 0)
    return rdna__fail(RDNA_IO_ERROR, "cannot read the file's size: %s", strerror(errno));
  if (!S_ISREG(info.st_mode)) return rdna__fail(RDNA_IO_ERROR, "a regular file was expected");
  *out = (rdna__file){0};
  if (info.st_size == 0) {
    close(descriptor);
    return RDNA_OK;
  }
  mapped_file *m = malloc(sizeof *m + strlen(path) + 1);
  if (!m) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the name of a file");
  void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) {
    free(m);
    return rdna__fail(RDNA_IO_ERROR, "cannot map the file into memory: %s", strerror(errno));
  }
  *m = (mapped_file){.data = data, .size = (size_t)info.st_size, .descriptor = descriptor, .written = info.st_mtim};
  memcpy(m->path, path, strlen(path) + 1);
  pthread_mutex_lock(&lock);
  m->next = mapped;
  mapped = m;
  pthread_mutex_unlock(&lock);
  *out = (rdna__file){data, (size_t)info.st_size};
  note_mapped(out->data, out->size);
  return RDNA_OK;
}

rdna_status rdna__file_map(const char *path, rdna__file *out_file) {
  /* without O_NONBLOCK a pipe would make it wait for a writer */
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return rdna__fail(errno == ENOENT ? RDNA_NOT_FOUND : RDNA_IO_ERROR, "cannot open the file: %s", strerror(errno));
  rdna_status status = map(path, descriptor, out_file);
  if (status != RDNA_OK) close(descriptor);
  return status;
}

void rdna__file_unmap(rdna__file *file) {
  if (file->data) {
    pthread_mutex_lock(&lock);
    mapped_file **link = &mapped;
    while (*link && (*link)->data != file->data) link = &(*link)->next;
    mapped_file *m = *link;
    if (m) *link = m->next;
    pthread_mutex_unlock(&lock);
    note_unmapped(file->data);
    munmap((void *)file->data, file->size);
    if (m) close(m->descriptor);
    free(m);
  }
  *file = (rdna__file){0};
}

static const mapped_file *find(const uint8_t *at) {
  pthread_mutex_lock(&lock);
  const mapped_file *m = mapped;
  while (m && !((uintptr_t)at >= (uintptr_t)m->data && (uintptr_t)at - (uintptr_t)m->data < m->size)) m = m->next;
  pthread_mutex_unlock(&lock);
  return m;
}

/* Whether it still is what was mapped. */
static rdna_status check(const mapped_file *m) {
  struct stat info;
  if (fstat(m->descriptor, &info) != 0)
    return rdna__fail(RDNA_IO_ERROR, "%s: cannot read the file's size: %s", m->path, strerror(errno));
  if ((uint64_t)info.st_size < m->size)
    return rdna__fail(RDNA_IO_ERROR, "%s: the file had %zu bytes when it was opened, and has %llu now", m->path,
                      m->size, (unsigned long long)info.st_size);
  if (info.st_mtim.tv_sec == m->written.tv_sec && info.st_mtim.tv_nsec == m->written.tv_nsec) return RDNA_OK;
  return rdna__fail(RDNA_IO_ERROR, "%s: the file was written to since it was opened; open it again", m->path);
}

rdna_status rdna__file_read(const void *from, size_t size, void *to) {
  const mapped_file *m = find(from);
  if (size == 0) return RDNA_OK;
  if (!m) {
    memcpy(to, from, size);
    return RDNA_OK;
  }
  size_t offset = (size_t)((const uint8_t *)from - m->data);
  if (size > m->size - offset)
    return rdna__fail(RDNA_INTERNAL, "%s: %zu bytes at %zu of a file of %zu", m->path, size, offset, m->size);
  size_t done = 0;
  while (done < size) {
    ssize_t got = pread(m->descriptor, (char *)to + done, size - done, (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return rdna__fail(RDNA_IO_ERROR, "%s: cannot read %zu bytes at %zu: %s", m->path, size - done, offset + done,
                        strerror(errno));
    if (got == 0) break;
    done += (size_t)got;
  }
  RDNA_TRY(check(m));
  return done == size ? RDNA_OK : rdna__fail(RDNA_IO_ERROR, "%s: the file ends at byte %zu", m->path, offset + done);
}
