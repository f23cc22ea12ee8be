/* Classes of characters as nets over the bytes of UTF-8.
 *
 * Characters from U+0800 to U+FFFF without surrogates, for one, are three paths:
 *
 *   E0 -> A0-BF -> 80-BF      E1-EC, EE-EF -> 80-BF -> 80-BF      ED -> 80-9F -> 80-BF */
#include <string.h>

#include "model/grammar/grammar_net.h"

enum { MOST_PATHS = 256 }; /* nodes of a class that are looked through for one to share */

typedef struct class_net {
  grammar_net *net;
  uint32_t next;        /* behind the class */
  uint32_t first, last; /* nodes made so far, [first, last) */
  uint64_t leads[4];    /* first bytes that are the whole character */
  uint32_t start;       /* where paths made so far begin; 0: none */
} class_net;

/* A node for bytes from |low| to |high| before |next|, one of before where there is one. */
static rdna_status add_bytes(class_net *c, uint8_t low, uint8_t high, uint32_t next, uint32_t *out_node) {
  byte_set set = {{0}};
  for (unsigned byte = low; byte <= high; byte++) set.bits[byte / 64] |= 1ull << (byte % 64);
  uint32_t number;
  RDNA_TRY(rdna__grammar_add_set(c->net, &set, &number));
  for (uint32_t i = c->first; i < c->last && i < c->first + MOST_PATHS; i++) {
    const net_node *node = &c->net->nodes[i];
    if (node->kind != NODE_BYTES || node->set != number || node->next != next) continue;
    *out_node = i;
    return RDNA_OK;
  }
  RDNA_TRY(rdna__grammar_add_node(c->net, (net_node){.kind = NODE_BYTES, .next = next, .set = number}, out_node));
  c->last = *out_node + 1;
  return RDNA_OK;
}

static rdna_status add_start(class_net *c, uint32_t node) {
  if (c->start) {
    RDNA_TRY(rdna__grammar_add_node(c->net, (net_node){.kind = NODE_SPLIT, .next = node, .set = c->start}, &node));
    c->last = node + 1;
  }
  c->start = node;
  return RDNA_OK;
}

/* Characters of |size| bytes from |low| to |high|. Where they do not make a full product of ranges of bytes, they are
 * cut in two at the last place where they do not. */
static rdna_status add_range(class_net *c, int size, uint32_t low, uint32_t high) {
  for (int rest = size - 1; rest > 0; rest--) {
    uint32_t inside = (1u << (6 * rest)) - 1;
    if ((low & ~inside) == (high & ~inside)) continue;
    if (low & inside) {
      RDNA_TRY(add_range(c, size, low, low | inside));
      return add_range(c, size, (low | inside) + 1, high);
    }
    if ((high & inside) != inside) {
      RDNA_TRY(add_range(c, size, low, (high & ~inside) - 1));
      return add_range(c, size, high & ~inside, high);
    }
  }
  uint32_t node = c->next;
  for (int i = 0; i < size; i++, low >>= 6, high >>= 6) {
    unsigned mark = i == size - 1 ? 0xf00u >> size & 0xff : 0x80, bits = i == size - 1 ? 0x7fu >> size : 0x3f;
    RDNA_TRY(add_bytes(c, (uint8_t)(mark | (low & bits)), (uint8_t)(mark | (high & bits)), node, &node));
  }
  return add_start(c, node);
}

static rdna_status add_characters(class_net *c, uint32_t low, uint32_t high) {
  static const code_range sizes[] = {{0x80, 0x7ff}, {0x800, 0xd7ff}, {0xe000, 0xffff}, {0x10000, 0x10ffff}};
  static const int bytes[] = {2, 3, 3, 4};
  for (uint32_t i = low; i <= high && i < 0x80; i++) c->leads[i / 64] |= 1ull << (i % 64);
  for (int i = 0; i < 4; i++) {
    uint32_t from = low > sizes[i].low ? low : sizes[i].low, to = high < sizes[i].high ? high : sizes[i].high;
    if (from <= to) RDNA_TRY(add_range(c, bytes[i], from, to));
  }
  return RDNA_OK;
}

rdna_status rdna__grammar_build_class(grammar_net *net, const code_range *ranges, size_t count, uint32_t next,
                                      uint32_t *out_node) {
  class_net c = {.net = net, .next = next, .first = (uint32_t)net->node_count, .last = (uint32_t)net->node_count};
  for (size_t i = 0; i < count; i++) RDNA_TRY(add_characters(&c, ranges[i].low, ranges[i].high));
  byte_set ascii;
  memcpy(ascii.bits, c.leads, sizeof ascii.bits);
  if (ascii.bits[0] | ascii.bits[1] || !c.start) { /* an empty class is a node that no byte passes */
    uint32_t set, node;
    RDNA_TRY(rdna__grammar_add_set(net, &ascii, &set));
    RDNA_TRY(rdna__grammar_add_node(net, (net_node){.kind = NODE_BYTES, .next = next, .set = set}, &node));
    RDNA_TRY(add_start(&c, node));
  }
  *out_node = c.start;
  return RDNA_OK;
}
