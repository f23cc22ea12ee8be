/* What stand-ins for vendors' libraries share: they queue plain loops on the stream, as the real ones queue kernels,
 * and insist on every argument that the real ones insist on. Device memory is the host's there. */
#ifndef RDNA_MATH_VENDOR_FAKE_VENDOR_H
#define RDNA_MATH_VENDOR_FAKE_VENDOR_H

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
/* every entry starts by declaring itself */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* Says which rule a call broke, for whoever reads a failed test; returns |code|. */
#define REFUSE(code, rule) (fprintf(stderr, "%s: %s\n", __func__, rule), (code))

typedef struct fake_vendor_record {
  int handles;    /* live */
  int objects;    /* descriptors and layouts, live */
  int questions;  /* to the heuristic */
  int runs;       /* queued */
  size_t version; /* what the library says; 0: its own */
} fake_vendor_record;

enum fake_type { FAKE_F32, FAKE_F16, FAKE_BF16, FAKE_I8, FAKE_I32 };

static inline size_t fake_size(enum fake_type type) {
  return type == FAKE_F16 || type == FAKE_BF16 ? 2 : type == FAKE_I8 ? 1 : 4;
}

static inline double fake_get(enum fake_type type, const void *data, int64_t i) {
  if (type == FAKE_F32) return ((const float *)data)[i];
  if (type == FAKE_F16) return (double)((const _Float16 *)data)[i];
  if (type == FAKE_I8) return ((const int8_t *)data)[i];
  if (type == FAKE_I32) return ((const int32_t *)data)[i];
  uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline void fake_put(enum fake_type type, void *data, int64_t i, double value) {
  if (type == FAKE_F32) {
    ((float *)data)[i] = (float)value;
  } else if (type == FAKE_F16) {
    ((_Float16 *)data)[i] = (_Float16)value;
  } else if (type == FAKE_I32) {
    ((int32_t *)data)[i] = (int32_t)value;
  } else {
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if (narrow == narrow) bits += 0x7fff + (bits >> 16 & 1); /* to the nearest even */
    ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
  }
}

/* The process may have AMD's real runtime too, in which nothing runs here. */
#ifdef FAKE_CUDA
#define FAKE_RUNTIME "/libcuda.so"
#define FAKE_LAUNCH "cuLaunchHostFunc"
#define FAKE_FILL "cuMemsetD8Async"
#else
#define FAKE_RUNTIME "/librdna_emulator.so"
#define FAKE_LAUNCH "hipLaunchHostFunc"
#define FAKE_FILL "hipMemsetD8Async"
#endif

static inline int fake_find_runtime(struct dl_phdr_info *info, size_t size, void *data) {
  if (!info->dlpi_name || !strstr(info->dlpi_name, FAKE_RUNTIME)) return 0;
  *(void **)data = dlopen(info->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
  return 1;
}

/* Runs |function| with a copy of |data| on the queue after all earlier work; |function| frees it. Not 0: the runtime
 * refused. */
static inline int fake_queue(void *queue, void (*function)(void *), const void *data, size_t size) {
  void *runtime = NULL;
  dl_iterate_phdr(fake_find_runtime, &runtime);
  void *launch = runtime ? dlsym(runtime, FAKE_LAUNCH) : NULL;
  void *copy = launch ? malloc(size) : NULL;
  if (!copy) return -1;
  memcpy(copy, data, size);
  int code = ((int (*)(void *, void (*)(void *), void *))launch)(queue, function, copy);
  if (code != 0) free(copy);
  return code;
}

/* Poisons memory that the next function on the queue writes: functions write it behind the runtime's back, and an
 * emulator that looks for memory that nobody wrote would not know. Not 0: the runtime refused. */
static inline int fake_poison(void *queue, void *data, size_t size) {
  void *runtime = NULL;
  dl_iterate_phdr(fake_find_runtime, &runtime);
  void *fill = runtime ? dlsym(runtime, FAKE_FILL) : NULL;
  return fill ? ((int (*)(void *, unsigned char, size_t, void *))fill)(data, 0xcd, size, queue) : -1;
}

#endif
