/* The order of heads in Gated DeltaNet's layers. A key head k serves R value heads, of which number r is in a folder
 * the value head k R + r (grouped), and so it is in GGUF's qwen3next; in its qwen35 it is r K + k, of K key heads
 * (tiled). In Qwen3-Next's folders one matrix has the rows of q, k, v and z:
 *
 *     q | k | v R times | z R times     of each key head */
#include "model/weights/hf.h"

int64_t rdna__hf_delta_rows(const rdna__hf_config *c, rdna__hf_kind kind) {
  int64_t values = c->v_heads * c->v_dim;
  if (kind == RDNA__HF_DELTA_HEADS || kind == RDNA__HF_DELTA_RATE) return c->v_heads;
  return kind == RDNA__HF_DELTA_QKV || kind == RDNA__HF_DELTA_PARTS ? 2 * c->k_heads * c->k_dim + values : values;
}

/* The folder's number of GGUF's value head |head|. */
static int64_t value_head(const rdna__hf_config *c, int64_t head) {
  int64_t repeats = c->v_heads / c->k_heads;
  return c->architecture->tiled ? head % c->k_heads * repeats + head / c->k_heads : head;
}

int64_t rdna__hf_delta_row(const rdna__hf_config *c, rdna__hf_kind kind, int64_t row) {
  int64_t keys = c->k_heads * c->k_dim, repeats = c->v_heads / c->k_heads, part = repeats * c->v_dim;
  int64_t together = 2 * c->k_dim + 2 * part; /* rows of a key head where all are in one matrix */
  if (kind == RDNA__HF_DELTA_HEADS || kind == RDNA__HF_DELTA_RATE) return value_head(c, row);
  bool apart = kind == RDNA__HF_DELTA_QKV || kind == RDNA__HF_DELTA_Z || kind == RDNA__HF_DELTA_OUT;
  bool has_keys = kind == RDNA__HF_DELTA_QKV || kind == RDNA__HF_DELTA_PARTS;
  if (has_keys && row < 2 * keys) {
    int64_t of_keys = row / keys, head = row % keys / c->k_dim; /* 0: of queries */
    return apart ? row : head * together + of_keys * c->k_dim + row % c->k_dim;
  }
  int64_t value = has_keys ? row - 2 * keys : row, head = value_head(c, value / c->v_dim), in_head = value % c->v_dim;
  if (apart) return (has_keys ? 2 * keys : 0) + head * c->v_dim + in_head;
  int64_t before = 2 * c->k_dim + (kind == RDNA__HF_DELTA_APART ? part : 0);
  return head / repeats * together + before + head % repeats * c->v_dim + in_head;
}
