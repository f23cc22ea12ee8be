#include "math/common/host/values.h"
#include "math/recurrent/causal_conv_kernels.h"

/* RUN channels of a sequence: their weights tap by tap, and the last inputs. */
struct channels {
  float weight[4][RUN], state[3][RUN];
  int64_t first, count;
};

static void load_channels(struct channels *c, const struct causal_conv_args *a, const float *state, int width) {
  for (int64_t i = 0; i < c->count; i++) {
    for (int j = 0; j < width; j++) c->weight[j][i] = a->weight[(c->first + i) * width + j];
    for (int j = 0; j < width - 1; j++) c->state[j][i] = state[i * (width - 1) + j];
  }
}

/* Returns input |t| of the channels, which before the sequence's begin is in the state. */
static const float *input_at(const struct channels *c, const struct causal_conv_args *a, const struct sequence *s,
                             int64_t t, int width) {
  return t < s->begin ? c->state[t - s->begin + width - 1] : a->x + t * a->x_stride + c->first;
}

static void convolve_row(const struct channels *c, const float *const *input, float *out, int width, int silu) {
  for (int64_t i = 0; i < c->count; i++) out[i] = input[0][i] * c->weight[0][i];
  for (int j = 1; j < width; j++) {
    for (int64_t i = 0; i < c->count; i++) out[i] = fma_f32(input[j][i], c->weight[j][i], out[i]);
  }
  if (!silu) return;
  for (int64_t i = 0; i < c->count; i++) out[i] = scalar_silu(out[i]);
}

static void convolve_channels(const struct causal_conv_args *a, const struct sequence *s, int64_t first, int width) {
  struct channels c = {.first = first, .count = run_length(a->channels - first)};
  if (s->slot < 0) {
    for (int64_t t = s->begin; t < s->end; t++) {
      memset(a->out + t * a->out_stride + first, 0, (size_t)c.count * sizeof *a->out);
    }
    return;
  }
  if (s->begin >= s->end) return;
  float row[RUN], *state = a->state + (s->slot * a->channels + first) * (width - 1);
  const float *input[4];
  load_channels(&c, a, state, width);
  for (int64_t t = s->begin; t < s->end; t++) {
    for (int j = 0; j < width; j++) input[j] = input_at(&c, a, s, t - (width - 1) + j, width);
    convolve_row(&c, input, row, width, a->silu);
    memcpy(a->out + t * a->out_stride + first, row, (size_t)c.count * sizeof *row);
  }
  for (int j = 0; j < width - 1; j++) input[j] = input_at(&c, a, s, s->end - (width - 1) + j, width);
  for (int64_t i = 0; i < c.count; i++) {
    for (int j = 0; j < width - 1; j++) state[i * (width - 1) + j] = input[j][i];
  }
}

static void convolve_part(const struct causal_conv_args *a, int width, int64_t begin, int64_t end) {
  int64_t runs = (a->channels + RUN - 1) / RUN;
  for (int64_t i = begin; i < end; i++) {
    struct sequence s = sequence_at(&a->sequences, i / runs);
    convolve_channels(a, &s, i % runs * RUN, width);
  }
}

#define CAUSAL_CONV(width)                                                                                           \
  static void part_##width(void *context, int64_t begin, int64_t end) { convolve_part(context, width, begin, end); } \
  void RDNA_HOST_KERNEL(causal_conv_##width)(const void *args, rdna_grid grid) {                                     \
    struct causal_conv_args a = *(const struct causal_conv_args *)args;                                              \
    int64_t runs = (a.channels + RUN - 1) / RUN;                                                                     \
    rdna__parallel_for(a.sequences.count *runs, 1, part_##width, &a);                                                \
  }
CAUSAL_CONV(2)
CAUSAL_CONV(3)
CAUSAL_CONV(4)
