/* A model: opened from a file, shared, released. */
#include "model/llm/llm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "device/driver.h"
#include "model/llm/arch/arch.h"
#include "rdna/kernel.h"

/* Bytes of |t| that a token does not read, as it reads |some| of |all| slices. */
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
    else if (!layer->recurrent.width && !a->shares_cache && !decoder->bidirectional)
      info->cache_values += 2 * (uint64_t)a->kv_heads * (uint64_t)a->head_dim;
  }
  info->bytes_per_token = info->weight_bytes - unread;
}

/* What models have in place of the output that judge texts. */
static rdna_status load_labels(rdna_llm *llm) {
  rdna__weights *w = &llm->weights;
  rdna__nn_decoder *decoder = &llm->decoder;
  if (!rdna_gguf_has_tensor(w->file, "cls.output.weight")) return RDNA_OK;
  RDNA_TRY(rdna__table_rows(w, "cls.output.weight", &decoder->labels));
  RDNA_TRY(rdna__load_linear(w, "cls.output", decoder->labels, llm->info.width, &decoder->classifier));
  llm->info.labels = decoder->labels;
  if (!rdna_gguf_has_tensor(w->file, "cls.weight")) return RDNA_OK;
  return rdna__load_linear(w, "cls", llm->info.width, llm->info.width, &decoder->judge);
}

/* Loads the embedding where the first layer is, and the output where the last is. */
static rdna_status load_ends(rdna_llm *llm, bool first, bool last) {
  rdna__weights *w = &llm->weights;
  rdna_llm_info *info = &llm->info;
  rdna__nn_decoder *decoder = &llm->decoder;
  bool writes = last && !info->encoder, tied = writes && !rdna_gguf_has_tensor(w->file, "output.weight");
  rdna_tensor table = {0};
  if (first || tied) RDNA_TRY(rdna__load_table(w, "token_embd.weight", info->vocabulary, info->width, &table));
  if (first) decoder->embedding = table;
  if (last) RDNA_TRY(rdna__arch_output_norm(llm));
  if (last) RDNA_TRY(load_labels(llm));
  if (tied) decoder->output = (rdna__matrix_weights){.weight = table, .scale = 1};
  if (tied) RDNA_TRY(rdna__weights_name(w, "output", &table));
  if (writes && !tied) RDNA_TRY(rdna__load_linear(w, "output", info->vocabulary, info->width, &decoder->output));
  info->weight_bytes = w->bytes;
  info->parameters = w->parameters;
  if (tied && !first) info->parameters -= (uint64_t)rdna_tensor_count(&table); /* the embedding, once more */
  count_traffic(llm, tied);
  return RDNA_OK;
}

/* What the file says of all kinds of models: whether tokens see those behind them, and what is made of a text. */
static rdna_status read_use(rdna_llm *llm) {
  const rdna__weights *w = &llm->weights;
  uint64_t pooling;
  char key[64];
  bool causal = !llm->decoder.bidirectional;
  RDNA_TRY(rdna__key_flag(w, "attention.causal", &causal));
  llm->decoder.bidirectional = !causal;
  llm->info.encoder = !causal;
  snprintf(key, sizeof key, "%s.pooling_type", w->architecture);
  if (!rdna_gguf_find_key(w->file, key, NULL)) return RDNA_OK;
  RDNA_TRY(rdna_gguf_get_u64(w->file, key, &pooling));
  if (pooling == UINT32_MAX) return RDNA_OK; /* llama.cpp's files of models that nobody embeds with have -1 */
  if (pooling > RDNA_LLM_POOLING_COUNT - 2)
    return rdna__fail(RDNA_UNSUPPORTED, "%s is %llu; this library knows 0 to %d", key, (unsigned long long)pooling,
                      RDNA_LLM_POOLING_COUNT - 2);
  llm->info.pooling = (rdna_llm_pooling)(pooling + 1);
  return RDNA_OK;
}

/* What an encoder's layers cannot have: whatever is made for texts that go on. */
static rdna_status check_encoder(const rdna_llm *llm, int index, const rdna__nn_layer *layer) {
  if (!llm->info.encoder) return RDNA_OK;
  if (layer->recurrent.width || layer->latent.rank || layer->attention.shares_cache || layer->attention.sinks.data)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "layer %d of a %s whose tokens see those behind them (attention.causal is false): this library "
                      "has that for plain attention alone",
                      index, llm->info.architecture);
  return RDNA_OK;
}

/* Loads layers |first| to |end| - 1 of the model. */
static rdna_status load_layers(rdna_llm *llm, const rdna__llm_arch *arch, int first, int end, int host_experts) {
  const rdna_llm_info *info = &llm->info;
  llm->layers = calloc((size_t)info->layers, sizeof *llm->layers);
  if (!llm->layers) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %d layers", info->layers);
  llm->decoder.layers = llm->layers;
  llm->decoder.first = first;
  llm->decoder.layer_count = end - first;
  llm->decoder.model_layers = info->layers;
  for (int i = first; i < end; i++) {
    rdna__nn_layer *layer = &llm->layers[i];
    llm->weights.experts_for_host = i < host_experts;
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
    RDNA_TRY(check_encoder(llm, i, layer));
    layer->moe.on_host = i < host_experts && layer->moe.experts > 0 && !llm->weights.in_place;
    llm->decoder.has_host_experts |= layer->moe.on_host;
    if (layer->attention.shares_cache || llm->info.encoder) continue; /* the architecture has said whose */
    layer->cache = llm->decoder.cache_count, layer->state = llm->decoder.state_count;
    layer->recurrent.width ? llm->decoder.state_count++ : llm->decoder.cache_count++;
  }
  llm->decoder.layers = llm->layers + first;
  return RDNA_OK;
}

/* The type of a prompt's activations in products on a GPU: that of the weights where it has 16 bits, as both operands
 * have one type, else f16, which keeps 11 bits to bf16's 8. */
static void choose_half(rdna_llm *llm) {
  const rdna__nn_layer *first = llm->decoder.layers;
  llm->decoder.half = RDNA_F16;
  if (llm->decoder.layer_count == 0) return;
  const rdna_tensor *weights = first->moe.experts ? &first->moe.down : &first->ffn.down.weight;
  llm->decoder.half = weights->dtype == RDNA_BF16 ? RDNA_BF16 : RDNA_F16;
}

/* Loads the first |host_layers| layers for the host, or, where these are |below| already, the others for the device. */
static rdna_status load(rdna_llm *llm, const rdna_llm_open_options *options, bool below) {
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
  bool whole = options->host_layers == 0 && options->host_experts == 0;
  if (whole && !w->in_place && device->total_memory > 0 && w->bytes_total > device->total_memory)
    return rdna__fail(RDNA_OUT_OF_MEMORY,
                      "the model's weights take %.2f GiB, and %s has %.2f; leave layers or experts on the host "
                      "(--gpu-layers, --experts-on-host), choose a smaller type of weights, or the host",
                      (double)w->bytes_total / 0x1p30, device->name, (double)device->total_memory / 0x1p30);
  RDNA_TRY(arch->keys(llm));
  RDNA_TRY(read_use(llm));
  int layers = llm->info.layers, first = below ? 0 : options->host_layers, end = below ? options->host_layers : layers;
  if (options->host_layers > layers || options->host_experts > layers)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%d layers and the experts of %d on the host, of a model of %d layers",
                      options->host_layers, options->host_experts, layers);
  llm->info.whole_pictures = llm->decoder.whole_pictures;
  llm->info.deepstack = llm->decoder.deepstack;
  llm->decoder.width = llm->info.width;
  llm->decoder.vocabulary = llm->info.vocabulary;
  w->staging = w->in_place ? 0 : rdna__uploader_staging(w->bytes_total);
  if (!w->in_place && !rdna__device_is_rehearsal(w->device))
    RDNA_TRY(rdna__uploader_create(w->device, w->bytes_total, &w->uploader));
  RDNA_TRY(load_layers(llm, arch, first, end, options->host_experts));
  RDNA_TRY(load_ends(llm, first == 0, !below));
  if (!below) RDNA_TRY(rdna__check_all_read(w, layers, true));
  choose_half(llm);
  return rdna__weights_arrive(w);
}

static rdna_status open_part(rdna_device *device, const rdna_gguf *file, const rdna_llm_open_options *options,
                             bool below, rdna__strmap *read, rdna_llm **out_llm) {
  rdna_llm *llm = calloc(1, sizeof *llm);
  if (!llm) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a model");
  llm->references = 1;
  llm->weights = (rdna__weights){.device = rdna_device_retain(device),
                                 .file = file,
                                 .read = read,
                                 .progress = below ? NULL : options->progress,
                                 .progress_data = options->progress_data};
  rdna_status status = load(llm, options, below);
  llm->weights.file = NULL;
  llm->weights.read = NULL;
  if (status != RDNA_OK) {
    rdna_llm_release(llm);
    return status;
  }
  *out_llm = llm;
  return RDNA_OK;
}

rdna_status rdna__llm_open_on(rdna_device *device, rdna_device *host, const rdna_gguf *file,
                              rdna_llm_open_options options, rdna_llm **out_llm) {
  rdna_llm *llm, *below = NULL;
  rdna__strmap read = {0};
  rdna_status status = RDNA_OK;
  if (options.host_layers > 0) status = open_part(host, file, &options, true, &read, &below);
  if (status == RDNA_OK) status = open_part(device, file, &options, false, &read, &llm);
  rdna__strmap_deinit(&read);
  if (status != RDNA_OK) {
    rdna_llm_release(below);
    return status;
  }
  llm->below = below;
  if (below) {
    llm->info.weight_bytes += below->info.weight_bytes;
    llm->info.parameters += below->info.parameters;
    llm->info.bytes_per_token += below->info.bytes_per_token;
    llm->info.cache_values += below->info.cache_values;
  }
  if (llm->decoder.has_host_experts) llm->host = rdna_device_retain(host);
  *out_llm = llm;
  return RDNA_OK;
}

rdna_status rdna_llm_open_with(rdna_device *device, const rdna_gguf *file, const rdna_llm_open_options *options,
                               rdna_llm **out_llm) {
  rdna_llm_open_options chosen = {RDNA_LLM_OPEN_OPTIONS_INIT};
  rdna_device *host = NULL;
  if (!device || !file || !out_llm)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "opening a model needs a device, a file and a place for the model");
  if (options) RDNA_TRY(RDNA__OPTIONS("rdna_llm_open_with", "options", options, &chosen));
  if (chosen.host_layers < 0 || chosen.host_experts < 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%d layers and the experts of %d on the host: neither may be negative",
                      chosen.host_layers, chosen.host_experts);
  if (chosen.host_layers > 0 || chosen.host_experts > 0) RDNA_TRY(rdna_device_open("host", &host));
  rdna_status status = rdna__llm_open_on(device, host, file, chosen, out_llm);
  rdna_device_release(host);
  return status;
}

rdna_status rdna_llm_open(rdna_device *device, const rdna_gguf *file, void (*progress)(void *data, double share),
                          void *progress_data, rdna_llm **out_llm) {
  const rdna_llm_open_options options = {RDNA_LLM_OPEN_OPTIONS_INIT, .progress = progress,
                                         .progress_data = progress_data};
  return rdna_llm_open_with(device, file, &options, out_llm);
}

rdna_llm *rdna_llm_retain(rdna_llm *llm) {
  atomic_fetch_add(&llm->references, 1);
  return llm;
}

void rdna_llm_release(rdna_llm *llm) {
  if (!llm || atomic_fetch_sub(&llm->references, 1) > 1) return;
  rdna__weights_free(&llm->weights);
  free(llm->layers);
  free(llm->config.windowed);
  rdna_device_release(llm->weights.device);
  rdna_device_release(llm->host);
  rdna_llm_release(llm->below);
  free(llm);
}

bool rdna__llm_has_states(const rdna_llm *llm) {
  return llm->decoder.state_count > 0 || (llm->below && rdna__llm_has_states(llm->below));
}

const rdna_llm_info *rdna_llm_get_info(const rdna_llm *llm) { return &llm->info; }
