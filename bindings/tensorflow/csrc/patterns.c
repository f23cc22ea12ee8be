#include "patterns.h"

#include <math.h>

/* ---- taking nodes ---- */

static struct pattern begin(const struct graph *g, struct node *last) {
  return (struct pattern){.graph = g,
                          .last = last,
                          .nodes = {last},
                          .count = 1,
                          .scales = -1,
                          .offsets = -1,
                          .biases = -1,
                          .shapes = -1,
                          .residuals = -1,
                          .epsilon = -1};
}

static bool is_free(const struct node *node) {
  return text_has(node->device, "RDNA") && !node->kept && !node->gone && !node->fused &&
         node->input_count <= NODE_INPUTS;
}

/* The node of this operator that an input comes from, now one of the pattern's. NULL: it is another, or not free. */
static struct node *take(struct pattern *p, struct text input, const char *op, int inputs) {
  struct node *node = graph_find(p->graph, input);
  if (!node || !text_is(node->op, op) || node->input_count != inputs || !is_free(node) ||
      !text_same(node->device, p->last->device) || !text_same(node->name, input)) /* the first result, not "name:1" */
    return NULL;
  for (int i = 0; i < p->count; i++)
    if (p->nodes[i] == node) return node;
  if (p->count == PATTERN_NODES) return NULL;
  p->nodes[p->count++] = node;
  return node;
}

/* Whether all users of the pattern's nodes but the last are among them, and no input comes from one of them. */
static bool is_closed(const struct pattern *p) {
  int inside[PATTERN_NODES] = {0};
  for (int i = 0; i < p->count; i++) {
    const unsigned char *at = p->nodes[i]->whole.data, *end = at + p->nodes[i]->whole.size;
    struct field f;
    while (wire_next(&at, end, &f)) {
      const struct node *used = f.number == NODE_INPUT && f.kind == WIRE_BYTES ? graph_find(p->graph, f.text) : NULL;
      for (int k = 0; used && k < p->count; k++) inside[k] += p->nodes[k] == used;
    }
  }
  if (inside[0]) return false; /* a circle */
  for (int i = 0; i < p->input_count; i++)
    for (int k = 0; k < p->count; k++)
      if (p->nodes[k] == graph_find(p->graph, p->inputs[i])) return false;
  for (int i = 1; i < p->count; i++)
    if (p->nodes[i] != p->last && inside[i] != p->nodes[i]->uses) return false;
  return true;
}

static bool add_input(struct pattern *p, struct text input) {
  if (p->input_count == PATTERN_INPUTS) return false;
  p->inputs[p->input_count++] = input;
  return true;
}

static bool is_fused_type(const struct node *node) {
  uint64_t type = node_type(node, "T");
  return type == TYPE_FLOAT || type == TYPE_BFLOAT16 || type == TYPE_HALF;
}

/* ---- sums and products, in whatever order they were written ---- */

enum { PARTS = 6 };

struct parts {
  struct text of[PARTS];
  int count;
};

static bool is_sum(const struct node *n) {
  return text_is(n->op, "AddV2") || text_is(n->op, "Add") || text_is(n->op, "AddN");
}

static bool is_product(const struct node *n) { return text_is(n->op, "Mul"); }

/* The terms or factors of |node|, and of those of its inputs that nobody else uses and are of the same kind. */
static bool collect(struct pattern *p, struct node *node, bool (*is_kind)(const struct node *), int depth,
                    struct parts *out) {
  for (int i = 0; i < node->input_count; i++) {
    struct node *from = graph_find(p->graph, node->inputs[i]);
    if (from && is_kind(from) && from->uses == 1 && depth > 0 && is_free(from) &&
        text_same(from->device, node->device)) {
      if (p->count == PATTERN_NODES) return false;
      p->nodes[p->count++] = from;
      if (!collect(p, from, is_kind, depth - 1, out)) return false;
    } else {
      if (out->count == PARTS) return false;
      out->of[out->count++] = node->inputs[i];
    }
  }
  return true;
}

/* Of an input that comes from such a node, which becomes one of the pattern's. */
static bool parts_of(struct pattern *p, struct text input, bool (*is_kind)(const struct node *), struct parts *out) {
  struct node *node = graph_find(p->graph, input);
  *out = (struct parts){0};
  if (!node || !is_kind(node) || !is_free(node) || node->uses != 1 || p->count == PATTERN_NODES ||
      !text_same(node->device, p->last->device))
    return false;
  p->nodes[p->count++] = node;
  return collect(p, node, is_kind, 3, out);
}

static void drop(struct parts *parts, int i) { parts->of[i] = parts->of[--parts->count]; }

/* A constant that changes no result's rank: all that patterns combine with one has a dimension itself. */
static bool read_number(const struct node *node, double *out) {
  int rank;
  return node && node_constant(node, &rank, out) && rank <= 1;
}

/* Removes a constant near |value|, as near as its type can come. */
static bool drop_constant(const struct pattern *p, struct parts *parts, double value) {
  for (int i = 0; i < parts->count; i++) {
    const struct node *node = graph_find(p->graph, parts->of[i]);
    double found;
    if (!read_number(node, &found)) continue;
    uint64_t type = node_type(node, "dtype");
    double near = type == TYPE_FLOAT ? 1e-6 : type == TYPE_HALF ? 1e-3 : 4e-3;
    if (fabs(found - value) > near * fabs(value)) continue;
    drop(parts, i);
    return true;
  }
  return false;
}

static bool drop_input(struct parts *parts, struct text input) {
  for (int i = 0; i < parts->count; i++)
    if (text_same(parts->of[i], input)) {
      drop(parts, i);
      return true;
    }
  return false;
}

/* Removes the part that comes from this operator, and takes its node. */
static struct node *drop_node(struct pattern *p, struct parts *parts, const char *op, int inputs) {
  for (int i = 0; i < parts->count; i++) {
    struct node *node = take(p, parts->of[i], op, inputs);
    if (!node) continue;
    drop(parts, i);
    return node;
  }
  return NULL;
}

/* ---- activation(a b + bias) ---- */

static const char *activation_of(struct text op) {
  return text_is(op, "Relu") ? "relu" : text_is(op, "Tanh") ? "tanh" : text_is(op, "Sigmoid") ? "sigmoid" : NULL;
}

static bool channels_agree(const struct node *product, const struct node *bias) {
  struct text a = value_field(node_attribute(product, "data_format"), VALUE_TEXT).text,
              b = value_field(node_attribute(bias, "data_format"), VALUE_TEXT).text;
  if (!b.size) b = (struct text){(const unsigned char *)"NHWC", 4};
  if (!a.size) a = (struct text){(const unsigned char *)"NHWC", 4};
  return text_same(a, b);
}

/* What |bias|, a BiasAdd of the pattern's, adds to: a MatMul, between them perhaps a Reshape, as Keras' Dense has it
 * for more than two dimensions, or a Conv2D. */
static bool take_biased(struct pattern *p, struct node *bias) {
  struct text from = bias->inputs[0];
  struct node *reshape = take(p, from, "Reshape", 2);
  if (reshape && node_type(reshape, "Tshape") != TYPE_INT32) return false;
  if (reshape) from = reshape->inputs[0];
  struct node *product = take(p, from, "MatMul", 2);
  if (!product && !reshape) product = take(p, from, "Conv2D", 2);
  if (!product || !is_fused_type(product) || !channels_agree(product, bias)) return false;
  bool is_matrix = text_is(product->op, "MatMul");
  p->op = is_matrix ? "RdnaMatMul" : "RdnaConv2D";
  p->like = product;
  p->activation = "none";
  if (is_matrix) p->shapes = reshape != NULL;
  return add_input(p, product->inputs[0]) && add_input(p, product->inputs[1]) && add_input(p, bias->inputs[1]) &&
         (!reshape || add_input(p, reshape->inputs[1]));
}

/* The Relu, Tanh or Sigmoid that alone uses the pattern's last node. */
static void take_activation(struct pattern *p) {
  struct node *after = p->last->user >= 0 ? &p->graph->nodes[p->last->user] : NULL;
  p->activation = "none";
  if (!after || p->last->uses != 1 || p->last->kept || !activation_of(after->op) || after->input_count != 1 ||
      after->gone || after->fused || !text_same(after->inputs[0], p->last->name) ||
      !text_same(after->device, p->last->device) || p->count == PATTERN_NODES)
    return;
  p->activation = activation_of(after->op);
  p->nodes[p->count++] = after;
  p->last = after;
}

bool find_biased(const struct graph *g, struct node *bias, struct pattern *out) {
  if (!text_is(bias->op, "BiasAdd") || bias->input_count != 2 || !text_has(bias->device, "RDNA") || bias->gone ||
      bias->fused)
    return false;
  *out = begin(g, bias);
  if (!take_biased(out, bias) || !is_closed(out)) return false;
  take_activation(out);
  return true;
}

/* Whether |parts| are a constant near |factor| times |x|, or -x times its opposite. */
static bool is_scaled(struct pattern *p, struct text input, struct text x, double factor) {
  struct parts parts;
  int count = p->count;
  if (parts_of(p, input, is_product, &parts) && parts.count == 2) {
    if (drop_input(&parts, x)) return drop_constant(p, &parts, factor);
    struct node *neg = drop_node(p, &parts, "Neg", 1);
    return neg && text_same(neg->inputs[0], x) && drop_constant(p, &parts, -factor);
  }
  p->count = count;
  struct node *quotient = take(p, input, "RealDiv", 2);
  struct parts divisor = {.count = 1};
  if (!quotient) return false;
  divisor.of[0] = quotient->inputs[1];
  struct node *neg = take(p, quotient->inputs[0], "Neg", 1);
  return drop_constant(p, &divisor, (neg ? -1 : 1) / factor) &&
         text_same(neg ? neg->inputs[0] : quotient->inputs[0], x);
}

/* x + 0.044715 x^3, times sqrt(2/pi) */
static bool is_inside_tanh(struct pattern *p, struct text input, struct text x) {
  struct parts parts;
  if (!parts_of(p, input, is_product, &parts) || parts.count != 2 || !drop_constant(p, &parts, sqrt(2 / M_PI)) ||
      !parts_of(p, parts.of[0], is_sum, &parts) || parts.count != 2 || !drop_input(&parts, x) ||
      !parts_of(p, parts.of[0], is_product, &parts) || !drop_constant(p, &parts, 0.044715))
    return false;
  struct node *power = drop_node(p, &parts, "Pow", 2), *square = power ? NULL : drop_node(p, &parts, "Square", 1);
  struct parts exponent = {.count = 1};
  if (power) {
    exponent.of[0] = power->inputs[1];
    return parts.count == 0 && text_same(power->inputs[0], x) && drop_constant(p, &exponent, 3);
  }
  return square && text_same(square->inputs[0], x) && drop_input(&parts, x) && parts.count == 0;
}

/* What 0.5 x is multiplied by: erfc(-x/sqrt(2)), 1 + erf(x/sqrt(2)), or 1 + tanh(…). */
static const char *gelu_of(struct pattern *p, struct text input, struct text x) {
  struct node *erfc = take(p, input, "Erfc", 1);
  if (erfc) return is_scaled(p, erfc->inputs[0], x, -M_SQRT1_2) ? "gelu_erf" : NULL;
  struct parts parts;
  if (!parts_of(p, input, is_sum, &parts) || parts.count != 2 || !drop_constant(p, &parts, 1)) return NULL;
  struct node *erf = drop_node(p, &parts, "Erf", 1);
  if (erf) return is_scaled(p, erf->inputs[0], x, M_SQRT1_2) ? "gelu_erf" : NULL;
  struct node *tanh = drop_node(p, &parts, "Tanh", 1);
  return tanh && is_inside_tanh(p, tanh->inputs[0], x) ? "gelu_tanh" : NULL;
}

static bool find_gelu(const struct graph *g, struct node *last, struct pattern *out) {
  struct parts parts = {0};
  struct pattern start = begin(g, last);
  if (!collect(&start, last, is_product, 2, &parts) || parts.count != 3 || !drop_constant(&start, &parts, 0.5))
    return false;
  for (int i = 0; i < 2; i++) {
    struct text x = parts.of[i];
    *out = start;
    struct node *bias = take(out, x, "BiasAdd", 2);
    const char *activation = bias ? gelu_of(out, parts.of[1 - i], x) : NULL;
    if (!activation || !take_biased(out, bias)) continue;
    out->activation = activation;
    return is_closed(out);
  }
  return false;
}

/* ---- x inv + (offset - mean inv) + residual, inv = scale / sqrt(variance + epsilon) ---- */

struct norm {
  struct text x, inverse, mean, variance, scale, offset, residual;
  bool has_scale, has_offset, has_residual;
  double epsilon;
};

static bool read_inverse(struct pattern *p, struct text input, struct norm *n) {
  struct node *product = take(p, input, "Mul", 2), *root = NULL;
  for (int i = 0; product && i < 2 && !root; i++) {
    root = take(p, product->inputs[i], "Rsqrt", 1);
    if (root) n->scale = product->inputs[1 - i];
  }
  if (!product) root = take(p, input, "Rsqrt", 1);
  struct node *sum = root ? take(p, root->inputs[0], "AddV2", 2) : NULL;
  n->has_scale = product != NULL;
  n->inverse = input;
  if (root && !sum) { /* an epsilon that its type of 16 bits rounds to 0 is no longer there */
    n->variance = root->inputs[0];
    return true;
  }
  for (int i = 0; sum && i < 2; i++) {
    const struct node *epsilon = graph_find(p->graph, sum->inputs[i]);
    if (!read_number(epsilon, &n->epsilon) || !(n->epsilon >= 0 && n->epsilon < 1)) continue;
    n->variance = sum->inputs[1 - i];
    return true;
  }
  return false;
}

/* |product|'s other factor than the inverse; empty where it is no product with it. */
static struct text beside_inverse(const struct node *product, const struct norm *n) {
  for (int i = 0; product && i < 2; i++)
    if (text_same(product->inputs[i], n->inverse)) return product->inputs[1 - i];
  return (struct text){0};
}

/* The rest of the sum: offset - mean inv and perhaps a residual, or -mean inv and perhaps an offset. */
static bool read_shift(struct pattern *p, struct parts rest, struct norm *n) {
  for (int i = 0; i < rest.count && rest.count <= 2; i++) {
    int count = p->count;
    struct node *difference = take(p, rest.of[i], "Sub", 2);
    n->mean = difference ? beside_inverse(take(p, difference->inputs[1], "Mul", 2), n) : (struct text){0};
    if (n->mean.size) {
      n->offset = difference->inputs[0];
      n->has_offset = true;
      n->has_residual = rest.count == 2;
      if (n->has_residual) n->residual = rest.of[1 - i];
      return true;
    }
    p->count = count;
    struct text minus = beside_inverse(take(p, rest.of[i], "Mul", 2), n);
    struct node *neg = minus.size ? take(p, minus, "Neg", 1) : NULL;
    if (neg) {
      n->mean = neg->inputs[0];
      n->has_offset = rest.count == 2;
      if (n->has_offset) n->offset = rest.of[1 - i];
      return true;
    }
    p->count = count;
  }
  return false;
}

static bool read_norm(struct pattern *p, struct node *last, struct norm *n) {
  struct parts terms = {0};
  if (!collect(p, last, is_sum, 2, &terms)) return false;
  struct pattern start = *p;
  for (int i = 0; i < terms.count; i++)
    for (int k = 0; k < 2; k++) {
      *p = start;
      struct node *product = take(p, terms.of[i], "Mul", 2);
      struct parts rest = terms;
      drop(&rest, i);
      *n = (struct norm){0};
      if (!product || !read_inverse(p, product->inputs[k], n)) continue;
      n->x = product->inputs[1 - k];
      if (read_shift(p, rest, n)) return true;
    }
  return false;
}

/* Whether |node| is a mean over the last dimension, which stays with size 1. */
static bool is_mean_of_rows(const struct pattern *p, const struct node *node) {
  const struct node *dims = node ? graph_find(p->graph, node->inputs[1]) : NULL;
  double dim;
  return read_number(dims, &dim) && dim == -1 && value_field(node_attribute(node, "keep_dims"), VALUE_FLAG).value == 1;
}

static bool add_factors(struct pattern *p, const struct norm *n) {
  p->epsilon = n->epsilon;
  p->scales = n->has_scale;
  p->offsets = n->has_offset;
  return (!n->has_scale || add_input(p, n->scale)) && (!n->has_offset || add_input(p, n->offset));
}

static bool is_cast(const struct node *cast, uint64_t from, uint64_t to) {
  return node_type(cast, "SrcT") == from && node_type(cast, "DstT") == to;
}

/* A mean of 16 bits, which Keras and tf.nn.moments compute in float between casts. */
static struct node *take_mean(struct pattern *p, struct text input) {
  struct node *cast = take(p, input, "Cast", 1);
  if (cast && !is_cast(cast, TYPE_FLOAT, node_type(p->last, "T"))) return NULL;
  return take(p, cast ? cast->inputs[0] : input, "Mean", 2);
}

static bool read_layer_norm(struct pattern *p, const struct norm *n) {
  struct node *mean = take_mean(p, n->mean), *variance = take_mean(p, n->variance);
  if (n->has_residual || !is_mean_of_rows(p, mean) || !is_mean_of_rows(p, variance) || !is_fused_type(p->last))
    return false;
  struct node *squares = take(p, variance->inputs[0], "SquaredDifference", 2);
  struct text x = mean->inputs[0]; /* perhaps in float */
  if (!squares) return false;
  bool is_first = text_same(squares->inputs[0], x);
  if (!text_same(squares->inputs[!is_first], x) || !text_same(squares->inputs[is_first], mean->name)) return false;
  struct node *cast = text_same(x, n->x) ? NULL : take(p, x, "Cast", 1);
  if (cast && !is_cast(cast, node_type(p->last, "T"), TYPE_FLOAT)) return false;
  if (!text_same(cast ? cast->inputs[0] : x, n->x)) return false;
  p->op = "RdnaLayerNorm";
  p->like = p->last;
  return add_input(p, n->x) && add_factors(p, n) && is_closed(p);
}

static bool read_batch_norm(struct pattern *p, const struct norm *n) {
  struct node *bias = take(p, n->x, "BiasAdd", 2), *conv = take(p, bias ? bias->inputs[0] : n->x, "Conv2D", 2);
  struct text format = conv ? value_field(node_attribute(conv, "data_format"), VALUE_TEXT).text : (struct text){0};
  if (!conv || node_type(conv, "T") != TYPE_FLOAT || (format.size && !text_is(format, "NHWC")) ||
      (bias && !channels_agree(conv, bias)))
    return false;
  p->op = "RdnaConv2DBatchNorm";
  p->like = conv;
  p->biases = bias != NULL;
  p->residuals = n->has_residual;
  if (!add_input(p, conv->inputs[0]) || !add_input(p, conv->inputs[1]) || !add_input(p, n->mean) ||
      !add_input(p, n->variance) || !add_factors(p, n) || (bias && !add_input(p, bias->inputs[1])) ||
      (n->has_residual && !add_input(p, n->residual)) || !is_closed(p))
    return false;
  take_activation(p);
  return true;
}

static bool find_norm(const struct graph *g, struct node *last, struct pattern *out) {
  struct norm n;
  struct pattern start = begin(g, last);
  if (!read_norm(&start, last, &n)) return false;
  *out = start;
  if (read_layer_norm(out, &n)) return true;
  *out = start;
  return read_batch_norm(out, &n);
}

/* A sum may be all but the offset of a norm that ends at the sum behind it. */
static bool is_within_norm(const struct graph *g, const struct node *last) {
  struct node *after = last->uses == 1 && !last->kept ? &g->nodes[last->user] : NULL;
  struct pattern larger;
  if (!after || !is_sum(after) || !is_free(after) || !find_norm(g, after, &larger)) return false;
  for (int i = 0; i < larger.count; i++)
    if (larger.nodes[i] == last) return true;
  return false;
}

bool find_large(const struct graph *g, struct node *last, struct pattern *out) {
  if (!text_has(last->device, "RDNA") || last->gone || last->fused || last->input_count > NODE_INPUTS) return false;
  if (is_product(last)) return find_gelu(g, last, out);
  return is_sum(last) && !is_within_norm(g, last) && find_norm(g, last, out);
}
