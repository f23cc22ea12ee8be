/* TensorFlow's graph pass: fusions in what tf.function has traced. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "rewrite.h"

static atomic_long fused;

/* They are in TensorFlow's other library; NULL where they are not. */
static void (*preserved_size)(const TF_GrapplerItem *item, int *count, size_t *size, TF_Status *status);
static void (*preserved)(const TF_GrapplerItem *item, char **names, size_t *lengths, int count, void *storage,
                         size_t size, TF_Status *status);

static void find_preserved(void) {
  void *library = dlopen("libtensorflow_cc.so.2", RTLD_NOW | RTLD_NOLOAD);
  void *found = library ? dlsym(library, "TF_GetNodesToPreserveListSize") : NULL;
  memcpy(&preserved_size, &found, sizeof found);
  found = library ? dlsym(library, "TF_GetNodesToPreserveList") : NULL;
  memcpy(&preserved, &found, sizeof found);
}

static void *create(void) { return &fused; } /* there is no state; NULL would be a failure */

static void destroy(void *optimizer) { (void)optimizer; }

static void free_bytes(void *data, size_t size) {
  (void)size;
  free(data);
}

static int rewrite(const TF_Buffer *graph, const TF_GrapplerItem *item, struct wire *out, TF_Status *status) {
  int count = 0, found = 0;
  size_t size = 0;
  if (!preserved_size || !preserved) return 0;
  preserved_size(item, &count, &size, status);
  if (tf.GetCode(status) != TF_OK || count < 0) return 0;
  char **names = calloc((size_t)count + 1, sizeof *names), *storage = malloc(size + 1);
  size_t *lengths = calloc((size_t)count + 1, sizeof *lengths);
  if (names && storage && lengths) {
    preserved(item, names, lengths, count, storage, size, status);
    if (tf.GetCode(status) == TF_OK)
      found = rewrite_graph(graph->data, graph->length, &(struct kept){count, names, lengths}, out);
  }
  free(names);
  free(storage);
  free(lengths);
  return found;
}

/* A graph that is not changed goes back as it came. */
static void optimize(void *optimizer, const TF_Buffer *graph, const TF_GrapplerItem *item, TF_Buffer *out,
                     TF_Status *status) {
  (void)optimizer;
  struct wire changed = {0};
  int found = rewrite(graph, item, &changed, status);
  if (tf.GetCode(status) != TF_OK) return;
  if (!found) {
    changed = (struct wire){.data = malloc(graph->length + 1), .size = graph->length};
    if (!changed.data) {
      tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for a graph");
      return;
    }
    memcpy(changed.data, graph->data, graph->length);
  }
  atomic_fetch_add(&fused, found);
  out->data = changed.data;
  out->length = changed.size;
  out->data_deallocator = free_bytes;
}

/* How many fusions there were in all graphs of this process, for tf_rdna. */
RDNA_API long rdna_tensorflow_fused(void) { return atomic_load(&fused); }

/* TensorFlow calls it when it has loaded the plugin. */
RDNA_API void TF_InitGraph(TP_OptimizerRegistrationParams *params, TF_Status *status) {
  (void)status;
  if (have_tensorflow()) find_preserved();
  params->struct_size = TF_END_OF(TP_OptimizerRegistrationParams, optimizer);
  params->major_version = 0;
  params->minor_version = 0;
  params->patch_version = 1;
  params->device_type = "RDNA";
  params->optimizer_configs->struct_size = TF_END_OF(TP_OptimizerConfigs, scoped_allocator_optimization);
  /* Where it finds a graph too large it makes sums that are added to in place, of variables by reference, which no
   * plugin can have kernels for: training of ResNet-50 with 64 pictures stopped at them. */
  params->optimizer_configs->memory_optimization = TF_TriState_Off;
  /* It joins a batch norm of training and its ReLU into an operator of oneDNN's, on devices too that have none. */
  params->optimizer_configs->remapping = TF_TriState_Off;
  *params->optimizer = (TP_Optimizer){.struct_size = TF_END_OF(TP_Optimizer, destroy_func),
                                      .create_func = create,
                                      .optimize_func = optimize,
                                      .destroy_func = destroy};
}
