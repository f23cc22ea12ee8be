#include <stdlib.h>

#include "base/log.h"
#include "device/device.h"
#include "rdna/memory.h"

bool rdna__stream_records(const rdna_stream *stream) {
  return atomic_load_explicit(&stream->recording, memory_order_relaxed) != NULL;
}

rdna_status rdna_graph_begin(rdna_stream *stream) {
  if (!stream) return rdna__fail(RDNA_INVALID_ARGUMENT, "recording a graph needs a stream, not NULL");
  rdna_device *device = stream->device;
  if (rdna__stream_records(stream))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "stream %d of %s records a graph already", stream->id, device->label);
  if (!device->driver->graph_begin)
    return rdna__fail(RDNA_UNSUPPORTED, "the %s driver cannot record a graph; queue the work itself",
                      device->driver->name);
  rdna_graph *graph = calloc(1, sizeof *graph);
  if (!graph) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for a graph ran out");
  rdna_status status = device->driver->graph_begin(device->handle, stream->handle);
  if (status != RDNA_OK) {
    free(graph);
    return status;
  }
  graph->device = rdna_device_retain(device);
  atomic_store(&stream->recording, graph);
  atomic_fetch_add(&device->recordings, 1);
  return RDNA_OK;
}

rdna_status rdna_graph_end(rdna_stream *stream, rdna_graph **out_graph) {
  if (out_graph) *out_graph = NULL;
  if (!stream) return rdna__fail(RDNA_INVALID_ARGUMENT, "ending a graph needs a stream, not NULL");
  rdna_device *device = stream->device;
  rdna_graph *graph = atomic_exchange(&stream->recording, NULL);
  if (!graph)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "stream %d of %s records no graph; begin one first", stream->id,
                      device->label);
  rdna_status status = device->driver->graph_end(device->handle, stream->handle, &graph->handle);
  atomic_fetch_sub(&device->recordings, 1);
  if (status == RDNA_OK && out_graph)
    *out_graph = graph;
  else
    rdna_graph_release(graph);
  return status;
}

rdna_status rdna_graph_launch(rdna_graph *graph, rdna_stream *stream) {
  if (!graph || !stream)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "replaying a graph needs a graph and a stream, not NULL");
  RDNA_TRY(rdna__stream_of(graph->device, &stream));
  rdna_device *device = graph->device;
  rdna__profile_entry *entry = rdna__profile_begin(stream, RDNA_PROFILE_KIND_GRAPH, "graph", 0);
  RDNA_TRY(
      rdna__profile_end(stream, entry, device->driver->graph_launch(device->handle, stream->handle, graph->handle)));
  rdna__stream_remember(stream, "graph");
  return RDNA_OK;
}

void rdna_graph_release(rdna_graph *graph) {
  if (!graph) return;
  rdna_device *device = graph->device;
  if (graph->handle) {
    /* a replay may be under way */
    if (rdna_device_synchronize(device) != RDNA_OK)
      rdna__log(RDNA__LOG_WARNING, "a graph of %s was released with an error that nobody waited for: %s", device->label,
                rdna_last_error());
    device->driver->graph_destroy(device->handle, graph->handle);
  }
  for (size_t i = 0; i < graph->kept_count; i++)
    if (rdna_memory_free(device, graph->kept[i]) != RDNA_OK)
      rdna__log(RDNA__LOG_WARNING, "releasing a graph of %s: %s", device->label, rdna_last_error());
  free(graph->kept);
  rdna_device_release(device);
  free(graph);
}
