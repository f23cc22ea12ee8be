/* Recorders and the nodes that they make. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/node.h"

struct rdna__origin {
  int count;
  char text[];
};

struct rdna_recorder {
  int count_of_owners;
  rdna_stream *stream;
  rdna_array *blank;
  rdna__origin *origin;
  rdna_status status; /* the first failure */
  char sentence[1024];
  rdna_node **nodes; /* (count) made here */
  int64_t count, capacity;
};

/* ---- recorders ---- */

rdna_status rdna_recorder_create(rdna_stream *stream, rdna_recorder **out_recorder) {
  if (!stream || !out_recorder)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_recorder_create needs a stream and a place for the recorder");
  rdna_recorder *made = calloc(1, sizeof *made);
  if (!made) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a recorder");
  made->count_of_owners = 1;
  made->stream = stream;
  int64_t none = 0;
  rdna_status status = rdna__array_make(stream, RDNA_U8, 1, &none, &made->blank);
  if (status == RDNA_OK)
    *out_recorder = made;
  else
    free(made);
  return status;
}

static void release_origin(rdna__origin *origin) {
  if (origin && __atomic_sub_fetch(&origin->count, 1, __ATOMIC_ACQ_REL) == 0) free(origin);
}

rdna_recorder *rdna__recorder_retain(rdna_recorder *recorder) {
  __atomic_add_fetch(&recorder->count_of_owners, 1, __ATOMIC_RELAXED);
  return recorder;
}

void rdna__recorder_forget(rdna_recorder *recorder) {
  while (recorder->count > 0) rdna_node_release(recorder->nodes[--recorder->count]);
}

void rdna_recorder_release(rdna_recorder *recorder) {
  if (!recorder || __atomic_sub_fetch(&recorder->count_of_owners, 1, __ATOMIC_ACQ_REL) > 0) return;
  rdna__recorder_forget(recorder);
  free(recorder->nodes);
  release_origin(recorder->origin);
  rdna_array_release(recorder->blank);
  free(recorder);
}

rdna_status rdna_recorder_status(rdna_recorder *recorder) {
  if (!recorder) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_recorder_status needs a recorder");
  rdna_status status = recorder->status;
  if (status != RDNA_OK) rdna__set_last_error(recorder->sentence);
  recorder->status = RDNA_OK;
  return status;
}

void rdna_recorder_origin(rdna_recorder *recorder, const char *origin) {
  if (!recorder) return;
  release_origin(recorder->origin);
  size_t bytes = origin ? strlen(origin) + 1 : 0;
  recorder->origin = bytes ? malloc(sizeof *recorder->origin + bytes) : NULL;
  if (!recorder->origin) return; /* sentences are without it */
  recorder->origin->count = 1;
  memcpy(recorder->origin->text, origin, bytes);
}

rdna_stream *rdna__recorder_stream(const rdna_recorder *r) { return r->stream; }
rdna_array *rdna__recorder_blank(const rdna_recorder *r) { return r->blank; }

/* ---- nodes ---- */

rdna_node *rdna_node_retain(rdna_node *node) {
  if (node) __atomic_add_fetch(&node->count, 1, __ATOMIC_RELAXED);
  return node;
}

/* Gives up a reference; a node that has none left joins |dead|. */
static rdna_node *drop(rdna_node *node, rdna_node *dead) {
  if (!node || __atomic_sub_fetch(&node->count, 1, __ATOMIC_ACQ_REL) > 0) return dead;
  node->next = dead;
  return node;
}

void rdna_node_release(rdna_node *node) {
  for (rdna_node *dead = drop(node, NULL); dead;) {
    rdna_node *gone = dead;
    dead = gone->next;
    for (int i = 0; i < gone->input_count; i++) dead = drop(gone->inputs[i], dead);
    rdna_array_release(gone->value);
    release_origin(gone->origin);
    rdna__own_release(gone->attributes.own);
    free(gone);
  }
}

rdna_dtype rdna_node_dtype(const rdna_node *node) { return node ? node->type.dtype : RDNA_DTYPE_COUNT; }
int rdna_node_rank(const rdna_node *node) { return node ? node->type.rank : -1; }
const int64_t *rdna_node_shape(const rdna_node *node) { return node ? node->type.shape : NULL; }

const char *rdna__node_origin(const rdna_node *node) { return node->origin ? node->origin->text : ""; }

rdna_status rdna__node_annotate(const rdna_node *node, rdna_status status) {
  if (status == RDNA_OK || !node->origin) return status;
  return rdna__fail(status, "%s (recorded at %s)", rdna_last_error(), node->origin->text);
}

/* ---- recording ---- */

rdna_node *rdna__record_failure(rdna_recorder *r, rdna_status status) {
  if (!r || r->status != RDNA_OK) return NULL;
  r->status = status;
  if (r->origin)
    snprintf(r->sentence, sizeof r->sentence, "%s (recorded at %s)", rdna_last_error(), r->origin->text);
  else
    snprintf(r->sentence, sizeof r->sentence, "%s", rdna_last_error());
  return NULL;
}

bool rdna__record_stopped(rdna_recorder *r, const char *name, rdna_node *const *inputs, int input_count) {
  if (!r || r->status != RDNA_OK) return true;
  for (int i = 0; i < input_count; i++) {
    rdna_status status = RDNA_OK;
    if (!inputs || !inputs[i])
      status = rdna__fail(RDNA_INVALID_ARGUMENT, "%s: input %d of %d is NULL", name, i + 1, input_count);
    else if (inputs[i]->stream != r->stream)
      status =
          rdna__fail(RDNA_INVALID_ARGUMENT, "%s: input %d belongs to another stream than the recorder", name, i + 1);
    if (status == RDNA_OK) continue;
    rdna__record_failure(r, status);
    return true;
  }
  return false;
}

static uint64_t last_serial; /* of all recorders' nodes, as they may meet */

uint64_t rdna_record_mark(void) { return __atomic_load_n(&last_serial, __ATOMIC_RELAXED); }

/* The recorder takes over |node|. */
static rdna_status keep(rdna_recorder *r, rdna_node *node) {
  if (r->count == r->capacity) {
    int64_t capacity = r->capacity ? 2 * r->capacity : 64;
    rdna_node **grown = realloc(r->nodes, (size_t)capacity * sizeof(rdna_node *));
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %lld nodes", (long long)capacity);
    r->nodes = grown;
    r->capacity = capacity;
  }
  r->nodes[r->count++] = node;
  return RDNA_OK;
}

static rdna_status make(rdna_recorder *r, const rdna__operator *op, const rdna__attributes *attributes,
                        rdna_node *const *inputs, int input_count, rdna_node **out_node) {
  rdna__type types[RDNA__MOST_RESULTS];
  rdna__making m = {r->blank, attributes, inputs, input_count};
  RDNA_TRY(op->infer(&m, types));
  size_t of_inputs = (size_t)input_count * sizeof(rdna_node *);
  size_t of_numbers = (size_t)attributes->number_count * sizeof(int64_t);
  rdna_node *made = malloc(sizeof *made + of_inputs + of_numbers);
  if (!made) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a node");
  *made = (rdna_node){.serial = __atomic_add_fetch(&last_serial, 1, __ATOMIC_RELAXED),
                      .count = 1,
                      .input_count = input_count,
                      .op = op,
                      .inputs = (rdna_node **)(made + 1),
                      .attributes = *attributes,
                      .type = types[0],
                      .stream = r->stream};
  for (int i = 0; i < input_count; i++) made->inputs[i] = rdna_node_retain(inputs[i]);
  int64_t *numbers = (int64_t *)((char *)(made + 1) + of_inputs);
  if (of_numbers) memcpy(numbers, attributes->numbers, of_numbers);
  made->attributes.numbers = of_numbers ? numbers : NULL;
  rdna__own_retain(attributes->own);
  if (r->origin) {
    __atomic_add_fetch(&r->origin->count, 1, __ATOMIC_RELAXED);
    made->origin = r->origin;
  }
  *out_node = made;
  return RDNA_OK;
}

rdna_node *rdna__record(rdna_recorder *r, const rdna__operator *op, const rdna__attributes *attributes,
                        rdna_node *const *inputs, int input_count) {
  if (rdna__record_stopped(r, op->name, inputs, input_count)) return NULL;
  rdna_node *made = NULL;
  rdna_status status = make(r, op, attributes, inputs, input_count, &made);
  if (status == RDNA_OK) status = keep(r, made);
  if (status == RDNA_OK) return made;
  rdna_node_release(made);
  return rdna__record_failure(r, status);
}

/* ---- types ---- */

int64_t rdna__type_count(const rdna__type *type) {
  int64_t count = 1;
  for (int i = 0; i < type->rank; i++) count *= type->shape[i];
  return count;
}

bool rdna__same_shape(const rdna__type *a, const rdna__type *b) {
  return a->rank == b->rank && memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0;
}

rdna_tensor rdna__type_tensor(const rdna__type *type) {
  return rdna_tensor_contiguous(NULL, type->dtype, type->rank, type->shape);
}

const char *rdna__type_text(const rdna__type *type, char text[RDNA__ARRAY_TEXT]) {
  rdna_tensor tensor = rdna__type_tensor(type);
  return rdna__array_text(&tensor, text);
}

rdna_array rdna__blank(const rdna__making *m, const rdna__type *type) {
  rdna_array blank = *m->blank;
  /* an address that nobody reads, from which those of views are reckoned */
  blank.tensor = rdna_tensor_contiguous((void *)(uintptr_t)4096, type->dtype, type->rank, type->shape);
  return blank;
}

rdna_status rdna__take_type(rdna_status status, rdna_array **made, rdna__type *out) {
  if (status != RDNA_OK) return status;
  *out = (rdna__type){(*made)->tensor.dtype, (*made)->tensor.rank, {0}};
  memcpy(out->shape, (*made)->tensor.shape, sizeof out->shape);
  rdna_array_release(*made);
  return RDNA_OK;
}

rdna_status rdna__join(const char *name, const rdna__making *m, rdna__type *out) {
  rdna_array blanks[3], *arrays[3];
  for (int i = 0; i < m->input_count; i++) {
    blanks[i] = rdna__blank(m, &m->inputs[i]->type);
    arrays[i] = &blanks[i];
  }
  rdna_tensor shape;
  RDNA_TRY(rdna__array_join_shapes(name, arrays, m->input_count, &shape));
  *out = (rdna__type){m->inputs[m->input_count - 1]->type.dtype, shape.rank, {0}};
  memcpy(out->shape, shape.shape, (size_t)shape.rank * sizeof *shape.shape);
  return RDNA_OK;
}
