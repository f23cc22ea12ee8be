/* Language models: weights from a GGUF file on a device, and sessions that feed them tokens. */
#ifndef RDNA_LLM_H
#define RDNA_LLM_H

#include "rdna/device.h"
#include "rdna/model.h"
#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdna_llm rdna_llm;                 /* read only once open; any number of sessions may share it */
typedef struct rdna_llm_session rdna_llm_session; /* one sequence and its KV cache; one thread at a time */

/* How what a model gives of tokens becomes one vector of a text: general in GGUF as ARCHITECTURE.pooling_type, a number
 * less. */
typedef enum rdna_llm_pooling {
  RDNA_LLM_POOLING_UNSAID = 0, /* the file does not say */
  RDNA_LLM_POOLING_NONE,       /* not at all: a vector for each token */
  RDNA_LLM_POOLING_MEAN,
  RDNA_LLM_POOLING_CLS,  /* the first token's */
  RDNA_LLM_POOLING_LAST, /* the last token's */
  RDNA_LLM_POOLING_RANK, /* labels in place of a vector, as models give them that judge texts */
  RDNA_LLM_POOLING_COUNT
} rdna_llm_pooling;

typedef struct rdna_llm_info {
  char architecture[32];
  int layers, width, heads, kv_heads, head_dim, hidden, vocabulary;
  int context;              /* what the model was trained for, tokens */
  uint64_t parameters;      /* values in all weights */
  uint64_t weight_bytes;    /* of all weights on the device */
  uint64_t bytes_per_token; /* of the weights that decoding one token reads: all but the rows of embeddings that it does
                               not look up, and the experts that it does not take */
  uint64_t cache_values;    /* keys and values that a position keeps, of all layers */
  int encoder;              /* 1: tokens see those behind them; it gives embeddings or labels, and cannot write */
  rdna_llm_pooling pooling; /* as the file says */
  int labels;               /* of a model that judges texts; 0: it does not */
  int whole_pictures;       /* 1: tokens of a picture see each other both ways, so that it is read in one pass */
  int deepstack; /* behind so many of the first layers another vector of a picture's token is added (DeepStack, Meng et
                    al., 2024) */
} rdna_llm_info;

/* Puts the weights of |file| on |device|. On the host they are used where the file is mapped, so |file| must stay open
 * until the model is released; the model keeps the device alive. |progress| may be NULL; it is called with the share
 * done, on this thread.
 * RDNA_UNSUPPORTED: an architecture or tensor type that this library does not have, by name. RDNA_BAD_DATA: missing
 * keys or tensors, or shapes that disagree. RDNA_OUT_OF_MEMORY. */
RDNA_CHECKED rdna_status rdna_llm_open(rdna_device *device, const rdna_gguf *file,
                                       void (*progress)(void *data, double share), void *progress_data,
                                       rdna_llm **out_llm);

typedef struct rdna_llm_open_options {
  size_t size;      /* of the struct: RDNA_LLM_OPEN_OPTIONS_INIT sets it */
  int host_layers;  /* the host has the first so many layers, with their caches: their weights are used where the file
                       is mapped, and what they make of a pass goes to the device, which has the others and the output */
  int host_experts; /* of the first so many layers, the products of experts are the host's, and all else the device's */
  void (*progress)(void *data, double share); /* as in rdna_llm_open */
  void *progress_data;
} rdna_llm_open_options;
#define RDNA_LLM_OPEN_OPTIONS_INIT .size = sizeof(rdna_llm_open_options)

/* The same for a model that is larger than the device: a part of it stays in host memory, where the host computes with
 * it, in f32. |options| NULL means all zeros, which is rdna_llm_open. RDNA_UNSUPPORTED: a layer that reads another's
 * cache would be parted from it. */
RDNA_CHECKED rdna_status rdna_llm_open_with(rdna_device *device, const rdna_gguf *file,
                                            const rdna_llm_open_options *options, rdna_llm **out_llm);
RDNA_API rdna_llm *rdna_llm_retain(rdna_llm *llm);
RDNA_API void rdna_llm_release(rdna_llm *llm); /* NULL is fine */
RDNA_API const rdna_llm_info *rdna_llm_get_info(const rdna_llm *llm);

/* What a picture is to a model that sees some: vectors in place of its tokens' embeddings, and those that the model's
 * first layers add, which rdna/vision.h makes. */
typedef struct rdna_llm_picture {
  const float *rows;     /* (1 + deepstack, height * width, the model's width), in host memory, contiguous */
  int32_t height, width; /* in tokens, which go row by row */
} rdna_llm_picture;

typedef struct rdna_llm_session_options {
  size_t size;         /* of the struct: RDNA_LLM_SESSION_OPTIONS_INIT sets it */
  int context;         /* positions in the KV cache; 0 means the model's own, at most 4,096 */
  rdna_dtype kv_dtype; /* RDNA_F16, RDNA_BF16, RDNA_F32, or RDNA_Q8_0 where heads are multiples of 32 values */
  int batch;           /* most tokens in one pass of a prompt; 0 means 512 */
  /* 1: neither activations nor weights in blocks are rounded. Otherwise those of prompts on a GPU are, to 16 bits for
   * its matrix units; and on the host activations that meet weights in blocks, to whole numbers of 16 bits with one
   * unit for 32 neighbours: a relative squared error of about 1e-9 in each product. The cache is another matter. */
  int exact;
} rdna_llm_session_options;
#define RDNA_LLM_SESSION_OPTIONS_INIT .size = sizeof(rdna_llm_session_options)

/* |options| NULL means the model's context, an f16 cache and 512. Allocates everything that evaluation needs, but for
 * what operators take from the device's pool for the time of a call: with weights in blocks and with experts up to 64
 * MiB. */
RDNA_CHECKED rdna_status rdna_llm_session_create(rdna_llm *llm, const rdna_llm_session_options *options,
                                                 rdna_llm_session **out_session);
RDNA_API void rdna_llm_session_release(rdna_llm_session *session); /* NULL is fine */

/* Appends |count| tokens and writes the logits after the last one to |logits| (vocabulary), host memory.
 * RDNA_INVALID_ARGUMENT: a token outside the vocabulary, or more tokens than the cache has room for; nothing was
 * appended then. After any other failure the session must be rewound. */
RDNA_CHECKED rdna_status rdna_llm_session_eval(rdna_llm_session *session, const int32_t *tokens, int count,
                                               float *logits);
/* The same with the logits after every token.  logits (count, vocabulary) */
RDNA_CHECKED rdna_status rdna_llm_session_eval_all(rdna_llm_session *session, const int32_t *tokens, int count,
                                                   float *logits);

/* Appends the tokens of |picture|, of which nothing is written yet. RDNA_INVALID_ARGUMENT: more tokens than the cache
 * has room for, or than a pass where it must be read in one; nothing was appended then. RDNA_UNSUPPORTED: as
 * rdna_llm_step has it. */
RDNA_CHECKED rdna_status rdna_llm_session_see(rdna_llm_session *session, const rdna_llm_picture *picture);

RDNA_API int rdna_llm_session_position(const rdna_llm_session *session); /* tokens in the cache */
RDNA_API int rdna_llm_session_context(const rdna_llm_session *session);  /* tokens that it has room for */
/* Forgets the tokens from |position| on. RDNA_INVALID_ARGUMENT when it is past the end or negative. Models with
 * recurrent layers go back to a checkpoint and read what lies between again, which can fail as an evaluation can;
 * rewind once more then. They go back to some of the places where pictures began or text was read behind one;
 * RDNA_INVALID_ARGUMENT where a picture would be read again. */
RDNA_CHECKED rdna_status rdna_llm_session_rewind(rdna_llm_session *session, int position);

/* ---- what a model needs, before it is there ---- */

/* Bytes of one device. */
typedef struct rdna_llm_memory {
  uint64_t weights;
  uint64_t caches;      /* keys, values and states */
  uint64_t activations; /* what a pass of |batch| tokens computes in, and logits */
  uint64_t workspace;   /* the most that operators take from the pool for the time of a call */
  uint64_t peak;        /* of the pool: what rdna_memory_stats will have as peak_allocated, */
  uint64_t reserved;    /* and as peak_reserved */
  uint64_t mapped;      /* of weights, what is read where the file is mapped, on the host, and lies in no pool */
  uint64_t free, total; /* of the device, now; what this process's pool has cached is free */
} rdna_llm_memory;

typedef struct rdna_llm_plan {
  int context, batch; /* as a session is to have them */
  int model_context;  /* what the model was trained for */
  int layers;
  int host_layers, host_experts; /* as rdna_llm_open_with is to have them */
  int fits;                      /* 1: the pool's peak stays within |budget|, and the host's within what it has free */
  uint64_t budget;
  rdna_llm_memory device;
  rdna_llm_memory host; /* what the host has of a model of which a part stays there; zeros otherwise */
  uint64_t staging;     /* pinned host memory that opening takes, and gives back before a session is created */
  char sentence[384];   /* what was chosen or what lacks, and why; "" where all is as was asked */
} rdna_llm_plan;

typedef struct rdna_llm_plan_options {
  size_t size;                             /* of the struct: RDNA_LLM_PLAN_OPTIONS_INIT sets it */
  const rdna_llm_session_options *session; /* of the session to be; where its context or batch is 0, one is chosen: the
                                              model's context, and 512, or what of them fits. NULL: all is chosen */
  uint64_t budget;      /* bytes that the pool may take; 0: what is free, but for some that drivers need */
  int64_t most_context; /* where a context is chosen, no longer one than this; 0: than the model's */
  /* As in rdna_llm_open_options, or RDNA_LLM_AUTO: as few as make it fit. Of a model with experts those stay on the
   * host first, and where a context is chosen, one of 4,096 is enough. */
  int host_layers, host_experts;
} rdna_llm_plan_options;
#define RDNA_LLM_AUTO (-1)
#define RDNA_LLM_PLAN_OPTIONS_INIT .size = sizeof(rdna_llm_plan_options)

/* What opening |file| on |device|, a session with those options and its passes will take, before any of it is
 * allocated. A plan that does not fit is RDNA_OK, and says so. |options| may be NULL. Fails as rdna_llm_open does, but
 * never with RDNA_OUT_OF_MEMORY of the device. Not counted: what vendors' libraries take, and the code of kernels. */
RDNA_CHECKED rdna_status rdna_llm_make_plan(rdna_device *device, const rdna_gguf *file,
                                            const rdna_llm_plan_options *options, rdna_llm_plan *out_plan);

#ifdef __cplusplus
}
#endif
#endif
