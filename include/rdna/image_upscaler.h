/* Networks that make a picture larger: ESRGAN (Wang et al., 2018) and Real-ESRGAN (Wang et al., 2021). */
#ifndef RDNA_IMAGE_UPSCALER_H
#define RDNA_IMAGE_UPSCALER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdna/device.h"
#include "rdna/status.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One thread at a time. */
typedef struct rdna_image_upscaler rdna_image_upscaler;

typedef struct rdna_image_upscaler_info {
  const char *network;  /* "RRDBNet" or "SRVGGNetCompact" */
  int scale;            /* by how much a picture becomes wider and higher */
  int blocks;           /* RRDBNet's blocks, SRVGGNetCompact's convolutions between its first and its last */
  int features;         /* channels between blocks */
  size_t weights_bytes; /* on the device */
} rdna_image_upscaler_info;

/* Of the file at |path|, of safetensors or as PyTorch saves since 1.6 (of which nothing is run), of F32, F16 or BF16,
 * whose tensors' names and shapes say what it is: RRDBNet, under ESRGAN's older and newer names, which enlarges 1, 2, 4
 * or 8 times, of pictures whose pixels may be gathered first (x2plus), and SRVGGNetCompact with PReLU. Weights and
 * activations on the device are of |dtype|, f32, f16 or bf16, or for RDNA_DTYPE_COUNT f16 on a GPU and f32 on the host.
 * The device is retained. RDNA_NOT_FOUND. RDNA_BAD_DATA: tensors that are missing or of shapes that do not fit.
 * RDNA_UNSUPPORTED: another network, type or format of file, which the sentence names where it is known.
 * RDNA_OUT_OF_MEMORY. */
RDNA_CHECKED rdna_status rdna_image_upscaler_create(rdna_device *device, const char *path, rdna_dtype dtype,
                                                    rdna_image_upscaler **out_upscaler);
RDNA_API void rdna_image_upscaler_release(rdna_image_upscaler *upscaler); /* NULL is fine */
/* Borrowed; lives as long as the upscaler. */
RDNA_API const rdna_image_upscaler_info *rdna_image_upscaler_get_info(const rdna_image_upscaler *upscaler);

typedef struct rdna_image_upscaler_input {
  size_t size;          /* of the struct: RDNA_IMAGE_UPSCALER_INPUT_INIT sets it */
  const float *picture; /* (3, height, width), -1 to 1, in host memory: red, green, blue */
  int height, width;    /* from 1 on */
  /* Of so many pixels, a multiple of 4: a larger picture is made of tiles, each of which sees 16 more pixels around it,
   * so that memory on the device does not grow with the picture. The network sees farther than that, if it is deep, and
   * then differs a little near the tiles' edges from what it makes of the whole. 0: 256 */
  int tile;
  bool (*progress)(void *data, int done, int tiles); /* before each tile and behind the last; false stops. Or NULL */
  void *data;
} rdna_image_upscaler_input;
#define RDNA_IMAGE_UPSCALER_INPUT_INIT .size = sizeof(rdna_image_upscaler_input)

/* |out| (3, scale height, scale width) in host memory, -1 to 1 and a little beyond. RDNA_INVALID_ARGUMENT: sizes or a
 * tile outside the limits. RDNA_CANCELLED. RDNA_OUT_OF_MEMORY. RDNA_DEVICE_ERROR. */
RDNA_CHECKED rdna_status rdna_image_upscaler_run(rdna_image_upscaler *upscaler, const rdna_image_upscaler_input *input,
                                                 float *out);

#ifdef __cplusplus
}
#endif
#endif
