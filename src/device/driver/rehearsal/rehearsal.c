#include "device/driver/rehearsal/rehearsal.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Addresses are taken one after the other from where no process has memory. They are not used twice, so that nothing
 * that lies apart seems to overlap. */
enum { SPACING = 1 << 21 };
#define FIRST_ADDRESS (UINT64_C(1) << 52)
#define WITHOUT_BOUND (UINT64_C(1) << 62)

struct rdna__driver_device {
  rdna__driver table;
};

static _Atomic uint64_t next_address = FIRST_ADDRESS;

/* What streams, events, modules and graphs are here: something that is not NULL. */
static char nothing;

static void device_close(rdna__driver_device *device) { free(device); }
static rdna_status device_synchronize(rdna__driver_device *device) { return RDNA_OK; }

static rdna_status memory_info(rdna__driver_device *device, uint64_t *out_free, uint64_t *out_total) {
  *out_free = *out_total = WITHOUT_BOUND;
  return RDNA_OK;
}

static rdna_status memory_alloc(rdna__driver_device *device, size_t size, void **out_data) {
  uint64_t room = ((uint64_t)size / SPACING + 2) * SPACING;
  *out_data = (void *)(uintptr_t)atomic_fetch_add(&next_address, room);  // NOLINT: nobody reads what lies there
  return RDNA_OK;
}

static rdna_status memory_free(rdna__driver_device *device, void *data) { return RDNA_OK; }

static rdna_status host_alloc(rdna__driver_device *device, size_t size, void **out_data) {
  *out_data = calloc(1, size);
  return *out_data ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu bytes", size);
}

static rdna_status host_free(rdna__driver_device *device, void *data) {
  free(data);
  return RDNA_OK;
}

static rdna_status copy(rdna__driver_device *device, rdna__driver_stream *stream, rdna__copy_kind kind, void *dst,
                        const void *src, size_t size) {
  return RDNA_OK;
}

static rdna_status fill(rdna__driver_device *device, rdna__driver_stream *stream, void *dst, uint8_t value,
                        size_t size) {
  return RDNA_OK;
}

static rdna_status copy_peer(rdna__driver_device *dst_device, rdna__driver_stream *stream, void *dst,
                             rdna__driver_device *src_device, const void *src, size_t size, bool *out_direct) {
  *out_direct = true;
  return RDNA_OK;
}

static rdna_status stream_create(rdna__driver_device *device, int priority, rdna__driver_stream **out_stream) {
  *out_stream = (rdna__driver_stream *)&nothing;
  return RDNA_OK;
}

static void stream_destroy(rdna__driver_device *device, rdna__driver_stream *stream) {}
static rdna_status stream_synchronize(rdna__driver_device *device, rdna__driver_stream *stream) { return RDNA_OK; }
static rdna_status stream_query(rdna__driver_device *device, rdna__driver_stream *stream) { return RDNA_OK; }

static rdna_status stream_wait(rdna__driver_device *device, rdna__driver_stream *stream, rdna__driver_event *event) {
  return RDNA_OK;
}

static rdna_status stream_call(rdna__driver_device *device, rdna__driver_stream *stream, void (*callback)(void *),
                               void *data) {
  callback(data);
  return RDNA_OK;
}

static rdna_status event_create(rdna__driver_device *device, bool timing, rdna__driver_event **out_event) {
  *out_event = (rdna__driver_event *)&nothing;
  return RDNA_OK;
}

static void event_destroy(rdna__driver_device *device, rdna__driver_event *event) {}

static rdna_status event_record(rdna__driver_device *device, rdna__driver_event *event, rdna__driver_stream *stream) {
  return RDNA_OK;
}

static rdna_status event_synchronize(rdna__driver_device *device, rdna__driver_event *event) { return RDNA_OK; }
static rdna_status event_query(rdna__driver_device *device, rdna__driver_event *event) { return RDNA_OK; }

static rdna_status event_elapsed(rdna__driver_device *device, rdna__driver_event *start, rdna__driver_event *end,
                                 float *out_ms) {
  *out_ms = 0;
  return RDNA_OK;
}

static rdna_status module_load(rdna__driver_device *device, const void *image, size_t size, const char *name,
                               rdna__driver_module **out_module) {
  *out_module = (rdna__driver_module *)&nothing;
  return RDNA_OK;
}

static void module_unload(rdna__driver_device *device, rdna__driver_module *module) {}

static rdna_status module_function(rdna__driver_device *device, rdna__driver_module *module, const char *name,
                                   void **out_handle) {
  *out_handle = &nothing;
  return RDNA_OK;
}

static rdna_status launch(rdna__driver_device *device, rdna__driver_stream *stream,
                          const rdna__driver_function *function, rdna_grid grid, const void *args) {
  return RDNA_OK;
}

static rdna_status graph_begin(rdna__driver_device *device, rdna__driver_stream *stream) { return RDNA_OK; }

static rdna_status graph_end(rdna__driver_device *device, rdna__driver_stream *stream, rdna__driver_graph **out_graph) {
  *out_graph = (rdna__driver_graph *)&nothing;
  return RDNA_OK;
}

static rdna_status graph_launch(rdna__driver_device *device, rdna__driver_stream *stream, rdna__driver_graph *graph) {
  return RDNA_OK;
}

static void graph_destroy(rdna__driver_device *device, rdna__driver_graph *graph) {}

rdna_status rdna__rehearsal_open(const rdna__driver *like, const rdna__driver **out_driver,
                                 rdna__driver_device **out_device) {
  rdna__driver_device *device = calloc(1, sizeof *device);
  if (!device) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for a rehearsal ran out");
  bool records = like->graph_begin != NULL;
  device->table = (rdna__driver){
      .name = like->name,
      .code_format = like->code_format,
      RDNA__DRIVER_ENTRIES(),
      .module_load = module_load,
      .module_unload = module_unload,
      .module_function = module_function,
      .graph_begin = records ? graph_begin : NULL,
      .graph_end = records ? graph_end : NULL,
      .graph_launch = records ? graph_launch : NULL,
      .graph_destroy = records ? graph_destroy : NULL,
  };
  *out_driver = &device->table;
  *out_device = device;
  return RDNA_OK;
}
