/* The parts of pictures by diffusion: CLIP's text encoder, which reads what a picture is asked to show, the U-Net,
 * which tells noise from picture, the schedules by which noise is taken away, step by step, and the autoencoder, which
 * makes a picture of what is left. */
#ifndef RDNA_IMAGE_H
#define RDNA_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdna/device.h"
#include "rdna/status.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Text encoders ---- */

/* CLIP's (Radford et al., 2021), with its tokenizer. Weights are f32 on the device. One thread at a time. */
typedef struct rdna_image_text_encoder rdna_image_text_encoder;

typedef struct rdna_image_text_encoder_info {
  int positions; /* tokens of a text, with those that begin, end and fill it */
  int layers;
  int width;            /* values of a token's state */
  int pooled;           /* values of a text's vector */
  bool projected;       /* that vector is projected, as CLIPTextModelWithProjection has it */
  size_t weights_bytes; /* on the device */
} rdna_image_text_encoder_info;

/* Of |folder|, which diffusers or transformers saved: |encoder| in it ("text_encoder", "text_encoder_2") with
 * config.json and model.safetensors of f32, f16 or bf16, or that name's index or variant fp16, and |tokenizer|
 * ("tokenizer", "tokenizer_2") with vocab.json and merges.txt, or tokenizer.json, and tokenizer_config.json, which may
 * be missing. Where |folder| is a file, which has all parts of a model and no vocabulary (docs/image.md), |tokenizer|
 * is a path. The device is retained. RDNA_NOT_FOUND: a file is missing. RDNA_BAD_DATA: settings that make no sense,
 * tensors that are missing or not of the shapes that settings ask for, a vocabulary that is none or larger than the
 * model's. RDNA_UNSUPPORTED: another architecture, activation, type of tensors, other tokens at a text's ends, added
 * tokens. RDNA_OUT_OF_MEMORY. */
RDNA_CHECKED rdna_status rdna_image_text_encoder_create(rdna_device *device, const char *folder, const char *encoder,
                                                        const char *tokenizer, rdna_image_text_encoder **out_encoder);
RDNA_API void rdna_image_text_encoder_release(rdna_image_text_encoder *encoder); /* NULL is fine */
/* Borrowed; lives as long as the encoder. */
RDNA_API const rdna_image_text_encoder_info *rdna_image_text_encoder_get_info(const rdna_image_text_encoder *encoder);

/* |out_ids| (positions) becomes the token that begins a text, the tokens of |size| bytes of |text|, cut where there is
 * no more room, the one that ends it, and what fills the rest. |out_count|, unless NULL: how many tokens the text has,
 * cut off ones too. The names of the model's own tokens (<|endoftext|>) are those tokens. RDNA_OUT_OF_MEMORY. */
RDNA_CHECKED rdna_status rdna_image_text_encoder_tokens(const rdna_image_text_encoder *encoder, const char *text,
                                                        size_t size, int32_t *out_ids, size_t *out_count);

/* What the encoder makes of |count| texts, 1 to 64, of |ids| (count, positions). In host memory, f32, each NULL where
 * it is not wanted:
 *
 *     out_states (count, positions, width)   behind all layers but the last |skip|, and where |normed| the last norm
 *     out_pooled (count, pooled)             the state behind all layers, normed, of the token that ends a text
 *
 * Stable Diffusion 1 and 2 are given normed states with a skip of 0, and SDXL others with a skip of 1; "clip skip"
 * asks for more. RDNA_INVALID_ARGUMENT: a count or skip outside the limits, an id that the model has not.
 * RDNA_OUT_OF_MEMORY. RDNA_DEVICE_ERROR. */
RDNA_CHECKED rdna_status rdna_image_text_encoder_encode(rdna_image_text_encoder *encoder, const int32_t *ids, int count,
                                                        int skip, bool normed, float *out_states, float *out_pooled);

/* ---- Autoencoders ---- */

/* AutoencoderKL of Rombach et al. (2022): pictures as latents of a |factor|th of their size, and back; or
 * AutoencoderKLQwenImage, which is Wan's for films, of single pictures, or AutoencoderKLFlux2, whose latents are
 * patches of 2 x 2; or AutoencoderTiny (TAESD), which was trained to do about the same as another in a small share of
 * the work. Latents here are those that networks see: what the encoder makes, less |shift|, times |scaling|; of
 * the last two less a mean and over a deviation of each channel. Pictures and latents are f32 in host memory,
 * contiguous, of pictures mostly -1 to 1. One thread at a time. */
typedef struct rdna_image_autoencoder rdna_image_autoencoder;

typedef struct rdna_image_autoencoder_info {
  int in_channels, out_channels; /* of pictures that are encoded, and decoded */
  int latent_channels;
  int factor;
  double scaling, shift; /* 1 and 0 where each channel has its own */
  bool encodes;
  size_t weights_bytes; /* on the device */
} rdna_image_autoencoder_info;

/* Of the folder |name| ("vae") in |folder|, which diffusers saved, or of a file that has all parts; or with the name
 * "taesd" of a file that has a tiny one, or its decoder alone, by diffusers' names or its maker's: config.json, and
 * diffusion_pytorch_model.safetensors or that name's index or variant fp16, of f32, f16 or bf16. Weights and
 * activations on the device are of |dtype|: f32, f16 or bf16. Where it need not encode the encoder is not loaded. The
 * device is retained. RDNA_NOT_FOUND: a file is missing. RDNA_BAD_DATA: settings that make no sense, tensors that are
 * missing or not of the shapes that settings ask for. RDNA_UNSUPPORTED: another class, blocks or type of tensors;
 * tensors that the settings do not speak of; f16 where the settings say that its range is left; a file without an
 * encoder that is to encode. RDNA_OUT_OF_MEMORY. */
RDNA_CHECKED rdna_status rdna_image_autoencoder_create(rdna_device *device, const char *folder, const char *name,
                                                       rdna_dtype dtype, bool encodes,
                                                       rdna_image_autoencoder **out_autoencoder);
RDNA_API void rdna_image_autoencoder_release(rdna_image_autoencoder *autoencoder); /* NULL is fine */
/* Borrowed; lives as long as the autoencoder. */
RDNA_API const rdna_image_autoencoder_info *rdna_image_autoencoder_get_info(const rdna_image_autoencoder *autoencoder);

/* |out_pictures| (count, out_channels, factor height, factor width) of |latents| (count, latent_channels, height,
 * width), one after another. |tile|, unless 0: a larger one is decoded in tiles of so many latents in height and width,
 * a multiple of 4, each of which laps over the next by a quarter, where one goes over into the other; memory on the
 * device is then that of one tile. It is another picture than without tiles, as attention and norms see a tile: the
 * very one that diffusers makes with enable_tiling. RDNA_INVALID_ARGUMENT: sizes or a tile outside the limits.
 * RDNA_OUT_OF_MEMORY. RDNA_DEVICE_ERROR. */
RDNA_CHECKED rdna_status rdna_image_autoencoder_decode(rdna_image_autoencoder *autoencoder, const float *latents,
                                                       int count, int height, int width, int tile, float *out_pictures);
/* |out_latents| (count, latent_channels, height / factor, width / factor) of |pictures| (count, in_channels, height,
 * width). |noise|, of the latents' shape and of deviation 1, draws them from what the encoder makes of a picture; NULL:
 * the means of that, which is what a tiny one makes whatever noise is given. |tile| as above, in latents.
 * RDNA_INVALID_ARGUMENT: sizes that are no multiples of the factor, or as above; an autoencoder that was not made to
 * encode. */
RDNA_CHECKED rdna_status rdna_image_autoencoder_encode(rdna_image_autoencoder *autoencoder, const float *pictures,
                                                       int count, int height, int width, int tile, const float *noise,
                                                       float *out_latents);

/* ---- U-Nets ---- */

/* The network that Stable Diffusion 1, 2 and XL tell noise from picture with (Rombach et al., 2022; Podell et al.,
 * 2023), UNet2DConditionModel of diffusers. Samples are f32 in host memory, contiguous. One thread at a time. */
typedef struct rdna_image_unet rdna_image_unet;

typedef struct rdna_image_unet_info {
  int in_channels, out_channels;
  int sample;           /* height and width of samples that it was trained with; 0: the settings do not say it */
  int text_width;       /* values of a token's state */
  int added_width;      /* XL: of a text's vector and of numbers, together; 0: it reads neither */
  int number_width;     /* XL: of each number */
  int guidance_width;   /* of networks that guidance was distilled into: values that it is embedded in; 0: others */
  size_t weights_bytes; /* on the device */
} rdna_image_unet_info;

/* Of the folder |name| ("unet") in |folder|, which diffusers saved, or of a file that has all parts: config.json, and
 * diffusion_pytorch_model.safetensors or that name's index or variant fp16, of f32, f16 or bf16. Weights and
 * activations on the device are of |dtype|: f32, f16 or bf16. The device is retained. RDNA_NOT_FOUND: a file is
 * missing. RDNA_BAD_DATA: settings that make no sense, tensors that are missing or not of the shapes that settings ask
 * for. RDNA_UNSUPPORTED: another class, settings that are not known or not offered, tensors that they do not speak of.
 * RDNA_OUT_OF_MEMORY. */
RDNA_CHECKED rdna_status rdna_image_unet_create(rdna_device *device, const char *folder, const char *name,
                                                rdna_dtype dtype, rdna_image_unet **out_unet);
RDNA_API void rdna_image_unet_release(rdna_image_unet *unet); /* NULL is fine */
/* Borrowed; lives as long as the U-Net. */
RDNA_API const rdna_image_unet_info *rdna_image_unet_get_info(const rdna_image_unet *unet);

/* See below. */
typedef struct rdna_image_control rdna_image_control;
typedef struct rdna_image_control_use {
  rdna_image_control *control; /* which has seen a picture of the sample's size */
  double scale;
} rdna_image_control_use;

typedef struct rdna_image_adapter rdna_image_adapter;
typedef struct rdna_image_adapter_use {
  rdna_image_adapter *adapter; /* which has seen as many pictures as there are samples */
  double scale;
} rdna_image_adapter_use;

typedef struct rdna_image_unet_input {
  size_t size; /* of the struct: RDNA_IMAGE_UNET_INPUT_INIT sets it */
  int count;   /* 1 to 64 */
  int height, width, tokens;
  const float *sample; /* (count, in_channels, height, width) */
  const float *states; /* (count, tokens, text_width) */
  double timestep;
  /* XL, whose pooled_width + number_count number_width is added_width; others do not look at them */
  const float *pooled;  /* (count, pooled_width) */
  const float *numbers; /* (count, number_count): sizes before and after cropping, where it was cropped */
  int pooled_width, number_count;
  double guidance;                        /* of networks that it was distilled into; others do not look at it */
  const rdna_image_control_use *controls; /* (control_count) on the U-Net's device, of its type */
  size_t control_count;
  /* Tokens of the last |perturbed| samples see themselves alone where |perturbed_layers| says, for perturbed attention
   * guidance (Ahn et al., 2024): "mid", "down.1", "up.0.2", …, see docs/image.md */
  int perturbed;
  const char *perturbed_layers;
  const rdna_image_adapter_use *adapters; /* (adapter_count) on the U-Net's device, of its type */
  size_t adapter_count;
} rdna_image_unet_input;
#define RDNA_IMAGE_UNET_INPUT_INIT .size = sizeof(rdna_image_unet_input)

/* |out| (count, out_channels, height, width), by a schedule's prediction_type the noise in the samples or another
 * mixture of noise and picture. Heights and widths need be no multiple of anything. RDNA_INVALID_ARGUMENT: sizes
 * outside the limits, or that are not the U-Net's. RDNA_OUT_OF_MEMORY. RDNA_DEVICE_ERROR. */
RDNA_CHECKED rdna_status rdna_image_unet_run(rdna_image_unet *unet, const rdna_image_unet_input *input, float *out);

/* ---- ControlNets ---- */

/* A copy of a U-Net's first half that was trained to say, of a picture such as the edges of another, what is to be
 * added to what the U-Net's second half reads (Zhang, Rao and Agrawala, 2023): ControlNetModel of diffusers. It asks
 * for the U-Net's whole input. One thread at a time, which may not run a U-Net that uses it meanwhile. */

typedef struct rdna_image_control_info {
  int in_channels;      /* of a sample, the first that the U-Net reads */
  int factor;           /* how many of its picture's pixels a latent is wide and high */
  int outputs;          /* images that are added */
  size_t weights_bytes; /* on the device */
} rdna_image_control_info;

/* Of the folder |path|, which diffusers saved, or of a file of safetensors with control_model.*, whose settings its
 * tensors say. |dtype| and what is returned are as for rdna_image_unet_create; RDNA_UNSUPPORTED, besides: other
 * networks of that purpose, which the sentence names. */
RDNA_CHECKED rdna_status rdna_image_control_create(rdna_device *device, const char *path, rdna_dtype dtype,
                                                   rdna_image_control **out_control);
RDNA_API void rdna_image_control_release(rdna_image_control *control); /* NULL is fine */
/* Borrowed; lives as long as the ControlNet. */
RDNA_API const rdna_image_control_info *rdna_image_control_get_info(const rdna_image_control *control);

/* From now on |picture| (3, height, width) of 0 to 1, f32 in host memory, says what is added; what becomes of it stays
 * on the device. RDNA_INVALID_ARGUMENT: sides that are no multiples of the factor. RDNA_OUT_OF_MEMORY.
 * RDNA_DEVICE_ERROR. */
RDNA_CHECKED rdna_status rdna_image_control_see(rdna_image_control *control, const float *picture, int height,
                                                int width);
/* How many values rdna_image_control_run makes of |count| samples of |height| x |width| latents. */
RDNA_API size_t rdna_image_control_size(const rdna_image_control *control, int count, int height, int width);
/* |out|: what would be added, image behind image from the U-Net's first to its middle, each (count, channels, height,
 * width); for who wants to look at it. Of |input| the controls are not looked at, and the sample has in_channels.
 * RDNA_INVALID_ARGUMENT: as rdna_image_unet_run, or nothing of that size was seen. */
RDNA_CHECKED rdna_status rdna_image_control_run(rdna_image_control *control, const rdna_image_unet_input *input,
                                                float *out);

/* ---- Pictures as prompts ---- */

/* CLIP's encoder of pictures (Radford et al., 2021), CLIPVisionModelWithProjection of transformers. Weights are f32 on
 * the device. One thread at a time. */
typedef struct rdna_image_vision_encoder rdna_image_vision_encoder;

typedef struct rdna_image_vision_encoder_info {
  int side, patch;   /* pixels of the square that it sees, and of the squares in that */
  int tokens, width; /* one for each of these and one more; values of a token's state */
  int projected;     /* values of a picture's vector */
  int layers;
  size_t weights_bytes; /* on the device */
} rdna_image_vision_encoder_info;

/* Of |folder|, with config.json and model.safetensors of f32, f16 or bf16, or that name's index or variant fp16. The
 * device is retained. RDNA_NOT_FOUND, RDNA_BAD_DATA, RDNA_UNSUPPORTED, RDNA_OUT_OF_MEMORY: as for text encoders. */
RDNA_CHECKED rdna_status rdna_image_vision_encoder_create(rdna_device *device, const char *folder,
                                                          rdna_image_vision_encoder **out_encoder);
RDNA_API void rdna_image_vision_encoder_release(rdna_image_vision_encoder *encoder); /* NULL is fine */
/* Borrowed; lives as long as the encoder. */
RDNA_API const rdna_image_vision_encoder_info *rdna_image_vision_encoder_get_info(
    const rdna_image_vision_encoder *encoder);
/* What it makes of |pixels| (height, width, 3), red, green and blue, 0 to 255, of which the shorter side is resized to
 * |side| by bicubic interpolation, as Pillow has it, and the middle square is seen; NULL: of a picture of zeros behind
 * the norm of colours. In host memory, f32, each NULL where it is not wanted: |out_vector| (projected), and
 * |out_states| (tokens, width) before the last layer. RDNA_INVALID_ARGUMENT: sides above 16,384, also behind the
 * resizing. RDNA_OUT_OF_MEMORY. RDNA_DEVICE_ERROR. */
RDNA_CHECKED rdna_status rdna_image_vision_encoder_encode(rdna_image_vision_encoder *encoder, const uint8_t *pixels,
                                                          int height, int width, float *out_vector, float *out_states);

/* An IP-Adapter (Ye et al., 2023) for Stable Diffusion 1, 2 or XL: of what that encoder makes of a picture it makes
 * tokens, which the U-Net's attention over texts reads by keys and values of their own. One thread at a time. */
typedef struct rdna_image_adapter_info {
  bool reads_states; /* of all patches ("plus"), else a picture's vector */
  int seen;          /* values of a state, or of the vector */
  int tokens, width; /* that it makes of a picture; values of a token */
} rdna_image_adapter_info;

/* Of a file of safetensors with image_proj.* and ip_adapter.*, as its authors publish them. |dtype| is the U-Net's. The
 * file is read again by the function below. RDNA_UNSUPPORTED: another kind, which the sentence names. */
RDNA_CHECKED rdna_status rdna_image_adapter_create(rdna_device *device, const char *path, rdna_dtype dtype,
                                                   rdna_image_adapter **out_adapter);
RDNA_API void rdna_image_adapter_release(rdna_image_adapter *adapter); /* NULL is fine */
/* Borrowed; lives as long as the adapter. */
RDNA_API const rdna_image_adapter_info *rdna_image_adapter_get_info(const rdna_image_adapter *adapter);
/* From now on the U-Net's samples read what becomes of |seen| (count, rows, seen): of each sample a picture's vector,
 * of one row, or its states. Keys and values of all blocks are computed now and stay on the device; weights do not.
 * |out_tokens| (count, tokens, width), unless NULL: the tokens. RDNA_INVALID_ARGUMENT, RDNA_BAD_DATA,
 * RDNA_OUT_OF_MEMORY, RDNA_DEVICE_ERROR. */
RDNA_CHECKED rdna_status rdna_image_adapter_see(rdna_image_adapter *adapter, const float *seen, int count, int rows,
                                                float *out_tokens);

/* ---- Noise ---- */

/* The numbers of torch.randn on the CPU with the same seed, of mean 0 and deviation 1: MT19937 (Matsumoto and
 * Nishimura, 1998) and the transform of Box and Muller, computed in f64 and rounded, where PyTorch's are off by some
 * units in the last place. So pictures are those that diffusers makes with a generator on the CPU. One thread at a
 * time. */
typedef struct rdna_image_noise rdna_image_noise;

/* Of |seed| the lower 32 bits count, as there. RDNA_OUT_OF_MEMORY. */
RDNA_CHECKED rdna_status rdna_image_noise_create(uint64_t seed, rdna_image_noise **out_noise);
RDNA_API void rdna_image_noise_release(rdna_image_noise *noise); /* NULL is fine */
/* The next |count| numbers, which are others than those of two calls for as many. */
RDNA_API void rdna_image_noise_draw(rdna_image_noise *noise, float *out, size_t count);

/* ---- Schedules ---- */

/* Which noise levels a network is asked at, and what its answers make of a sample:
 *
 *     sample = initial_scale * noise
 *     for each step:
 *         output = network(input_scale * sample, timestep)
 *         step(output) changes the sample
 *
 * Samples are f32 in host memory, of any shape. One thread at a time. */
typedef struct rdna_image_schedule rdna_image_schedule;

/* |settings| is the JSON text of a folder's scheduler_config.json: num_train_timesteps, beta_schedule (linear,
 * scaled_linear, squaredcos_cap_v2), beta_start, beta_end, prediction_type (epsilon, v_prediction, sample),
 * timestep_spacing (leading, linspace, trailing), steps_offset, set_alpha_to_one, clip_sample and its range,
 * final_sigmas_type, rescale_betas_zero_snr, original_inference_steps, timestep_scaling, lower_order_final,
 * euler_at_final, UniPC's solver_order and solver_type; what is missing is as diffusers has it for |sampler|, and
 * others are left alone that belong to other samplers.
 *
 *     sampler           |
 *     ddim              | Song, Meng and Ermon (2021), without noise of its own
 *     ddpm              | Ho, Jain and Abbeel (2020), of the smaller variance, with noise added at each step but the
 * last pndm              | Liu et al. (2022) without Runge-Kutta steps, so with up to four answers in memory euler |
 * Karras et al. (2022), algorithm 2 without churn euler_ancestral   | the same, with noise added at each step heun |
 * algorithm 2 with its correction: all steps but the last ask twice dpmpp_2m          | Lu et al. (2022), DPM-Solver++
 * of second order with two answers in memory dpmpp_2m_sde      | the same of the stochastic equation, with noise added
 * at each step but the last dpmpp_3m_sde      | … of third order, with three answers in memory dpmpp_sde         | … of
 * second order with an answer between two levels: all steps but the last ask twice unipc             | Zhao et al.
 * (2023), which corrects each step by the answer to the next lcm               | Luo et al. (2023), for latent
 * consistency models, with noise added at each step but the last
 *
 * |spacing| of noise levels: "simple", as the timesteps have them; "karras", equation 5 of Karras et al. with rho 7;
 * "exponential", evenly in their logarithm; "beta", by Lee et al. (2024); "ays" and "ays_xl", the ten levels that
 * Sabour et al. (2024) found for Stable Diffusion 1 and XL, of other numbers interpolated in their logarithm;
 * "sgm_uniform", timesteps evenly from the last trained one, as if one step more led to 0; whatever use_karras_sigmas
 * and its like say. ddim, ddpm, pndm, euler_ancestral and lcm have "simple" alone. RDNA_INVALID_ARGUMENT: no such
 * sampler or spacing, steps that are not from 1 to num_train_timesteps. RDNA_BAD_DATA: settings that make no sense.
 * RDNA_UNSUPPORTED: settings that are not known, or together not. */
RDNA_CHECKED rdna_status rdna_image_schedule_create(const char *settings, const char *sampler, const char *spacing,
                                                    int steps, rdna_image_schedule **out_schedule);
RDNA_API void rdna_image_schedule_release(rdna_image_schedule *schedule); /* NULL is fine */

/* How often the network is asked: as many times as there are steps that it was created with, of heun and dpmpp_sde
 * twice as often less once, of pndm once more. Each is a step to the functions below. */
RDNA_API int rdna_image_schedule_steps(const rdna_image_schedule *schedule);
/* Which of these begins with step |level|, from 0, of those that it was created with; -1: there is no such step. */
RDNA_API int rdna_image_schedule_step_of(const rdna_image_schedule *schedule, int level);
/* What noise of deviation 1 is multiplied by to be the first sample. */
RDNA_API double rdna_image_schedule_initial_scale(const rdna_image_schedule *schedule);
/* Of step |step|, from 0: what the network is told, and what the sample is multiplied by on its way there. NaN where
 * there is no such step. */
RDNA_API double rdna_image_schedule_timestep(const rdna_image_schedule *schedule, int step);
RDNA_API double rdna_image_schedule_input_scale(const rdna_image_schedule *schedule, int step);
/* Whether steps add noise. */
RDNA_API bool rdna_image_schedule_needs_noise(const rdna_image_schedule *schedule);
/* |sample| (count) becomes |picture| (count) with so much of |noise| (count) of deviation 1 as there is before step
 * |first|, one of rdna_image_schedule_step_of, which may be taken next. |sample| may be one of the two.
 * RDNA_INVALID_ARGUMENT: no such step, missing values. */
RDNA_CHECKED rdna_status rdna_image_schedule_begin(rdna_image_schedule *schedule, int first, const float *picture,
                                                   const float *noise, float *sample, size_t count);
/* |sample| (count) becomes that of the next step, by the network's |output| (count) and, where it is needed, |noise|
 * (count) of deviation 1, which may be NULL otherwise. Steps are taken in order; 0 begins another sample, of any size.
 * RDNA_INVALID_ARGUMENT: another step or another count than the last one's, or missing values; nothing was changed.
 * RDNA_OUT_OF_MEMORY. */
RDNA_CHECKED rdna_status rdna_image_schedule_step(rdna_image_schedule *schedule, int step, const float *output,
                                                  const float *noise, float *sample, size_t count);

#ifdef __cplusplus
}
#endif
#endif
