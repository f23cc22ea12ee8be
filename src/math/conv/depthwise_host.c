/* Host twins of depthwise convolution: a row of places at a time, tap after tap in the order of the kernels. */
#include "kernel/host.h"
#include "math/common/host/values.h"
#include "math/conv/depthwise_kernels.h"

#define LOAD_f32(p) (*(p))
#define LOAD_f16(p) f16_to_f32(*(p))
#define LOAD_bf16(p) bf16_to_f32(*(p))

/* The places of a run of |n| from |first| on, |step| apart in the image, that lie within |size|: from |*lo| to |*hi|.
 */
static void inside(int64_t first, int64_t step, int64_t size, int64_t n, int64_t *lo, int64_t *hi) {
  int64_t from = first < 0 ? (-first + step - 1) / step : 0, to = first < size ? (size - 1 - first) / step + 1 : 0;
  *lo = from < n ? from : n;
  *hi = to < *lo ? *lo : to < n ? to : n;
}

static float finish(const struct depthwise_args *a, float bias, float sum) {
  return gemm_activate(a->activation, sum + bias);
}

/* |a|'s row of windows of a channel begins at |window|, its row of the image at |row|. The sums of |n| places from |x|
 * on grow by those of the taps. */
#define ADD_ROW(T)                                                                                                     \
  static void add_row_##T(const struct depthwise_args *a, const STORED_##T *window, const STORED_##T *row, int64_t x,  \
                          int64_t n, float *sums) {                                                                    \
    float buffer[RUN];                                                                                                 \
    int64_t step = a->step[1], stride = a->image_stride[3], lo, hi;                                                    \
    for (int j = 0; j < a->window[1]; j++) {                                                                           \
      float w = LOAD_##T(window + (int64_t)j * a->other_stride[2]);                                                    \
      int64_t first = x * step - a->begin[1] + (int64_t)j * a->dilation[1];                                            \
      inside(first, step, a->image_size[1], n, &lo, &hi);                                                              \
      if (lo == hi) continue;                                                                                          \
      const STORED_##T *from = row + (first + lo * step) * stride;                                                     \
      const float *v = buffer;                                                                                         \
      if (step * stride == 1)                                                                                          \
        v = read_##T(buffer, from, hi - lo);                                                                           \
      else                                                                                                             \
        for (int64_t k = 0; k < hi - lo; k++) buffer[k] = LOAD_##T(from + k * step * stride);                          \
      for (int64_t k = 0; k < hi - lo; k++) sums[lo + k] = fma_f32(w, v[k], sums[lo + k]);                             \
    }                                                                                                                  \
  }                                                                                                                    \
  /* One value of a gradient with steps: only every so many taps meet it. */                                           \
  static float spread_##T(const struct depthwise_args *a, const STORED_##T *window, const STORED_##T *plane,           \
                          struct depthwise_line down, int32_t x) {                                                     \
    struct depthwise_line across = depthwise_line_of(a, 1, x);                                                         \
    float sum = 0;                                                                                                     \
    for (int i = down.tap, at_y = down.at; i < a->window[0]; i += down.tap_step, at_y += down.at_step) {               \
      if (at_y < 0 || at_y >= a->image_size[0]) continue;                                                              \
      int at_x = across.at;                                                                                            \
      for (int j = across.tap; j < a->window[1]; j += across.tap_step, at_x += across.at_step) {                       \
        if (at_x < 0 || at_x >= a->image_size[1]) continue;                                                            \
        sum = fma_f32(LOAD_##T(window + (int64_t)i * a->other_stride[1] + (int64_t)j * a->other_stride[2]),            \
                      LOAD_##T(plane + (int64_t)at_y * a->image_stride[2] + (int64_t)at_x * a->image_stride[3]), sum); \
      }                                                                                                                \
    }                                                                                                                  \
    return sum;                                                                                                        \
  }                                                                                                                    \
  static void forward_##T(void *context, int64_t begin, int64_t end) {                                                 \
    const struct depthwise_args *a = context;                                                                          \
    for (int64_t at = begin; at < end; at++) {                                                                         \
      int64_t image = at / a->channels, channel = at % a->channels;                                                    \
      const STORED_##T *plane =                                                                                        \
          (const STORED_##T *)a->image + image * a->image_stride[0] + channel * a->image_stride[1];                    \
      const STORED_##T *window = (const STORED_##T *)a->other + channel * a->other_stride[0];                          \
      STORED_##T *out = (STORED_##T *)a->out + image * a->out_stride[0] + channel * a->out_stride[1];                  \
      float bias = a->bias ? LOAD_##T((const STORED_##T *)a->bias + channel) : 0;                                      \
      for (int32_t y = 0; y < a->place_size[0]; y++) {                                                                 \
        struct depthwise_line down = depthwise_line_of(a, 0, y);                                                       \
        for (int64_t x = 0; x < a->place_size[1]; x += RUN) {                                                          \
          float sums[RUN] = {0};                                                                                       \
          int64_t n = run_length(a->place_size[1] - x);                                                                \
          if (a->spread)                                                                                               \
            for (int64_t k = 0; k < n; k++) sums[k] = spread_##T(a, window, plane, down, (int32_t)(x + k));            \
          else                                                                                                         \
            for (int i = 0, at_y = down.at; i < a->window[0]; i++, at_y += down.at_step)                               \
              if (at_y >= 0 && at_y < a->image_size[0])                                                                \
                add_row_##T(a, window + (int64_t)i * a->other_stride[1], plane + (int64_t)at_y * a->image_stride[2],   \
                            x, n, sums);                                                                               \
          for (int64_t k = 0; k < n; k++) sums[k] = finish(a, bias, sums[k]);                                          \
          STORED_##T *to = out + y * (int64_t)a->out_stride[2] + x * a->out_stride[3];                                 \
          for (int64_t k = 0; k < n; k++) store_##T(to + k * a->out_stride[3], sums + k, 1);                           \
        }                                                                                                              \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  /* The sum over a row of places of the gradient times what tap |tap| meets, in SIMD_WIDTH sums. */                   \
  static void dot_row_##T(const struct depthwise_args *a, const float *gradients, const STORED_##T *row, int tap,      \
                          int64_t x, int64_t n, float lanes[SIMD_WIDTH]) {                                             \
    int64_t step = a->step[1], first = x * step - a->begin[1] + tap, lo, hi;                                           \
    inside(first, step, a->image_size[1], n, &lo, &hi);                                                                \
    for (int64_t k = lo; k < hi; k++) {                                                                                \
      float *lane = &lanes[k % SIMD_WIDTH];                                                                            \
      *lane = fma_f32(gradients[k], LOAD_##T(row + (first + k * step) * a->image_stride[3]), *lane);                   \
    }                                                                                                                  \
  }                                                                                                                    \
  static void weight_##T(void *context, int64_t begin, int64_t end) {                                                  \
    const struct depthwise_args *a = context;                                                                          \
    int32_t taps = a->window[0] * a->window[1];                                                                        \
    for (int64_t at = begin; at < end; at++) {                                                                         \
      int64_t channel = at / taps, i = at % taps / a->window[1];                                                       \
      int tap = (int)(at % a->window[1]);                                                                              \
      float lanes[SIMD_WIDTH] = {0}, gradients[RUN], sum = 0;                                                          \
      for (int64_t line = 0; line < (int64_t)a->images * a->place_size[0]; line++) {                                   \
        int64_t image = line / a->place_size[0], y = line % a->place_size[0];                                          \
        int64_t at_y = y * a->step[0] - a->begin[0] + i;                                                               \
        if (at_y < 0 || at_y >= a->image_size[0]) continue;                                                            \
        const STORED_##T *row = (const STORED_##T *)a->image + image * a->image_stride[0] +                            \
                                channel * a->image_stride[1] + at_y * a->image_stride[2];                              \
        const STORED_##T *from = (const STORED_##T *)a->other + image * a->other_stride[0] +                           \
                                 channel * a->other_stride[1] + y * a->other_stride[2];                                \
        for (int64_t x = 0; x < a->place_size[1]; x += RUN) {                                                          \
          int64_t n = run_length(a->place_size[1] - x);                                                                \
          for (int64_t k = 0; k < n; k++) gradients[k] = LOAD_##T(from + (x + k) * a->other_stride[3]);                \
          dot_row_##T(a, gradients, row, tap, x, n, lanes);                                                            \
        }                                                                                                              \
      }                                                                                                                \
      for (int k = 0; k < SIMD_WIDTH; k++) sum += lanes[k];                                                            \
      for (int part = 0; part < a->parts; part++)                                                                      \
        a->sums[((int64_t)part * taps + at % taps) * a->channels + channel] = part == 0 ? sum : 0;                     \
    }                                                                                                                  \
  }                                                                                                                    \
  static void weight_sum_##T(void *context, int64_t begin, int64_t end) {                                              \
    const struct depthwise_args *a = context;                                                                          \
    int64_t taps = (int64_t)a->window[0] * a->window[1];                                                               \
    for (int64_t at = begin; at < end; at++) {                                                                         \
      float sum = 0;                                                                                                   \
      for (int part = 0; part < a->parts; part++) sum += a->sums[part * a->channels * taps + at];                      \
      int64_t tap = at / a->channels;                                                                                  \
      store_##T((STORED_##T *)a->out + at % a->channels * a->out_stride[0] + tap / a->window[1] * a->out_stride[1] +   \
                    tap % a->window[1] * a->out_stride[2],                                                             \
                &sum, 1);                                                                                              \
    }                                                                                                                  \
  }
ADD_ROW(f32)
ADD_ROW(f16)
ADD_ROW(bf16)

/* The grid says how a device cuts the work; here the arguments alone do. */
#define TWIN(name, T, count, run)                                       \
  void RDNA_HOST_KERNEL(name##_##T)(const void *args, rdna_grid grid) { \
    struct depthwise_args a = *(const struct depthwise_args *)args;     \
    rdna__parallel_for((int64_t)(count), 1, run##_##T, &a);             \
  }
#define PLANES ((int64_t)a.images * a.channels)
#define TAPS ((int64_t)a.channels * a.window[0] * a.window[1])
#define TWINS(T)                                 \
  TWIN(depthwise_planes_3, T, PLANES, forward)   \
  TWIN(depthwise_planes_5, T, PLANES, forward)   \
  TWIN(depthwise_planes_7, T, PLANES, forward)   \
  TWIN(depthwise_last_3, T, PLANES, forward)     \
  TWIN(depthwise_last_5, T, PLANES, forward)     \
  TWIN(depthwise_last_7, T, PLANES, forward)     \
  TWIN(depthwise_any, T, PLANES, forward)        \
  TWIN(depthwise_any_last, T, PLANES, forward)   \
  TWIN(depthwise_weight_3, T, TAPS, weight)      \
  TWIN(depthwise_weight_5, T, TAPS, weight)      \
  TWIN(depthwise_weight_7, T, TAPS, weight)      \
  TWIN(depthwise_weight_last_3, T, TAPS, weight) \
  TWIN(depthwise_weight_last_5, T, TAPS, weight) \
  TWIN(depthwise_weight_last_7, T, TAPS, weight) \
  TWIN(depthwise_weight_sum, T, TAPS, weight_sum)
TWINS(f32)
TWINS(f16)
TWINS(bf16)
