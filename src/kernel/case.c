/* A case runs twice over blocks with guard zones: once on the device, once on a host twin.
 *
 *     block   256 bytes of guard | the buffer | guard up to the end, 256 bytes or more
 *
 * Guards and OUT buffers hold a poison that is NaN in the buffer's type, so that reading outside or before
 * writing spoils a result, and writing outside is seen. The twin's poison differs from the device's, so that
 * a value that neither wrote, or an integer that both read outside, differs too. A kernel may write a NaN that has a
 * poison's bits: where a value looks unwritten, both run again with other poisons, and only what is poison both times
 * was not written. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/block_formats.h"
#include "device/driver.h"
#include "kernel/dtype.h"
#include "kernel/manifest.h"
#include "rdna/memory.h"

enum { GUARD = 256 };

typedef enum side { DEVICE, TWIN, SIDES } side;
typedef enum run { FIRST, AGAIN, RUNS } run;

typedef struct dtype_traits {
  uint64_t poison[SIDES]; /* the low bytes of a value, repeated; NaN where the type has it */
  double infinity;        /* what comes after the largest finite value, for comparing near overflow */
} dtype_traits;

static const dtype_traits traits[RDNA_DTYPE_COUNT] = {
    [RDNA_F32] = {{0xffa5a5a5u, 0xffdadadau}, 0x1p128},
    [RDNA_F16] = {{0xfea5u, 0xfedau}, 0x1p16},
    [RDNA_BF16] = {{0xffa5u, 0xffdau}, 0x1p128},
    [RDNA_F64] = {{0xfff5a5a5a5a5a5a5u, 0xfffadadadadadadau}, INFINITY},
    [RDNA_I8] = {{0xa5u, 0x5au}, 0},
    [RDNA_U8] = {{0xa5u, 0x5au}, 0},
    [RDNA_I16] = {{0xa5a5u, 0x5a5au}, 0},
    [RDNA_I32] = {{0xa5a5a5a5u, 0x5a5a5a5au}, 0},
    [RDNA_I64] = {{0xa5a5a5a5a5a5a5a5u, 0x5a5a5a5a5a5a5a5au}, 0},
    [RDNA_BOOL] = {{0xa5u, 0x5au}, 0},
    [RDNA_U16] = {{0xa5a5u, 0x5a5au}, 0},
    [RDNA_U32] = {{0xa5a5a5a5u, 0x5a5a5a5au}, 0},
    [RDNA_U64] = {{0xa5a5a5a5a5a5a5a5u, 0x5a5a5a5a5a5a5a5au}, 0},
    [RDNA_F8_E4M3FN] = {{0xa5u, 0x5au}, 0},
    [RDNA_F8_E5M2] = {{0xa5u, 0x5au}, 0},
    [RDNA_F8_E4M3FNUZ] = {{0xa5u, 0x5au}, 0},
    [RDNA_F8_E5M2FNUZ] = {{0xa5u, 0x5au}, 0},
#define BLOCKS(X, name, NAME, ...) [RDNA_##NAME] = {{0xa5u, 0x5au}, 0},
    RDNA_BLOCK_FORMATS(BLOCKS, )
#undef BLOCKS
};

/* The second run's differs in the lowest byte, and is still NaN. */
static uint64_t poison_of(rdna_dtype dtype, side of, run which) {
  return traits[dtype].poison[of] ^ (which == AGAIN ? 0x11u : 0u);
}

static const char *const side_names[SIDES] = {"device", "twin"};

static size_t buffer_bytes(const rdna__case_buffer *buffer) { return rdna_dtype_bytes(buffer->dtype, buffer->count); }

static size_t block_bytes(const rdna__case_buffer *buffer) {
  return (GUARD + buffer_bytes(buffer) + GUARD + 255) / 256 * 256;
}

/* Bytes of one value, or 1 for the quantized types, which are compared byte by byte. */
static size_t value_bytes(rdna_dtype dtype) {
  return rdna_dtype_block_values(dtype) == 1 ? rdna_dtype_block_bytes(dtype) : 1;
}

void *rdna__case_add(rdna__kernel_case *kernel_case, rdna__buffer_role role, rdna_dtype dtype, int64_t count,
                     uint32_t args_offset) {
  if (kernel_case->buffer_count == RDNA__CASE_MAX_BUFFERS || count < 0 || (unsigned)dtype >= RDNA_DTYPE_COUNT ||
      count % rdna_dtype_block_values(dtype) != 0 || args_offset > sizeof kernel_case->args - sizeof(void *))
    return NULL;
  rdna__case_buffer *buffer = &kernel_case->buffers[kernel_case->buffer_count];
  *buffer = (rdna__case_buffer){.role = role, .dtype = dtype, .count = count, .args_offset = args_offset};
  size_t bytes = buffer_bytes(buffer);
  buffer->data = aligned_alloc(64, (bytes + 64) / 64 * 64);
  if (!buffer->data) return NULL;
  memset(buffer->data, 0, (bytes + 64) / 64 * 64);
  kernel_case->buffer_count++;
  return buffer->data;
}

void rdna__case_tolerance(rdna__kernel_case *kernel_case, double absolute, double relative) {
  rdna__case_buffer *last = &kernel_case->buffers[kernel_case->buffer_count - 1];
  last->absolute = absolute;
  last->relative = relative;
}

rdna_status rdna__case_no_memory(const rdna__kernel_case *kernel_case) {
  return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory for a case: %s", kernel_case->label);
}

rdna_status rdna__case_guard_rows(rdna__kernel_case *kernel_case, int64_t rows, int64_t cols, int64_t stride) {
  rdna__case_buffer *last = &kernel_case->buffers[kernel_case->buffer_count - 1];
  last->untouched = malloc((size_t)last->count + 1);
  if (!last->untouched) return rdna__case_no_memory(kernel_case);
  memset(last->untouched, 1, (size_t)last->count);
  for (int64_t row = 0; row < rows; row++) memset(last->untouched + row * stride, 0, (size_t)cols);
  return RDNA_OK;
}

void rdna__case_free(rdna__kernel_case *kernel_case) {
  for (int i = 0; i < kernel_case->buffer_count; i++) {
    free(kernel_case->buffers[i].data);
    free(kernel_case->buffers[i].untouched);
  }
  kernel_case->buffer_count = 0;
}

/* One side's blocks of one run, in host memory. */
typedef struct blocks {
  uint8_t *data[RDNA__CASE_MAX_BUFFERS];
} blocks;

static void blocks_free(blocks *b) {
  for (int i = 0; i < RDNA__CASE_MAX_BUFFERS; i++) free(b->data[i]);
}

static rdna_status blocks_make(const rdna__kernel_case *c, side of, run which, blocks *out) {
  for (int i = 0; i < c->buffer_count; i++) {
    const rdna__case_buffer *buffer = &c->buffers[i];
    size_t size = block_bytes(buffer), step = value_bytes(buffer->dtype);
    out->data[i] = aligned_alloc(256, size);
    if (!out->data[i]) return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory for a kernel case of %zu bytes", size);
    uint64_t poison = poison_of(buffer->dtype, of, which);
    for (size_t at = 0; at < size; at += step) memcpy(out->data[i] + at, &poison, step);
    if (buffer->role != RDNA__OUT) memcpy(out->data[i] + GUARD, buffer->data, buffer_bytes(buffer));
  }
  return RDNA_OK;
}

/* Whether value i of a buffer is its poison in each run. */
static bool is_poison(const rdna__kernel_case *c, int index, side of, const blocks sides[RUNS][SIDES], int runs,
                      size_t i) {
  const rdna__case_buffer *buffer = &c->buffers[index];
  size_t step = value_bytes(buffer->dtype);
  for (int r = 0; r < runs; r++) {
    uint64_t poison = poison_of(buffer->dtype, of, (run)r);
    if (memcmp(sides[r][of].data[index] + GUARD + i * step, &poison, step) != 0) return false;
  }
  return true;
}

static double value_of(rdna_dtype dtype, const uint8_t *p) {
  uint64_t bits = 0;
  memcpy(&bits, p, value_bytes(dtype));
  switch (dtype) {
    case RDNA_F32:
    case RDNA_BF16: {
      uint32_t word = dtype == RDNA_F32 ? (uint32_t)bits : (uint32_t)bits << 16;
      float f;
      memcpy(&f, &word, sizeof f);
      return f;
    }
    case RDNA_F16: {
      int exponent = bits >> 10 & 31;
      double fraction = (double)(bits & 1023);
      double v = exponent == 31  ? (fraction != 0 ? (double)NAN : (double)INFINITY)
                 : exponent == 0 ? ldexp(fraction, -24)
                                 : ldexp(1024 + fraction, exponent - 25);
      return bits & 0x8000 ? -v : v;
    }
    case RDNA_F64: {
      double d;
      memcpy(&d, &bits, sizeof d);
      return d;
    }
    case RDNA_I8:
      return (int8_t)bits;
    case RDNA_I16:
      return (int16_t)bits;
    case RDNA_I32:
      return (int32_t)bits;
    case RDNA_I64:
      return (double)(int64_t)bits;
    default:
      return (double)bits;
  }
}

/* Error over its bound, 0 for equal; above 1 fails. */
static double difference(const rdna__case_buffer *buffer, const uint8_t *got_bytes, const uint8_t *want_bytes) {
  if (memcmp(got_bytes, want_bytes, value_bytes(buffer->dtype)) == 0) return 0;
  double got = value_of(buffer->dtype, got_bytes), want = value_of(buffer->dtype, want_bytes);
  if (isnan(got) || isnan(want)) return isnan(got) && isnan(want) ? 0 : INFINITY;
  if (buffer->absolute == 0 && buffer->relative == 0) return INFINITY;
  /* A sum may round to infinity in one order and stay finite in another: infinity counts as the next value. */
  double infinity = traits[buffer->dtype].infinity;
  if (isinf(got)) got = copysign(infinity, got);
  if (isinf(want)) want = copysign(infinity, want);
  if (got == want) return 0;
  double bound = buffer->absolute + buffer->relative * fabs(want);
  return bound > 0 && isfinite(bound) ? fabs(got - want) / bound : INFINITY;
}

__attribute__((format(printf, 3, 4))) static void differ(rdna__case_result *result, int buffer, const char *format,
                                                         ...) {
  if (!result->passed) return; /* the first difference is the one that is told */
  result->passed = false;
  int used = snprintf(result->message, sizeof result->message, "buffer %d: ", buffer);
  va_list list;
  va_start(list, format);
  vsnprintf(result->message + used, sizeof result->message - (size_t)used, format, list);
  va_end(list);
}

static void check_guards(const rdna__case_buffer *buffer, int index, const uint8_t *block, side of,
                         rdna__case_result *result) {
  size_t size = block_bytes(buffer), bytes = buffer_bytes(buffer), step = value_bytes(buffer->dtype);
  uint64_t poison = traits[buffer->dtype].poison[of];
  for (size_t at = 0; at < size; at++) {
    if (at == GUARD) at += bytes;
    if (block[at] != (uint8_t)(poison >> 8 * (at % step)))
      return differ(result, index, "%s wrote outside, at byte %lld of %zu", side_names[of], (long long)at - GUARD,
                    bytes);
  }
}

/* Returns false where a value looks unwritten and one run cannot tell. */
static bool compare_values(const rdna__kernel_case *c, int index, const blocks sides[RUNS][SIDES], int runs,
                           rdna__case_result *result) {
  const rdna__case_buffer *buffer = &c->buffers[index];
  size_t step = value_bytes(buffer->dtype), count = buffer_bytes(buffer) / step;
  bool is_float = dtype_is_real(buffer->dtype), is_out = buffer->role == RDNA__OUT;
  const uint8_t *got = sides[FIRST][DEVICE].data[index] + GUARD, *want = sides[FIRST][TWIN].data[index] + GUARD;
  for (size_t i = 0; i < count && result->passed; i++, got += step, want += step) {
    bool got_poison = is_poison(c, index, DEVICE, sides, runs, i),
         want_poison = is_poison(c, index, TWIN, sides, runs, i);
    if (buffer->untouched && buffer->untouched[i]) {
      if (!got_poison) differ(result, index, "[%zu] was written and must not be: %g", i, value_of(buffer->dtype, got));
      if (!want_poison) differ(result, index, "[%zu] was written by the twin and must not be", i);
      continue;
    }
    bool unwritten = is_out && (got_poison && want_poison);
    if (is_float) unwritten = is_out && (got_poison || want_poison); /* an integer may have the value of a poison */
    if (unwritten && runs == 1) return false;
    if (unwritten) {
      if (got_poison && want_poison)
        differ(result, index, "[%zu] was written neither by the device nor by the twin", i);
      else
        differ(result, index, "[%zu] was not written by the %s", i, side_names[got_poison ? DEVICE : TWIN]);
      continue;
    }
    double error = difference(buffer, got, want);
    if (error > result->worst) result->worst = error;
    if (error > 1)
      differ(result, index, "[%zu] got %.9g want %.9g (%s), %.3g times the bound", i, value_of(buffer->dtype, got),
             value_of(buffer->dtype, want), rdna_dtype_name(buffer->dtype), error);
  }
  return true;
}

/* Compares all buffers; returns false as compare_values does. */
static bool compare(const rdna__kernel_case *c, const blocks sides[RUNS][SIDES], int runs, rdna__case_result *result) {
  const blocks *got = &sides[FIRST][DEVICE], *want = &sides[FIRST][TWIN];
  *result = (rdna__case_result){.passed = true};
  for (int i = 0; i < c->buffer_count; i++) {
    const rdna__case_buffer *buffer = &c->buffers[i];
    check_guards(buffer, i, got->data[i], DEVICE, result);
    check_guards(buffer, i, want->data[i], TWIN, result);
    if (buffer->role != RDNA__IN) {
      if (!compare_values(c, i, sides, runs, result)) return false;
      continue;
    }
    if (memcmp(got->data[i] + GUARD, buffer->data, buffer_bytes(buffer)) != 0)
      differ(result, i, "the device changed an input");
    if (memcmp(want->data[i] + GUARD, buffer->data, buffer_bytes(buffer)) != 0)
      differ(result, i, "the twin changed an input");
  }
  return true;
}

static void run_twin(rdna__host_kernel twin, const rdna__kernel_case *c, const blocks *b) {
  uint8_t args[sizeof c->args];
  memcpy(args, c->args, sizeof args);
  for (int i = 0; i < c->buffer_count; i++) {
    void *pointer = b->data[i] + GUARD;
    memcpy(args + c->buffers[i].args_offset, &pointer, sizeof pointer);
  }
  if (c->grid.x && c->grid.y && c->grid.z) twin(args, c->grid);
}

/* The device's run: blocks go there, the kernel runs, blocks come back. */
static rdna_status device_run(rdna_device *device, const rdna__kernel_info *kernel, const rdna__kernel_case *c,
                              const blocks *b, void *memory[RDNA__CASE_MAX_BUFFERS]) {
  rdna_stream *stream = rdna_device_default_stream(device);
  const rdna_kernel *handle;
  RDNA_TRY(rdna_kernel_get(device, kernel->name, &handle));
  uint8_t args[sizeof c->args];
  memcpy(args, c->args, sizeof args);
  for (int i = 0; i < c->buffer_count; i++) {
    size_t size = block_bytes(&c->buffers[i]);
    RDNA_TRY(rdna_memory_alloc(device, size, stream, &memory[i]));
    RDNA_TRY(rdna_copy_to_device(stream, memory[i], b->data[i], size));
    void *pointer = (uint8_t *)memory[i] + GUARD;
    memcpy(args + c->buffers[i].args_offset, &pointer, sizeof pointer);
  }
  RDNA_TRY(rdna_launch(stream, handle, c->grid, args));
  RDNA_TRY(rdna_stream_synchronize(stream));
  for (int i = 0; i < c->buffer_count; i++)
    RDNA_TRY(rdna_copy_to_host(stream, b->data[i], memory[i], block_bytes(&c->buffers[i])));
  return rdna_stream_synchronize(stream);
}

static rdna_status device_run_and_free(rdna_device *device, const rdna__kernel_info *kernel, const rdna__kernel_case *c,
                                       const blocks *b) {
  void *memory[RDNA__CASE_MAX_BUFFERS] = {0};
  rdna_status status = device_run(device, kernel, c, b, memory);
  for (int i = 0; i < RDNA__CASE_MAX_BUFFERS; i++) {
    rdna_status freed = rdna_memory_free(device, memory[i]);
    if (status == RDNA_OK) status = freed;
  }
  return rdna__annotate(status, "kernel %s (%s)", kernel->name, c->label);
}

/* |device| NULL: |got_twin| stands for the device. */
static rdna_status run_both(rdna_device *device, rdna__host_kernel got_twin, rdna__host_kernel want_twin,
                            const rdna__kernel_info *kernel, const rdna__kernel_case *c, rdna__case_result *result) {
  *result = (rdna__case_result){0};
  if (!want_twin) return rdna__fail(RDNA_UNSUPPORTED, "this library lacks the host twins that are compared with");
  for (int i = 0; i < c->buffer_count; i++)
    if (c->buffers[i].args_offset + sizeof(void *) > kernel->args_size)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "kernel %s: buffer %d lies at byte %u of %u bytes of arguments",
                        kernel->name, i, c->buffers[i].args_offset, kernel->args_size);
  blocks sides[RUNS][SIDES] = {0};
  rdna_status status = RDNA_OK;
  bool told = false;
  for (int r = FIRST; r < RUNS && !told && status == RDNA_OK; r++) {
    blocks *got = &sides[r][DEVICE], *want = &sides[r][TWIN];
    status = blocks_make(c, DEVICE, (run)r, got);
    if (status == RDNA_OK) status = blocks_make(c, TWIN, (run)r, want);
    if (status == RDNA_OK && device)
      status = device_run_and_free(device, kernel, c, got);
    else if (status == RDNA_OK)
      run_twin(got_twin, c, got);
    if (status != RDNA_OK) break;
    run_twin(want_twin, c, want);
    told = compare(c, sides, r + 1, result);
  }
  for (int r = FIRST; r < RUNS; r++)
    for (int of = 0; of < SIDES; of++) blocks_free(&sides[r][of]);
  return status;
}

static rdna_status find(const rdna__kernel_info *kernel, int *out_index) {
  *out_index = rdna__manifest_find(kernel->name);
  return *out_index >= 0 ? RDNA_OK : rdna__fail(RDNA_NOT_FOUND, "kernel '%s' is not in the manifest", kernel->name);
}

rdna_status rdna__case_run(rdna_device *device, const rdna__kernel_info *kernel, const rdna__kernel_case *kernel_case,
                           rdna__case_result *out_result) {
  int index;
  RDNA_TRY(find(kernel, &index));
  /* The host device runs the best twin, so it is held against the plainest. */
  bool host = rdna__device_driver(device)->code_format == RDNA__CODE_HOST;
  rdna__host_kernel twin = host ? rdna__host_twin_for("baseline", index) : rdna__host_twin(index);
  return run_both(device, NULL, twin, kernel, kernel_case, out_result);
}

rdna_status rdna__case_run_isa(const char *isa, const rdna__kernel_info *kernel, const rdna__kernel_case *kernel_case,
                               rdna__case_result *out_result) {
  int index;
  RDNA_TRY(find(kernel, &index));
  rdna__host_kernel twin = rdna__host_twin_for(isa, index);
  if (!twin) return rdna__fail(RDNA_UNSUPPORTED, "this processor has no %s twins", isa);
  return run_both(NULL, twin, rdna__host_twin_for("baseline", index), kernel, kernel_case, out_result);
}
