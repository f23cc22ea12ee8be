/* Gemma 3's tower (Gemma Team, 2025): SigLIP (Zhai et al., 2023) over pictures of one size, whose tokens are averaged
 * in squares, normed and multiplied. */
#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "model/vision/tower.h"
#include "rdna/op.h"

/* x W for a W that stands (in, out) in the file: products want it turned. */
static rdna_status load_projection(rdna_vision *v) {
  rdna__weights *w = &v->weights;
  int64_t in = v->info.width, out = v->info.row;
  float *values;
  RDNA_TRY(rdna__read_matrix(w, "mm.input_projection.weight", in, out, &values));
  float *turned = malloc((size_t)(in * out) * sizeof *turned);
  for (int64_t i = 0; turned && i < in * out; i++) turned[i % out * in + i / out] = values[i];
  free(values);
  if (!turned) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a projection");
  rdna_status status = rdna__put_vector(w, turned, in * out, &v->merger.projection.weight);
  free(turned);
  RDNA_TRY(status);
  v->merger.projection.weight = rdna__nn_matrix(v->merger.projection.weight.data, out, in);
  v->merger.projection.scale = 1;
  rdna__weights_count(w, (uint64_t)(in * out) * sizeof(float), in * out);
  return RDNA_OK;
}

static rdna_status load(rdna_vision *v) {
  rdna__weights *w = &v->weights;
  RDNA_TRY(rdna__key_count(w, "vision.image_size", 0, &v->image));
  RDNA_TRY(rdna__key_count(w, "vision.projector.scale_factor", 4, &v->side));
  int64_t line = v->image / v->info.patch;
  if (v->image % v->info.patch != 0 || line % v->side != 0 || line > 1 << 10)
    return rdna__fail(RDNA_BAD_DATA, "a picture of %d pixels is no whole number of %d x %d patches of %d", v->image,
                      v->side, v->side, v->info.patch);
  v->info.most_tokens = (int)(line / v->side * (line / v->side));
  float *positions;
  RDNA_TRY(rdna__read_matrix(w, "v.position_embd.weight", line * line, v->info.width, &positions));
  rdna_status status = rdna__put_vector(w, positions, line * line * v->info.width, &v->positions);
  free(positions);
  RDNA_TRY(status);
  v->positions = rdna__nn_matrix(v->positions.data, line * line, v->info.width);
  v->norms.layer_norm = true;
  RDNA_TRY(rdna__load_vector(w, "v.post_ln.weight", v->info.width, &v->last_norm.weight));
  RDNA_TRY(rdna__load_vector(w, "v.post_ln.bias", v->info.width, &v->last_norm.bias));
  RDNA_TRY(rdna__load_vector(w, "mm.soft_emb_norm.weight", v->info.width, &v->soft_norm));
  return load_projection(v);
}

/* All pictures become squares. */
static rdna_status measure(const rdna_vision *v, int height, int width, rdna_llm_picture *out) {
  out->height = out->width = v->image / v->info.patch / v->side;
  return RDNA_OK;
}

static rdna_status project(rdna__vision_pass *p, const rdna_tensor *rows) {
  const rdna_vision *v = p->vision;
  int64_t side = v->side, width = v->info.width, line = p->picture.width * side, down = p->picture.height;
  rdna_tensor squares = {.data = p->x.data,
                         .dtype = RDNA_F32,
                         .rank = 5,
                         .shape = {down, side, p->picture.width, side, width},
                         .stride = {side * line * width, line * width, side * width, width, 1}};
  rdna_tensor means = rdna_tensor_contiguous(p->h.data, RDNA_F32, 3, (int64_t[]){down, p->picture.width, width});
  rdna_tensor tokens = rdna__nn_matrix(p->h.data, down * p->picture.width, width);
  RDNA_TRY(rdna_op_reduce(p->nn.stream, RDNA_REDUCTION_MEAN, &squares, 1U << 1 | 1U << 3, 0, &means));
  RDNA_TRY(rdna_op_rms_norm(p->nn.stream, &tokens, &v->soft_norm, v->norms.norm_epsilon, &tokens));
  return rdna__nn_linear(&p->nn, &v->merger.projection, &tokens, rows);
}

const rdna__vision_kind rdna__vision_gemma3 = {.projector = "gemma3",
                                               .architectures = {"gemma3"},
                                               .mark = "<start_of_image>",
                                               .before = "\n\n<start_of_image>",
                                               .after = "<end_of_image>\n\n",
                                               .filter = RDNA__FILTER_BILINEAR,
                                               .activation = RDNA__NN_GATE_GELU_TANH,
                                               .load = load,
                                               .measure = measure,
                                               .project = project};
