#include "rewrite.h"

#include <stdlib.h>

#include "patterns.h"

static void put_control_inputs(struct wire *to, const struct graph *g, const struct node *node) {
  const unsigned char *at = node->whole.data, *end = at + node->whole.size;
  struct field f;
  while (wire_next(&at, end, &f)) {
    if (f.number != NODE_INPUT || f.kind != WIRE_BYTES || !input_is_control(f.text)) continue;
    const struct node *before = graph_find(g, f.text);
    if (!before || !before->gone || before->fused) wire_bytes(to, NODE_INPUT, f.text.data, f.text.size);
  }
}

static void put_attribute(struct wire *to, const char *name, struct text value) {
  struct wire entry = {0};
  if (!value.size) return;
  wire_text(&entry, MAP_KEY, name);
  wire_bytes(&entry, MAP_VALUE, value.data, value.size);
  wire_message(to, NODE_ATTR, &entry);
}

static void put_value(struct wire *to, const char *name, struct wire *value) {
  to->failed |= value->failed;
  put_attribute(to, name, (struct text){value->data, value->size});
  free(value->data);
}

static void put_count(struct wire *to, const char *name, int count) {
  struct wire value = {0};
  if (count < 0) return;
  wire_number(&value, VALUE_INTEGER, (uint64_t)count);
  put_value(to, name, &value);
}

/* All nodes of the pattern are gone by now, so that none waits for another of them. */
static void put_fused(struct wire *graph, const struct pattern *p) {
  static const char *const copied[] = {"T",       "transpose_a", "transpose_b",       "strides",
                                       "padding", "dilations",   "explicit_paddings", "data_format"};
  struct wire node = {0}, word = {0}, real = {0};
  wire_bytes(&node, NODE_NAME, p->last->name.data, p->last->name.size);
  wire_text(&node, NODE_OP, p->op);
  for (int i = 0; i < p->input_count; i++) wire_bytes(&node, NODE_INPUT, p->inputs[i].data, p->inputs[i].size);
  for (int i = 0; i < p->count; i++) put_control_inputs(&node, p->graph, p->nodes[i]);
  wire_bytes(&node, NODE_DEVICE, p->last->device.data, p->last->device.size);
  for (size_t i = 0; i < sizeof copied / sizeof *copied; i++)
    put_attribute(&node, copied[i], node_attribute(p->like, copied[i]));
  put_count(&node, "scale_count", p->scales);
  put_count(&node, "offset_count", p->offsets);
  put_count(&node, "bias_count", p->biases);
  put_count(&node, "shape_count", p->shapes);
  put_count(&node, "residual_count", p->residuals);
  if (p->activation) {
    wire_text(&word, VALUE_TEXT, p->activation);
    put_value(&node, "activation", &word);
  }
  if (p->epsilon >= 0) {
    wire_float(&real, VALUE_REAL, (float)p->epsilon);
    put_value(&node, "epsilon", &real);
  }
  wire_message(graph, GRAPH_NODE, &node);
}

/* Fused nodes first, then all else in its order: TensorFlow does not mind where a node stands. Large groups before
 * those around a BiasAdd that may be within them. */
static int fuse(struct graph *g, struct wire *out) {
  int found = 0;
  for (int large = 1; large >= 0; large--)
    for (int i = 0; i < g->count; i++) {
      struct pattern p;
      if (!(large ? find_large : find_biased)(g, &g->nodes[i], &p)) continue;
      for (int k = 0; k < p.count; k++) p.nodes[k]->gone = true;
      put_fused(out, &p);
      p.last->fused = true;
      found++;
    }
  return found;
}

static void put_rest(const struct graph *g, const unsigned char *at, const unsigned char *end, struct wire *out) {
  struct field f;
  int node = 0;
  while (wire_next(&at, end, &f)) {
    bool gone = f.number == GRAPH_NODE && f.kind == WIRE_BYTES && g->nodes[node++].gone;
    if (gone) continue;
    if (f.kind == WIRE_VARINT)
      wire_number(out, f.number, f.value);
    else if (f.kind == WIRE_BYTES)
      wire_bytes(out, f.number, f.text.data, f.text.size);
  }
}

int rewrite_graph(const void *graph, size_t size, const struct kept *kept, struct wire *out) {
  const unsigned char *at = graph;
  struct graph g;
  int found = 0;
  *out = (struct wire){0};
  if (graph_read(&g, (struct text){at, size}, kept)) {
    found = fuse(&g, out);
    if (found) put_rest(&g, at, at + size, out);
  }
  graph_free(&g);
  if (found && !out->failed) return found;
  free(out->data);
  *out = (struct wire){0};
  return 0;
}
