/* A Hugging Face folder on its way to a GGUF file: what the parts of the conversion share.
 *
 *     hf_names.c      which architectures there are, and what their tensors and settings are called: data
 *     hf_config.c     config.json, read and checked; hf_keys.c: its settings as keys
 *     hf_tensors.c    safetensors to tensors; hf_order.c: rows and columns that change places
 *     hf_tokenizer.c  tokenizer.json to keys; hf_spm.c: tokenizer.model; hf_pairs.c: vocab.json and merges.txt
 *     hf_vision.c     the tower that sees pictures, as a file of its own
 *     convert.c       the folder as a whole
 */
#ifndef RDNA_MODEL_WEIGHTS_HF_H
#define RDNA_MODEL_WEIGHTS_HF_H

#include <jansson.h>

#include "base/status.h"
#include "model/weights/safetensors.h"
#include "model/weights/transcode.h"
#include "rdna/model.h"

/* ---- names ---- */

/* How a tensor of the file becomes one of GGUF. */
typedef enum rdna__hf_kind {
  RDNA__HF_PLAIN,        /* .weight, and .bias where there is one */
  RDNA__HF_OPTIONAL,     /* the same, if it is there */
  RDNA__HF_QUERY,        /* rows in the order of the architecture's RoPE, by attention head */
  RDNA__HF_KEY,          /* by key/value head */
  RDNA__HF_NORM,         /* a norm's .weight, to which the architecture may add one */
  RDNA__HF_BARE,         /* without .weight in the file */
  RDNA__HF_ROW,          /* a matrix of one row that becomes a vector */
  RDNA__HF_EXPERTS,      /* one tensor an expert, %d in the name, that become one */
  RDNA__HF_AS_IS,        /* both names are whole; if it is there */
  RDNA__HF_LATENT_KEY,   /* of latent attention's matrix for keys and values, each head's keys, turned */
  RDNA__HF_LATENT_VALUE, /* each head's values */
  RDNA__HF_FUSED,        /* one tensor of all experts, with .weight or without */
  RDNA__HF_FUSED_GATE,   /* the upper half of each expert's rows */
  RDNA__HF_FUSED_UP,     /* the lower half */
  RDNA__HF_CONVOLUTION,  /* (channels, 1, width) as a matrix */
  RDNA__HF_HALF_GATE,    /* the upper half of a matrix's rows */
  RDNA__HF_HALF_UP,      /* the lower half */
  /* of recurrent layers, where orders of heads differ: see hf_order.c */
  RDNA__HF_DELTA_QKV,   /* rows of queries and keys, then of value heads: also a convolution's channels */
  RDNA__HF_DELTA_PARTS, /* the same rows, of a matrix that has them with z, key head by key head */
  RDNA__HF_DELTA_Z,     /* rows of value heads */
  RDNA__HF_DELTA_APART, /* the rows of z in that matrix */
  RDNA__HF_DELTA_HEADS, /* a row, or a value, a value head; both names are whole */
  RDNA__HF_DELTA_OUT,   /* columns of value heads */
  RDNA__HF_DELTA_RATE,  /* log of a value a head, which becomes minus that value; both names are whole */
  RDNA__HF_EXPERT_GATE, /* gpt-oss: NAME, NAME_bias or NAME_blocks and NAME_scales; every other column from the first */
  RDNA__HF_EXPERT_UP,   /* from the second */
  RDNA__HF_EXPERT_DOWN, /* all columns */
  RDNA__HF_POSITIONS,   /* the table of positions, from the first that a token has */
} rdna__hf_kind;

typedef struct rdna__hf_tensor_name {
  const char *hf;   /* behind "model.layers.N.", or what the architecture has in its place */
  const char *gguf; /* behind "blk.N." */
  rdna__hf_kind kind;
} rdna__hf_tensor_name;

typedef enum rdna__hf_value { RDNA__HF_U32, RDNA__HF_F32, RDNA__HF_BOOL } rdna__hf_value;

typedef struct rdna__hf_key_name {
  const char *hf;   /* in config.json; of several with a bar between them the first that is there */
  const char *gguf; /* behind the architecture's name and a dot */
  rdna__hf_value value;
  bool required;
} rdna__hf_key_name;

/* A setting that published folders of an architecture have by another name than transformers'. */
typedef struct rdna__hf_setting_name {
  const char *published, *name;
} rdna__hf_setting_name;

enum { RDNA__HF_LISTS = 5 };

typedef struct rdna__hf_architecture {
  const char *hf;   /* of config.json's "architectures", each between two bars */
  const char *gguf; /* general.architecture */
  const char *activation;
  bool neighbours;     /* RoPE turns values 2i and 2i + 1 of a head together; in the file they are half a head apart */
  bool norms_from_1;   /* norms multiply by 1 + weight */
  bool window;         /* layers may see a window only */
  int window_period;   /* of this many layers all but the last do; 0: all */
  bool window_list;    /* GGUF has a list of those that do */
  const char *epsilon; /* of norms, its name in config.json; NULL: rms_norm_eps */
  bool layer_norm;     /* norms are LayerNorm, else of the root of mean squares */
  bool latent;         /* DeepSeek's attention */
  bool leading_dense;  /* dense layers before those with experts */
  int gating;          /* GGUF's expert_gating_func: 1 softmax, 2 sigmoid; 0: it is not written */
  bool delta;          /* layers with a state are Gated DeltaNet, else short convolutions */
  bool tiled;          /* of value heads the first of all key heads come first in GGUF */
  bool encoder;        /* tokens see those behind them, and there are no logits */
  bool rotary;         /* an encoder's positions are RoPE's, not rows of a table */
  bool offset_positions;    /* positions are counted from behind the id of padding, whose rows GGUF leaves out */
  const char *embedding;    /* the tokens' table; NULL: embed_tokens */
  const char *layer_prefix; /* of layer %d's tensors, behind the model's own prefix; NULL: layers */
  const rdna__hf_tensor_name *tensors[RDNA__HF_LISTS]; /* lists that end in a row without a name */
  const rdna__hf_tensor_name *dense;                   /* beside them in the first layers */
  const rdna__hf_tensor_name *sparse;                  /* beside them in the others */
  const rdna__hf_tensor_name *recurrent, *full;        /* beside them in layers with a state, and in the others */
  const rdna__hf_tensor_name *ends;                    /* outside the layers, if they are there */
  const rdna__hf_tensor_name *labels; /* whole names, of what makes labels of the first state: all of them, or none */
  const rdna__hf_key_name *keys[RDNA__HF_LISTS]; /* likewise; behind those that all have */
  const rdna__hf_setting_name *settings;         /* likewise; of two for one name the first that is there */
} rdna__hf_architecture;

/* By a name of config.json's "architectures". RDNA_UNSUPPORTED, with the names that are known. */
rdna_status rdna__hf_architecture_find(const char *name, const rdna__hf_architecture **out_architecture);

/* GGUF's name, behind "blk.N.", of the matrix |hf|, behind "model.layers.N.", of an architecture by GGUF's name; NULL:
 * there is none that is one matrix in both. |*out_reordered|: its rows are in the order of the architecture's RoPE. */
const char *rdna__hf_matrix_name(const char *gguf, const char *hf, bool *out_reordered);

/* What all architectures have: keys, and tensors outside the layers. */
extern const rdna__hf_key_name rdna__hf_common_keys[];

/* ---- settings ---- */

typedef struct rdna__hf_config {
  const rdna__hf_architecture *architecture;
  const json_t *json; /* of the language model: config.json, or its "text_config"; borrowed */
  int64_t layers, width, heads, kv_heads, head_dim, rotated, experts, vocabulary;
  int64_t dense_layers, extra_layers;     /* without experts; behind the last, which text needs not */
  int64_t latent, unrotated, value_dim;   /* of latent attention: its vector, a head's keys but for RoPE, its values */
  int64_t k_heads, v_heads, k_dim, v_dim; /* of recurrent layers; 0: there are none */
  int64_t first_position;                 /* row of the table of positions that the first token has */
  int64_t deepstack;                      /* layers that add vectors of pictures (DeepStack) */
  bool tied;
} rdna__hf_config;

/* Reads and checks |json|, config.json, which must outlive |out_config|; settings by other names than transformers' are
 * added to it by these. RDNA_UNSUPPORTED: an architecture or a setting
 * that has no place in GGUF or in this library. RDNA_BAD_DATA: a setting is missing or makes no sense. */
rdna_status rdna__hf_config_read(json_t *json, rdna__hf_config *out_config);
/* Whether layer |layer| has a state in place of attention over a cache. */
bool rdna__hf_is_recurrent(const rdna__hf_config *config, int64_t layer);
/* Of a model whose layers have two kinds of attention, a layer's own setting |name|, or that of all. */
int64_t rdna__hf_of_layer(const rdna__hf_config *config, int64_t layer, const char *name, int64_t of_all);
/* Where row |row| of a tensor |kind| is in the folder's, and how many there are: of recurrent layers. */
int64_t rdna__hf_delta_row(const rdna__hf_config *config, rdna__hf_kind kind, int64_t row);
int64_t rdna__hf_delta_rows(const rdna__hf_config *config, rdna__hf_kind kind);
/* Puts its keys, general.architecture first. */
rdna_status rdna__hf_config_put(const rdna__hf_config *config, rdna_gguf_writer *writer);
/* The settings of RoPE for layers that see all; NULL when there are none. Borrowed. */
const json_t *rdna__hf_rope(const rdna__hf_config *config);

/* |object|'s text |name|, or |initial|; and whether it is there and not null. */
const char *rdna__hf_text(const json_t *object, const char *name, const char *initial);
bool rdna__hf_is_set(const json_t *object, const char *name);
/* How RoPE is scaled: "default" where nothing is said. */
const char *rdna__hf_rope_type(const rdna__hf_config *config);
bool rdna__hf_is_longrope(const char *type);

/* |object|'s number |name|; |initial| when it is not there or null. RDNA_BAD_DATA: no number, or a count below 0. */
rdna_status rdna__hf_number(const json_t *object, const char *name, double initial, double *out);
rdna_status rdna__hf_count(const json_t *object, const char *name, int64_t initial, int64_t *out);

/* Factors by which RoPE's frequencies are divided, a name for GGUF each. */
typedef struct rdna__hf_factors {
  const char *name;
  int64_t count;
  float *values; /* free with free() */
} rdna__hf_factors;
enum { RDNA__HF_MOST_FACTORS = 2 };
/* Fills |out_factors| with none, one (Llama 3's) or two (of Phi-3's long context). */
rdna_status rdna__hf_rope_factors(const rdna__hf_config *config, rdna__hf_factors out_factors[RDNA__HF_MOST_FACTORS]);

/* ---- tensors ---- */

typedef struct rdna__hf_tensors rdna__hf_tensors;

/* Plans what each tensor of the GGUF file is made of, and adds them to |writer|, with |type|, or with what they are
 * where it is RDNA_DTYPE_COUNT. All that is handed over must outlive the writing. RDNA_BAD_DATA: a tensor is missing or
 * of another shape than the settings say. RDNA_UNSUPPORTED: one that has no place. */
rdna_status rdna__hf_tensors_add(const rdna__hf_config *config, const rdna__safetensors *weights, rdna_dtype type,
                                 rdna__transcoder *transcoder, rdna_gguf_writer *writer,
                                 rdna__hf_tensors **out_tensors);
void rdna__hf_tensors_release(rdna__hf_tensors *tensors); /* NULL is fine */

/* ---- towers ---- */

typedef struct rdna__hf_tower rdna__hf_tower;

/* Puts the keys of the tower that sees pictures, of config.json and preprocessor_config.json, and adds its tensors. All
 * that is handed over must outlive the writing. RDNA_UNSUPPORTED: there is none, or one of another kind.
 * RDNA_BAD_DATA: settings that make no sense. */
rdna_status rdna__hf_tower_add(const json_t *config, const json_t *processor, const rdna__safetensors *weights,
                               rdna_gguf_writer *writer, rdna__hf_tower **out_tower);
void rdna__hf_tower_release(rdna__hf_tower *tower); /* NULL is fine */

/* ---- tokenizer ---- */

/* What a tokenizer is made from; each NULL when the folder does not have it. */
typedef struct rdna__hf_tokenizer {
  const json_t *tokenizer;         /* tokenizer.json */
  const json_t *tokenizer_config;  /* tokenizer_config.json */
  const json_t *generation_config; /* generation_config.json */
  const json_t *config;            /* config.json */
  rdna_text spm;                   /* tokenizer.model */
  rdna_text chat_template;         /* chat_template.jinja */
  int64_t vocabulary;              /* rows of the embedding: that many tokens are written */
} rdna__hf_tokenizer;

/* Puts the keys tokenizer.*. RDNA_UNSUPPORTED: a kind of tokenizer that this library does not have, with what is
 * strange about it. RDNA_BAD_DATA: it contradicts itself. */
rdna_status rdna__hf_tokenizer_put(const rdna__hf_tokenizer *tokenizer, rdna_gguf_writer *writer);

/* What tokenizer.json would say of a byte-level BPE vocabulary that lies in vocab.json, an object, and the bytes of
 * merges.txt, by tokenizer_config.json; json_decref() it. RDNA_UNSUPPORTED: a tokenizer whose name does not say how it
 * cuts texts. RDNA_BAD_DATA. */
rdna_status rdna__hf_pairs_read(const json_t *vocab, rdna_text merges, const json_t *config, json_t **out_tokenizer);

/* A vocabulary while it is gathered. */
typedef struct rdna__hf_vocabulary {
  int64_t count;
  rdna_text *tokens; /* (count); data NULL: not given */
  float *scores;
  int32_t *types; /* rdna_token_type */
} rdna__hf_vocabulary;

/* What is done to a text before it is cut into SentencePiece's pieces. */
typedef struct rdna__hf_spm {
  bool unigram; /* pieces by their scores' sums, else BPE */
  bool space_prefix, trims;
  rdna_text charsmap; /* how characters are rewritten; data NULL: they are not */
} rdna__hf_spm;

/* Fills |vocabulary| from the bytes of SentencePiece's tokenizer.model, which it borrows. RDNA_UNSUPPORTED: neither its
 * BPE model nor its Unigram. RDNA_BAD_DATA. */
rdna_status rdna__spm_read(rdna_text bytes, rdna__hf_vocabulary *vocabulary, rdna__hf_spm *out);

/* The same of the steps of tokenizer.json around a model of type Unigram. |*out_charsmap| holds |out|'s; free() it.
 * RDNA_UNSUPPORTED: a step that GGUF has no key for. */
rdna_status rdna__hf_unigram_steps(const json_t *tokenizer, rdna__hf_spm *out, char **out_charsmap);

#endif
