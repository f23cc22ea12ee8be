/* Graphs as pictures: boxes in layers, each below what it reads, with lines from inputs to readers. */
#include <stdlib.h>

#include "graph/order.h"
#include "graph/print.h"

enum { MOST_NODES = 2000, WIDTH = 150, HEIGHT = 38, GAP_X = 20, GAP_Y = 44, MARGIN = 20 };

typedef struct box {
  int layer, place; /* from the top, and from the left within it */
  double pull;      /* where it would stand for its inputs' sake */
  bool read;
} box;

typedef struct picture {
  rdna__order order;
  box *boxes; /* (order.count) */
  int *sizes; /* (layer_count) of layers */
  int layer_count;
  int *sorted; /* (order.count) boxes by layer and pull */
} picture;

static double x_of(const picture *v, const box *b) {
  int widest = 0;
  for (int i = 0; i < v->layer_count; i++) widest = v->sizes[i] > widest ? v->sizes[i] : widest;
  return MARGIN + (widest - v->sizes[b->layer]) * 0.5 * (WIDTH + GAP_X) + b->place * (WIDTH + GAP_X);
}
static double y_of(const box *b) { return MARGIN + b->layer * (HEIGHT + GAP_Y); }

/* Below the lowest of its inputs; what has none, right above the first that reads it. */
static void find_layers(picture *v) {
  for (int64_t i = 0; i < v->order.count; i++) {
    const rdna_node *node = v->order.nodes[i];
    for (int k = 0; k < node->input_count; k++) {
      int above = v->boxes[rdna__order_find(&v->order, node->inputs[k])].layer;
      if (above >= v->boxes[i].layer) v->boxes[i].layer = above + 1;
    }
    if (v->boxes[i].layer >= v->layer_count) v->layer_count = v->boxes[i].layer + 1;
  }
  for (int64_t i = v->order.count - 1; i >= 0; i--) { /* the first reader comes last */
    const rdna_node *node = v->order.nodes[i];
    for (int k = 0; k < node->input_count; k++) {
      int64_t at = rdna__order_find(&v->order, node->inputs[k]);
      bool nearer = !v->boxes[at].read || v->boxes[i].layer - 1 < v->boxes[at].layer;
      if (v->order.nodes[at]->input_count == 0 && nearer) v->boxes[at].layer = v->boxes[i].layer - 1;
      v->boxes[at].read = true;
    }
  }
  for (int64_t i = 0; i < v->order.count; i++) v->sizes[v->boxes[i].layer]++;
}

/* Layer by layer, in the order of the places of their inputs. */
static void find_places(picture *v) {
  int filled = 0;
  for (int layer = 0; layer < v->layer_count; layer++) {
    int first = filled;
    for (int64_t i = 0; i < v->order.count; i++) {
      const rdna_node *node = v->order.nodes[i];
      box *b = &v->boxes[i];
      if (b->layer != layer) continue;
      for (int k = 0; k < node->input_count; k++)
        b->pull += x_of(v, &v->boxes[rdna__order_find(&v->order, node->inputs[k])]) / node->input_count;
      int at = filled++;
      for (; at > first && v->boxes[v->sorted[at - 1]].pull > b->pull; at--) v->sorted[at] = v->sorted[at - 1];
      v->sorted[at] = (int)i;
    }
    for (int at = first; at < filled; at++) v->boxes[v->sorted[at]].place = at - first;
  }
}

/* Text with what XML means something by as entities. */
static void print_text(rdna__printer *p, const char *text) {
  for (; *text; text++) switch (*text) {
      case '<':
        rdna__print(p, "&lt;");
        break;
      case '>':
        rdna__print(p, "&gt;");
        break;
      case '&':
        rdna__print(p, "&amp;");
        break;
      default:
        if ((unsigned char)*text >= ' ') rdna__print(p, "%c", *text);
    }
}

static const char *color_of(const rdna_node *node) {
  if (node->input_count == 0) return "#e8e8e8";
  return node->op->view ? "#f6f6f6" : "#d8e8ff";
}

static void print_lines(rdna__printer *p, const picture *v, int64_t i) {
  const rdna_node *node = v->order.nodes[i];
  double x = x_of(v, &v->boxes[i]), y = y_of(&v->boxes[i]), bend = GAP_Y / 2.0;
  for (int k = 0; k < node->input_count; k++) {
    const box *from = &v->boxes[rdna__order_find(&v->order, node->inputs[k])];
    double x1 = x_of(v, from) + WIDTH / 2.0, y1 = y_of(from) + HEIGHT;
    double x2 = x + WIDTH * (k + 1.0) / (node->input_count + 1);
    rdna__print(p, "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" fill=\"none\" stroke=\"#888\"/>\n", x1, y1, x1,
                y1 + bend, x2, y - bend, x2, y);
  }
}

static void print_box(rdna__printer *p, const picture *v, int64_t i) {
  const rdna_node *node = v->order.nodes[i];
  double x = x_of(v, &v->boxes[i]), y = y_of(&v->boxes[i]);
  char text[RDNA__ARRAY_TEXT];
  rdna__print(p, "<g><rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"5\" fill=\"%s\" stroke=\"#555\"/>\n",
              x, y, WIDTH, HEIGHT, color_of(node));
  rdna__print(p, "<title>%%%lld ", (long long)i);
  print_text(p, rdna__node_origin(node));
  rdna__print(p, "</title>\n<text x=\"%.1f\" y=\"%.1f\">", x + WIDTH / 2.0, y + 16);
  print_text(p, rdna__node_name(node));
  rdna__print(p, "</text>\n<text x=\"%.1f\" y=\"%.1f\" class=\"type\">%s</text></g>\n", x + WIDTH / 2.0, y + 31,
              rdna__type_text(&node->type, text));
}

static void print_picture(rdna__printer *p, const picture *v) {
  int widest = 0;
  for (int i = 0; i < v->layer_count; i++) widest = v->sizes[i] > widest ? v->sizes[i] : widest;
  int width = 2 * MARGIN + widest * (WIDTH + GAP_X) - GAP_X;
  int height = 2 * MARGIN + v->layer_count * (HEIGHT + GAP_Y) - GAP_Y;
  rdna__print(p,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n"
              "<style>text{font:13px sans-serif;text-anchor:middle}.type{font-size:11px;fill:#444}</style>\n"
              "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
              width, height, width, height);
  for (int64_t i = 0; i < v->order.count; i++) print_lines(p, v, i); /* behind the boxes */
  for (int64_t i = 0; i < v->order.count; i++) print_box(p, v, i);
  rdna__print(p, "</svg>\n");
}

static rdna_status draw(picture *v, rdna__printer *p) {
  if (v->order.count > MOST_NODES)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "rdna_nodes_draw: a picture of %lld nodes; there are %d at most, and "
                      "rdna_nodes_print takes any number",
                      (long long)v->order.count, MOST_NODES);
  size_t count = (size_t)v->order.count;
  v->boxes = calloc(count, sizeof *v->boxes);
  v->sizes = calloc(count, sizeof *v->sizes);
  v->sorted = calloc(count, sizeof *v->sorted);
  if (!v->boxes || !v->sizes || !v->sorted) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture");
  find_layers(v);
  find_places(v);
  print_picture(p, v);
  return p->status;
}

rdna_status rdna_nodes_draw(rdna_node *const *outputs, int output_count, rdna_graph_write write, void *data) {
  bool given = output_count > 0 && outputs && write;
  for (int i = 0; given && i < output_count; i++) given = outputs[i] != NULL;
  if (!given)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_nodes_draw needs an output or more, none NULL, and where to write");
  picture v = {.layer_count = 0};
  rdna__printer p = {write, data, RDNA_OK};
  RDNA_TRY(rdna__order_init(&v.order, outputs, output_count, NULL, 0));
  rdna_status status = draw(&v, &p);
  free(v.boxes);
  free(v.sizes);
  free(v.sorted);
  rdna__order_deinit(&v.order);
  return status;
}
