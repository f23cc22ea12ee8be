#include "model/image/adapter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdna/memory.h"
#include "rdna/op.h"

enum { PATH_BYTES = 4096, NAME_BYTES = 96, HEAD = 64, MOST_ROWS = 1 << 12, MOST_COUNT = 64 };
static const double epsilon = 1e-5; /* of all norms */

struct rdna_image_adapter {
  rdna__network network; /* of what is kept */
  char *path;
  rdna__adapter_settings set;
  rdna_image_adapter_info info;
  rdna_tensor keys[RDNA__ADAPTER_LAYERS], values[RDNA__ADAPTER_LAYERS]; /* (set.layers) where count is not 0 */
  int count;                                                            /* of pictures */
};

static rdna_status open_component(const char *path, rdna__network *network, rdna__component *c) {
  char part[PATH_BYTES];
  if (snprintf(part, sizeof part, "%s/" RDNA__CHECKPOINT_ADAPTER, path) >= PATH_BYTES)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of an IP-Adapter is too long");
  if (!rdna__component_is_file(path)) return rdna__fail(RDNA_NOT_FOUND, "there is no file %s for an IP-Adapter", path);
  return rdna__component_open(part, "", network, c);
}

rdna_status rdna_image_adapter_create(rdna_device *device, const char *path, rdna_dtype dtype,
                                      rdna_image_adapter **out_adapter) {
  if (!device || !path || !out_adapter || (dtype != RDNA_F32 && dtype != RDNA_F16 && dtype != RDNA_BF16))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_adapter_create needs a device, a path, f32, f16 or bf16, and a place");
  rdna_image_adapter *a = calloc(1, sizeof *a);
  if (!a) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an IP-Adapter");
  a->network = (rdna__network){.device = rdna_device_retain(device), .dtype = dtype};
  a->path = strdup(path);
  rdna__component c;
  rdna_status status = a->path ? open_component(path, &a->network, &c)
                               : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the name of an IP-Adapter");
  if (status == RDNA_OK) {
    status = rdna__annotate(rdna__adapter_settings_read(c.tensors, &a->set), "%s", path);
    rdna__component_close(&c);
  }
  a->info = (rdna_image_adapter_info){
      .reads_states = a->set.plus, .seen = a->set.seen, .tokens = a->set.tokens, .width = a->set.width};
  if (status == RDNA_OK)
    *out_adapter = a;
  else
    rdna_image_adapter_release(a);
  return status;
}

void rdna_image_adapter_release(rdna_image_adapter *a) {
  if (!a) return;
  rdna__network_deinit(&a->network);
  rdna_device_release(a->network.device);
  free(a->path);
  free(a);
}

const rdna_image_adapter_info *rdna_image_adapter_get_info(const rdna_image_adapter *a) { return &a->info; }

/* ---- tokens of a picture ---- */

static rdna_status load_matrix(rdna__component *c, const char *name, int64_t rows, int64_t columns, rdna_tensor *out) {
  return rdna__component_load(c, "", name, RDNA_F32, 2, (const int64_t[]){rows, columns}, out);
}

static rdna_status load_vector(rdna__component *c, const char *name, int64_t count, rdna_tensor *out) {
  return rdna__component_load(c, "", name, RDNA_F32, 1, &count, out);
}

/* |out| (…, rows) of |x| by the matrix |name|.weight and, where |biased|, |name|.bias */
static rdna_status multiply(rdna__component *c, rdna__image_pass *pass, const char *name, int64_t rows, bool biased,
                            const rdna_tensor *x, rdna_tensor *out) {
  char full[NAME_BYTES];
  rdna_tensor weight, bias;
  rdna_tensor like = *x;
  snprintf(full, sizeof full, "%s.weight", name);
  RDNA_TRY(load_matrix(c, full, rows, x->shape[x->rank - 1], &weight));
  snprintf(full, sizeof full, "%s.bias", name);
  if (biased) RDNA_TRY(load_vector(c, full, rows, &bias));
  like.shape[x->rank - 1] = rows;
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, x->rank, like.shape, out));
  return rdna_op_linear(pass->stream, x, &weight, biased ? &bias : NULL, out);
}

static rdna_status norm(rdna__component *c, rdna__image_pass *pass, const char *name, const rdna_tensor *x,
                        const rdna_tensor *out) {
  char full[NAME_BYTES];
  rdna_tensor weight, bias;
  int64_t width = x->shape[x->rank - 1];
  snprintf(full, sizeof full, "%s.weight", name);
  RDNA_TRY(load_vector(c, full, width, &weight));
  snprintf(full, sizeof full, "%s.bias", name);
  RDNA_TRY(load_vector(c, full, width, &bias));
  return rdna_op_layer_norm(pass->stream, x, &weight, &bias, epsilon, out, NULL, NULL);
}

static rdna_status add(rdna__image_pass *pass, const rdna_tensor *x, rdna_tensor *more) {
  const rdna_scalar zero = rdna_scalar_real(0);
  RDNA_TRY(rdna_op_zip(pass->stream, RDNA_ZIP_ADD, x, more, zero, zero, x));
  return rdna__pass_drop(pass, more);
}

/* |t| (n, tokens, channels): its |half| of two, side by side. */
static rdna_tensor half_of(const rdna_tensor *t, int half) {
  rdna_tensor part = *t;
  part.shape[2] /= 2;
  part.data = (char *)t->data + rdna_dtype_bytes(RDNA_F32, half * part.shape[2]);
  return part;
}

/* Queries of |latents| (n, tokens, hidden) over the states |x| and themselves. */
static rdna_status attend(const rdna_image_adapter *a, rdna__component *c, rdna__image_pass *pass, int i,
                          const rdna_tensor *x, const rdna_tensor *latents) {
  char names[5][NAME_BYTES];
  static const char *const parts[] = {"norm1", "norm2", "to_q", "to_kv", "to_out"};
  const int64_t n = x->shape[0], all[] = {n, x->shape[1] + latents->shape[1], a->set.hidden};
  const int64_t plain[] = {n, all[1], a->set.inner};
  rdna_tensor both, q, kv, k, v, seen, out;
  for (int k2 = 0; k2 < 5; k2++) snprintf(names[k2], NAME_BYTES, "image_proj.layers.%d.0.%s", i, parts[k2]);
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 3, all, &both));
  rdna_tensor states = both, own = both;
  states.shape[1] = x->shape[1];
  own.shape[1] = latents->shape[1];
  own.data = (char *)both.data + rdna_dtype_bytes(RDNA_F32, x->shape[1] * both.stride[1]);
  rdna_tensor normed, queries;
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 3, x->shape, &normed));
  RDNA_TRY(norm(c, pass, names[0], x, &normed));
  RDNA_TRY(rdna_op_copy(pass->stream, &normed, &states));
  RDNA_TRY(rdna__pass_drop(pass, &normed));
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 3, latents->shape, &queries));
  RDNA_TRY(norm(c, pass, names[1], latents, &queries));
  RDNA_TRY(rdna_op_copy(pass->stream, &queries, &own));
  RDNA_TRY(multiply(c, pass, names[2], a->set.inner, false, &queries, &q));
  RDNA_TRY(multiply(c, pass, names[3], 2 * (int64_t)a->set.inner, false, &both, &kv));
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 3, plain, &k));
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 3, plain, &v));
  rdna_tensor first = half_of(&kv, 0), second = half_of(&kv, 1);
  RDNA_TRY(rdna_op_copy(pass->stream, &first, &k));
  RDNA_TRY(rdna_op_copy(pass->stream, &second, &v));
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 3, q.shape, &seen));
  RDNA_TRY(rdna__image_attend(pass, a->set.inner / HEAD, &q, &k, &v, &seen));
  RDNA_TRY(multiply(c, pass, names[4], a->set.hidden, false, &seen, &out));
  RDNA_TRY(add(pass, latents, &out));
  rdna_tensor *const done[] = {&both, &queries, &q, &kv, &k, &v, &seen};
  for (size_t d = 0; d < sizeof done / sizeof *done; d++) RDNA_TRY(rdna__pass_drop(pass, done[d]));
  return RDNA_OK;
}

static rdna_status feed_forward(const rdna_image_adapter *a, rdna__component *c, rdna__image_pass *pass, int i,
                                const rdna_tensor *latents) {
  const rdna_scalar zero = rdna_scalar_real(0);
  char names[3][NAME_BYTES];
  static const char *const parts[] = {"0", "1", "3"};
  rdna_tensor h, up, out;
  for (int k = 0; k < 3; k++) snprintf(names[k], NAME_BYTES, "image_proj.layers.%d.1.%s", i, parts[k]);
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 3, latents->shape, &h));
  RDNA_TRY(norm(c, pass, names[0], latents, &h));
  RDNA_TRY(multiply(c, pass, names[1], a->set.feed, false, &h, &up));
  RDNA_TRY(rdna_op_map(pass->stream, RDNA_MAP_GELU_ERF, &up, zero, zero, &up));
  RDNA_TRY(multiply(c, pass, names[2], a->set.hidden, false, &up, &out));
  RDNA_TRY(add(pass, latents, &out));
  RDNA_TRY(rdna__pass_drop(pass, &up));
  return rdna__pass_drop(pass, &h);
}

/* |tokens| (n, tokens, width) of states (n, rows, seen) */
static rdna_status resample(const rdna_image_adapter *a, rdna__component *c, rdna__image_pass *pass,
                            const rdna_tensor *seen, rdna_tensor *tokens) {
  const int64_t one[] = {1, a->set.tokens, a->set.hidden}, all[] = {seen->shape[0], a->set.tokens, a->set.hidden};
  rdna_tensor x, begun, latents;
  RDNA_TRY(rdna__component_load(c, "", "image_proj.latents", RDNA_F32, 3, one, &begun));
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 3, all, &latents));
  begun.shape[0] = seen->shape[0];
  begun.stride[0] = 0;
  RDNA_TRY(rdna_op_copy(pass->stream, &begun, &latents));
  RDNA_TRY(multiply(c, pass, "image_proj.proj_in", a->set.hidden, true, seen, &x));
  for (int i = 0; i < a->set.depth; i++) {
    RDNA_TRY(attend(a, c, pass, i, &x, &latents));
    RDNA_TRY(feed_forward(a, c, pass, i, &latents));
  }
  RDNA_TRY(multiply(c, pass, "image_proj.proj_out", a->set.width, true, &latents, tokens));
  return norm(c, pass, "image_proj.norm_out", tokens, tokens);
}

/* The same of vectors (n, 1, seen). */
static rdna_status project(const rdna_image_adapter *a, rdna__component *c, rdna__image_pass *pass,
                           const rdna_tensor *seen, rdna_tensor *tokens) {
  RDNA_TRY(multiply(c, pass, "image_proj.proj", (int64_t)a->set.tokens * a->set.width, true, seen, tokens));
  *tokens =
      rdna_tensor_contiguous(tokens->data, RDNA_F32, 3, (const int64_t[]){seen->shape[0], a->set.tokens, a->set.width});
  return norm(c, pass, "image_proj.norm", tokens, tokens);
}

/* ---- keys and values ---- */

/* |out|, of what is kept, of |tokens| by a matrix whose memory is given back. */
static rdna_status make_one(rdna_image_adapter *a, rdna__component *c, rdna__image_pass *pass, int i, const char *kind,
                            const rdna_tensor *tokens, rdna_tensor *out) {
  char name[NAME_BYTES];
  rdna__network one = {.device = a->network.device, .dtype = RDNA_F32}, *kept = c->network;
  rdna_tensor made;
  snprintf(name, sizeof name, "ip_adapter.%d.%s", 2 * i + 1, kind);
  c->network = &one;
  rdna_status status = multiply(c, pass, name, a->set.channels[i], false, tokens, &made);
  if (status == RDNA_OK) status = rdna__network_tensor(&a->network, a->network.dtype, 3, made.shape, out);
  if (status == RDNA_OK) status = rdna_op_copy(pass->stream, &made, out);
  rdna_status waited = rdna_stream_synchronize(pass->stream); /* before the matrix goes */
  if (status == RDNA_OK) status = waited;
  if (status == RDNA_OK) status = rdna__pass_drop(pass, &made);
  rdna__network_deinit(&one);
  c->network = kept;
  return status;
}

static rdna_status see(rdna_image_adapter *a, rdna__component *c, rdna__image_pass *pass, const float *values,
                       int count, int rows, float *out_tokens) {
  const int64_t shape[] = {count, rows, a->set.seen};
  rdna_tensor seen, tokens;
  RDNA_TRY(rdna__pass_tensor(pass, RDNA_F32, 3, shape, &seen));
  RDNA_TRY(rdna_copy_to_device(pass->stream, seen.data, values, (size_t)rdna_tensor_count(&seen) * sizeof *values));
  RDNA_TRY(a->set.plus ? resample(a, c, pass, &seen, &tokens) : project(a, c, pass, &seen, &tokens));
  if (out_tokens)
    RDNA_TRY(rdna_copy_to_host(pass->stream, out_tokens, tokens.data,
                               (size_t)rdna_tensor_count(&tokens) * sizeof *out_tokens));
  for (int i = 0; i < a->set.layers; i++) {
    RDNA_TRY(make_one(a, c, pass, i, "to_k_ip", &tokens, &a->keys[i]));
    RDNA_TRY(make_one(a, c, pass, i, "to_v_ip", &tokens, &a->values[i]));
  }
  return rdna__component_check_all_read(c);
}

rdna_status rdna_image_adapter_see(rdna_image_adapter *a, const float *seen, int count, int rows, float *out_tokens) {
  if (!a || !seen || count < 1 || count > MOST_COUNT || rows < 1 || rows > MOST_ROWS || (!a->set.plus && rows != 1))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_adapter_see needs an IP-Adapter and 1 to %d pictures' vectors, or states of up to %d "
                      "tokens",
                      MOST_COUNT, MOST_ROWS);
  rdna__network projection = {.device = a->network.device, .dtype = RDNA_F32};
  rdna__component c;
  rdna__network_deinit(&a->network);
  a->count = 0;
  RDNA_TRY(open_component(a->path, &projection, &c));
  rdna__image_pass pass = {
      .stream = rdna_device_default_stream(a->network.device), .dtype = RDNA_F32, .holder = "an IP-Adapter"};
  rdna_status status = rdna__annotate(see(a, &c, &pass, seen, count, rows, out_tokens), "%s", a->path);
  rdna_status waited = rdna_stream_synchronize(pass.stream);
  status = rdna__pass_end(&pass, status == RDNA_OK ? waited : status);
  rdna__network_deinit(&projection);
  rdna__component_close(&c);
  if (status == RDNA_OK)
    a->count = count;
  else
    rdna__network_deinit(&a->network);
  return status;
}

/* ---- for the U-Net ---- */

const rdna_tensor *rdna__adapter_keys(const rdna_image_adapter *a, int layer) { return &a->keys[layer]; }
const rdna_tensor *rdna__adapter_values(const rdna_image_adapter *a, int layer) { return &a->values[layer]; }

rdna_status rdna__adapter_check(const rdna_image_adapter_use *use, const rdna__network *unet,
                                const rdna__unet_settings *set, const rdna_image_unet_input *given) {
  const rdna_image_adapter *a = use->adapter;
  if (!a || !isfinite(use->scale))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "an IP-Adapter to be used is missing, or its scale is no number");
  if (a->count != given->count)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "an IP-Adapter has seen %d pictures, and there are %d samples", a->count,
                      given->count);
  if (a->network.device != unet->device || a->network.dtype != unet->dtype)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "an IP-Adapter is on another device than the U-Net, or of another type");
  if (rdna__adapter_fit(&a->set, set) == RDNA_OK) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "an IP-Adapter was made for another version of the U-Net");
}
