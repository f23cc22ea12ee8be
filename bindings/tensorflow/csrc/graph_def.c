#include "graph_def.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool text_same(struct text a, struct text b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool text_is(struct text a, const char *word) { return a.size == strlen(word) && memcmp(a.data, word, a.size) == 0; }

bool text_has(struct text a, const char *word) {
  size_t length = strlen(word);
  for (size_t i = 0; i + length <= a.size; i++)
    if (memcmp(a.data + i, word, length) == 0) return true;
  return false;
}

struct text input_base(struct text input) {
  if (input.size && input.data[0] == '^') return (struct text){input.data + 1, input.size - 1};
  for (size_t i = input.size; i > 0; i--)
    if (input.data[i - 1] == ':') return (struct text){input.data, i - 1};
  return input;
}

bool input_is_control(struct text input) { return input.size && input.data[0] == '^'; }

static bool read_node(struct text whole, struct node *out) {
  const unsigned char *at = whole.data, *end = at + whole.size;
  struct field f;
  *out = (struct node){.whole = whole, .user = -1};
  while (wire_next(&at, end, &f)) {
    if (f.kind != WIRE_BYTES) continue;
    if (f.number == NODE_NAME) out->name = f.text;
    if (f.number == NODE_OP) out->op = f.text;
    if (f.number == NODE_DEVICE) out->device = f.text;
    if (f.number == NODE_INPUT && !input_is_control(f.text)) {
      if (out->input_count < NODE_INPUTS) out->inputs[out->input_count] = f.text;
      out->input_count++;
    }
  }
  return at == end && out->name.size && out->op.size;
}

static int *slot(const struct graph *g, struct text name) {
  uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
  for (size_t i = 0; i < name.size; i++) h = (h ^ name.data[i]) * 0x100000001b3u;
  int at = (int)(h % (uint64_t)g->table_size);
  while (g->table[at] && !text_same(g->nodes[g->table[at] - 1].name, name)) at = (at + 1) % g->table_size;
  return &g->table[at];
}

struct node *graph_find(const struct graph *g, struct text input) {
  int number = *slot(g, input_base(input));
  return number ? &g->nodes[number - 1] : NULL;
}

static bool read_nodes(struct graph *g, const unsigned char *at, const unsigned char *end) {
  struct field f;
  while (wire_next(&at, end, &f)) {
    if (f.number != GRAPH_NODE || f.kind != WIRE_BYTES) continue;
    if (g->count == g->room) {
      int room = g->room ? g->room * 2 : 256;
      struct node *grown = realloc(g->nodes, (size_t)room * sizeof *grown);
      if (!grown) return false;
      g->nodes = grown;
      g->room = room;
    }
    if (!read_node(f.text, &g->nodes[g->count])) return false;
    g->count++;
  }
  g->table_size = 2 * g->count + 1;
  g->table = calloc((size_t)g->table_size, sizeof *g->table);
  return at == end && g->table;
}

/* Who uses whose results. False: a name comes twice. */
static bool find_uses(struct graph *g, const struct kept *kept) {
  for (int i = 0; i < g->count; i++) {
    int *number = slot(g, g->nodes[i].name);
    if (*number) return false;
    *number = i + 1;
  }
  for (int i = 0; i < g->count; i++) {
    const unsigned char *at = g->nodes[i].whole.data, *end = at + g->nodes[i].whole.size;
    struct field f;
    while (wire_next(&at, end, &f)) {
      struct node *used = f.number == NODE_INPUT && f.kind == WIRE_BYTES ? graph_find(g, f.text) : NULL;
      if (!used) continue;
      used->uses++;
      used->user = i;
    }
  }
  for (int i = 0; i < kept->count; i++) {
    struct node *node = graph_find(g, (struct text){(const unsigned char *)kept->names[i], kept->lengths[i]});
    if (node) node->kept = true;
  }
  return true;
}

struct text node_attribute(const struct node *node, const char *name) {
  const unsigned char *at = node->whole.data, *end = at + node->whole.size;
  struct field f;
  while (wire_next(&at, end, &f)) {
    if (f.number != NODE_ATTR || f.kind != WIRE_BYTES) continue;
    const unsigned char *in = f.text.data, *stop = in + f.text.size;
    struct text key = {0}, value = {0};
    struct field part;
    while (wire_next(&in, stop, &part)) {
      if (part.number == MAP_KEY) key = part.text;
      if (part.number == MAP_VALUE) value = part.text;
    }
    if (text_is(key, name)) return value;
  }
  return (struct text){0};
}

struct field value_field(struct text value, int number) {
  const unsigned char *at = value.data, *end = at + value.size;
  struct field f;
  while (value.size && wire_next(&at, end, &f))
    if (f.number == number) return f;
  return (struct field){0};
}

bool graph_read(struct graph *out, struct text bytes, const struct kept *kept) {
  *out = (struct graph){0};
  return bytes.size && read_nodes(out, bytes.data, bytes.data + bytes.size) && find_uses(out, kept);
}

void graph_free(struct graph *g) {
  free(g->nodes);
  free(g->table);
}

uint64_t node_type(const struct node *node, const char *name) {
  return value_field(node_attribute(node, name), VALUE_TYPE).value;
}

/* ---- constants: tensor.proto ---- */

enum { TENSOR_TYPE = 1, TENSOR_SHAPE, TENSOR_CONTENT = 4, TENSOR_FLOATS, TENSOR_INTEGERS = 7, TENSOR_HALVES = 13 };
enum { SHAPE_DIMENSION = 2, DIMENSION_SIZE = 1 };

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static double half_of(uint32_t bits) {
  int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
  double value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
  if (exponent == 31) value = fraction ? (double)NAN : (double)INFINITY;
  return bits & 0x8000 ? -value : value;
}

static double value_of_bits(uint64_t type, uint32_t bits) {
  if (type == TYPE_FLOAT) return (double)float_of(bits);
  if (type == TYPE_BFLOAT16) return (double)float_of(bits << 16);
  return type == TYPE_HALF ? half_of(bits) : (double)(int32_t)bits;
}

/* How many dimensions there are, all of size 1; -1: one has another size. */
static int rank_of_one_value(struct text shape) {
  const unsigned char *at = shape.data, *end = at + shape.size;
  struct field f;
  int rank = 0;
  while (shape.size && wire_next(&at, end, &f)) {
    if (f.number != SHAPE_DIMENSION) continue;
    if (value_field(f.text, DIMENSION_SIZE).value != 1) return -1;
    rank++;
  }
  return rank;
}

/* The bits of a list of numbers' first value: little-endian, or of halves and integers a varint. */
static uint32_t first_bits(struct field list, size_t bytes, bool is_varint) {
  const unsigned char *at = list.text.data;
  uint32_t bits = 0;
  if (is_varint) return (uint32_t)(list.kind == WIRE_VARINT ? list.value : wire_varint(&at, at + list.text.size));
  for (size_t i = 0; i < bytes && i < list.text.size; i++) bits |= (uint32_t)at[i] << 8 * i;
  return bits;
}

bool node_constant(const struct node *node, int *out_rank, double *out) {
  struct text tensor = value_field(node_attribute(node, "value"), VALUE_TENSOR).text;
  uint64_t type = value_field(tensor, TENSOR_TYPE).value;
  bool is_wide = type == TYPE_FLOAT || type == TYPE_INT32, is_half = type == TYPE_BFLOAT16 || type == TYPE_HALF;
  *out_rank = rank_of_one_value(value_field(tensor, TENSOR_SHAPE).text);
  if (!text_is(node->op, "Const") || (!is_wide && !is_half) || *out_rank < 0) return false;
  struct field content = value_field(tensor, TENSOR_CONTENT);
  if (content.text.size) {
    *out = value_of_bits(type, first_bits(content, is_wide ? 4 : 2, false));
    return content.text.size == (is_wide ? 4 : 2);
  }
  int number = type == TYPE_FLOAT ? TENSOR_FLOATS : type == TYPE_INT32 ? TENSOR_INTEGERS : TENSOR_HALVES;
  *out = value_of_bits(type, first_bits(value_field(tensor, number), 4, type != TYPE_FLOAT)); /* without one it is 0 */
  return true;
}
