#include "rewrite.h"

#include <stdlib.h>
#include <string.h>

/* tensorflow/core/framework: graph.proto, node_def.proto, attr_value.proto */
enum { GRAPH_NODE = 1 };
enum { NODE_NAME = 1, NODE_OP, NODE_INPUT, NODE_DEVICE, NODE_ATTR };
enum { MAP_KEY = 1, MAP_VALUE };
enum { VALUE_TEXT = 2, VALUE_TYPE = 6 };
enum { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };
enum { INPUTS = 4 }; /* of data, of the nodes that are looked at */

struct text {
  const unsigned char *data;
  size_t size;
};

struct field {
  int number, kind;
  uint64_t value;   /* of a number */
  struct text text; /* of bytes */
};

struct node {
  struct text whole, name, op, device, inputs[INPUTS];
  int input_count;        /* of data; more than INPUTS are not kept */
  int uses;               /* by others' inputs, of control too */
  int user;               /* one of those nodes */
  bool kept, gone, fused; /* stays as it is; is in another; is the last of one */
};

struct graph {
  struct node *nodes;
  int count, room;
  int *table; /* by a name's hash: number of a node + 1 */
  int table_size;
};

/* ---- reading ---- */

/* The field at |*at|. False at the end, and where there is none. */
static bool next(const unsigned char **at, const unsigned char *end, struct field *out) {
  if (*at >= end) return false;
  uint64_t tag = wire_varint(at, end);
  *out = (struct field){.number = (int)(tag >> 3 & 0x1fffffff), .kind = (int)(tag & 7)};
  size_t length = 0;
  if (out->kind == WIRE_VARINT) {
    out->value = wire_varint(at, end);
    return true;
  }
  if (out->kind == WIRE_BYTES) {
    uint64_t said = wire_varint(at, end);
    if (said > (uint64_t)(end - *at)) return false;
    length = (size_t)said;
  } else if (out->kind == WIRE_64 || out->kind == WIRE_32) {
    length = out->kind == WIRE_64 ? 8 : 4;
    if (length > (size_t)(end - *at)) return false;
  } else {
    return false;
  }
  out->text = (struct text){*at, length};
  *at += length;
  return true;
}

static bool same(struct text a, struct text b) { return a.size == b.size && memcmp(a.data, b.data, a.size) == 0; }

static bool is(struct text a, const char *word) { return a.size == strlen(word) && memcmp(a.data, word, a.size) == 0; }

static bool has(struct text a, const char *word) {
  size_t length = strlen(word);
  for (size_t i = 0; i + length <= a.size; i++)
    if (memcmp(a.data + i, word, length) == 0) return true;
  return false;
}

/* The node's name in an input: "name", "name:1", "^name". */
static struct text base(struct text input) {
  if (input.size && input.data[0] == '^') return (struct text){input.data + 1, input.size - 1};
  for (size_t i = input.size; i > 0; i--)
    if (input.data[i - 1] == ':') return (struct text){input.data, i - 1};
  return input;
}

static bool is_control(struct text input) { return input.size && input.data[0] == '^'; }

static bool read_node(struct text whole, struct node *out) {
  const unsigned char *at = whole.data, *end = at + whole.size;
  struct field f;
  *out = (struct node){.whole = whole, .user = -1};
  while (next(&at, end, &f)) {
    if (f.kind != WIRE_BYTES) continue;
    if (f.number == NODE_NAME) out->name = f.text;
    if (f.number == NODE_OP) out->op = f.text;
    if (f.number == NODE_DEVICE) out->device = f.text;
    if (f.number == NODE_INPUT && !is_control(f.text)) {
      if (out->input_count < INPUTS) out->inputs[out->input_count] = f.text;
      out->input_count++;
    }
  }
  return at == end && out->name.size && out->op.size;
}

static int *slot(const struct graph *g, struct text name) {
  uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
  for (size_t i = 0; i < name.size; i++) h = (h ^ name.data[i]) * 0x100000001b3u;
  int at = (int)(h % (uint64_t)g->table_size);
  while (g->table[at] && !same(g->nodes[g->table[at] - 1].name, name)) at = (at + 1) % g->table_size;
  return &g->table[at];
}

static struct node *find(const struct graph *g, struct text name) {
  int number = *slot(g, name);
  return number ? &g->nodes[number - 1] : NULL;
}

static bool read_nodes(struct graph *g, const unsigned char *at, const unsigned char *end) {
  struct field f;
  while (next(&at, end, &f)) {
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
    while (next(&at, end, &f)) {
      struct node *used = f.number == NODE_INPUT && f.kind == WIRE_BYTES ? find(g, base(f.text)) : NULL;
      if (!used) continue;
      used->uses++;
      used->user = i;
    }
  }
  for (int i = 0; i < kept->count; i++) {
    struct node *node = find(g, base((struct text){(const unsigned char *)kept->names[i], kept->lengths[i]}));
    if (node) node->kept = true;
  }
  return true;
}

/* The value of an attribute; empty where the node has it not. */
static struct text attribute(const struct node *node, const char *name) {
  const unsigned char *at = node->whole.data, *end = at + node->whole.size;
  struct field f;
  while (next(&at, end, &f)) {
    if (f.number != NODE_ATTR || f.kind != WIRE_BYTES) continue;
    const unsigned char *in = f.text.data, *stop = in + f.text.size;
    struct text key = {0}, value = {0};
    struct field part;
    while (next(&in, stop, &part)) {
      if (part.number == MAP_KEY) key = part.text;
      if (part.number == MAP_VALUE) value = part.text;
    }
    if (is(key, name)) return value;
  }
  return (struct text){0};
}

static struct field value_of(struct text value, int number) {
  const unsigned char *at = value.data, *end = at + value.size;
  struct field f;
  while (value.size && next(&at, end, &f))
    if (f.number == number) return f;
  return (struct field){0};
}

/* ---- fusing ---- */

struct fusion {
  struct node *product, *bias, *last; /* |last| is |bias| where nothing follows */
  const char *op, *activation;
};

/* Whether |node|'s only result goes to |user| alone. */
static bool only_for(const struct graph *g, const struct node *node, const struct node *user) {
  return node->uses == 1 && node->user == user - g->nodes && !node->kept && !node->fused;
}

static const char *activation_of(struct text op) {
  return is(op, "Relu") ? "relu" : is(op, "Tanh") ? "tanh" : is(op, "Sigmoid") ? "sigmoid" : NULL;
}

/* TensorFlow's numbers of float, bfloat16 and half. */
static bool is_fused_type(const struct node *node) {
  uint64_t type = value_of(attribute(node, "T"), VALUE_TYPE).value;
  return type == 1 || type == 14 || type == 19;
}

static bool channels_agree(const struct node *product, const struct node *bias) {
  struct text a = value_of(attribute(product, "data_format"), VALUE_TEXT).text,
              b = value_of(attribute(bias, "data_format"), VALUE_TEXT).text;
  if (!b.size) b = (struct text){(const unsigned char *)"NHWC", 4};
  if (!a.size) a = (struct text){(const unsigned char *)"NHWC", 4};
  return same(a, b);
}

/* A fusion whose BiasAdd is |bias|. */
static bool find_fusion(const struct graph *g, struct node *bias, struct fusion *out) {
  if (!is(bias->op, "BiasAdd") || bias->input_count != 2 || !has(bias->device, "RDNA") || bias->gone) return false;
  struct node *product = find(g, base(bias->inputs[0]));
  if (!product || product->input_count != 2 || !same(product->device, bias->device) || product->gone ||
      !only_for(g, product, bias) || !is_fused_type(product))
    return false;
  *out = (struct fusion){product, bias, bias, NULL, "none"};
  if (is(product->op, "MatMul")) out->op = "RdnaMatMul";
  if (is(product->op, "Conv2D")) out->op = "RdnaConv2D";
  if (!out->op || !channels_agree(product, bias)) return false;
  struct node *after = bias->user >= 0 ? &g->nodes[bias->user] : NULL;
  if (after && only_for(g, bias, after) && activation_of(after->op) && after->input_count == 1 &&
      same(base(after->inputs[0]), bias->name) && same(after->device, bias->device)) {
    out->last = after;
    out->activation = activation_of(after->op);
  }
  return true;
}

static void put_control_inputs(struct wire *to, const struct node *node) {
  const unsigned char *at = node->whole.data, *end = at + node->whole.size;
  struct field f;
  while (next(&at, end, &f))
    if (f.number == NODE_INPUT && f.kind == WIRE_BYTES && is_control(f.text))
      wire_bytes(to, NODE_INPUT, f.text.data, f.text.size);
}

static void put_attribute(struct wire *to, const char *name, struct text value) {
  struct wire entry = {0};
  if (!value.size) return;
  wire_text(&entry, MAP_KEY, name);
  wire_bytes(&entry, MAP_VALUE, value.data, value.size);
  wire_message(to, NODE_ATTR, &entry);
}

static void put_fused(struct wire *graph, const struct fusion *f) {
  static const char *const copied[] = {"T",       "transpose_a", "transpose_b",       "strides",
                                       "padding", "dilations",   "explicit_paddings", "data_format"};
  struct wire node = {0}, word = {0};
  wire_bytes(&node, NODE_NAME, f->last->name.data, f->last->name.size);
  wire_text(&node, NODE_OP, f->op);
  wire_bytes(&node, NODE_INPUT, f->product->inputs[0].data, f->product->inputs[0].size);
  wire_bytes(&node, NODE_INPUT, f->product->inputs[1].data, f->product->inputs[1].size);
  wire_bytes(&node, NODE_INPUT, f->bias->inputs[1].data, f->bias->inputs[1].size);
  put_control_inputs(&node, f->product);
  put_control_inputs(&node, f->bias);
  if (f->last != f->bias) put_control_inputs(&node, f->last);
  wire_bytes(&node, NODE_DEVICE, f->last->device.data, f->last->device.size);
  for (size_t i = 0; i < sizeof copied / sizeof *copied; i++)
    put_attribute(&node, copied[i], attribute(f->product, copied[i]));
  wire_text(&word, VALUE_TEXT, f->activation);
  put_attribute(&node, "activation", (struct text){word.data, word.size});
  node.failed |= word.failed;
  free(word.data);
  wire_message(graph, GRAPH_NODE, &node);
}

/* Fused nodes first, then all else in its order: TensorFlow does not mind where a node stands. */
static int fuse(struct graph *g, struct wire *out) {
  int found = 0;
  for (int i = 0; i < g->count; i++) {
    struct fusion f;
    if (!find_fusion(g, &g->nodes[i], &f)) continue;
    put_fused(out, &f);
    f.product->gone = f.bias->gone = f.last->gone = f.last->fused = true;
    found++;
  }
  return found;
}

static void put_rest(const struct graph *g, const unsigned char *at, const unsigned char *end, struct wire *out) {
  struct field f;
  int node = 0;
  while (next(&at, end, &f)) {
    bool gone = f.number == GRAPH_NODE && f.kind == WIRE_BYTES && g->nodes[node++].gone;
    if (gone) continue;
    if (f.kind == WIRE_VARINT)
      wire_number(out, f.number, f.value);
    else if (f.kind == WIRE_BYTES)
      wire_bytes(out, f.number, f.text.data, f.text.size);
  }
}

int rewrite_graph(const void *graph, size_t size, const struct kept *kept, struct wire *out) {
  const unsigned char *at = graph, *end = at + size;
  struct graph g = {0};
  int found = 0;
  *out = (struct wire){0};
  if (size && read_nodes(&g, at, end) && find_uses(&g, kept)) {
    found = fuse(&g, out);
    if (found) put_rest(&g, at, end, out);
  }
  free(g.nodes);
  free(g.table);
  if (found && !out->failed) return found;
  free(out->data);
  *out = (struct wire){0};
  return 0;
}
