// Device memory of another process on this machine. An allocation moves to an anonymous file when its first handle is
// asked for, which others open by way of this process:
//
//     hipIpcMemHandle_t, 64 bytes: | mark | process | descriptor | device | bytes | offset of the pointer | 0 … |
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hip/hip.h"

enum { MARK = 0x72646e61 };

struct memory_handle {
  uint32_t mark, process, file, device;
  uint64_t bytes, offset;
  uint8_t rest[32];
};
_Static_assert(sizeof(struct memory_handle) == 64, "HIP_IPC_HANDLE_SIZE");

struct opened {
  struct opened *next;
  uint64_t base, pointer;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opened *all;

API int hipIpcGetMemHandle(struct memory_handle *out, void *pointer) {
  struct emu_block block;
  int file;
  if (!out || emu_block_find(pointer, &block) != EMU_PLACE_BLOCK || block.kind != EMU_BLOCK_DEVICE)
    return emu_done(HIP_INVALID_VALUE);
  int code = emu_device_finish(block.device);
  if (code == HIP_SUCCESS) code = emu_block_share((void *)block.base, &file);
  if (code == HIP_SUCCESS)
    *out = (struct memory_handle){.mark = MARK,
                                  .process = (uint32_t)getpid(),
                                  .file = (uint32_t)file,
                                  .device = (uint32_t)block.device->index,
                                  .bytes = block.bytes,
                                  .offset = (uint64_t)pointer - block.base};
  return emu_done(code);
}

static int open_memory(const struct memory_handle *h, struct opened *opened) {
  char path[64];
  struct stat about;
  struct emu_device *device = emu_current();
  if (!device) return HIP_NO_DEVICE;
  snprintf(path, sizeof path, "/proc/%u/fd/%u", h->process, h->file);
  int file = open(path, O_RDWR | O_CLOEXEC);
  bool whole = file >= 0 && fstat(file, &about) == 0 && (uint64_t)about.st_size >= h->bytes && h->offset < h->bytes;
  size_t mapped = whole ? (size_t)about.st_size : 0;
  void *there = whole ? mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (file >= 0) close(file);
  if (there == MAP_FAILED) {
    emu_say("the memory of process %u that a handle names is not there any more", h->process);
    return HIP_INVALID_VALUE;
  }
  int code = emu_block_adopt(device, there, h->bytes, mapped);
  if (code != HIP_SUCCESS) munmap(there, mapped);
  *opened = (struct opened){NULL, (uint64_t)there, (uint64_t)there + h->offset};
  return code;
}

// By value, as HIP passes it.
API int hipIpcOpenMemHandle(void **out, struct memory_handle handle, unsigned flags) {
  enum { LAZY_PEER_ACCESS = 1 };
  if (!out || handle.mark != MARK || flags > LAZY_PEER_ACCESS) return emu_done(HIP_INVALID_VALUE);
  if (handle.process == (uint32_t)getpid()) return emu_done(HIP_INVALID_CONTEXT);  // as documented
  struct opened *opened = malloc(sizeof *opened);
  int code = opened ? open_memory(&handle, opened) : HIP_OUT_OF_MEMORY;
  if (code != HIP_SUCCESS) {
    free(opened);
    return emu_done(code);
  }
  *out = (void *)opened->pointer;
  pthread_mutex_lock(&lock);
  opened->next = all;
  all = opened;
  pthread_mutex_unlock(&lock);
  return emu_done(HIP_SUCCESS);
}

// Waits for all work first: a kernel may still use it.
API int hipIpcCloseMemHandle(void *pointer) {
  struct opened *found = NULL;
  struct emu_block block;
  pthread_mutex_lock(&lock);
  for (struct opened **o = &all; *o && !found; o = &(*o)->next) {
    if ((*o)->pointer != (uint64_t)pointer) continue;
    found = *o;
    *o = found->next;
    break;
  }
  pthread_mutex_unlock(&lock);
  if (!found) return emu_done(HIP_INVALID_VALUE);
  int code = HIP_SUCCESS;
  if (emu_block_find((void *)found->base, &block) == EMU_PLACE_BLOCK) code = emu_device_finish(block.device);
  int released = emu_block_release((void *)found->base);
  free(found);
  return emu_done(released != HIP_SUCCESS ? released : code);
}
