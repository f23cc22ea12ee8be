/* The tower of a Hugging Face folder that sees pictures, as the GGUF file that llama.cpp's converter makes of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "model/gguf/gguf.h"
#include "model/weights/convert.h"
#include "model/weights/hf.h"

enum { NAME = 96, PATH_BYTES = 4096, MOST_PIECES = 3, MOST_LAYERS = 1 << 10 };

typedef struct kind {
  const char *hf;                               /* of "architectures", each between two bars */
  const char *projector, *tower, *head;         /* head: what stands before names of what makes rows */
  const char *use;                              /* clip.use_gelu or clip.use_silu */
  const char *width, *layers, *heads, *epsilon; /* settings of vision_config; epsilon NULL: 1e-6 */
  enum { SIGLIP, WINDOWS, DEEPSTACK } others;   /* what other settings there are */
  bool together;                                /* q, k and v stay one */
  struct name {
    const char *hf, *gguf; /* behind "layers.N." and "v.blk.N.", or what begins without a layer, with a dot before it */
  } names[20];
} kind;

static const kind kinds[] = {
    {"|Gemma3ForConditionalGeneration|",
     "gemma3",
     "vision_tower.",
     "multi_modal_projector.",
     "clip.use_gelu",
     "hidden_size",
     "num_hidden_layers",
     "num_attention_heads",
     "layer_norm_eps",
     SIGLIP,
     false,
     {{"layer_norm1", "ln1"},
      {"layer_norm2", "ln2"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.out_proj", "attn_out"},
      {"mlp.fc1", "ffn_up"},
      {"mlp.fc2", "ffn_down"},
      {".embeddings.patch_embedding", "v.patch_embd"},
      {".embeddings.position_embedding", "v.position_embd"},
      {".post_layernorm", "v.post_ln"},
      {".mm_soft_emb_norm", "mm.soft_emb_norm"},
      {".mm_input_projection_weight", "mm.input_projection.weight"}}},
    {"|Qwen2_5_VLForConditionalGeneration|",
     "qwen2.5vl_merger",
     "visual.",
     NULL,
     "clip.use_silu",
     "hidden_size",
     "depth",
     "num_heads",
     NULL,
     WINDOWS,
     false,
     {{"norm1", "ln1"},
      {"norm2", "ln2"},
      {"attn.qkv", "attn_qkv"},
      {"attn.proj", "attn_out"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},
      {".patch_embed.proj", "v.patch_embd"},
      {".merger.ln_q", "v.post_ln"},
      {".merger.mlp.0", "mm.0"},
      {".merger.mlp.2", "mm.2"}}},
    {"|Qwen3VLForConditionalGeneration|Qwen3VLMoeForConditionalGeneration|Qwen3_5ForConditionalGeneration|"
     "Qwen3_5MoeForConditionalGeneration|",
     "qwen3vl_merger",
     "visual.",
     NULL,
     "clip.use_gelu",
     "hidden_size",
     "depth",
     "num_heads",
     NULL,
     DEEPSTACK,
     true,
     {{"norm1", "ln1"},
      {"norm2", "ln2"},
      {"attn.qkv", "attn_qkv"},
      {"attn.proj", "attn_out"},
      {"mlp.linear_fc1", "ffn_up"},
      {"mlp.linear_fc2", "ffn_down"},
      {".patch_embed.proj", "v.patch_embd"},
      {".pos_embed", "v.position_embd"},
      {".merger.norm", "v.post_ln"},
      {".merger.linear_fc1", "mm.0"},
      {".merger.linear_fc2", "mm.2"},
      {"deepstack_merger_list.norm", "norm"},
      {"deepstack_merger_list.linear_fc1", "fc1"},
      {"deepstack_merger_list.linear_fc2", "fc2"}}},
};

struct rdna__hf_tower {
  const kind *kind;
  const json_t *config, *vision, *text, *processor;
  const rdna__safetensors *weights;
  rdna_gguf_writer *writer;
  float **made; /* (count) values of tensors, but for matrices of products, which stay as they are */
  size_t count;
};

/* ---- settings ---- */

static rdna_status find_kind(rdna__hf_tower *c) {
  const char *name = json_string_value(json_array_get(json_object_get(c->config, "architectures"), 0));
  char between[NAME];
  snprintf(between, sizeof between, "|%.80s|", name ? name : "");
  for (size_t i = 0; name && !strchr(name, '|') && i < sizeof kinds / sizeof *kinds; i++)
    if (strstr(kinds[i].hf, between)) c->kind = &kinds[i];
  c->vision = json_object_get(c->config, "vision_config");
  c->text = json_object_get(c->config, "text_config");
  if (!json_is_object(c->text)) c->text = c->config; /* as older folders of Qwen have it */
  if (c->kind && json_is_object(c->vision)) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "'%.80s' has no tower that can be converted; those of %s, %s and %s are known",
                    name ? name : "", kinds[0].hf, kinds[1].hf, kinds[2].hf);
}

static rdna_status put_count(const rdna__hf_tower *c, const json_t *from, const char *name, int64_t initial,
                             const char *key) {
  int64_t value;
  RDNA_TRY(rdna__hf_count(from, name, initial, &value));
  if (value < 1 || value > INT32_MAX)
    return rdna__fail(RDNA_BAD_DATA, "'%s' is %lld, or missing", name, (long long)value);
  uint32_t number = (uint32_t)value;
  return rdna_gguf_writer_put(c->writer, key, RDNA_GGUF_TYPE_U32, &number);
}

static rdna_status put_colours(const rdna__hf_tower *c, const char *name) {
  const json_t *list = json_object_get(c->processor, name);
  float values[3];
  char key[NAME];
  if (json_array_size(list) != 3) return rdna__fail(RDNA_BAD_DATA, "'%s' is no list of three numbers", name);
  for (size_t i = 0; i < 3; i++) values[i] = (float)json_number_value(json_array_get(list, i));
  snprintf(key, sizeof key, "clip.vision.%s", name);
  return rdna_gguf_writer_put_array(c->writer, key, RDNA_GGUF_TYPE_F32, values, 3);
}

/* The sides of squares of which tokens are means, where they are not 4. */
static rdna_status put_gemma(const rdna__hf_tower *c) {
  int64_t image, patch, tokens, side = 1;
  RDNA_TRY(rdna__hf_count(c->vision, "image_size", 0, &image));
  RDNA_TRY(rdna__hf_count(c->vision, "patch_size", 0, &patch));
  RDNA_TRY(rdna__hf_count(c->config, "mm_tokens_per_image", 256, &tokens));
  while (side < 1 << 12 && side * side < tokens) side++;
  if (patch < 1 || side * side != tokens || image / patch % side != 0)
    return rdna__fail(RDNA_BAD_DATA, "a picture of %lld pixels, patches of %lld, and %lld tokens", (long long)image,
                      (long long)patch, (long long)tokens);
  uint32_t scale = (uint32_t)(image / patch / side);
  RDNA_TRY(put_count(c, c->vision, "image_size", 0, "clip.vision.image_size"));
  return rdna_gguf_writer_put(c->writer, "clip.vision.projector.scale_factor", RDNA_GGUF_TYPE_U32, &scale);
}

/* How large pictures may be. */
static rdna_status put_pixels(const rdna__hf_tower *c) {
  const json_t *size = json_object_get(c->processor, "size"); /* as transformers 5 has the limits */
  bool old = rdna__hf_is_set(c->processor, "min_pixels");
  RDNA_TRY(put_count(c, c->vision, "spatial_merge_size", 2, "clip.vision.spatial_merge_size"));
  RDNA_TRY(put_count(c, old ? c->processor : size, old ? "min_pixels" : "shortest_edge", 56 * 56,
                     "clip.vision.image_min_pixels"));
  return put_count(c, old ? c->processor : size, old ? "max_pixels" : "longest_edge", 28 * 28 * 1280,
                   "clip.vision.image_max_pixels");
}

/* Of layers that see all patches, the first number says which others do, too. */
static rdna_status put_windows(const rdna__hf_tower *c) {
  const json_t *whole = json_object_get(c->vision, "fullatt_block_indexes");
  uint32_t period = (uint32_t)json_integer_value(json_array_get(whole, 0)) + 1;
  for (size_t i = 0; i < json_array_size(whole); i++)
    if (json_integer_value(json_array_get(whole, i)) != (json_int_t)((i + 1) * period - 1))
      return rdna__fail(RDNA_UNSUPPORTED,
                        "'fullatt_block_indexes' are not at equal distances, for which GGUF has no key");
  RDNA_TRY(rdna_gguf_writer_put(c->writer, "clip.vision.n_wa_pattern", RDNA_GGUF_TYPE_U32, &period));
  RDNA_TRY(put_count(c, c->vision, "window_size", 112, "clip.vision.window_size"));
  return put_pixels(c);
}

/* Of which layers the language model gets vectors: the number |index| of them; -1: none such. */
static int deep_layer(const rdna__hf_tower *c, size_t index) {
  const json_t *layer = json_array_get(json_object_get(c->vision, "deepstack_visual_indexes"), index);
  json_int_t number = json_is_integer(layer) ? json_integer_value(layer) : -1;
  return number >= 0 && number < MOST_LAYERS ? (int)number : -1;
}

static rdna_status put_deepstack(const rdna__hf_tower *c) {
  bool marks[MOST_LAYERS] = {false};
  int64_t layers, positions, patch, side = 1;
  RDNA_TRY(rdna__hf_count(c->vision, c->kind->layers, 0, &layers));
  RDNA_TRY(rdna__hf_count(c->vision, "num_position_embeddings", 2304, &positions));
  RDNA_TRY(rdna__hf_count(c->vision, "patch_size", 16, &patch));
  while (side < 1 << 12 && side * side < positions) side++;
  if (side * side != positions || layers > MOST_LAYERS || patch < 1 || patch > 1 << 12)
    return rdna__fail(RDNA_BAD_DATA, "%lld positions, which are no square, patches of %lld, or %lld layers",
                      (long long)positions, (long long)patch, (long long)layers);
  const json_t *list = json_object_get(c->vision, "deepstack_visual_indexes");
  for (size_t i = 0; i < json_array_size(list); i++) {
    int layer = deep_layer(c, i);
    if (layer < 0 || layer >= layers || marks[layer])
      return rdna__fail(RDNA_BAD_DATA, "'deepstack_visual_indexes' are not of the %lld layers, or twice of one",
                        (long long)layers);
    marks[layer] = true;
  }
  const uint32_t image = (uint32_t)(side * patch);
  RDNA_TRY(rdna_gguf_writer_put(c->writer, "clip.vision.image_size", RDNA_GGUF_TYPE_U32, &image));
  RDNA_TRY(rdna_gguf_writer_put_array(c->writer, "clip.vision.is_deepstack_layers", RDNA_GGUF_TYPE_BOOL, marks,
                                      (size_t)layers));
  return put_pixels(c);
}

static rdna_status put_settings(const rdna__hf_tower *c) {
  const kind *k = c->kind;
  const rdna_text clip = {"clip", 4}, type = {"mmproj", 6}, projector = {k->projector, strlen(k->projector)};
  const bool yes = true;
  double epsilon = 1e-6;
  RDNA_TRY(rdna_gguf_writer_put(c->writer, "general.architecture", RDNA_GGUF_TYPE_TEXT, &clip));
  RDNA_TRY(rdna_gguf_writer_put(c->writer, "general.type", RDNA_GGUF_TYPE_TEXT, &type));
  RDNA_TRY(rdna_gguf_writer_put(c->writer, "clip.has_vision_encoder", RDNA_GGUF_TYPE_BOOL, &yes));
  RDNA_TRY(rdna_gguf_writer_put(c->writer, "clip.projector_type", RDNA_GGUF_TYPE_TEXT, &projector));
  RDNA_TRY(rdna_gguf_writer_put(c->writer, k->use, RDNA_GGUF_TYPE_BOOL, &yes));
  RDNA_TRY(put_count(c, c->vision, k->width, 0, "clip.vision.embedding_length"));
  RDNA_TRY(put_count(c, c->vision, k->layers, 0, "clip.vision.block_count"));
  RDNA_TRY(put_count(c, c->vision, k->heads, 0, "clip.vision.attention.head_count"));
  RDNA_TRY(put_count(c, c->vision, "intermediate_size", 0, "clip.vision.feed_forward_length"));
  RDNA_TRY(put_count(c, c->vision, "patch_size", 14, "clip.vision.patch_size"));
  RDNA_TRY(put_count(c, c->text, "hidden_size", 0, "clip.vision.projection_dim"));
  if (k->epsilon) RDNA_TRY(rdna__hf_number(c->vision, k->epsilon, epsilon, &epsilon));
  float number = (float)epsilon;
  RDNA_TRY(rdna_gguf_writer_put(c->writer, "clip.vision.attention.layer_norm_epsilon", RDNA_GGUF_TYPE_F32, &number));
  RDNA_TRY(put_colours(c, "image_mean"));
  RDNA_TRY(put_colours(c, "image_std"));
  if (k->others == WINDOWS) return put_windows(c);
  return k->others == DEEPSTACK ? put_deepstack(c) : put_gemma(c);
}

/* ---- tensors ---- */

/* Whether it is a matrix of a product. */
static bool is_matrix(const char *name, int rank) {
  static const char *const begins[] = {"v.blk.", "v.deepstack.", "mm.0.", "mm.2."};
  for (size_t i = 0; rank == 2 && i < sizeof begins / sizeof *begins; i++)
    if (strncmp(name, begins[i], strlen(begins[i])) == 0) return true;
  return false;
}

/* |count| values of |t| from |first| on, |step| apart in runs of |run|, plus |more|, as the tensor |name|; a matrix of
 * a product as it is. */
static rdna_status add_tensor(rdna__hf_tower *c, const char *name, const rdna__safetensor *t, int rank,
                              const int64_t *shape, int64_t first, int64_t run, int64_t step, float more) {
  rdna_gguf_tensor out = {.name = name, .dtype = RDNA_F32, .rank = rank};
  int64_t count = 1;
  for (int i = 0; i < rank; i++) count *= out.shape[i] = shape[i];
  if (is_matrix(name, rank)) {
    out.dtype = t->dtype;
    out.data = t->data + rdna_dtype_bytes(t->dtype, first);
    return rdna_gguf_writer_add_tensor(c->writer, &out, NULL, NULL);
  }
  float *values = malloc((size_t)(count > 0 ? count : 1) * sizeof *values);
  if (!values) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for '%s'", name);
  c->made[c->count++] = values;
  for (int64_t i = 0; i < count; i++) values[i] = rdna__safetensor_value(t, first + i / run * step + i % run) + more;
  out.data = values;
  return rdna_gguf_writer_add_tensor(c->writer, &out, NULL, NULL);
}

/* One tensor of the folder, which becomes |to| with |end| behind it, of a layer behind |place| and its number: three
 * where q, k and v are one, of which each has a third of the rows, and two where a convolution has two frames. */
static rdna_status add(rdna__hf_tower *c, const rdna__safetensor *t, const char *place, int layer, const char *to,
                       const char *end) {
  int64_t count = 1;
  char name[NAME], before[32] = "";
  for (int i = 0; i < t->rank; i++) count *= t->shape[i];
  if (layer >= 0) snprintf(before, sizeof before, "%s%d.", place, layer);
  snprintf(name, sizeof name, "%s%s%s", before, to, end);
  if (t->rank == 5 && t->shape[2] == 2) {
    int64_t shape[] = {t->shape[0], t->shape[1], t->shape[3], t->shape[4]}, run = shape[2] * shape[3];
    RDNA_TRY(add_tensor(c, name, t, 4, shape, 0, run, 2 * run, 0));
    snprintf(name, sizeof name, "%s%s.1", to, end);
    return add_tensor(c, name, t, 4, shape, run, run, 2 * run, 0);
  }
  if (t->rank > 4 || t->rank < 1 || count < 1)
    return rdna__fail(RDNA_BAD_DATA, "'%s' has %d dimensions, or nothing in it", t->name, t->rank);
  float more = strcmp(to, "mm.soft_emb_norm") == 0 ? 1 : 0;
  if (c->kind->together || strcmp(to, "attn_qkv") != 0)
    return add_tensor(c, name, t, t->rank, t->shape, 0, count, count, more);
  int64_t shape[] = {t->shape[0] / MOST_PIECES, t->rank > 1 ? t->shape[1] : 1};
  if (t->rank > 2 || t->shape[0] % MOST_PIECES != 0)
    return rdna__fail(RDNA_BAD_DATA, "'%s' is no three matrices in one", t->name);
  for (int i = 0; i < MOST_PIECES; i++) {
    snprintf(name, sizeof name, "%sattn_%c%s", before, "qkv"[i], end);
    RDNA_TRY(add_tensor(c, name, t, t->rank, shape, i * (count / MOST_PIECES), count, count, 0));
  }
  return RDNA_OK;
}

/* |name| behind the tower's own, without ".weight" or ".bias", which |end| becomes. */
static rdna_status add_named(rdna__hf_tower *c, const rdna__safetensor *t, const char *name) {
  static const char deep[] = "deepstack_merger_list.";
  const char *at = strstr(name, "layers."), *dot = strrchr(name, '.'), *end = "", *place = "v.blk.";
  int layer = -1, read = 0;
  char stem[NAME];
  bool is_deep = strncmp(name, deep, sizeof deep - 1) == 0;
  if (!at) at = is_deep || strncmp(name, "blocks.", 7) == 0 ? name : NULL;
  if (at && sscanf(strchr(at, '.') + 1, "%d.%n", &layer, &read) == 1 && read > 0) name = strchr(at, '.') + 1 + read;
  if (is_deep && layer >= 0) layer = deep_layer(c, (size_t)layer), place = "v.deepstack.";
  bool has_end = dot && (strcmp(dot, ".weight") == 0 || strcmp(dot, ".bias") == 0);
  if (has_end) end = dot;
  const char *before = layer < 0 ? "." : "";
  if (layer >= 0 && is_deep) before = deep;
  snprintf(stem, sizeof stem, "%s%.*s", before, (int)(has_end ? dot - name : (long)strlen(name)), name);
  for (const struct name *n = c->kind->names; n->hf; n++)
    if (strcmp(n->hf, stem) == 0) return add(c, t, place, layer, n->gguf, end);
  if (strncmp(name, "head.", 5) == 0) return RDNA_OK; /* SigLIP's, which language models do not read */
  return rdna__fail(RDNA_UNSUPPORTED, "the tensor '%s' has no place in a tower of this kind", t->name);
}

static rdna_status add_tensors(rdna__hf_tower *c) {
  size_t count = rdna__safetensors_count(c->weights);
  c->made = calloc(MOST_PIECES * count + 1, sizeof *c->made);
  if (!c->made) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a list of tensors");
  for (size_t i = 0; i < count; i++) {
    const rdna__safetensor *t = rdna__safetensors_at(c->weights, i);
    const char *tower = strstr(t->name, c->kind->tower), *head = c->kind->head ? strstr(t->name, c->kind->head) : NULL;
    if (!tower && !head) continue; /* the language model's */
    if (t->dtype != RDNA_F32 && t->dtype != RDNA_F16 && t->dtype != RDNA_BF16)
      return rdna__fail(RDNA_UNSUPPORTED, "'%s' is of type %s; f32, f16 and bf16 are converted", t->name, t->type);
    const char *name = tower ? tower + strlen(c->kind->tower) : head + strlen(c->kind->head);
    static const char inner[] = "vision_model."; /* in published folders */
    if (strncmp(name, inner, sizeof inner - 1) == 0) name += sizeof inner - 1;
    RDNA_TRY(add_named(c, t, name));
  }
  return RDNA_OK;
}

void rdna__hf_tower_release(rdna__hf_tower *c) {
  if (!c) return;
  for (size_t i = 0; i < c->count; i++) free(c->made[i]);
  free(c->made);
  free(c);
}

rdna_status rdna__hf_tower_add(const json_t *config, const json_t *processor, const rdna__safetensors *weights,
                               rdna_gguf_writer *writer, rdna__hf_tower **out_tower) {
  rdna__hf_tower *c = calloc(1, sizeof *c);
  if (!c) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a tower");
  *c = (rdna__hf_tower){.config = config, .processor = processor, .weights = weights, .writer = writer};
  rdna_status status = find_kind(c);
  if (status == RDNA_OK) status = put_settings(c);
  if (status == RDNA_OK) status = add_tensors(c);
  if (status == RDNA_OK)
    *out_tower = c;
  else
    rdna__hf_tower_release(c);
  return status;
}

/* ---- a folder ---- */

static rdna_status read_json(const char *folder, const char *name, json_t **out) {
  char path[PATH_BYTES];
  rdna__file file;
  json_error_t error;
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of %s is too long", name);
  RDNA_TRY(rdna__annotate(rdna__file_map(path, &file), "%s", path));
  *out = json_loadb((const char *)file.data, file.size, 0, &error);
  rdna__file_unmap(&file);
  return json_is_object(*out) ? RDNA_OK : rdna__fail(RDNA_BAD_DATA, "%s: no JSON object", path);
}

/* All that a file of it is made of. */
typedef struct making {
  json_t *config, *settings; /* of the model, and the file that has those of the processor */
  rdna__safetensors *weights;
  rdna_gguf_writer *writer;
  rdna__hf_tower *tower;
} making;

static void making_release(making *m) {
  rdna_gguf_writer_release(m->writer);
  rdna__hf_tower_release(m->tower);
  rdna__safetensors_close(m->weights);
  json_decref(m->config);
  json_decref(m->settings);
}

/* As transformers 5 saves it, the processor of pictures is a part of another. */
static rdna_status read_processor(const char *folder, json_t **out_file, const json_t **out_processor) {
  char path[PATH_BYTES];
  bool old =
      snprintf(path, sizeof path, "%s/processor_config.json", folder) >= (int)sizeof path || access(path, F_OK) != 0;
  if (!old) {
    RDNA_TRY(read_json(folder, "processor_config.json", out_file));
    *out_processor = json_object_get(*out_file, "image_processor");
    if (json_is_object(*out_processor)) return RDNA_OK;
    json_decref(*out_file);
    *out_file = NULL;
  }
  rdna_status status = read_json(folder, "preprocessor_config.json", out_file);
  *out_processor = *out_file;
  return status;
}

static rdna_status make(const char *folder, const char *processor, making *m) {
  const json_t *of_pictures = NULL;
  RDNA_TRY(read_json(folder, "config.json", &m->config));
  RDNA_TRY(read_processor(processor, &m->settings, &of_pictures));
  RDNA_TRY(rdna_gguf_writer_create(&m->writer));
  RDNA_TRY(rdna__safetensors_open(folder, &m->weights));
  return rdna__annotate(rdna__hf_tower_add(m->config, of_pictures, m->weights, m->writer, &m->tower), "the tower of %s",
                        folder);
}

rdna_status rdna__convert_vision(const char *folder, const char *path, void (*progress)(void *data, double share),
                                 void *progress_data) {
  making m = {0};
  rdna_status status = make(folder, folder, &m);
  if (status == RDNA_OK) status = rdna_gguf_writer_write(m.writer, path, progress, progress_data);
  making_release(&m);
  return status;
}

static void release_owner(void *owner) {
  making_release(owner);
  free(owner);
}

rdna_status rdna__model_open_tower(const char *folder, const char *processor, rdna_gguf **out_file) {
  making *m = calloc(1, sizeof *m);
  if (!m) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a tower");
  rdna_status status = make(folder, processor, m);
  if (status == RDNA_OK) status = rdna__gguf_open_writer(m->writer, release_owner, m, out_file);
  if (status != RDNA_OK) release_owner(m);
  return status;
}
