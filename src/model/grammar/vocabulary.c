/* A vocabulary as a trie of bytes, its nodes in the order of their paths. */
#include <stdlib.h>
#include <string.h>

#include "model/grammar/grammar_net.h"

static rdna_status out_of_memory(void) { return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a vocabulary"); }

typedef struct sorted_token {
  rdna_text piece;
  int32_t id;
} sorted_token;

static int compare_tokens(const void *a, const void *b) {
  const sorted_token *left = a, *right = b;
  size_t common = left->piece.size < right->piece.size ? left->piece.size : right->piece.size;
  int order = memcmp(left->piece.data, right->piece.data, common);
  if (order == 0) order = (left->piece.size > right->piece.size) - (left->piece.size < right->piece.size);
  return order ? order : (left->id > right->id) - (left->id < right->id);
}

static size_t common_bytes(rdna_text a, rdna_text b) {
  size_t i = 0;
  while (i < a.size && i < b.size && a.data[i] == b.data[i]) i++;
  return i;
}

/* The nodes of sorted tokens: each adds what it has beyond the bytes of the one before. */
static void fill_nodes(rdna__vocabulary *v, const sorted_token *tokens, size_t count, uint32_t *open) {
  rdna_text before = {"", 0};
  size_t node = 0;
  for (size_t i = 0; i < count; i++) {
    rdna_text piece = tokens[i].piece;
    size_t common = common_bytes(before, piece);
    for (size_t depth = before.size; depth > common; depth--) v->skips[open[depth - 1]] = (uint32_t)node;
    for (size_t depth = common; depth < piece.size; depth++) {
      open[depth] = (uint32_t)node;
      v->bytes[node] = (uint8_t)piece.data[depth];
      v->depths[node] = (uint16_t)(depth + 1);
      v->firsts[node] = (uint32_t)i; /* none ends here but at the last byte, which is this token's own */
      node++;
    }
    v->order[i] = tokens[i].id;
    before = piece;
  }
  for (size_t depth = before.size; depth > 0; depth--) v->skips[open[depth - 1]] = (uint32_t)node;
  v->firsts[node] = (uint32_t)count;
}

static rdna_status make_trie(rdna__vocabulary *v, sorted_token *tokens, size_t count) {
  if (count) qsort(tokens, count, sizeof *tokens, compare_tokens);
  size_t nodes = 0, longest = 0;
  rdna_text before = {"", 0};
  for (size_t i = 0; i < count; i++) {
    nodes += tokens[i].piece.size - common_bytes(before, tokens[i].piece);
    if (tokens[i].piece.size > longest) longest = tokens[i].piece.size;
    before = tokens[i].piece;
  }
  v->node_count = nodes;
  v->bytes = malloc(nodes + 1);
  v->depths = malloc((nodes + 1) * sizeof *v->depths);
  v->skips = malloc((nodes + 1) * sizeof *v->skips);
  v->firsts = malloc((nodes + 1) * sizeof *v->firsts);
  v->order = malloc((count + 1) * sizeof *v->order);
  uint32_t *open = malloc((longest + 1) * sizeof *open);
  if (!v->bytes || !v->depths || !v->skips || !v->firsts || !v->order || !open) {
    free(open);
    return out_of_memory();
  }
  fill_nodes(v, tokens, count, open);
  free(open);
  return RDNA_OK;
}

static rdna_status copy_tokens(rdna__vocabulary *v, const rdna__vocabulary_token *tokens, size_t count) {
  size_t bytes = 0;
  for (size_t i = 0; i < count; i++) {
    if (tokens[i].piece.size > UINT16_MAX)
      return rdna__fail(RDNA_UNSUPPORTED, "token %zu has %zu bytes, more than %d", i, tokens[i].piece.size, UINT16_MAX);
    bytes += tokens[i].piece.size;
  }
  v->pieces = malloc((count + 1) * sizeof *v->pieces);
  v->text = malloc(bytes + 1);
  v->control = malloc(count + 1);
  v->ends = malloc((count + 1) * sizeof *v->ends);
  if (!v->pieces || !v->text || !v->control || !v->ends) return out_of_memory();
  char *at = v->text;
  for (size_t i = 0; i < count; i++) {
    v->pieces[i] = (rdna_text){at, tokens[i].piece.size};
    if (tokens[i].piece.size) memcpy(at, tokens[i].piece.data, tokens[i].piece.size);
    at += tokens[i].piece.size;
    v->control[i] = tokens[i].control || tokens[i].end;
    if (tokens[i].end) v->ends[v->end_count++] = (int32_t)i;
  }
  return RDNA_OK;
}

static rdna_status fill(rdna__vocabulary *v, const rdna__vocabulary_token *tokens, size_t count) {
  v->count = count;
  RDNA_TRY(copy_tokens(v, tokens, count));
  sorted_token *sorted = malloc((count + 1) * sizeof *sorted);
  if (!sorted) return out_of_memory();
  size_t used = 0;
  for (size_t i = 0; i < count; i++)
    if (v->pieces[i].size && !v->control[i]) sorted[used++] = (sorted_token){v->pieces[i], (int32_t)i};
  rdna_status status = make_trie(v, sorted, used);
  free(sorted);
  return status;
}

rdna_status rdna__vocabulary_create(const rdna__vocabulary_token *tokens, size_t count, rdna__vocabulary **out) {
  if (count > 1 << 24) return rdna__fail(RDNA_UNSUPPORTED, "the vocabulary has %zu tokens, more than 2^24", count);
  rdna__vocabulary *v = calloc(1, sizeof *v);
  if (!v) return out_of_memory();
  rdna_status status = fill(v, tokens, count);
  if (status == RDNA_OK) {
    *out = v;
  } else {
    rdna__vocabulary_release(v);
  }
  return status;
}

static rdna_status describe(const rdna_tokenizer *tokenizer, rdna__vocabulary_token *tokens, size_t count) {
  for (size_t i = 0; i < count; i++) {
    rdna_token_type type;
    RDNA_TRY(rdna_tokenizer_piece(tokenizer, (int32_t)i, &tokens[i].piece));
    RDNA_TRY(rdna_tokenizer_type(tokenizer, (int32_t)i, &type));
    tokens[i].end = rdna_tokenizer_is_end(tokenizer, (int32_t)i);
    tokens[i].control = type == RDNA_TOKEN_TYPE_CONTROL;
    if (!tokens[i].end && (type == RDNA_TOKEN_TYPE_UNKNOWN || type == RDNA_TOKEN_TYPE_UNUSED)) tokens[i].piece.size = 0;
  }
  return RDNA_OK;
}

rdna_status rdna__vocabulary_of_tokenizer(const rdna_tokenizer *tokenizer, rdna__vocabulary **out) {
  size_t count = rdna_tokenizer_get_info(tokenizer)->token_count;
  rdna__vocabulary_token *tokens = calloc(count + 1, sizeof *tokens);
  if (!tokens) return out_of_memory();
  rdna_status status = describe(tokenizer, tokens, count);
  if (status == RDNA_OK) status = rdna__vocabulary_create(tokens, count, out);
  free(tokens);
  return status;
}

void rdna__vocabulary_release(rdna__vocabulary *v) {
  if (!v) return;
  free(v->bytes);
  free(v->depths);
  free(v->skips);
  free(v->firsts);
  free(v->order);
  free(v->pieces);
  free(v->text);
  free(v->control);
  free(v->ends);
  free(v);
}

size_t rdna__vocabulary_count(const rdna__vocabulary *vocabulary) { return vocabulary->count; }
