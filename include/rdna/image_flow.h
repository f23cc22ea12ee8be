/* The parts of pictures by flow matching (Lipman et al., 2023), where a sample goes from noise to picture in a straight
 * line: T5's text encoder, the transformers of FLUX, Qwen-Image and Stable Diffusion 3, which say where the line goes,
 * and the schedule of steps along it. */
#ifndef RDNA_IMAGE_FLOW_H
#define RDNA_IMAGE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdna/device.h"
#include "rdna/status.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- T5's text encoder ---- */

/* The encoder of T5 1.1 (Raffel et al., 2020; Shazeer, 2020), T5EncoderModel of transformers, with its tokenizer. One
 * thread at a time. */
typedef struct rdna_image_t5 rdna_image_t5;

typedef struct rdna_image_t5_info {
  int layers;
  int width; /* values of a token's state */
  int vocabulary;
  size_t weights_bytes; /* on the device */
} rdna_image_t5_info;

/* Of |folder|, which diffusers or transformers saved: |encoder| in it ("text_encoder_2") with config.json and
 * model.safetensors of f32, f16 or bf16, or that name's index or variant fp16, and |tokenizer| ("tokenizer_2") with
 * spiece.model or tokenizer.json. Or |folder| is a file of safetensors or GGUF that has T5, and |tokenizer| a path.
 * Weights and what products read are of |dtype|: f32, f16 or bf16; sums of layers are f32. Matrices of GGUF's blocks
 * stay so. The device is retained. RDNA_NOT_FOUND: a file is missing. RDNA_BAD_DATA: settings that make no sense,
 * tensors that are missing or not of the shapes that settings ask for, a vocabulary that is none or larger than the
 * model's. RDNA_UNSUPPORTED: another architecture, activation or type of tensors, another kind of tokenizer.
 * RDNA_OUT_OF_MEMORY. */
RDNA_CHECKED rdna_status rdna_image_t5_create(rdna_device *device, const char *folder, const char *encoder,
                                              const char *tokenizer, rdna_dtype dtype, rdna_image_t5 **out_encoder);
RDNA_API void rdna_image_t5_release(rdna_image_t5 *encoder); /* NULL is fine */
/* Borrowed; lives as long as the encoder. */
RDNA_API const rdna_image_t5_info *rdna_image_t5_get_info(const rdna_image_t5 *encoder);

/* |out_ids| (room), room at least 1, becomes the tokens of |size| bytes of |text|, cut where there is no more room, the
 * one that ends it, and what fills the rest. |out_count|, unless NULL: how many tokens the text has, cut off ones too.
 * RDNA_INVALID_ARGUMENT, RDNA_OUT_OF_MEMORY. */
RDNA_CHECKED rdna_status rdna_image_t5_tokens(const rdna_image_t5 *encoder, const char *text, size_t size, int room,
                                              int32_t *out_ids, size_t *out_count);
/* |out_states| (count, width), f32 in host memory, normed, of |ids| (count), 1 to 4096 of one text. Every token sees
 * every other, what fills the text included, as FLUX was trained. RDNA_INVALID_ARGUMENT: another count, an id that the
 * model has not. RDNA_OUT_OF_MEMORY. RDNA_DEVICE_ERROR. */
RDNA_CHECKED rdna_status rdna_image_t5_encode(rdna_image_t5 *encoder, const int32_t *ids, int count, float *out_states);

/* ---- FLUX's transformer ---- */

/* FluxTransformer2DModel of diffusers (FLUX.1 schnell, dev, Fill and Kontext): blocks in which tokens of text and
 * picture have weights of their own and attend to each other, then blocks with weights for both. So are
 * Flux2Transformer2DModel (FLUX.2), and QwenImageTransformer2DModel (Qwen-Image) and SD3Transformer2DModel (Stable
 * Diffusion 3) of the first blocks alone. One thread at a time. */
typedef struct rdna_image_flux rdna_image_flux;

typedef struct rdna_image_flux_info {
  int in_channels, out_channels; /* of samples; a token has four places of each, of FLUX.2 one */
  int text_width;                /* values of a token's state */
  int pooled_width;              /* of a text's vector; 0: it reads none */
  bool guided;                   /* guidance was distilled into it: dev, not schnell */
  size_t weights_bytes;          /* on the device */
} rdna_image_flux_info;

/* Of the folder |name| ("transformer") in |folder|, which diffusers saved, as rdna_image_unet_create says. Or |folder|
 * is a file of safetensors or GGUF with the names of Black Forest Labs' own, of Qwen-Image diffusers' and of Stable
 * Diffusion 3 Stability AI's, alone or behind "model.diffusion_model.", with tensors of f32, f16, bf16, 8-bit floats
 * (times one number, where there is NAME.scale_weight or NAME.weight_scale) or blocks, which matrices keep. */
RDNA_CHECKED rdna_status rdna_image_flux_create(rdna_device *device, const char *folder, const char *name,
                                                rdna_dtype dtype, rdna_image_flux **out_flux);
RDNA_API void rdna_image_flux_release(rdna_image_flux *flux); /* NULL is fine */
/* Borrowed; lives as long as the transformer. */
RDNA_API const rdna_image_flux_info *rdna_image_flux_get_info(const rdna_image_flux *flux);

typedef struct rdna_image_flux_input {
  size_t size; /* of the struct: RDNA_IMAGE_FLUX_INPUT_INIT sets it */
  int height, width, tokens;
  const float *sample; /* (in_channels, height, width), both sides even but of FLUX.2 */
  const float *states; /* (tokens, text_width) */
  const float *pooled; /* (pooled_width), or NULL where that is 0 */
  double timestep;     /* 1000 times the share of noise in the sample */
  double guidance;     /* where it is guided; others do not look at it */
  /* NULL, or (in_channels, context_height, context_width), sides as the sample's: latents of a picture that it looks
   * at, as Kontext was trained */
  const float *context;
  int context_height, context_width;
} rdna_image_flux_input;
#define RDNA_IMAGE_FLUX_INPUT_INIT .size = sizeof(rdna_image_flux_input)

/* |out| (out_channels, height, width): noise less picture. All are f32 in host memory, contiguous.
 * RDNA_INVALID_ARGUMENT: sizes outside the limits, missing or not finite values. RDNA_OUT_OF_MEMORY. RDNA_DEVICE_ERROR.
 */
RDNA_CHECKED rdna_status rdna_image_flux_run(rdna_image_flux *flux, const rdna_image_flux_input *input, float *out);

/* ---- Schedules of straight lines ---- */

/* A sample is (1 - sigma) picture + sigma noise; the first has a sigma of 1, and what the last step makes has 0:
 *
 *     for each step:
 *         output = network(sample, 1000 sigma)
 *         sample += (sigma of the next - sigma) output
 *
 * Immutable. */
typedef struct rdna_image_flow rdna_image_flow;

/* |settings| is the JSON text of a FlowMatchEulerDiscreteScheduler's scheduler_config.json: shift, or with
 * use_dynamic_shifting base_shift, max_shift, base_image_seq_len, max_image_seq_len, time_shift_type (exponential,
 * linear) and shift_terminal; use_karras_sigmas and use_exponential_sigmas. |tokens| of a picture shift the levels
 * where that is dynamic (Esser et al., 2024): the network's tokens, a fourth of a FLUX sample's places. |steps| is from
 * 1 to 10000. RDNA_INVALID_ARGUMENT: other steps, no tokens. RDNA_BAD_DATA: settings that make no sense.
 * RDNA_UNSUPPORTED: settings that are not known. RDNA_OUT_OF_MEMORY. */
RDNA_CHECKED rdna_status rdna_image_flow_create(const char *settings, int steps, int tokens,
                                                rdna_image_flow **out_flow);
RDNA_API void rdna_image_flow_release(rdna_image_flow *flow); /* NULL is fine */
/* As it was created with. */
RDNA_API int rdna_image_flow_steps(const rdna_image_flow *flow);
/* Before step |step|, or behind the last one; NaN where there is no such step. */
RDNA_API double rdna_image_flow_sigma(const rdna_image_flow *flow, int step);
/* |sample| (count) becomes |picture| (count) with as much of |noise| (count) as there is before step |step|. |sample|
 * may be one of the two. RDNA_INVALID_ARGUMENT. */
RDNA_CHECKED rdna_status rdna_image_flow_begin(const rdna_image_flow *flow, int step, const float *picture,
                                               const float *noise, float *sample, size_t count);
/* |sample| (count) becomes that behind step |step|, by the network's |output| (count). RDNA_INVALID_ARGUMENT. */
RDNA_CHECKED rdna_status rdna_image_flow_step(const rdna_image_flow *flow, int step, const float *output, float *sample,
                                              size_t count);

#ifdef __cplusplus
}
#endif
#endif
