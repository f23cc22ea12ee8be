// A stream that writes a number to memory, or waits until one there is as wanted.
#include <stdlib.h>
#include <time.h>

#include "hip/hip.h"

enum condition { AT_LEAST, EQUAL, ANY_BIT, NOT_ALL_BITS, CONDITIONS };

struct operation {
  void *at;
  uint64_t value, mask;
  enum condition condition;
  bool wide;
};

static bool holds(const struct operation *o) {
  uint64_t now = o->wide ? __atomic_load_n((uint64_t *)o->at, __ATOMIC_ACQUIRE)
                         : __atomic_load_n((uint32_t *)o->at, __ATOMIC_ACQUIRE);
  now &= o->mask;
  switch (o->condition) {
    case AT_LEAST:
      return now >= o->value;
    case EQUAL:
      return now == o->value;
    case ANY_BIT:
      return (now & o->value) != 0;
    default:
      return (~(now | o->value) & o->mask & (o->wide ? UINT64_MAX : UINT32_MAX)) != 0;
  }
}

static int wait_for(void *context) {
  while (!holds(context)) nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
  return HIP_SUCCESS;
}

static int write_value(void *context) {
  const struct operation *o = context;
  if (o->wide) {
    __atomic_store_n((uint64_t *)o->at, o->value, __ATOMIC_RELEASE);
  } else {
    __atomic_store_n((uint32_t *)o->at, (uint32_t)o->value, __ATOMIC_RELEASE);
  }
  emu_block_written(o->at, o->wide ? 8 : 4);
  return HIP_SUCCESS;
}

static int queue(struct operation operation, int (*run)(void *), void *handle, unsigned flags, const char *what) {
  struct emu_stream *stream = emu_stream_of(handle);
  size_t bytes = operation.wide ? 8 : 4;
  if (!stream) return HIP_INVALID_HANDLE;
  if (flags >= CONDITIONS || (uintptr_t)operation.at % bytes) return HIP_INVALID_VALUE;
  int code = emu_block_check(operation.at, bytes, what);
  if (code != HIP_SUCCESS) return code;
  struct operation *o = malloc(sizeof *o);
  if (!o) return HIP_OUT_OF_MEMORY;
  *o = operation;
  o->condition = (enum condition)flags;
  return emu_stream_submit(stream, (struct emu_work){run, free, o, EMU_NODE_EMPTY}, NULL, NULL);
}

API int hipStreamWaitValue32(void *stream, void *at, uint32_t value, unsigned flags, uint32_t mask) {
  struct operation o = {.at = at, .value = value, .mask = mask};
  return emu_done(queue(o, wait_for, stream, flags, "hipStreamWaitValue32"));
}
API int hipStreamWaitValue64(void *stream, void *at, uint64_t value, unsigned flags, uint64_t mask) {
  struct operation o = {.at = at, .value = value, .mask = mask, .wide = true};
  return emu_done(queue(o, wait_for, stream, flags, "hipStreamWaitValue64"));
}
// No flag means anything to a write.
API int hipStreamWriteValue32(void *stream, void *at, uint32_t value, unsigned flags) {
  struct operation o = {.at = at, .value = value};
  return emu_done(queue(o, write_value, stream, 0, "hipStreamWriteValue32"));
}
API int hipStreamWriteValue64(void *stream, void *at, uint64_t value, unsigned flags) {
  struct operation o = {.at = at, .value = value, .wide = true};
  return emu_done(queue(o, write_value, stream, 0, "hipStreamWriteValue64"));
}
