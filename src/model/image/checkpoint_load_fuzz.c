/* Loads transformers and U-Nets of single files on a device that only counts. The first byte chooses one of five whole
 * ones, of one block or two; then three bytes at a time say which of its tensors is left out, of another shape or type,
 * or called as another, and so what each family makes of shapes that belong to none. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/driver.h"
#include "model/image/zimage.h"
#include "rdna/image.h"
#include "rdna/image_flow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANK = 4, MOST_TENSORS = 96, MOST_BYTES = 1 << 30 };

typedef struct tensor {
  const char *name; /* without its end, where |biased|: that is a point and "weight", and there is another, "bias" */
  bool biased;
  int64_t shape[RANK];
} tensor;

static const tensor flux[] = {
    {"img_in", true, {128, 16}},
    {"txt_in", true, {128, 32}},
    {"final_layer.linear", true, {16, 128}},
    {"time_in.in_layer", true, {128, 256}},
    {"time_in.out_layer", true, {128, 128}},
    {"vector_in.in_layer", true, {128, 16}},
    {"vector_in.out_layer", true, {128, 128}},
    {"guidance_in.in_layer", true, {128, 256}},
    {"guidance_in.out_layer", true, {128, 128}},
    {"final_layer.adaLN_modulation.1", true, {256, 128}},
    {"double_blocks.0.img_mod.lin", true, {768, 128}},
    {"double_blocks.0.img_attn.qkv", true, {384, 128}},
    {"double_blocks.0.img_attn.proj", true, {128, 128}},
    {"double_blocks.0.img_mlp.0", true, {512, 128}},
    {"double_blocks.0.img_mlp.2", true, {128, 512}},
    {"double_blocks.0.img_attn.norm.query_norm.scale", false, {128}},
    {"double_blocks.0.img_attn.norm.key_norm.scale", false, {128}},
    {"double_blocks.0.txt_mod.lin", true, {768, 128}},
    {"double_blocks.0.txt_attn.qkv", true, {384, 128}},
    {"double_blocks.0.txt_attn.proj", true, {128, 128}},
    {"double_blocks.0.txt_mlp.0", true, {512, 128}},
    {"double_blocks.0.txt_mlp.2", true, {128, 512}},
    {"double_blocks.0.txt_attn.norm.query_norm.scale", false, {128}},
    {"double_blocks.0.txt_attn.norm.key_norm.scale", false, {128}},
    {"single_blocks.0.modulation.lin", true, {384, 128}},
    {"single_blocks.0.linear1", true, {896, 128}},
    {"single_blocks.0.linear2", true, {128, 640}},
    {"single_blocks.0.norm.query_norm.scale", false, {128}},
    {"single_blocks.0.norm.key_norm.scale", false, {128}},
};
static const tensor flux2[] = {
    {"img_in.weight", false, {128, 16}},
    {"txt_in.weight", false, {128, 60}},
    {"final_layer.linear.weight", false, {16, 128}},
    {"final_layer.adaLN_modulation.1.weight", false, {256, 128}},
    {"time_in.in_layer.weight", false, {128, 32}},
    {"time_in.out_layer.weight", false, {128, 128}},
    {"double_stream_modulation_img.lin.weight", false, {768, 128}},
    {"double_stream_modulation_txt.lin.weight", false, {768, 128}},
    {"single_stream_modulation.lin.weight", false, {384, 128}},
    {"double_blocks.0.img_attn.qkv.weight", false, {384, 128}},
    {"double_blocks.0.img_attn.proj.weight", false, {128, 128}},
    {"double_blocks.0.img_mlp.0.weight", false, {768, 128}},
    {"double_blocks.0.img_mlp.2.weight", false, {128, 384}},
    {"double_blocks.0.txt_attn.qkv.weight", false, {384, 128}},
    {"double_blocks.0.txt_attn.proj.weight", false, {128, 128}},
    {"double_blocks.0.txt_mlp.0.weight", false, {768, 128}},
    {"double_blocks.0.txt_mlp.2.weight", false, {128, 384}},
    {"single_blocks.0.linear1.weight", false, {1152, 128}},
    {"single_blocks.0.linear2.weight", false, {128, 512}},
    {"double_blocks.0.img_attn.norm.query_norm.scale", false, {128}},
    {"double_blocks.0.img_attn.norm.key_norm.scale", false, {128}},
    {"double_blocks.0.txt_attn.norm.query_norm.scale", false, {128}},
    {"double_blocks.0.txt_attn.norm.key_norm.scale", false, {128}},
    {"single_blocks.0.norm.query_norm.scale", false, {128}},
    {"single_blocks.0.norm.key_norm.scale", false, {128}},
};
static const tensor qwen[] = {
    {"time_text_embed.timestep_embedder.linear_1", true, {128, 256}},
    {"time_text_embed.timestep_embedder.linear_2", true, {128, 128}},
    {"txt_norm.weight", false, {40}},
    {"img_in", true, {128, 16}},
    {"txt_in", true, {128, 40}},
    {"transformer_blocks.0.img_mod.1", true, {768, 128}},
    {"transformer_blocks.0.attn.norm_q.weight", false, {128}},
    {"transformer_blocks.0.attn.norm_k.weight", false, {128}},
    {"transformer_blocks.0.attn.to_q", true, {128, 128}},
    {"transformer_blocks.0.attn.to_k", true, {128, 128}},
    {"transformer_blocks.0.attn.to_v", true, {128, 128}},
    {"transformer_blocks.0.attn.add_k_proj", true, {128, 128}},
    {"transformer_blocks.0.attn.add_v_proj", true, {128, 128}},
    {"transformer_blocks.0.attn.add_q_proj", true, {128, 128}},
    {"transformer_blocks.0.attn.to_out.0", true, {128, 128}},
    {"transformer_blocks.0.attn.to_add_out", true, {128, 128}},
    {"transformer_blocks.0.attn.norm_added_q.weight", false, {128}},
    {"transformer_blocks.0.attn.norm_added_k.weight", false, {128}},
    {"transformer_blocks.0.img_mlp.net.0.proj", true, {512, 128}},
    {"transformer_blocks.0.img_mlp.net.2", true, {128, 512}},
    {"transformer_blocks.0.txt_mod.1", true, {768, 128}},
    {"transformer_blocks.0.txt_mlp.net.0.proj", true, {512, 128}},
    {"transformer_blocks.0.txt_mlp.net.2", true, {128, 512}},
    {"norm_out.linear", true, {256, 128}},
    {"proj_out", true, {16, 128}},
};
static const tensor zimage[] = {
    {"x_pad_token", false, {1, 128}},
    {"cap_pad_token", false, {1, 128}},
    {"x_embedder", true, {128, 16}},
    {"final_layer.linear", true, {16, 128}},
    {"final_layer.adaLN_modulation.1", true, {128, 128}},
    {"noise_refiner.0.attention.q_norm.weight", false, {128}},
    {"noise_refiner.0.attention.k_norm.weight", false, {128}},
    {"noise_refiner.0.attention.qkv.weight", false, {384, 128}},
    {"noise_refiner.0.attention.out.weight", false, {128, 128}},
    {"noise_refiner.0.feed_forward.w1.weight", false, {341, 128}},
    {"noise_refiner.0.feed_forward.w2.weight", false, {128, 341}},
    {"noise_refiner.0.feed_forward.w3.weight", false, {341, 128}},
    {"noise_refiner.0.attention_norm1.weight", false, {128}},
    {"noise_refiner.0.ffn_norm1.weight", false, {128}},
    {"noise_refiner.0.attention_norm2.weight", false, {128}},
    {"noise_refiner.0.ffn_norm2.weight", false, {128}},
    {"noise_refiner.0.adaLN_modulation.0", true, {512, 128}},
    {"context_refiner.0.attention.q_norm.weight", false, {128}},
    {"context_refiner.0.attention.k_norm.weight", false, {128}},
    {"context_refiner.0.attention.qkv.weight", false, {384, 128}},
    {"context_refiner.0.attention.out.weight", false, {128, 128}},
    {"context_refiner.0.feed_forward.w1.weight", false, {341, 128}},
    {"context_refiner.0.feed_forward.w2.weight", false, {128, 341}},
    {"context_refiner.0.feed_forward.w3.weight", false, {341, 128}},
    {"context_refiner.0.attention_norm1.weight", false, {128}},
    {"context_refiner.0.ffn_norm1.weight", false, {128}},
    {"context_refiner.0.attention_norm2.weight", false, {128}},
    {"context_refiner.0.ffn_norm2.weight", false, {128}},
    {"t_embedder.mlp.0", true, {1024, 256}},
    {"t_embedder.mlp.2", true, {128, 1024}},
    {"cap_embedder.0.weight", false, {32}},
    {"cap_embedder.1", true, {128, 32}},
    {"layers.0.attention.q_norm.weight", false, {128}},
    {"layers.0.attention.k_norm.weight", false, {128}},
    {"layers.0.attention.qkv.weight", false, {384, 128}},
    {"layers.0.attention.out.weight", false, {128, 128}},
    {"layers.0.feed_forward.w1.weight", false, {341, 128}},
    {"layers.0.feed_forward.w2.weight", false, {128, 341}},
    {"layers.0.feed_forward.w3.weight", false, {341, 128}},
    {"layers.0.attention_norm1.weight", false, {128}},
    {"layers.0.ffn_norm1.weight", false, {128}},
    {"layers.0.attention_norm2.weight", false, {128}},
    {"layers.0.ffn_norm2.weight", false, {128}},
    {"layers.0.adaLN_modulation.0", true, {512, 128}},
    {"norm_final.weight", false, {3}},
};
static const tensor unet[] = {
    {"input_blocks.0.0", true, {32, 4, 3, 3}},
    {"time_embed.0", true, {128, 32}},
    {"time_embed.2", true, {128, 128}},
    {"input_blocks.1.1.norm", true, {32}},
    {"input_blocks.1.1.proj_in", true, {32, 32, 1, 1}},
    {"input_blocks.1.1.transformer_blocks.0.norm1", true, {32}},
    {"input_blocks.1.1.transformer_blocks.0.attn1.to_q.weight", false, {32, 32}},
    {"input_blocks.1.1.transformer_blocks.0.attn1.to_k.weight", false, {32, 32}},
    {"input_blocks.1.1.transformer_blocks.0.attn1.to_v.weight", false, {32, 32}},
    {"input_blocks.1.1.transformer_blocks.0.attn1.to_out.0", true, {32, 32}},
    {"input_blocks.1.1.transformer_blocks.0.norm2", true, {32}},
    {"input_blocks.1.1.transformer_blocks.0.attn2.to_q.weight", false, {32, 32}},
    {"input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight", false, {32, 64}},
    {"input_blocks.1.1.transformer_blocks.0.attn2.to_v.weight", false, {32, 64}},
    {"input_blocks.1.1.transformer_blocks.0.attn2.to_out.0", true, {32, 32}},
    {"input_blocks.1.1.transformer_blocks.0.norm3", true, {32}},
    {"input_blocks.1.1.transformer_blocks.0.ff.net.0.proj", true, {256, 32}},
    {"input_blocks.1.1.transformer_blocks.0.ff.net.2", true, {32, 128}},
    {"input_blocks.1.1.proj_out", true, {32, 32, 1, 1}},
    {"input_blocks.1.0.in_layers.0", true, {32}},
    {"input_blocks.1.0.in_layers.2", true, {32, 32, 3, 3}},
    {"input_blocks.1.0.emb_layers.1", true, {32, 128}},
    {"input_blocks.1.0.out_layers.0", true, {32}},
    {"input_blocks.1.0.out_layers.3", true, {32, 32, 3, 3}},
    {"output_blocks.0.1.norm", true, {32}},
    {"output_blocks.0.1.proj_in", true, {32, 32, 1, 1}},
    {"output_blocks.0.1.transformer_blocks.0.norm1", true, {32}},
    {"output_blocks.0.1.transformer_blocks.0.attn1.to_q.weight", false, {32, 32}},
    {"output_blocks.0.1.transformer_blocks.0.attn1.to_k.weight", false, {32, 32}},
    {"output_blocks.0.1.transformer_blocks.0.attn1.to_v.weight", false, {32, 32}},
    {"output_blocks.0.1.transformer_blocks.0.attn1.to_out.0", true, {32, 32}},
    {"output_blocks.0.1.transformer_blocks.0.norm2", true, {32}},
    {"output_blocks.0.1.transformer_blocks.0.attn2.to_q.weight", false, {32, 32}},
    {"output_blocks.0.1.transformer_blocks.0.attn2.to_k.weight", false, {32, 64}},
    {"output_blocks.0.1.transformer_blocks.0.attn2.to_v.weight", false, {32, 64}},
    {"output_blocks.0.1.transformer_blocks.0.attn2.to_out.0", true, {32, 32}},
    {"output_blocks.0.1.transformer_blocks.0.norm3", true, {32}},
    {"output_blocks.0.1.transformer_blocks.0.ff.net.0.proj", true, {256, 32}},
    {"output_blocks.0.1.transformer_blocks.0.ff.net.2", true, {32, 128}},
    {"output_blocks.0.1.proj_out", true, {32, 32, 1, 1}},
    {"output_blocks.1.1.norm", true, {32}},
    {"output_blocks.1.1.proj_in", true, {32, 32, 1, 1}},
    {"output_blocks.1.1.transformer_blocks.0.norm1", true, {32}},
    {"output_blocks.1.1.transformer_blocks.0.attn1.to_q.weight", false, {32, 32}},
    {"output_blocks.1.1.transformer_blocks.0.attn1.to_k.weight", false, {32, 32}},
    {"output_blocks.1.1.transformer_blocks.0.attn1.to_v.weight", false, {32, 32}},
    {"output_blocks.1.1.transformer_blocks.0.attn1.to_out.0", true, {32, 32}},
    {"output_blocks.1.1.transformer_blocks.0.norm2", true, {32}},
    {"output_blocks.1.1.transformer_blocks.0.attn2.to_q.weight", false, {32, 32}},
    {"output_blocks.1.1.transformer_blocks.0.attn2.to_k.weight", false, {32, 64}},
    {"output_blocks.1.1.transformer_blocks.0.attn2.to_v.weight", false, {32, 64}},
    {"output_blocks.1.1.transformer_blocks.0.attn2.to_out.0", true, {32, 32}},
    {"output_blocks.1.1.transformer_blocks.0.norm3", true, {32}},
    {"output_blocks.1.1.transformer_blocks.0.ff.net.0.proj", true, {256, 32}},
    {"output_blocks.1.1.transformer_blocks.0.ff.net.2", true, {32, 128}},
    {"output_blocks.1.1.proj_out", true, {32, 32, 1, 1}},
    {"output_blocks.0.0.in_layers.0", true, {64}},
    {"output_blocks.0.0.in_layers.2", true, {32, 64, 3, 3}},
    {"output_blocks.0.0.emb_layers.1", true, {32, 128}},
    {"output_blocks.0.0.out_layers.0", true, {32}},
    {"output_blocks.0.0.out_layers.3", true, {32, 32, 3, 3}},
    {"output_blocks.0.0.skip_connection", true, {32, 64, 1, 1}},
    {"output_blocks.1.0.in_layers.0", true, {64}},
    {"output_blocks.1.0.in_layers.2", true, {32, 64, 3, 3}},
    {"output_blocks.1.0.emb_layers.1", true, {32, 128}},
    {"output_blocks.1.0.out_layers.0", true, {32}},
    {"output_blocks.1.0.out_layers.3", true, {32, 32, 3, 3}},
    {"output_blocks.1.0.skip_connection", true, {32, 64, 1, 1}},
    {"middle_block.1.norm", true, {32}},
    {"middle_block.1.proj_in", true, {32, 32, 1, 1}},
    {"middle_block.1.transformer_blocks.0.norm1", true, {32}},
    {"middle_block.1.transformer_blocks.0.attn1.to_q.weight", false, {32, 32}},
    {"middle_block.1.transformer_blocks.0.attn1.to_k.weight", false, {32, 32}},
    {"middle_block.1.transformer_blocks.0.attn1.to_v.weight", false, {32, 32}},
    {"middle_block.1.transformer_blocks.0.attn1.to_out.0", true, {32, 32}},
    {"middle_block.1.transformer_blocks.0.norm2", true, {32}},
    {"middle_block.1.transformer_blocks.0.attn2.to_q.weight", false, {32, 32}},
    {"middle_block.1.transformer_blocks.0.attn2.to_k.weight", false, {32, 64}},
    {"middle_block.1.transformer_blocks.0.attn2.to_v.weight", false, {32, 64}},
    {"middle_block.1.transformer_blocks.0.attn2.to_out.0", true, {32, 32}},
    {"middle_block.1.transformer_blocks.0.norm3", true, {32}},
    {"middle_block.1.transformer_blocks.0.ff.net.0.proj", true, {256, 32}},
    {"middle_block.1.transformer_blocks.0.ff.net.2", true, {32, 128}},
    {"middle_block.1.proj_out", true, {32, 32, 1, 1}},
    {"middle_block.0.in_layers.0", true, {32}},
    {"middle_block.0.in_layers.2", true, {32, 32, 3, 3}},
    {"middle_block.0.emb_layers.1", true, {32, 128}},
    {"middle_block.0.out_layers.0", true, {32}},
    {"middle_block.0.out_layers.3", true, {32, 32, 3, 3}},
    {"middle_block.2.in_layers.0", true, {32}},
    {"middle_block.2.in_layers.2", true, {32, 32, 3, 3}},
    {"middle_block.2.emb_layers.1", true, {32, 128}},
    {"middle_block.2.out_layers.0", true, {32}},
    {"middle_block.2.out_layers.3", true, {32, 32, 3, 3}},
    {"out.0", true, {32}},
    {"out.2", true, {4, 32, 3, 3}},
};

static rdna_status load_flux(rdna_device *device, const char *path) {
  rdna_image_flux *made;
  RDNA_TRY(rdna_image_flux_create(device, path, "transformer", RDNA_F32, &made));
  rdna_image_flux_release(made);
  return RDNA_OK;
}

static rdna_status load_zimage(rdna_device *device, const char *path) {
  rdna__zimage *made;
  RDNA_TRY(rdna__zimage_create(device, path, "transformer", RDNA_F32, RDNA_DTYPE_COUNT, NULL, &made));
  rdna__zimage_release(made);
  return RDNA_OK;
}

static rdna_status load_unet(rdna_device *device, const char *path) {
  rdna_image_unet *made;
  RDNA_TRY(rdna_image_unet_create(device, path, "unet", RDNA_F32, &made));
  rdna_image_unet_release(made);
  return RDNA_OK;
}

static const struct {
  const tensor *tensors;
  size_t count;
  rdna_status (*load)(rdna_device *device, const char *path);
} models[] = {{flux, sizeof flux / sizeof *flux, load_flux},
              {flux2, sizeof flux2 / sizeof *flux2, load_flux},
              {qwen, sizeof qwen / sizeof *qwen, load_flux},
              {zimage, sizeof zimage / sizeof *zimage, load_zimage},
              {unet, sizeof unet / sizeof *unet, load_unet}};
enum { MODELS = sizeof models / sizeof *models };

/* ---- a file ---- */

typedef struct changed {
  tensor of;
  bool missing;
  const char *type;
} changed;

static void change(changed *all, size_t count, const uint8_t *by) {
  static const int64_t sizes[] = {0, 1, 2, 3, 4, 16, 31, 64, 127, 128, 129, 255, 256, 384, 512, 1 << 20};
  static const char *const types[] = {"F8_E4M3", "F16", "BF16", "F32", "F64", "U8", "?"};
  changed *c = &all[by[0] % count];
  int64_t value = sizes[by[2] % (sizeof sizes / sizeof *sizes)];
  switch (by[1] % 5) {
    case 0:
      c->missing = true;
      break;
    case 1:
      c->of.shape[by[1] / 5 % RANK] = value;
      break;
    case 2:
      c->type = types[by[2] % (sizeof types / sizeof *types)];
      break;
    case 3:
      c->of.name = all[by[2] % count].of.name;
      break;
    default:
      c->of.biased = !c->of.biased;
  }
}

static int64_t bytes_of(const char *type) {
  return strcmp(type, "F64") == 0 ? 8 : strcmp(type, "F32") == 0 ? 4 : strcmp(type, "F16") == 0 || *type == 'B' ? 2 : 1;
}

static void put_tensor(FILE *to, const char *name, const char *end, const char *type, int rank, const int64_t *shape,
                       int64_t *at) {
  int64_t bytes = bytes_of(type);
  fprintf(to, "%s\"%s%s\":{\"dtype\":\"%s\",\"shape\":[", *at >= 0 && ftell(to) > 9 ? "," : "", name, end, type);
  for (int i = 0; i < rank; i++) {
    fprintf(to, "%s%lld", i ? "," : "", (long long)shape[i]);
    bytes = bytes > MOST_BYTES ? bytes : bytes * shape[i];
  }
  fprintf(to, "],\"data_offsets\":[%lld,%lld]}", (long long)*at, (long long)(*at + bytes));
  *at += bytes;
}

/* A file without what is in its tensors, which nobody reads; -1: none. */
static int make_file(const changed *all, size_t count) {
  char *text = NULL;
  size_t size = 0;
  int64_t data = 0;
  FILE *to = open_memstream(&text, &size);
  if (!to) return -1;
  fwrite("\0\0\0\0\0\0\0\0{", 1, 9, to);
  for (size_t i = 0; i < count && data < MOST_BYTES; i++) {
    const tensor *t = &all[i].of;
    int rank = RANK;
    while (rank > 0 && t->shape[rank - 1] == 0) rank--;
    if (all[i].missing) continue;
    put_tensor(to, t->name, t->biased ? ".weight" : "", all[i].type, rank, t->shape, &data);
    if (t->biased) put_tensor(to, t->name, ".bias", all[i].type, 1, t->shape, &data);
  }
  fputc('}', to);
  fclose(to);
  uint64_t length = text ? size - 8 : 0;
  if (text) memcpy(text, &length, 8);
  int file = text ? memfd_create("model", 0) : -1;
  bool fine = file >= 0 && write(file, text, size) == (ssize_t)size &&
              ftruncate(file, (off_t)size + (data < MOST_BYTES ? data : MOST_BYTES)) == 0;
  free(text);
  if (fine) return file;
  if (file >= 0) close(file);
  return -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rdna_device *host, *counts;
  changed all[MOST_TENSORS];
  char path[64];
  if (!host && (rdna_device_open("host", &host) != RDNA_OK || rdna__device_rehearse(host, &counts) != RDNA_OK)) abort();
  int which = size ? data[0] % MODELS : 0;
  size_t count = models[which].count;
  if (count > MOST_TENSORS) abort();
  for (size_t i = 0; i < count; i++) all[i] = (changed){models[which].tensors[i], false, "F8_E4M3"};
  for (size_t i = 1; i + 3 <= size; i += 3) change(all, count, data + i);
  int file = make_file(all, count);
  if (file < 0) return 0;
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  rdna_status status = models[which].load(counts, path);
  if (status != RDNA_OK && (size < 4 || !*rdna_last_error())) abort();
  close(file);
  return 0;
}
