#include "command/weights.h"

#include <stdio.h>

#include "command/command.h"

static json_t *counts_as_json(const rdna__weight_counts *counts, bool after) {
  json_t *types = json_object();
  for (uint32_t i = 0; i < RDNA__WEIGHT_TYPES; i++) {
    int64_t tensors = after ? counts->after[i].tensors : counts->before[i].tensors;
    uint64_t bytes = after ? counts->after[i].bytes : counts->before[i].bytes;
    if (tensors)
      json_object_set_new(types, rdna_gguf_tensor_type_name(i),
                          json_pack("{s:I, s:I}", "tensors", (json_int_t)tensors, "bytes", (json_int_t)bytes));
  }
  return types;
}

static void print_row(const char *name, bool before, const int64_t tensors[2], const double bytes[2]) {
  char text[32];
  printf("%-10s", name);
  for (int i = before ? 0 : 1; i < 2; i++) {
    if (tensors[i])
      printf(" %8lld %10s", (long long)tensors[i], format_bytes(bytes[i], text));
    else
      printf(" %8s %10s", "-", "-");
  }
  printf("\n");
}

int print_weight_counts(const rdna__weight_counts *counts, bool before, bool json) {
  if (json) {
    json_t *report = json_object();
    if (before) json_object_set_new(report, "before", counts_as_json(counts, false));
    json_object_set_new(report, "after", counts_as_json(counts, true));
    json_object_set_new(report, "other_type_than_asked", json_integer(counts->fallbacks));
    json_object_set_new(report, "without_importance", json_integer(counts->unimportant));
    return print_json(report);
  }
  int64_t tensors[2] = {0};
  double bytes[2] = {0};
  if (before) printf("%-10s %19s %19s\n", "", "before", "after");
  printf("%-10s", "type");
  for (int i = before ? 0 : 1; i < 2; i++) printf(" %8s %10s", "tensors", "bytes");
  printf("\n");
  for (uint32_t i = 0; i < RDNA__WEIGHT_TYPES; i++) {
    const int64_t t[2] = {counts->before[i].tensors, counts->after[i].tensors};
    const double b[2] = {(double)counts->before[i].bytes, (double)counts->after[i].bytes};
    if (t[0] || t[1]) print_row(rdna_gguf_tensor_type_name(i), before, t, b);
    for (int k = 0; k < 2; k++) tensors[k] += t[k], bytes[k] += b[k];
  }
  print_row("all", before, tensors, bytes);
  if (counts->fallbacks)
    printf("\n%lld tensors have rows that are no whole blocks of the type that was asked for, and took another.\n",
           (long long)counts->fallbacks);
  if (counts->unimportant)
    printf("\n%lld matrices are not in the importance matrix; all their columns counted the same.\n",
           (long long)counts->unimportant);
  return EXIT_OK;
}
