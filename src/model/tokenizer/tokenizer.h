/* What the tokenizer keeps of a vocabulary, and the pieces that its two kinds share. The interface is rdna/model.h. */
#ifndef RDNA_MODEL_TOKENIZER_H
#define RDNA_MODEL_TOKENIZER_H

#include "base/strmap.h"
#include "rdna/model.h"

/* A node of the tree over the bytes of tokens that are found whole in text. */
typedef struct rdna__token_node {
  uint32_t child, sibling; /* 0: none */
  int32_t id;              /* -1: no token ends here */
  uint8_t byte;
} rdna__token_node;

/* Strings found by the bytes that a text begins with. */
typedef struct rdna__token_tree {
  rdna__token_node *nodes; /* 0 is unused */
  uint32_t count;
  uint32_t roots[256];
} rdna__token_tree;

/* One merge of a byte-level vocabulary. */
typedef struct rdna__token_merge {
  int32_t left, right; /* left -1: free */
  int32_t id;          /* from token_count on: a string that merges make but that is no token */
  uint32_t rank;
} rdna__token_merge;

struct rdna__splitter;

struct rdna_tokenizer {
  rdna_tokenizer_info info;
  char *model_name, *pre_name;
  const rdna_text *texts; /* (token_count) as in the file; borrowed */
  uint8_t *types;         /* (token_count) rdna_token_type */
  bool *ends;             /* (token_count) */
  rdna_text *pieces;      /* (token_count) the bytes that each stands for, in |piece_bytes| */
  char *piece_bytes;
  rdna__strmap by_text;  /* text → id, all tokens but empty ones; of equal ones the first */
  int32_t byte_ids[256]; /* the token of each single byte; -1 when there is none */

  rdna__token_tree whole;              /* tokens found whole in text */
  bool *strips_behind, *strips_before; /* (token_count) white space there is not text */

  /* "llama" */
  float *scores;          /* (token_count) */
  rdna__strmap mergeable; /* text → id of tokens that merging may make */
  size_t longest;         /* bytes of the longest of them */
  bool add_space_prefix;
  bool splits_at_space; /* no mergeable token has a space behind anything but a space */
  bool has_unused;

  bool of_characters; /* "gemma4": merges are of characters, and by rank */

  bool of_words; /* "bert"; |longest| too */
  bool cased;    /* capitals and accents stay */

  /* "t5"; scores, byte tokens, |add_space_prefix| and |splits_at_space| as "llama" has them */
  bool of_pieces;
  rdna__token_tree tree;           /* pieces that a text may be written as */
  float unknown_score;             /* of a character that no piece is */
  bool trims;                      /* of spaces in a row one stays, and none at the ends */
  struct rdna__charsmap *charsmap; /* how characters are rewritten first; NULL: they are not */

  /* "gpt2"; merges of "gemma4" too */
  struct rdna__splitter *splitter;
  rdna__token_merge *merges; /* a hash table over (left, right) */
  size_t merge_slots;        /* a power of two */
  rdna__strmap by_piece;     /* bytes → id of normal tokens */
  bool nfc;                  /* see rdna__splitter_traits */
  bool ignore_merges;        /* a word that is a token is that token, whatever merges make of it */

  bool marks_ends;      /* "clip", which has all of "gpt2" too: see tokenizer_clip.c */
  int32_t end_ids[256]; /* the token of a word's last byte; -1 when there is none */
};

/* ---- merging: both kinds join neighbours, best first, and of equals the leftmost ---- */

typedef struct rdna__symbol {
  uint32_t start, size;   /* bytes of the text; size 0: was joined to its left neighbour */
  int32_t previous, next; /* -1: none */
  int32_t id;             /* -1: no token */
} rdna__symbol;

typedef struct rdna__merge_candidate {
  uint64_t order; /* priority, then place */
  uint32_t left_size, right_size;
  int32_t id;
} rdna__merge_candidate;

typedef struct rdna__merger {
  const rdna_tokenizer *tokenizer;
  const char *text;
  rdna__symbol *symbols; /* (symbol_count), room for symbol_capacity */
  size_t symbol_count, symbol_capacity;
  rdna__merge_candidate *heap;
  size_t heap_count, heap_capacity;
  uint32_t *unused_split; /* (token_count) of an unused token, the size of its left part when last made */
} rdna__merger;

/* Whether |left| and its neighbour |right| can become one symbol: which, and how early (small is first). */
typedef bool (*rdna__merge_rule)(const rdna__merger *merger, const rdna__symbol *left, const rdna__symbol *right,
                                 uint32_t *out_priority, int32_t *out_id);

void rdna__merger_deinit(rdna__merger *merger); /* of all zeros, too */
rdna_status rdna__merger_add_symbol(rdna__merger *merger, uint32_t start, uint32_t size, int32_t id);
/* Joins symbols until no rule applies, in O(n log n). The symbols that are left are those with a size. */
rdna_status rdna__merger_run(rdna__merger *merger, rdna__merge_rule rule);

/* ---- the kinds; each fills its own fields, |pieces| and |byte_ids| ---- */

rdna_status rdna__spm_open(const rdna_gguf *file, rdna_tokenizer *tokenizer);
/* |prefix|: a space goes before the text, when the vocabulary wants one. */
rdna_status rdna__spm_encode(const rdna_tokenizer *tokenizer, rdna_text text, bool prefix, rdna_tokens *tokens);

rdna_status rdna__bpe_open(const rdna_gguf *file, rdna_tokenizer *tokenizer);
rdna_status rdna__bpe_encode(const rdna_tokenizer *tokenizer, rdna_text text, rdna_tokens *tokens);

/* |text| as CLIP's words have it, which rdna__bpe_encode then cuts and merges. */
rdna_status rdna__clip_encode(const rdna_tokenizer *tokenizer, rdna_text text, rdna_tokens *tokens);

rdna_status rdna__characters_open(const rdna_gguf *file, rdna_tokenizer *tokenizer);
rdna_status rdna__characters_encode(const rdna_tokenizer *tokenizer, rdna_text text, rdna_tokens *tokens);

rdna_status rdna__wordpiece_open(const rdna_gguf *file, rdna_tokenizer *tokenizer);
rdna_status rdna__wordpiece_encode(const rdna_tokenizer *tokenizer, rdna_text text, rdna_tokens *tokens);

rdna_status rdna__unigram_open(const rdna_gguf *file, rdna_tokenizer *tokenizer);
rdna_status rdna__unigram_encode(const rdna_tokenizer *tokenizer, rdna_text text, rdna_tokens *tokens);

/* SentencePiece's table of how characters are rewritten, from charsmap.c; immutable. */
typedef struct rdna__charsmap rdna__charsmap;
/* The table in |size| bytes at |data|, which are copied. RDNA_BAD_DATA. */
rdna_status rdna__charsmap_create(const uint8_t *data, size_t size, rdna__charsmap **out_map);
void rdna__charsmap_release(rdna__charsmap *map); /* NULL is fine */
/* How many bytes at the start of |text| are rewritten together, the most that the table knows, and what they become;
 * 0: none are. */
size_t rdna__charsmap_find(const rdna__charsmap *map, rdna_text text, rdna_text *out_replacement);

/* Room for strings of |bytes| altogether; adds one; a string that is there keeps its first id. */
rdna_status rdna__token_tree_init(rdna__token_tree *tree, size_t bytes);
void rdna__token_tree_add(rdna__token_tree *tree, rdna_text text, int32_t id);

/* What kinds share: pieces with spaces for marks, merges as the file lists them, the rule that goes by their rank, a
 * character as the tokens of its bytes, and |text| with marks for spaces, |prefix| in front of it (free the result). */
rdna_status rdna__spm_make_pieces(rdna_tokenizer *tokenizer);
rdna_status rdna__bpe_read_merges(const rdna_gguf *file, rdna_tokenizer *tokenizer);
bool rdna__bpe_join(const rdna__merger *merger, const rdna__symbol *left, const rdna__symbol *right,
                    uint32_t *out_priority, int32_t *out_id);
rdna_status rdna__spm_append_bytes(const rdna_tokenizer *tokenizer, const char *bytes, size_t size,
                                   rdna_tokens *tokens);
/* Where the word that starts at |start| ends, where pieces have marks at their beginning alone; else |size|. */
size_t rdna__spm_word_end(const rdna_tokenizer *tokenizer, const char *text, size_t start, size_t size);
/* False when the text has a space mark behind something that is none. */
bool rdna__spm_marks_lead(rdna_text text);
rdna_status rdna__spm_mark(rdna_text text, bool prefix, char **out_text, size_t *out_size);

/* Cuts text into words by the patterns that belong to a pre-tokenizer's name. Immutable. */
typedef struct rdna__splitter rdna__splitter;

typedef struct rdna__splitter_traits {
  bool ignore_merges, add_bos;
  bool nfc; /* text is brought into Unicode's normal form C first */
} rdna__splitter_traits;

rdna_status rdna__splitter_create(const char *pre, rdna__splitter **out_splitter, rdna__splitter_traits *out_traits);
void rdna__splitter_release(rdna__splitter *splitter);
/* The other way: the first name of the pre-tokenizer with these patterns, in the order in which they are applied, and
 * with |ignore_merges| and |nfc|. Characters may stand for themselves where ours are \x{…}. False when there is none.
 */
bool rdna__splitter_name(const rdna_text *patterns, int count, bool ignore_merges, bool nfc, char out_name[64]);
/* That of GPT-2, which tokenizer.json calls ByteLevel. */
const char *rdna__splitter_gpt2_pattern(void);
/* Calls |emit| for each word, in order; together they are the text. Stops at the first failure. */
rdna_status rdna__splitter_run(const rdna__splitter *splitter, rdna_text text,
                               rdna_status (*emit)(void *context, rdna_text word), void *context);

/* |text| in normal form C if |composed|, else D; *out_text, to be freed, is NULL where it is so as it stands. */
rdna_status rdna__normal_form(rdna_text text, bool composed, char **out_text, size_t *out_size);
/* The character at |text|, and its bytes: 0x110000 plus the byte where they are not UTF-8. The other way: 1 to 4 bytes,
 * whose number it returns. */
uint32_t rdna__next_code(const char *text, size_t size, size_t *out_length);
size_t rdna__put_utf8(uint32_t code, char *out);
bool rdna__is_space(uint32_t code);
uint32_t rdna__lower_case(uint32_t code); /* of one character, by Unicode's simple mapping */

/* Bytes of the UTF-8 character at |text|, 1 to 4; 0 when it is none; -1 when it could become one with more bytes. */
int rdna__utf8_length(const char *text, size_t size);

#endif
