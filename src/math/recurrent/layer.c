#include <stdio.h>

#include "base/options.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/common/plan/strided.h"
#include "math/recurrent/step_kernels.h"
#include "rdna/op/movement.h"
#include "rdna/op/recurrent.h"

/* What is chosen by. */
typedef struct problem {
  int64_t n;
} problem;
static bool is_narrow(const rdna__route *route, const void *given) {
  return ((const problem *)given)->n <= LAYER_UNITS;
}

static const rdna__route routes[] = {
    {.name = "layer",
     .kernels = {"{lstm|gru|rnn}_layer_{float}"},
     .when = "up to 64 units: all steps in one launch, by the cell",
     .applies = is_narrow},
    {.name = "steps",
     .kernels = {"{lstm|gru|rnn}_step_{float}"},
     .when = "up to 1,024 units: a launch for each step, its product and its cell. Callers have a product and a cell "
             "each in f64, with projections, and where rdna_recurrent_layer_pays says that rows are too many",
     .measured_on = "guessed"},
};
RDNA_ROUTES(rdna__layer_routes, "recurrent_layer", routes)

static const rdna__route backward_routes[] = {
    {.name = "layer",
     .kernels = {"{lstm|gru|rnn}_layer_backward_{float}"},
     .when = "up to 64 units: all steps in one launch, by the cell",
     .applies = is_narrow},
    {.name = "steps",
     .kernels = {"{lstm|gru|rnn}_step_backward_{float}"},
     .when = "up to 1,024 units: the weights are transposed, then a launch for each step and one for the first states",
     .measured_on = "guessed"},
};
RDNA_ROUTES(rdna__layer_backward_routes, "recurrent_layer_backward", backward_routes)

/* Most multiply-adds of a step for which one launch is estimated to be faster than two. It reads the weights again for
 * up to 16 rows of f32 or 64 of 16 bits, where a product has larger tiles, and its f32 sums are limited by the cache at
 * about half of the peak: at these sizes on a card of 60 TFLOP/s that loses what the second launch costs, 3 us. */
enum { MOST_F32 = 1 << 27, MOST_16_BITS = 1 << 30 };

bool rdna_recurrent_layer_pays(rdna_cell cell, rdna_dtype dtype, int64_t rows, int64_t n) {
  if (dtype != RDNA_F32 && dtype != RDNA_F16 && dtype != RDNA_BF16) return false;
  if (n <= LAYER_UNITS || n > RDNA_RECURRENT_LAYER_UNITS) return n <= LAYER_UNITS;
  const int64_t parts = cell == RDNA_CELL_LSTM ? 4 : cell == RDNA_CELL_GRU ? 3 : 1;
  return rows <= (dtype == RDNA_F32 ? MOST_F32 : MOST_16_BITS) / (parts * n * n);
}

enum { most = 1 << 30 }; /* rows, so that kernels may count in 32 bits */

typedef enum role { READ, MAYBE, WRITTEN } role; /* MAYBE: may be NULL */

/* What a tensor of a call must be. */
typedef struct part {
  const char *name;
  const rdna_tensor *tensor;
  int64_t rows, columns; /* -1 rows: of one dimension */
  bool there;            /* whether the cell has it */
  role role;
} part;

static rdna_status check_part(const char *op_name, const part *p, const rdna_tensor *h) {
  if (!p->there && p->tensor) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: this cell has no %s", op_name, p->name);
  if (!p->there || (p->role == MAYBE && !p->tensor)) return RDNA_OK;
  const int rank = p->rows < 0 ? 1 : 2;
  RDNA_TRY(rdna__check_tensor(op_name, p->name, p->tensor));
  RDNA_TRY(rdna__check_rank(op_name, p->name, p->tensor, rank));
  RDNA_TRY(rdna__check_same_dtype(op_name, p->name, p->tensor, "h", h));
  if (rank > 1) RDNA_TRY(rdna__check_size(op_name, p->name, p->tensor, 0, p->rows, "as out or h have it"));
  RDNA_TRY(rdna__check_size(op_name, p->name, p->tensor, rank - 1, p->columns, "made of the row of h"));
  return rdna__check_contiguous(op_name, p->name, p->tensor);
}

enum { MOST_PARTS = 16 };

/* Checks the tensors of a call; those of the layer itself have been. */
static rdna_status check_call(rdna_stream *stream, const char *op_name, const rdna_recurrent_layer *layer,
                              const part *parts, int count) {
  rdna__named written[MOST_PARTS],
      read[MOST_PARTS + 5] = {
          {"weight", layer->weight}, {"bias", layer->bias}, {"h", layer->h}, {"c", layer->c}, {"begin", layer->begin}};
  int writes = 0, reads = 5;
  for (const part *p = parts; p < parts + count; p++) {
    RDNA_TRY(check_part(op_name, p, layer->h));
    *(p->role == WRITTEN ? &written[writes++] : &read[reads++]) = (rdna__named){p->name, p->tensor};
  }
  RDNA_TRY(rdna__check_written_apart(op_name, written, writes, read, reads, 0));
  return rdna__check_stream(op_name, stream);
}

/* What all tensors of a call agree in. */
typedef struct sizes {
  int64_t rows, n, tokens, steps, parts;
  bool lstm, gru;
} sizes;

static rdna_status check_begin(const char *op_name, const rdna_tensor *begin, const rdna_tensor *out, sizes *s) {
  if (begin) {
    RDNA_TRY(rdna__check_tensor(op_name, "begin", begin));
    RDNA_TRY(rdna__check_rank(op_name, "begin", begin, 1));
    RDNA_TRY(rdna__check_dtype(op_name, "begin", begin, RDNA_I32));
    RDNA_TRY(rdna__check_contiguous(op_name, "begin", begin));
    if (begin->shape[0] < 1)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: begin is empty; it has one value more than there are steps",
                        op_name);
    s->steps = begin->shape[0] - 1;
    return s->steps <= most ? RDNA_OK : rdna__fail(RDNA_UNSUPPORTED, "%s: begin has more than %d steps", op_name, most);
  }
  if (s->rows ? s->tokens % s->rows : s->tokens)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: out has %lld tokens, which are no whole steps of the %lld rows of h",
                      op_name, (long long)s->tokens, (long long)s->rows);
  s->steps = s->rows ? s->tokens / s->rows : 0;
  return RDNA_OK;
}

/* Checks the options and |out|, and gives the sizes. */
static rdna_status check_layer(const char *op_name, const rdna_recurrent_layer *layer, const rdna_tensor *out,
                               sizes *s) {
  if ((int)layer->cell < 0 || layer->cell >= RDNA_CELL_COUNT)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the cell is number %d; there are 0 to %d", op_name, (int)layer->cell,
                      RDNA_CELL_COUNT - 1);
  const rdna_tensor *h = layer->h;
  RDNA_TRY(rdna__check_float(op_name, "h", h));
  RDNA_TRY(rdna__check_rank(op_name, "h", h, 2));
  RDNA_TRY(rdna__check_contiguous(op_name, "h", h));
  RDNA_TRY(rdna__check_tensor(op_name, "out", out));
  RDNA_TRY(rdna__check_rank(op_name, "out", out, 2));
  *s = (sizes){
      h->shape[0], h->shape[1], out->shape[0], 0, 1, layer->cell == RDNA_CELL_LSTM, layer->cell == RDNA_CELL_GRU};
  s->parts = s->lstm ? 4 : s->gru ? 3 : 1;
  if (s->n > RDNA_RECURRENT_LAYER_UNITS || s->rows > most || s->tokens > most)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "%s: h is (%lld, %lld) and out has %lld rows; offered are up to %d units, and %d rows", op_name,
                      (long long)s->rows, (long long)s->n, (long long)s->tokens, RDNA_RECURRENT_LAYER_UNITS, most);
  RDNA_TRY(check_begin(op_name, layer->begin, out, s));
  const part parts[] = {{"weight", layer->weight, s->parts * s->n, s->n, true, READ},
                        {"bias", layer->bias, -1, 3 * s->n, s->gru, MAYBE},
                        {"c", layer->c, s->rows, s->n, s->lstm, READ}};
  for (int i = 0; i < 3; i++) RDNA_TRY(check_part(op_name, &parts[i], h));
  return RDNA_OK;
}

static void *data_of(const rdna_tensor *tensor) { return tensor ? tensor->data : NULL; }

static struct layer_args args_of(const rdna_recurrent_layer *layer, const sizes *s, const rdna_tensor *gates,
                                 const rdna_tensor *out, const rdna_tensor *cells, const rdna_tensor *inner) {
  return (struct layer_args){.weight = layer->weight->data,
                             .bias = data_of(layer->bias),
                             .h = layer->h->data,
                             .c = data_of(layer->c),
                             .gates = data_of(gates),
                             .out = out->data,
                             .cells = data_of(cells),
                             .inner = data_of(inner),
                             .begin = data_of(layer->begin),
                             .rows = (int32_t)s->rows,
                             .steps = (int32_t)s->steps,
                             .tokens = (int32_t)s->tokens,
                             .n = (uint32_t)s->n,
                             .reverse = layer->reverse,
                             .relu = layer->cell == RDNA_CELL_RELU};
}

static const char *cell_of(const sizes *s) { return s->lstm ? "lstm" : s->gru ? "gru" : "rnn"; }

static rdna_status launch_layer(rdna_stream *stream, const rdna__route *route, const sizes *s, rdna_dtype dtype,
                                const struct layer_args *args) {
  const rdna_grid grid = {rdna__groups_in_turn(s->rows), 1, 1};
  return RDNA__ROUTE_LAUNCH(stream, route, 0, grid, args, cell_of(s), rdna_dtype_name(dtype));
}

static bool at_16(const rdna_tensor *tensor) { return !tensor || ((uintptr_t)tensor->data & 15) == 0; }

/* Fills in how many rows and units a group has, and gives the grid. |plain|: a unit has one column. A group has as many
 * bands as there are rows for, since it reads its weights once for all of them; fewer, if twice as many groups still
 * run at once. Then it may have half of the units: a matrix unit's tile is half empty, but half of the weights are
 * read. */
static rdna_grid step_grid(rdna_stream *stream, const sizes *s, rdna_dtype dtype, bool plain, struct step_args *args) {
  const int64_t band = dtype == RDNA_F32 ? STEP_BAND_F32 : STEP_BAND;
  const int64_t at_once = rdna_device_get_info(rdna_stream_device(stream))->compute_units;
  int64_t units = plain ? STEP_UNITS_PLAIN : STEP_UNITS, across = rdna__divide_up(s->n, units);
  int log = STEP_BANDS_LOG;
  while (log > 0 && (s->rows <= band << (log - 1) || rdna__divide_up(s->rows, band << (log - 1)) * across <= at_once))
    log--;
  const int64_t along = rdna__divide_up(s->rows, band << log);
  if (plain && dtype != RDNA_F32 && 2 * along * across <= at_once) units /= 2, across = rdna__divide_up(s->n, units);
  args->bands_log = (uint32_t)log, args->units = (uint32_t)units;
  return (rdna_grid){(uint32_t)along, (uint32_t)across, 1};
}

static rdna_status launch_steps(rdna_stream *stream, const rdna__route *route, const sizes *s,
                                const rdna_recurrent_layer *layer, const rdna_tensor *out,
                                const struct layer_args *of) {
  const rdna_dtype dtype = layer->h->dtype;
  struct step_args args = {.layer = *of};
  args.vectors = s->n % (dtype == RDNA_F32 ? 4 : 8) == 0 && at_16(layer->weight) && at_16(layer->h) && at_16(out);
  const rdna_grid grid = step_grid(stream, s, dtype, !s->lstm && !s->gru, &args);
  for (int32_t i = 0; i < of->steps; i++) {
    args.step = of->reverse ? of->steps - 1 - i : i;
    RDNA_TRY(RDNA__ROUTE_LAUNCH(stream, route, 0, grid, &args, cell_of(s), rdna_dtype_name(dtype)));
  }
  return RDNA_OK;
}

/* |back|: the gradients that are multiplied with the weights. What a step hands back besides lies in dfirst. */
static rdna_status launch_steps_back(rdna__scratch *scratch, const rdna__route *route, const sizes *s,
                                     const rdna_recurrent_layer *layer, const rdna_tensor *back,
                                     const struct layer_args *of) {
  const rdna_dtype dtype = layer->h->dtype;
  rdna_tensor transposed, weight = *layer->weight;
  weight.shape[0] = s->n, weight.shape[1] = s->parts * s->n;
  RDNA_TRY(rdna__scratch_tensor(scratch, dtype, 2, weight.shape, &transposed));
  weight.stride[0] = 1, weight.stride[1] = s->n;
  RDNA_TRY(rdna_op_copy(scratch->stream, &weight, &transposed));
  struct step_args args = {.layer = *of, .transposed = transposed.data};
  args.vectors = s->n % (dtype == RDNA_F32 ? 4 : 8) == 0 && at_16(&transposed) && at_16(back);
  const rdna_grid grid = step_grid(scratch->stream, s, dtype, true, &args);
  for (int32_t i = 0; i <= of->steps; i++) {
    args.step = of->reverse ? i : of->steps - 1 - i;
    RDNA_TRY(RDNA__ROUTE_LAUNCH(scratch->stream, route, 0, grid, &args, cell_of(s), rdna_dtype_name(dtype)));
    args.layer.dh = of->dfirst, args.layer.dc = of->dfirst_c;
  }
  return RDNA_OK;
}

rdna_status rdna_op_recurrent_layer(rdna_stream *stream, const rdna_recurrent_layer *layer, const rdna_tensor *gates,
                                    const rdna_tensor *out, const rdna_tensor *cells, const rdna_tensor *inner) {
  static const char op_name[] = "recurrent_layer";
  rdna_recurrent_layer known;
  sizes s;
  RDNA_TRY(RDNA__OPTIONS(op_name, "layer", layer, &known));
  RDNA_TRY(check_layer(op_name, &known, out, &s));
  const part parts[] = {{"out", out, s.tokens, s.n, true, WRITTEN},
                        {"gates", gates, s.tokens, s.parts * s.n, s.lstm || s.gru, WRITTEN},
                        {"cells", cells, s.tokens, s.n, s.lstm, WRITTEN},
                        {"inner", inner, s.tokens, s.n, s.gru, WRITTEN}};
  RDNA_TRY(check_call(stream, op_name, &known, parts, 4));
  if (!rdna_tensor_count(out) || !s.rows) return RDNA_OK;
  const struct layer_args args = args_of(&known, &s, gates, out, cells, inner);
  const rdna__route *route = rdna__route_choose(&rdna__layer_routes, &(problem){s.n});
  return route == &routes[0] ? launch_layer(stream, route, &s, known.h->dtype, &args)
                             : launch_steps(stream, route, &s, &known, out, &args);
}

rdna_status rdna_op_recurrent_layer_backward(rdna_stream *stream, const rdna_recurrent_layer *layer,
                                             const rdna_tensor *dout, const rdna_tensor *dh, const rdna_tensor *dc,
                                             const rdna_tensor *gates, const rdna_tensor *out, const rdna_tensor *cells,
                                             const rdna_tensor *inner, const rdna_tensor *dsums,
                                             const rdna_tensor *dhidden, const rdna_tensor *dfirst,
                                             const rdna_tensor *dfirst_c) {
  static const char op_name[] = "recurrent_layer_backward";
  rdna_recurrent_layer known;
  sizes s;
  RDNA_TRY(RDNA__OPTIONS(op_name, "layer", layer, &known));
  known.bias = NULL;
  RDNA_TRY(check_layer(op_name, &known, out, &s));
  const bool gated = s.lstm || s.gru;
  const part parts[] = {{"dout", dout, s.tokens, s.n, true, MAYBE},
                        {"dh", dh, s.rows, s.n, true, MAYBE},
                        {"dc", dc, s.rows, s.n, s.lstm, MAYBE},
                        {"gates", gates, s.tokens, s.parts * s.n, gated, READ},
                        {"out", out, s.tokens, s.n, true, READ},
                        {"cells", cells, s.tokens, s.n, s.lstm, READ},
                        {"inner", inner, s.tokens, s.n, s.gru, READ},
                        {"dsums", dsums, s.tokens, s.parts * s.n, true, WRITTEN},
                        {"dhidden", dhidden, s.tokens, s.parts * s.n, s.gru, WRITTEN},
                        {"dfirst", dfirst, s.rows, s.n, true, WRITTEN},
                        {"dfirst_c", dfirst_c, s.rows, s.n, s.lstm, WRITTEN}};
  RDNA_TRY(check_call(stream, op_name, &known, parts, 11));
  if (!rdna_tensor_count(known.h)) return RDNA_OK;
  struct layer_args args = args_of(&known, &s, gates, out, cells, inner);
  args.dout = data_of(dout), args.dh = data_of(dh), args.dc = data_of(dc);
  args.dsums = dsums->data, args.dhidden = data_of(dhidden);
  args.dfirst = dfirst->data, args.dfirst_c = data_of(dfirst_c);
  const rdna__route *route = rdna__route_choose(&rdna__layer_backward_routes, &(problem){s.n});
  if (route == &backward_routes[0]) return launch_layer(stream, route, &s, known.h->dtype, &args);
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  const rdna_status status = launch_steps_back(&scratch, route, &s, &known, s.gru ? dhidden : dsums, &args);
  return rdna__scratch_release(&scratch, status);
}
