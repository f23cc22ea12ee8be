#include "graph/order.h"

#include <stdlib.h>

/* A node on the way down, and which of its inputs is next. */
typedef struct frame {
  rdna_node *node;
  int next;
} frame;

typedef struct walk {
  rdna__order *order;
  frame *frames; /* (count) */
  int64_t count, capacity;
  rdna__strmap seen;
  uint64_t since; /* what is not younger is not gone into */
} walk;

static rdna_status fail_memory(void) { return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to order a graph"); }

/* The key of a node is its address as it stands at |place|. */
static rdna_status push(walk *w, rdna_node *const *place) {
  bool is_new;
  RDNA_TRY(rdna__strmap_insert(&w->seen, (const char *)place, sizeof *place, 0, &is_new));
  if (!is_new) return RDNA_OK;
  if (w->count == w->capacity) {
    int64_t capacity = w->capacity ? 2 * w->capacity : 64;
    frame *grown = realloc(w->frames, (size_t)capacity * sizeof *grown);
    if (!grown) return fail_memory();
    w->frames = grown;
    w->capacity = capacity;
  }
  w->frames[w->count++] = (frame){*place, 0};
  return RDNA_OK;
}

static rdna_status append(rdna__order *order, rdna_node *node) {
  if (order->count == order->capacity) {
    int64_t capacity = order->capacity ? 2 * order->capacity : 64;
    rdna_node **grown = realloc(order->nodes, (size_t)capacity * sizeof(rdna_node *));
    if (!grown) return fail_memory();
    order->nodes = grown;
    order->capacity = capacity;
  }
  order->nodes[order->count++] = node;
  return RDNA_OK;
}

static rdna_status descend(walk *w, const rdna__strmap *stops) {
  while (w->count > 0) {
    frame *top = &w->frames[w->count - 1];
    rdna_node *node = top->node;
    uint32_t ignored;
    bool stopped =
        node->serial <= w->since || rdna__strmap_find(stops, (const char *)&node, sizeof(rdna_node *), &ignored);
    if (top->next < node->input_count && !stopped) {
      RDNA_TRY(push(w, &node->inputs[top->next++]));
      continue;
    }
    w->count--;
    RDNA_TRY(append(w->order, node));
  }
  return RDNA_OK;
}

/* Numbers the nodes. Their list has its last address by now, which the keys are read from. */
static rdna_status number(rdna__order *order) {
  RDNA_TRY(rdna__strmap_init(&order->numbers, (size_t)order->count));
  bool is_new;
  for (int64_t i = 0; i < order->count; i++)
    RDNA_TRY(rdna__strmap_insert(&order->numbers, (const char *)&order->nodes[i], sizeof(rdna_node *), (uint32_t)i,
                                 &is_new));
  return RDNA_OK;
}

static rdna_status init(rdna__order *order, rdna_node *const *roots, int root_count, rdna_node *const *stops,
                        int stop_count, uint64_t since) {
  *order = (rdna__order){NULL, 0, 0, {NULL, 0, 0}};
  walk w = {order, NULL, 0, 0, {NULL, 0, 0}, since};
  rdna__strmap stopped = {NULL, 0, 0};
  rdna_status status = RDNA_OK;
  bool is_new;
  for (int i = 0; i < stop_count && status == RDNA_OK; i++)
    status = rdna__strmap_insert(&stopped, (const char *)&stops[i], sizeof(rdna_node *), 0, &is_new);
  for (int i = 0; i < root_count && status == RDNA_OK; i++) {
    status = push(&w, &roots[i]);
    if (status == RDNA_OK) status = descend(&w, &stopped);
  }
  if (status == RDNA_OK) status = number(order);
  free(w.frames);
  rdna__strmap_deinit(&w.seen);
  rdna__strmap_deinit(&stopped);
  if (status != RDNA_OK) rdna__order_deinit(order);
  return status;
}

rdna_status rdna__order_init(rdna__order *order, rdna_node *const *roots, int root_count, rdna_node *const *stops,
                             int stop_count) {
  return init(order, roots, root_count, stops, stop_count, 0);
}

rdna_status rdna__order_init_since(rdna__order *order, rdna_node *const *root, uint64_t serial) {
  return init(order, root, 1, NULL, 0, serial);
}

void rdna__order_deinit(rdna__order *order) {
  free(order->nodes);
  rdna__strmap_deinit(&order->numbers);
  *order = (rdna__order){NULL, 0, 0, {NULL, 0, 0}};
}

int64_t rdna__order_find(const rdna__order *order, const rdna_node *node) {
  uint32_t found;
  return rdna__strmap_find(&order->numbers, (const char *)&node, sizeof(rdna_node *), &found) ? (int64_t)found : -1;
}
