#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static rdna_status map(int descriptor, rdna__file *out) {
  struct stat info;
  if (fstat(descriptor, &info) != 0)
    return rdna__fail(RDNA_IO_ERROR, "cannot read the file's size: %s", strerror(errno));
  if (!S_ISREG(info.st_mode)) return rdna__fail(RDNA_IO_ERROR, "a regular file was expected");
  *out = (rdna__file){0};
  if (info.st_size == 0) return RDNA_OK;
  void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) return rdna__fail(RDNA_IO_ERROR, "cannot map the file into memory: %s", strerror(errno));
  *out = (rdna__file){data, (size_t)info.st_size};
  return RDNA_OK;
}

rdna_status rdna__file_map(const char *path, rdna__file *out_file) {
  /* without O_NONBLOCK a pipe would make it wait for a writer */
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return rdna__fail(errno == ENOENT ? RDNA_NOT_FOUND : RDNA_IO_ERROR, "cannot open the file: %s", strerror(errno));
  rdna_status status = map(descriptor, out_file);
  close(descriptor);
  return status;
}

void rdna__file_unmap(rdna__file *file) {
  if (file->data) munmap((void *)file->data, file->size);
  *file = (rdna__file){0};
}
