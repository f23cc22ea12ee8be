/* SentencePiece's tokenizer.model: a message of protocol buffers (github.com/google/sentencepiece,
 * src/sentencepiece_model.proto; the encoding: protobuf.dev/programming-guides/encoding).
 *
 *     1 pieces, repeated: 1 text, 2 score (f32), 3 type: numbered as in GGUF
 *     2 training:         3 kind of model, 1 Unigram (if not said), 2 BPE
 *     3 normalizer:       2 precompiled_charsmap, 3 add_dummy_prefix, 4 remove_extra_whitespaces: true if not said
 */
#include <string.h>

#include "model/weights/hf.h"

/* One field. A number or 4 bytes are in |number|, bytes in |bytes|. */
typedef struct field {
  uint64_t id;
  int wire; /* 0 a number, 1 eight bytes, 2 bytes with their length, 5 four bytes */
  uint64_t number;
  rdna_text bytes;
} field;

static rdna_status cut_short(void) { return rdna__fail(RDNA_BAD_DATA, "no SentencePiece model, or cut short"); }

/* A number in groups of 7 bits, the lowest first; the top bit says that another follows. */
static rdna_status read_varint(rdna_text *left, uint64_t *out) {
  *out = 0;
  for (int shift = 0; shift < 64 && left->size; shift += 7) {
    uint8_t byte = (uint8_t)*left->data++;
    left->size--;
    *out |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return RDNA_OK;
  }
  return cut_short();
}

static rdna_status read_field(rdna_text *left, field *out) {
  uint64_t tag, size;
  RDNA_TRY(read_varint(left, &tag));
  *out = (field){.id = tag >> 3, .wire = (int)(tag & 7)};
  if (out->wire == 0) return read_varint(left, &out->number);
  if (out->wire == 2) {
    RDNA_TRY(read_varint(left, &size));
  } else if (out->wire == 1 || out->wire == 5) {
    size = out->wire == 1 ? 8 : 4;
  } else {
    return cut_short();
  }
  if (size > left->size) return cut_short();
  out->bytes = (rdna_text){left->data, (size_t)size};
  if (out->wire != 2) memcpy(&out->number, left->data, (size_t)size);
  left->data += size;
  left->size -= (size_t)size;
  return RDNA_OK;
}

static rdna_status read_piece(rdna_text message, rdna__hf_vocabulary *v, int64_t id) {
  rdna_text text = {"", 0};
  uint32_t score = 0;
  uint64_t type = RDNA_TOKEN_TYPE_NORMAL;
  while (message.size) {
    field f;
    RDNA_TRY(read_field(&message, &f));
    if (f.id == 1 && f.wire == 2) text = f.bytes;
    if (f.id == 2 && f.wire == 5) score = (uint32_t)f.number;
    if (f.id == 3 && f.wire == 0) type = f.number;
  }
  if (id >= v->count)
    return rdna__fail(RDNA_BAD_DATA, "it has more pieces than the %lld tokens of the model", (long long)v->count);
  if (type < RDNA_TOKEN_TYPE_NORMAL || type >= RDNA_TOKEN_TYPE_COUNT)
    return rdna__fail(RDNA_BAD_DATA, "piece %lld is of type %llu", (long long)id, (unsigned long long)type);
  v->tokens[id] = text;
  v->types[id] = (int32_t)type;
  memcpy(&v->scores[id], &score, sizeof score);
  return RDNA_OK;
}

/* The number |id| of |message|; |initial| when it does not say. */
static rdna_status read_number(rdna_text message, uint64_t id, uint64_t initial, uint64_t *out) {
  *out = initial;
  while (message.size) {
    field f;
    RDNA_TRY(read_field(&message, &f));
    if (f.id == id && f.wire == 0) *out = f.number;
  }
  return RDNA_OK;
}

static rdna_status read_normalizer(rdna_text message, rdna__hf_spm *out) {
  uint64_t prefix, trims, escapes;
  RDNA_TRY(read_number(message, 3, 1, &prefix));
  RDNA_TRY(read_number(message, 4, 1, &trims));
  RDNA_TRY(read_number(message, 5, 1, &escapes));
  if (!escapes) return rdna__fail(RDNA_UNSUPPORTED, "its pieces have spaces and no marks for them");
  out->space_prefix = prefix != 0;
  out->trims = trims != 0;
  while (message.size) {
    field f;
    RDNA_TRY(read_field(&message, &f));
    if (f.id == 2 && f.wire == 2) out->charsmap = f.bytes;
  }
  return RDNA_OK;
}

rdna_status rdna__spm_read(rdna_text bytes, rdna__hf_vocabulary *vocabulary, rdna__hf_spm *out) {
  enum { UNIGRAM = 1, BPE = 2 };
  uint64_t kind = UNIGRAM, behind = 0;
  *out = (rdna__hf_spm){.space_prefix = true, .trims = true};
  int64_t pieces = 0;
  while (bytes.size) {
    field f;
    RDNA_TRY(read_field(&bytes, &f));
    if (f.wire != 2) continue;
    if (f.id == 1) RDNA_TRY(read_piece(f.bytes, vocabulary, pieces++));
    if (f.id == 2) RDNA_TRY(read_number(f.bytes, 3, UNIGRAM, &kind));
    if (f.id == 2) RDNA_TRY(read_number(f.bytes, 24, 0, &behind));
    if (f.id == 3) RDNA_TRY(read_normalizer(f.bytes, out));
  }
  if (pieces == 0) return cut_short();
  if (kind != BPE && kind != UNIGRAM)
    return rdna__fail(RDNA_UNSUPPORTED, "a SentencePiece model of kind %llu; only Unigram, 1, and BPE, 2, are known",
                      (unsigned long long)kind);
  if (behind) return rdna__fail(RDNA_UNSUPPORTED, "its marks for spaces are behind words");
  out->unigram = kind == UNIGRAM;
  if (!out->unigram && out->trims)
    return rdna__fail(RDNA_UNSUPPORTED, "it takes spaces out of texts, which GGUF's 'llama' does not");
  return RDNA_OK;
}
