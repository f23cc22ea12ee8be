/* A graph of TensorFlow, read from its bytes: its nodes, who uses them, and what constants say. */
#ifndef RDNA_TENSORFLOW_GRAPH_DEF_H
#define RDNA_TENSORFLOW_GRAPH_DEF_H

#include "wire.h"

/* tensorflow/core/framework: graph.proto, node_def.proto, attr_value.proto */
enum { GRAPH_NODE = 1 };
enum { NODE_NAME = 1, NODE_OP, NODE_INPUT, NODE_DEVICE, NODE_ATTR };
enum { MAP_KEY = 1, MAP_VALUE };
enum { VALUE_TEXT = 2, VALUE_INTEGER, VALUE_REAL, VALUE_FLAG, VALUE_TYPE, VALUE_TENSOR = 8 };
enum { NODE_INPUTS = 4 }; /* of data, of the nodes that are looked at */
/* Numbers of types. */
enum { TYPE_FLOAT = 1, TYPE_INT32 = 3, TYPE_BFLOAT16 = 14, TYPE_HALF = 19 };

struct node {
  struct text whole, name, op, device, inputs[NODE_INPUTS];
  int input_count;        /* of data; more than NODE_INPUTS are not kept */
  int uses;               /* by others' inputs, of control too */
  int user;               /* one of those nodes */
  bool kept, gone, fused; /* stays as it is; is in another; is the last of one */
};

struct kept { /* names of nodes that must stay as they are, one after another */
  int count;
  char *const *names;
  const size_t *lengths;
};

struct graph {
  struct node *nodes;
  int count, room;
  int *table; /* by a name's hash: number of a node + 1 */
  int table_size;
};

bool text_same(struct text a, struct text b);
bool text_is(struct text a, const char *word);
bool text_has(struct text a, const char *word);

/* The node's name in an input: "name", "name:1", "^name". */
struct text input_base(struct text input);
bool input_is_control(struct text input);

/* False: the bytes are no GraphDef, a name comes twice, or there is no memory. Also then graph_free(). The nodes point
 * into the bytes. */
bool graph_read(struct graph *out, struct text bytes, const struct kept *kept);
void graph_free(struct graph *g);

/* The node that an input comes from; NULL where the graph has none of that name. */
struct node *graph_find(const struct graph *g, struct text input);
/* The value of an attribute; empty where the node has it not. */
struct text node_attribute(const struct node *node, const char *name);
/* A field of that value; zero where there is none. */
struct field value_field(struct text value, int number);
/* TensorFlow's number of the type that attribute |name| says. */
uint64_t node_type(const struct node *node, const char *name);
/* The only value of a constant of float, half, bfloat16 or int32, which may have dimensions of size 1: how many, is
 * |*out_rank|. False: it is none, or has several values. */
bool node_constant(const struct node *node, int *out_rank, double *out_value);

#endif
