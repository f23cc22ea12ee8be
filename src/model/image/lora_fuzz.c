/* Adds files of LoRAs to two weights. The first byte of the input says what the file says of itself; then four bytes
 * are a tensor: whose it is, what of a change, and its two sizes, whose values are zeros. Whatever is in such a file is
 * added or refused with a sentence. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/image/lora.h"
#include "rdna/device.h"
#include "rdna/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MODULE "mid_block.attentions.0.proj_in"
#define ATTENTION "down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_q"
static const char *const bases[] = {"lora_unet_mid_block_attentions_0_proj_in",
                                    "lora_unet_middle_block_1_proj_in",
                                    "unet." MODULE,
                                    "diffusion_model.middle_block.1.proj_in",
                                    "unet." ATTENTION,
                                    "unet.down_blocks.0.attentions.0.transformer_blocks.0.attn1.processor.to_q_lora",
                                    "lora_te_text_model_encoder_layers_0_mlp_fc1",
                                    "lora_te2_text_model_encoder_layers_0_mlp_fc1",
                                    "text_encoder.text_model.encoder.layers.0.mlp.fc1",
                                    "lora_unet_double_blocks_0_img_attn_qkv",
                                    "transformer.transformer_blocks.0.attn.to_k",
                                    "diffusion_model.final_layer.adaLN_modulation.1",
                                    "double_blocks.0.processor.qkv_lora1",
                                    "lora_te3_encoder_block_0_layer_0_SelfAttention_q",
                                    "strange"};
static const char *const kinds[] = {"lora_down.weight",
                                    "lora_up.weight",
                                    "lora_A.weight",
                                    "lora_B.weight",
                                    "down.weight",
                                    "up.weight",
                                    "alpha",
                                    "hada_w1_a",
                                    "hada_w1_b",
                                    "hada_w2_a",
                                    "hada_w2_b",
                                    "lokr_w1",
                                    "lokr_w2",
                                    "lokr_w1_a",
                                    "lokr_w1_b",
                                    "lokr_w2_a",
                                    "lokr_w2_b",
                                    "lokr_t2",
                                    "dora_scale",
                                    "lora_mid.weight",
                                    "lora_A.default.weight",
                                    "diff"};
static const char *const said[] = {"",
                                   "{\\\"unet.r\\\":4,\\\"unet.lora_alpha\\\":8}",
                                   "{\\\"unet.r\\\":4,\\\"unet.lora_alpha\\\":8,\\\"unet.use_rslora\\\":true}",
                                   "{\\\"unet.r\\\":\\\"4\\\",\\\"unet.lora_alpha\\\":8}",
                                   "{\\\"text_encoder.lora_alpha\\\":8}",
                                   "{\\\"unet.r\\\":4,\\\"unet.lora_alpha\\\":8,\\\"unet.use_dora\\\":true}",
                                   "[",
                                   "3"};
enum { BASES = sizeof bases / sizeof *bases, KINDS = sizeof kinds / sizeof *kinds, SAID = sizeof said / sizeof *said };
enum { OUT = 12, IN = 8, MOST_TENSORS = 64 };

/* A small number, often one that fits. */
static unsigned size_of(uint8_t byte) {
  static const unsigned sizes[] = {OUT, IN, 4, 2, 3, 1, 6, 0};
  return byte < 0xe0 ? sizes[byte % 8] : byte;
}

/* A file in memory; -1: there is none. */
static int make_file(const uint8_t *data, size_t size) {
  char *header = NULL;
  size_t length, end = 0;
  FILE *to = open_memstream(&header, &length);
  if (!to) return -1;
  fprintf(to, "{\"__metadata__\":{\"x\":\"\"");
  if (size && data[0] % SAID) fprintf(to, ",\"lora_adapter_metadata\":\"%s\"", said[data[0] % SAID]);
  fprintf(to, "}");
  for (size_t i = 1; i + 4 <= size && i < 4 * MOST_TENSORS; i += 4) {
    unsigned rows = size_of(data[i + 2]), columns = size_of(data[i + 3]), flat = data[i + 1] >= 0xf0;
    size_t bytes = (size_t)rows * (flat ? 1 : columns) * 2;
    fprintf(to, ",\"%s.%s\":{\"dtype\":\"%s\",\"shape\":[%u", bases[data[i] % BASES], kinds[data[i + 1] % KINDS],
            data[i] >= 0xfa ? "I16" : "F16", rows);
    if (!flat) fprintf(to, ",%u", columns);
    if (!flat && data[i] >= 0x80 && data[i] < 0x90) fprintf(to, ",1,1");
    fprintf(to, "],\"data_offsets\":[%zu,%zu]}", end, end + bytes);
    end += bytes;
  }
  fputc('}', to);
  fclose(to);
  int file = memfd_create("lora", 0);
  uint64_t eight = length;
  bool written = file >= 0 && header && write(file, &eight, 8) == 8 && write(file, header, length) == (ssize_t)length &&
                 ftruncate(file, (off_t)(8 + length + end)) == 0;
  free(header);
  if (!written && file >= 0) close(file);
  return written ? file : -1;
}

/* The same as two matrices, where it is some. */
static void load(rdna__loras *loras, const rdna__lora_module *module, rdna_stream *stream) {
  const int64_t rank = rdna__loras_rank(loras, module), below[] = {rank, IN}, above[] = {OUT, rank};
  rdna_device *device = rdna_stream_device(stream);
  rdna_tensor down = rdna_tensor_contiguous(NULL, RDNA_F32, 2, below),
              up = rdna_tensor_contiguous(NULL, RDNA_F32, 2, above);
  if (!rank) return;
  if (rdna_memory_alloc_named(device, (size_t)rank * IN * sizeof(float), NULL, "a fuzzer", &down.data) != RDNA_OK ||
      rdna_memory_alloc_named(device, (size_t)rank * OUT * sizeof(float), NULL, "a fuzzer", &up.data) != RDNA_OK)
    abort();
  if (rdna__loras_load(loras, module, stream, &down, &up) != RDNA_OK && !*rdna_last_error()) abort();
  if (rdna_stream_synchronize(stream) != RDNA_OK) abort();
  (void)!rdna_memory_free(device, down.data);
  (void)!rdna_memory_free(device, up.data);
}

static void add(rdna__loras *loras, rdna__lora_part part, const char *name, const rdna__checkpoint_part *names,
                rdna_stream *stream, const rdna_tensor *weight) {
  const rdna__lora_module module = {part, names, false, name, false};
  if (!rdna__loras_change(loras, &module)) return;
  if (rdna__loras_add(loras, &module, stream, weight) != RDNA_OK && !*rdna_last_error()) abort();
  load(loras, &module, stream);
  if (rdna_stream_synchronize(stream) != RDNA_OK) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rdna_device *device;
  const rdna__checkpoint_part names = {CHECKPOINT_UNET, "", 2, 1, 2};
  const int64_t matrix[] = {OUT, IN}, window[] = {OUT, 2, 2, 2};
  rdna_tensor weight = rdna_tensor_contiguous(NULL, RDNA_F32, 2, matrix);
  rdna__loras *loras = NULL;
  char path[64];
  if (!device && rdna_device_open("host", &device) != RDNA_OK) abort();
  rdna_stream *stream = rdna_device_default_stream(device);
  int file = make_file(data, size);
  if (file < 0) return 0;
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  const rdna_image_lora given[] = {{path, 0.5}, {path, -1}};
  const bool flows = size % 4 > 1;
  const rdna__lora_target target = {flows, 1 + (int)(size % 2), flows};
  const rdna__checkpoint_part flux = {CHECKPOINT_FLUX, "", 0, 0, 0};
  if (rdna__loras_open(given, 2, &target, &loras) == RDNA_OK) {
    if (rdna_memory_alloc_named(device, OUT * IN * sizeof(float), NULL, "a fuzzer", &weight.data) != RDNA_OK) abort();
    add(loras, LORA_NETWORK, MODULE, &names, stream, &weight);
    add(loras, LORA_ENCODER, "encoder.layers.0.mlp.fc1", &names, stream, &weight);
    rdna_tensor other = rdna_tensor_contiguous(weight.data, RDNA_F32, 4, window);
    add(loras, LORA_NETWORK, ATTENTION, &names, stream, &other);
    if (flows) {
      add(loras, LORA_NETWORK, "transformer_blocks.0.attn.to_k", &flux, stream, &weight);
      add(loras, LORA_NETWORK, "norm_out.linear", &flux, stream, &weight);
      add(loras, LORA_T5, "encoder.block.0.layer.0.SelfAttention.q", &names, stream, &weight);
    }
    for (int i = 0; i < LORA_PARTS; i++)
      if (rdna__loras_check_used(loras, (rdna__lora_part)i) != RDNA_OK && !*rdna_last_error()) abort();
    (void)!rdna_memory_free(device, weight.data);
  } else if (!*rdna_last_error()) {
    abort();
  }
  rdna__loras_close(loras);
  close(file);
  return 0;
}
