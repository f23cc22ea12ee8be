/* Grammars for what a model writes: which tokens may come next, as one bit for each.
 *
 *   JSON schema --schema--> text --parse--> tree --net--> nodes
 *                                                           |
 *                      vocabulary (a trie of bytes) --> matcher: a mask for each step
 *
 * The text is GBNF, the notation that llama.cpp made known (its grammars/README.md):
 *
 *   root   ::= "yes" | "no" | number      # the rule that everything begins with
 *   number ::= "-"? [0-9]+ ("." [0-9]{1,3})?
 *
 * with classes [a-z] and [^"], any character ".", groups, * + ? {2} {2,} {2,5}, and tokens by number <[7]> or by their
 * text <|end|>. Control tokens may come only where a grammar names them so, or where it ends.
 *
 * What is refused, with a sentence: rules that begin with themselves, rules that never end, and grammars beyond the
 * limits of grammar_net.h. */
#ifndef RDNA_MODEL_GRAMMAR_H
#define RDNA_MODEL_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "rdna/model.h"

/* ---- a model's tokens, in the order of their bytes; immutable, any number of threads ---- */

typedef struct rdna__vocabulary rdna__vocabulary;

typedef struct rdna__vocabulary_token {
  rdna_text piece; /* the bytes that it stands for; a token without bytes is never allowed */
  bool control;    /* allowed only where it is named */
  bool end;        /* allowed where the grammar may end */
} rdna__vocabulary_token;

/* Copies what it keeps. RDNA_UNSUPPORTED: more than 2^24 tokens, or a token of more than 65,535 bytes. */
rdna_status rdna__vocabulary_create(const rdna__vocabulary_token *tokens, size_t count, rdna__vocabulary **out);
rdna_status rdna__vocabulary_of_tokenizer(const rdna_tokenizer *tokenizer, rdna__vocabulary **out);
void rdna__vocabulary_release(rdna__vocabulary *vocabulary); /* NULL is fine */
size_t rdna__vocabulary_count(const rdna__vocabulary *vocabulary);

/* ---- a compiled grammar, with what its matchers have found out so far ---- */

/* Any number of threads may use a grammar and its matchers, each matcher from one at a time: what they share, states
 * and masks, stands behind the grammar's lock. */
typedef struct rdna__grammar rdna__grammar;

/* |vocabulary| must outlive the grammar. RDNA_INVALID_ARGUMENT: the text is no grammar; the sentence has the line.
 * RDNA_UNSUPPORTED: it is beyond a limit. */
rdna_status rdna__grammar_compile(const rdna__vocabulary *vocabulary, const char *text, size_t size,
                                  rdna__grammar **out_grammar);
void rdna__grammar_release(rdna__grammar *grammar); /* NULL is fine; its matchers must be gone */

/* The text of a grammar for the values of a JSON schema, to be freed; see schema.h for what is read.
 * RDNA_INVALID_ARGUMENT: not JSON, or a contradiction. RDNA_UNSUPPORTED: a keyword that cannot be enforced, with its
 * path. An empty schema, {}, is any JSON value. */
rdna_status rdna__grammar_of_schema(const char *json, size_t size, char **out_text);
/* The text of a grammar for any JSON object. Static. */
const char *rdna__grammar_any_object(void);

/* ---- one text under a grammar ---- */

typedef struct rdna__matcher rdna__matcher;

/* At the beginning of a text. */
rdna_status rdna__matcher_create(rdna__grammar *grammar, rdna__matcher **out_matcher);
/* Where |matcher| is, and with what it can go back to. */
rdna_status rdna__matcher_copy(const rdna__matcher *matcher, rdna__matcher **out_matcher);
void rdna__matcher_release(rdna__matcher *matcher); /* NULL is fine */

/* Bit id % 64 of word id / 64 says whether |id| may come next. Writes (count + 63) / 64 words.
 * RDNA_UNSUPPORTED: the grammar has more readings of the text than are followed. */
rdna_status rdna__matcher_mask(rdna__matcher *matcher, uint64_t *bits);
/* RDNA_INVALID_ARGUMENT: |id| may not come next; nothing has changed then. */
rdna_status rdna__matcher_accept(rdna__matcher *matcher, int32_t id);
bool rdna__matcher_may_end(const rdna__matcher *matcher);  /* the text is whole as it is */
bool rdna__matcher_must_end(const rdna__matcher *matcher); /* and nothing can follow but a token for the end */
/* Takes the last |count| tokens back. RDNA_INVALID_ARGUMENT: there were not so many. */
rdna_status rdna__matcher_rollback(rdna__matcher *matcher, size_t count);

/* Rules out, with minus infinity, the |count| logits whose bit is not set. */
void rdna__mask_apply(const uint64_t *bits, float *logits, size_t count);

#endif
