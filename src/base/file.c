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

/* ---- what is mapped ---- */

/* A file that is mapped, and open so that it can be read. A signal's handler walks their list and takes no lock: an
 * entry stays in it for good, and one whose |data| is 0 is taken again. */
typedef struct mapped_file {
  struct mapped_file *next;
  atomic_uintptr_t data;
  atomic_size_t size;
  int descriptor;
  struct timespec written; /* when, last */
  char *path;
} mapped_file;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of those that take entries and leave them */
static mapped_file *_Atomic mapped;

/* The file that has the byte at |at| in memory, or NULL. */
static mapped_file *find(const void *at) {
  for (mapped_file *m = atomic_load(&mapped); m; m = m->next) {
    uintptr_t data = atomic_load(&m->data);
    bool within = data && (uintptr_t)at >= data && (uintptr_t)at - data < atomic_load(&m->size);
    if (within && atomic_load(&m->data) == data) return m; /* nobody took the entry meanwhile */
  }
  return NULL;
}

/* An entry that is free; NULL: no host memory. Under the lock. */
static mapped_file *take_entry(void) {
  mapped_file *m = atomic_load(&mapped);
  while (m && atomic_load(&m->data)) m = m->next;
  if (m || !(m = calloc(1, sizeof *m))) return m;
  m->next = atomic_load(&mapped);
  atomic_store(&mapped, m);
  return m;
}

static rdna_status note(const char *path, int descriptor, const struct stat *info, const void *data) {
  char *copy = strdup(path);
  pthread_mutex_lock(&lock);
  mapped_file *m = copy ? take_entry() : NULL;
  if (m) {
    m->descriptor = descriptor, m->written = info->st_mtim, m->path = copy;
    atomic_store(&m->size, (size_t)info->st_size);
    atomic_store(&m->data, (uintptr_t)data);
  }
  pthread_mutex_unlock(&lock);
  if (m) return RDNA_OK;
  free(copy);
  return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the name of a file");
}

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
  void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) return rdna__fail(RDNA_IO_ERROR, "cannot map the file into memory: %s", strerror(errno));
  rdna_status status = note(path, descriptor, &info, data);
  if (status == RDNA_OK)
    *out = (rdna__file){data, (size_t)info.st_size};
  else
    munmap(data, (size_t)info.st_size);
  return status;
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
    mapped_file *m = find(file->data); /* NULL: the caller mapped it */
    munmap((void *)file->data, file->size);
    if (m) {
      close(m->descriptor);
      free(m->path);
      atomic_store(&m->data, 0);
    }
    pthread_mutex_unlock(&lock);
  }
  *file = (rdna__file){0};
}

/* ---- files that become shorter ---- */

static atomic_ullong lost_pages;

static void give_zeros(int number, siginfo_t *info, void *context) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  int before = errno;
  void *at = (void *)((uintptr_t)info->si_addr / page * page);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  if (find(info->si_addr) && mmap(at, page, PROT_READ, flags, -1, 0) != MAP_FAILED)
    atomic_fetch_add(&lost_pages, 1);
  else
    signal(number, SIG_DFL); /* and the access, made again, ends the process as it would have */
  errno = before;
}

rdna_status rdna__file_guard(void) {
  struct sigaction action = {.sa_sigaction = give_zeros, .sa_flags = SA_SIGINFO};
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGBUS, &action, NULL) == 0) return RDNA_OK;
  return rdna__fail(RDNA_UNAVAILABLE, "the system gives no handler for SIGBUS: %s", strerror(errno));
}

uint64_t rdna__file_lost_pages(void) { return atomic_load(&lost_pages); }

/* ---- reading ---- */

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
