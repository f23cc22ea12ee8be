/* A model: opened from a file, shared, released. */
#include "model/llm/llm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/driver.h"
#include "model/llm/arch/arch.h"
#include "rdna/kernel.h"

/* Bytes of |t| that a token leaves alone where it reads |some| of |all| slices. */
static uint64_t left_alone(const rdna_tensor *t, int64_t some, int64_t all) {
  if (!t->data) return 0;
  uint64_t bytes = rdna_dtype_bytes(t->dtype, rdna_tensor_count(t));
  return bytes - bytes / (uint64_t)all * (uint64_t)some;
}

/* Sums over layers: what decoding one token reads of the weights, and what a position keeps. */
static void count_traffic(rdna_llm *llm, bool tied) {
  rdna_llm_info *info = &llm->info;
  const rdna__nn_decoder *decoder = &llm->decoder;
  uint64_t unread = left_alone(&decoder->injected_embedding, 1, info->vocabulary);
  if (!tied) unread += left_alone(&decoder->embedding, 1, info->vocabulary);
  info->cache_values = 0;
  for (int i = 0; i < decoder->layer_count; i++) {
    const rdna__nn_layer *layer = &decoder->layers[i];
    const rdna__nn_moe *moe = &layer->moe;
    const rdna_tensor *of_experts[] = {&moe->gate, &moe->up, &moe->down, &moe->gate_up};
    for (int k = 0; moe->experts > 0 && k < 4; k++) unread += left_alone(of_experts[k], moe->used, moe->experts);
    const rdna__nn_attention *a = &layer->attention;
    if (layer->latent.rank)
      info->cache_values += (uint64_t)(layer->latent.rank + layer->latent.rotated);
    else if (!layer->recurrent.k_heads && !a->shares_cache)
      info->cache_values += 2 * (uint64_t)a->kv_heads * (uint64_t)a->head_dim;
  }
  info->bytes_per_token = info->weight_bytes - unread;
}

static rdna_status load_ends(rdna_llm *llm) {
  rdna__weights *w = &llm->weights;
  rdna_llm_info *info = &llm->info;
  rdna__nn_decoder *decoder = &llm->decoder;
  RDNA_TRY(rdna__load_table(w, "token_embd.weight", info->vocabulary, info->width, &decoder->embedding));
  RDNA_TRY(rdna__arch_output_norm(llm));
  bool tied = !rdna_gguf_has_tensor(w->file, "output.weight");
  if (tied)
    decoder->output = (rdna__matrix_weights){.weight = decoder->embedding, .scale = 1};
  else
    RDNA_TRY(rdna__load_linear(w, "output", info->vocabulary, info->width, &decoder->output));
  info->weight_bytes = w->bytes;
  info->parameters = w->parameters;
  count_traffic(llm, tied);
  return RDNA_OK;
}

static rdna_status load_layers(rdna_llm *llm, const rdna__llm_arch *arch) {
  const rdna_llm_info *info = &llm->info;
  llm->decoder.layers = calloc((size_t)info->layers, sizeof *llm->decoder.layers);
  if (!llm->decoder.layers) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %d layers", info->layers);
  for (int i = 0; i < info->layers; i++) {
    rdna__nn_layer *layer = &llm->decoder.layers[i];
    int kv_heads;
    RDNA_TRY(rdna__arch_hidden(&llm->weights, i, &layer->ffn.hidden));
    RDNA_TRY(rdna__key_count_of_layer(&llm->weights, "attention.head_count_kv", i, info->heads, &kv_heads));
    if (info->heads % kv_heads != 0)
      return rdna__fail(RDNA_BAD_DATA, "%d heads cannot share %d key/value heads evenly", info->heads, kv_heads);
    layer->output_scale = 1;
    layer->attention = (rdna__nn_attention){.heads = info->heads,
                                            .kv_heads = kv_heads,
                                            .head_dim = info->head_dim,
                                            .window = rdna__arch_is_windowed(llm, i) ? llm->config.window : 0,
                                            .scale = (float)(1 / sqrt((double)info->head_dim)),
                                            .rotation = &llm->rotations[0]};
    RDNA_TRY(arch->layer(llm, i, layer));
    if (layer->attention.shares_cache) continue; /* the architecture has said whose */
    layer->cache = llm->decoder.cache_count, layer->state = llm->decoder.state_count;
    layer->recurrent.k_heads ? llm->decoder.state_count++ : llm->decoder.cache_count++;
  }
  return RDNA_OK;
}

/* What a prompt's products read on a GPU: the type of the weights where that is of 16 bits, as products are of one
 * type, else f16, whose 11 bits keep more than bf16's 8. */
static void choose_half(rdna_llm *llm) {
  const rdna__nn_layer *first = &llm->decoder.layers[0];
  const rdna_tensor *weights = first->moe.experts ? &first->moe.down : &first->ffn.down.weight;
  llm->decoder.half = weights->dtype == RDNA_BF16 ? RDNA_BF16 : RDNA_F16;
}

static rdna_status load(rdna_llm *llm) {
  rdna__weights *w = &llm->weights;
  const rdna__llm_arch *arch;
  const rdna_kernel *kernel; /* a GPU that has no code should say so before gigabytes are read */
  rdna_text name;
  RDNA_TRY(rdna_kernel_get(w->device, "rms_norm_f32", &kernel));
  RDNA_TRY(rdna_gguf_get_text(w->file, "general.architecture", &name));
  RDNA_TRY(rdna__llm_arch_find(name, &arch));
  strcpy(w->architecture, arch->name);
  strcpy(llm->info.architecture, arch->name);
  for (size_t i = 0; i < rdna_gguf_tensor_count(w->file); i++) {
    rdna_gguf_tensor tensor;
    RDNA_TRY(rdna_gguf_tensor_at(w->file, i, &tensor));
    w->bytes_total += tensor.bytes;
  }
  w->in_place = rdna__device_driver(w->device)->code_format == RDNA__CODE_HOST;
  const rdna_device_info *device = rdna_device_get_info(w->device);
  if (!w->in_place && device->total_memory > 0 && w->bytes_total > device->total_memory)
    return rdna__fail(RDNA_OUT_OF_MEMORY,
                      "the model's weights take %.2f GiB, and %s has %.2f; choose a smaller type of "
                      "weights, or the host",
                      (double)w->bytes_total / 0x1p30, device->name, (double)device->total_memory / 0x1p30);
  RDNA_TRY(arch->keys(llm));
  llm->decoder.width = llm->info.width;
  llm->decoder.vocabulary = llm->info.vocabulary;
  llm->decoder.layer_count = llm->info.layers;
  RDNA_TRY(load_layers(llm, arch));
  RDNA_TRY(load_ends(llm));
  RDNA_TRY(rdna__check_all_read(w, llm->info.layers));
  choose_half(llm);
  return rdna_stream_synchronize(rdna_device_default_stream(w->device));
}

rdna_status rdna_llm_open(rdna_device *device, const rdna_gguf *file, void (*progress)(void *data, double share),
                          void *progress_data, rdna_llm **out_llm) {
  if (!device || !file || !out_llm)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_llm_open needs a device, a file and a place for the model");
  rdna_llm *llm = calloc(1, sizeof *llm);
  if (!llm) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a model");
  llm->references = 1;
  llm->weights = (rdna__weights){
      .device = rdna_device_retain(device), .file = file, .progress = progress, .progress_data = progress_data};
  rdna__strmap read = {0};
  llm->weights.read = &read;
  rdna_status status = load(llm);
  rdna__strmap_deinit(&read);
  llm->weights.file = NULL;
  llm->weights.read = NULL;
  if (status != RDNA_OK) {
    rdna_llm_release(llm);
    return status;
  }
  *out_llm = llm;
  return RDNA_OK;
}

rdna_llm *rdna_llm_retain(rdna_llm *llm) {
  atomic_fetch_add(&llm->references, 1);
  return llm;
}

void rdna_llm_release(rdna_llm *llm) {
  if (!llm || atomic_fetch_sub(&llm->references, 1) > 1) return;
  rdna__weights_free(&llm->weights);
  free(llm->decoder.layers);
  free(llm->config.windowed);
  rdna_device_release(llm->weights.device);
  free(llm);
}

const rdna_llm_info *rdna_llm_get_info(const rdna_llm *llm) { return &llm->info; }
