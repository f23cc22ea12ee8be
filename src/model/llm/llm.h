/* What a language model is made of, inside. The interface is rdna/llm.h. */
#ifndef RDNA_MODEL_LLM_H
#define RDNA_MODEL_LLM_H

#include <stdatomic.h>

#include "rdna/llm.h"
#include "rdna/memory.h"
#include "rdna/op/attention.h"
#include "rdna/stream.h"

/* A matrix as the network applies it:  y = x W^T * scale + bias,  or  (x W^T + bias) * scale  when the scale comes
 * after (see rdna__llm_linear). */
typedef struct rdna__llm_matrix {
  rdna_tensor weight; /* (rows out, columns in) */
  rdna_tensor bias;   /* (rows), f32; data NULL when there is none */
  float scale;        /* 1 when the file has no NAME.scale */
  bool scale_after_bias;
} rdna__llm_matrix;

typedef struct rdna__llm_layer {
  rdna_tensor attention_norm, ffn_norm; /* (width), f32 */
  rdna__llm_matrix q, k, v, output;
  rdna__llm_matrix gate, up, down;
  /* q, k and v, and gate and up, as the one matrix that they are where they lie one after the other, for fewer kernels
   * a token; weight.data NULL where they do not */
  rdna__llm_matrix qkv, gate_up;
} rdna__llm_layer;

typedef struct rdna__llm_config {
  int rotated; /* values of a head that RoPE turns */
  int window;  /* how far back attention looks; 0: all the way */
  double norm_epsilon;
  double rope_base;
  double rope_factor; /* linear scaling: frequencies are divided by it */
} rdna__llm_config;

struct rdna_llm {
  atomic_int references;
  rdna_device *device;
  rdna_llm_info info;
  rdna__llm_config config;
  bool in_place;      /* weights lie in the file's map: the device reads host memory */
  void **allocations; /* device memory to free, (allocation_count) */
  int allocation_count, allocation_room;
  rdna_tensor embedding; /* (vocabulary, width) */
  rdna_tensor output_norm;
  rdna__llm_matrix output;
  rdna_tensor inv_freq; /* (rotated / 2), f32 */
  rdna__llm_layer *layers;
};

struct rdna_llm_session {
  rdna_llm *llm;
  rdna_stream *stream;
  int context, batch, position;
  rdna_dtype kv_dtype;
  void *memory; /* one allocation that holds all below */
  /* activations of up to |batch| tokens, all f32:  (batch, …); qkv and gate_up hold the parts of a pass's tokens one
   * after the other */
  void *x, *h, *qkv, *attention, *projected, *gate_up;
  void *logits; /* (logit_rows, vocabulary) */
  int logit_rows;
  void *ids, *positions, *cache_base; /* (batch), i32 */
  void *workspace;                    /* of attention */
  size_t workspace_bytes;
  void *k_cache, *v_cache;  /* (layers, cache_layer_bytes): each (context, kv_heads, head_dim) of kv_dtype */
  size_t cache_layer_bytes; /* a layer's part, rounded up so that each begins aligned */
  int32_t *staging;         /* pinned, (3, batch): ids, positions, cache_base */
  float *last_logits;       /* pinned, (vocabulary): what a copy to memory that is not would wait for */
  /* The step of one token, recorded for positions below |recorded_length|, of which |run_length| has been run once. */
  rdna_graph *recorded;
  int recorded_length, run_length;
  int failed_recordings; /* what another thread does to the device can spoil one */
};

/* From src/model/llm_weights.c: fills the model from the file, for the llama architecture's names. */
rdna_status rdna__llm_load(rdna_llm *llm, const rdna_gguf *file, void (*progress)(void *data, double share),
                           void *progress_data);

/* The attention of |tokens| that end at position |length|. */
rdna_attention rdna__llm_attention(const rdna_llm *llm, int tokens, int length);

/* How many positions the last of |count| tokens sees at most. For one token it is rounded up, so that many steps are
 * the same work. */
int rdna__llm_length(const rdna_llm_session *session, int count);

/* From src/model/llm/llama.c. Runs |count| tokens, already in session->ids and ->positions, through the layers, and
 * writes the logits of the last |rows| of them into session->logits. */
rdna_status rdna__llama_forward(rdna_llm_session *session, int count, int rows);

#endif
