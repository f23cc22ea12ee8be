/* TensorFlow's profiler, of which TensorBoard shows the trace: a plane for each device with a line for each stream, as
 * an XSpace in protobuf's wire format (tsl/profiler/protobuf/xplane.proto). */
#include "profiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device.h"
#include "rdna/profile.h"
#include "wire.h"

atomic_bool profiler_on;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t turn;                    /* how often it was begun: marks of before mean nothing */
static char **names;                     /* "dense/MatMul:MatMul" of mark i + 1 */
static size_t name_count, name_room;     /* 32 bits are enough for marks */
static struct timespec began;            /* by the wall's clock */
static rdna_device *active[MAX_DEVICES]; /* by ordinal; NULL: not profiled */
static struct wire collected;            /* what was found, until TensorFlow has taken it */

/* ---- marks ---- */

static void forget_names(void) {
  for (size_t i = 0; i < name_count; i++) free(names[i]);
  name_count = 0;
}

/* The mark of a new name; 0 where there is no memory. */
static uint64_t add_name(const char *op, TF_OpKernelContext *ctx) {
  TF_StringView said = tf.GetOpKernelName(ctx);
  if (name_count == name_room) {
    size_t room = name_room ? name_room * 2 : 256;
    char **grown = realloc(names, room * sizeof *names);
    if (!grown) return 0;
    names = grown;
    name_room = room;
  }
  size_t size = said.len + strlen(op) + 2;
  char *text = malloc(size);
  if (!text) return 0;
  snprintf(text, size, "%.*s:%s", (int)said.len, said.data, op);
  names[name_count] = text;
  return ++name_count;
}

void profiler_enter(_Atomic uint64_t *mark, const char *op, TF_OpKernelContext *ctx) {
  uint64_t own = atomic_load_explicit(mark, memory_order_relaxed);
  pthread_mutex_lock(&lock);
  if (own >> 32 != turn) {
    own = turn << 32 | add_name(op, ctx);
    atomic_store_explicit(mark, own, memory_order_relaxed);
  }
  pthread_mutex_unlock(&lock);
  rdna_profile_mark(own);
}

void profiler_leave(void) { rdna_profile_mark(0); }

/* ---- an XSpace ---- */

enum { SPACE_PLANES = 1 };
enum { PLANE_ID = 1, PLANE_NAME, PLANE_LINES, PLANE_EVENT_METADATA, PLANE_STAT_METADATA };
enum { LINE_ID = 1, LINE_NAME, LINE_TIMESTAMP_NS, LINE_EVENTS };
enum { EVENT_METADATA_ID = 1, EVENT_OFFSET_PS, EVENT_DURATION_PS, EVENT_STATS };
enum { STAT_METADATA_ID = 1, STAT_UINT64 = 3, STAT_TEXT = 5 };
enum { METADATA_ID = 1, METADATA_NAME };
enum { MAP_KEY = 1, MAP_VALUE };
enum { TF_OP = 1, BYTES = 2 }; /* our statistics */

static void put_metadata(struct wire *plane, int field, uint64_t id, const char *name) {
  struct wire metadata = {0}, entry = {0};
  wire_number(&metadata, METADATA_ID, id);
  wire_text(&metadata, METADATA_NAME, name);
  wire_number(&entry, MAP_KEY, id);
  wire_message(&entry, MAP_VALUE, &metadata);
  wire_message(plane, field, &entry);
}

/* The number of a kernel's name among those of the records before, which is written where it is new. */
static uint64_t event_name(struct wire *plane, const rdna_profile_record *records, size_t i) {
  for (size_t k = 0; k < i; k++)
    if (records[k].name == records[i].name) return k + 1;
  put_metadata(plane, PLANE_EVENT_METADATA, i + 1, records[i].name);
  return i + 1;
}

static void put_event(struct wire *line, const rdna_profile_record *record, uint64_t name) {
  struct wire event = {0}, stat = {0};
  wire_number(&event, EVENT_METADATA_ID, name);
  wire_number(&event, EVENT_OFFSET_PS, record->start > 0 ? (uint64_t)(record->start * 1e9) : 0);
  wire_number(&event, EVENT_DURATION_PS, record->length > 0 ? (uint64_t)(record->length * 1e9) : 0);
  uint64_t mark = record->mark & 0xffffffff;
  if (record->mark >> 32 == turn && mark > 0 && mark <= name_count) {
    wire_number(&stat, STAT_METADATA_ID, TF_OP);
    wire_text(&stat, STAT_TEXT, names[mark - 1]);
    wire_message(&event, EVENT_STATS, &stat);
  }
  if (record->bytes) {
    wire_number(&stat, STAT_METADATA_ID, BYTES);
    wire_number(&stat, STAT_UINT64, record->bytes);
    wire_message(&event, EVENT_STATS, &stat);
  }
  wire_message(line, LINE_EVENTS, &event);
}

static void put_plane(struct wire *space, int ordinal, const rdna_profile_record *records, size_t count) {
  struct wire plane = {0};
  char name[48];
  int streams = 0;
  snprintf(name, sizeof name, "/device:GPU:%d", ordinal); /* the planes that TensorBoard takes for accelerators */
  wire_number(&plane, PLANE_ID, (uint64_t)ordinal + 1);
  wire_text(&plane, PLANE_NAME, name);
  put_metadata(&plane, PLANE_STAT_METADATA, TF_OP, "tf_op");
  put_metadata(&plane, PLANE_STAT_METADATA, BYTES, "bytes_transferred");
  for (size_t i = 0; i < count; i++)
    if (records[i].stream >= streams) streams = records[i].stream + 1;
  for (int stream = 0; stream < streams; stream++) {
    struct wire line = {0};
    bool empty = true;
    snprintf(name, sizeof name, "Stream #%d", stream);
    wire_number(&line, LINE_ID, (uint64_t)stream + 1);
    wire_text(&line, LINE_NAME, name);
    wire_number(&line, LINE_TIMESTAMP_NS, (uint64_t)began.tv_sec * 1000000000u + (uint64_t)began.tv_nsec);
    for (size_t i = 0; i < count; i++) {
      if (records[i].stream != stream) continue;
      put_event(&line, &records[i], event_name(&plane, records, i));
      empty = false;
    }
    if (empty)
      free(line.data);
    else
      wire_message(&plane, PLANE_LINES, &line);
  }
  wire_message(space, SPACE_PLANES, &plane);
}

/* ---- TensorFlow's calls ---- */

/* Ends what was begun, and takes what was found into |space| unless that is NULL. |status| keeps a failure of before.
 */
static void end_devices(struct wire *space, TF_Status *status) {
  for (int i = 0; i < MAX_DEVICES; i++) {
    if (!active[i]) continue;
    rdna_profile_record *records = NULL;
    size_t count = 0;
    rdna_status ended = rdna_profile_stop(active[i], &records, &count);
    if (tf.GetCode(status) == TF_OK) report_status(ended, status);
    if (ended == RDNA_OK && space) put_plane(space, i, records, count);
    free(records);
    active[i] = NULL;
  }
}

static void start(const TP_Profiler *profiler, TF_Status *status) {
  (void)profiler;
  pthread_mutex_lock(&lock);
  forget_names();
  free(collected.data);
  collected = (struct wire){0};
  turn++;
  rdna_status result = RDNA_OK;
  clock_gettime(CLOCK_REALTIME, &began);
  for (int i = 0; i < MAX_DEVICES && result == RDNA_OK; i++) {
    rdna_device *device = device_of_ordinal(i);
    if (!device) continue;
    result = rdna_profile_start(device);
    if (result == RDNA_OK) active[i] = device;
  }
  report_status(result, status);
  if (result != RDNA_OK) end_devices(NULL, status);
  atomic_store(&profiler_on, result == RDNA_OK);
  pthread_mutex_unlock(&lock);
}

static void stop(const TP_Profiler *profiler, TF_Status *status) {
  (void)profiler;
  atomic_store(&profiler_on, false);
  pthread_mutex_lock(&lock);
  end_devices(&collected, status);
  pthread_mutex_unlock(&lock);
}

/* Asked twice: for the size with no |buffer|, and for the bytes. */
static void collect(const TP_Profiler *profiler, uint8_t *buffer, size_t *size, TF_Status *status) {
  (void)profiler;
  pthread_mutex_lock(&lock);
  if (collected.failed) tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for the profile");
  size_t have = collected.failed ? 0 : collected.size;
  if (buffer && have && *size >= have) {
    memcpy(buffer, collected.data, have);
    free(collected.data);
    collected = (struct wire){0};
  }
  *size = have;
  pthread_mutex_unlock(&lock);
}

static void destroy_profiler(TP_Profiler *profiler) { (void)profiler; }

static void destroy_profiler_fns(TP_ProfilerFns *functions) { (void)functions; }

/* TensorFlow calls it when it has loaded the plugin. */
RDNA_API void TF_InitProfiler(TF_ProfilerRegistrationParams *params, TF_Status *status) {
  (void)status;
  params->struct_size = TF_END_OF(TF_ProfilerRegistrationParams, destroy_profiler_fns);
  params->major_version = 0;
  params->minor_version = 0;
  params->patch_version = 1;
  *params->profiler = (TP_Profiler){.struct_size = TF_END_OF(TP_Profiler, device_type), .device_type = "RDNA"};
  *params->profiler_fns = (TP_ProfilerFns){.struct_size = TF_END_OF(TP_ProfilerFns, collect_data_xspace),
                                           .start = start,
                                           .stop = stop,
                                           .collect_data_xspace = collect};
  params->destroy_profiler = destroy_profiler;
  params->destroy_profiler_fns = destroy_profiler_fns;
}
