#include "math/fused/chain_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Device code as text: chain_begin.h, what it names of other headers, chain_kernel.h; made by CMake. */
extern const char rdna__chain_text[];

/* Vectors of a thread, by the number of inputs: enough bytes in flight without taking too many registers. */
static int vectors_of(const chain_key *key) { return key->inputs <= 2 ? 2 : 1; }

static int values_of(const chain_key *key) { return key->dtype == RDNA_F32 ? 4 : 8; }

uint32_t rdna__chain_group_values(const chain_key *key) {
  return (uint32_t)(CHAIN_THREADS * vectors_of(key) * values_of(key));
}

/* ---- how operands lie ---------------------------------------------------------------------------------------- */

static struct chain_divisor divisor(int64_t size) {
  struct strided_shape shape;
  strided_set_size(&shape, 0, (uint32_t)size);
  return (struct chain_divisor){shape.size[0], shape.magic[0], shape.shift[0]};
}

/* Reads an input's strides as: 0 along the fastest dimensions, then contiguous, then 0 again. */
static bool read_kind(const strided_plan *plan, int k, int64_t values, chain_kind *out_kind, struct chain_input *out) {
  const int64_t *stride = plan->operand[k].stride;
  int64_t inner = 1, size = 1;
  int d = 0;
  for (; d < plan->rank && stride[d] == 0; d++) inner *= plan->size[d];
  bool all = d == plan->rank, from_first = d == 0;
  for (; d < plan->rank && stride[d] == size; d++) size *= plan->size[d];
  bool to_last = d == plan->rank;
  for (; d < plan->rank && stride[d] == 0; d++) {
  }
  if (d < plan->rank) return false;
  *out = (struct chain_input){plan->operand[k].data, divisor(inner), divisor(size)};
  *out_kind = all                     ? CHAIN_ONE
              : from_first && to_last ? CHAIN_SAME
              : from_first            ? CHAIN_ROW
              : to_last               ? CHAIN_COLUMN
                                      : CHAIN_PLANE;
  bool aligned = (uintptr_t)out->data % 16 == 0;
  if (*out_kind == CHAIN_ONE) return true;
  if (*out_kind == CHAIN_SAME) return aligned;
  return from_first ? aligned && size % values == 0 : inner % values == 0;
}

bool rdna__chain_lay_out(const strided_plan *plan, chain_key *key, struct chain_args *args, int64_t *out_bytes) {
  int values = values_of(key);
  int64_t moved = 1;
  chain_kind kind;
  struct chain_input out;
  if (!read_kind(plan, 0, values, &kind, &out) || kind != CHAIN_SAME) return false;
  for (int k = 1; k < plan->operands; k++) {
    if (!read_kind(plan, k, values, &kind, &args->input[k - 1])) return false;
    key->kind[k - 1] = (uint8_t)kind;
    moved += kind == CHAIN_SAME;
  }
  args->out = plan->operand[0].data;
  args->count = out.size.size;
  *out_bytes = moved * args->count * plan->operand[0].bytes;
  return true;
}

/* ---- the source ---------------------------------------------------------------------------------------------- */

static const char *step_name(uint32_t word) {
  int op = (int)(word & FUSED_OP_MASK);
  if (word & FUSED_IS_MOVE) return op == FUSED_KEEP ? "keep" : "take";
  return word & FUSED_IS_ZIP ? rdna_zip_name((rdna_zip)op) : rdna_map_name((rdna_map)op);
}

void rdna__chain_name(const chain_key *key, char name[CHAIN_NAME]) {
  size_t used = (size_t)snprintf(name, CHAIN_NAME, "chain_%s", rdna_dtype_name((rdna_dtype)key->dtype));
  for (int i = 0; i < key->steps; i++) {
    const char *step = step_name(key->step[i]);
    if (used + strlen(step) + 2 > CHAIN_NAME) break;
    used += (size_t)snprintf(name + used, CHAIN_NAME - used, "_%s", step);
  }
}

static void write_steps(FILE *file, const chain_key *key) {
  fprintf(file,
          "RDNA_DEVICE float chain_steps(const chain_args &a, const float *in) {\n"
          "  float v = in[0], kept[%d];\n",
          CHAIN_INPUTS);
  for (int i = 0; i < key->steps; i++) {
    uint32_t word = key->step[i], input = word >> FUSED_INPUT_SHIFT;
    const char *name = step_name(word), *from = input < key->inputs ? "in" : "kept";
    if (word & FUSED_IS_MOVE && (word & FUSED_OP_MASK) == FUSED_KEEP)
      fprintf(file, "  kept[%u] = v = type::rounded(v);\n", input);
    else if (word & FUSED_IS_MOVE)
      fprintf(file, "  v = %s[%u];\n", from, input);
    else if (!(word & FUSED_IS_ZIP))
      fprintf(file, "  v = map_%s(v, a.p[%d], a.q[%d]);\n", name, i, i);
    else if (word & FUSED_INPUT_FIRST)
      fprintf(file, "  v = zip_%s(%s[%u], v, a.p[%d], a.q[%d]);\n", name, from, input, i, i);
    else
      fprintf(file, "  v = zip_%s(v, %s[%u], a.p[%d], a.q[%d]);\n", name, from, input, i, i);
  }
  fprintf(file, "  return v;\n}\n");
}

/* The kernel: all loads, then vector by vector the steps and the store; then the values behind the last whole vector,
 * of which there are fewer than a group has threads. */
static void write_kernel(FILE *file, const chain_key *key) {
  static const char *const kinds[] = {"SAME", "ONE", "ROW", "COLUMN", "PLANE"};
  int inputs = key->inputs;
  char name[CHAIN_NAME];
  rdna__chain_name(key, name);
  fprintf(file,
          "RDNA_DEVICE void chain_run(const chain_args &a) {\n"
          "  enum { VALUES = type::IN_16, APART = %d * VALUES };\n"
          "  uint32_t thread = threadIdx.x, first = (blockIdx.x * %du * CHAIN_VECTORS + thread) * VALUES;\n"
          "  uint32_t whole = a.count / VALUES * VALUES;\n"
          "  uint4 bits[%d][CHAIN_VECTORS];\n"
          "#pragma unroll\n"
          "  for (int n = 0; n < CHAIN_VECTORS; n++) {\n"
          "    uint32_t i = first + n * APART;\n"
          "    if (i >= whole) continue;\n",
          CHAIN_THREADS, CHAIN_THREADS, inputs);
  for (int k = 0; k < inputs; k++)
    fprintf(file, "    bits[%d][n] = chain_load<type, %s>(a.input[%d], i);\n", k, kinds[key->kind[k]], k);
  fprintf(file,
          "  }\n"
          "#pragma unroll\n"
          "  for (int n = 0; n < CHAIN_VECTORS; n++) {\n"
          "    uint32_t i = first + n * APART;\n"
          "    if (i >= whole) continue;\n"
          "    float w[%d][VALUES], v[VALUES];\n",
          inputs);
  for (int k = 0; k < inputs; k++)
    fprintf(file, "    chain_unpack<type, %s>(bits[%d][n], w[%d]);\n", kinds[key->kind[k]], k, k);
  fprintf(file,
          "#pragma unroll\n"
          "    for (int j = 0; j < VALUES; j++) {\n"
          "      const float in[] = {");
  for (int k = 0; k < inputs; k++) fprintf(file, "%sw[%d][j]", k ? ", " : "", k);
  fprintf(file,
          "};\n"
          "      v[j] = chain_steps(a, in);\n"
          "    }\n"
          "    type::store_16((char *)a.out + (uint64_t)i * type::BYTES, v);\n"
          "  }\n"
          "  uint32_t i = whole + thread;\n"
          "  if (blockIdx.x == 0 && i < a.count) {\n"
          "    const float in[] = {");
  for (int k = 0; k < inputs; k++)
    fprintf(file, "%stype::load(a.input[%d].data, %s::at(a.input[%d], i))", k ? ", " : "", k, kinds[key->kind[k]], k);
  fprintf(file,
          "};\n"
          "    type::store(a.out, i, chain_steps(a, in));\n"
          "  }\n"
          "}\n"
          "} // namespace rdna_chain\n"
          "extern \"C\" __global__ void __launch_bounds__(%d) %s(rdna_chain::chain_args a) {\n"
          "  rdna_chain::chain_run(a);\n"
          "}\n",
          CHAIN_THREADS, name);
}

rdna_status rdna__chain_source(const chain_key *key, char **out_source) {
  size_t size;
  *out_source = NULL;
  FILE *file = open_memstream(out_source, &size);
  if (!file) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the source of a chain");
  fprintf(file, "#define CHAIN_FAST %s\n#define CHAIN_VECTORS %d\n", key->dtype == RDNA_F32 ? "close" : "fast",
          vectors_of(key));
  fputs(rdna__chain_text, file);
  fprintf(file, "typedef %s type;\n", rdna_dtype_name((rdna_dtype)key->dtype));
  write_steps(file, key);
  write_kernel(file, key);
  bool good = !ferror(file);
  if (fclose(file) == 0 && good) return RDNA_OK;
  free(*out_source);
  *out_source = NULL;
  return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the source of a chain");
}
