// What the files of the HIP interface share. Nothing in here is seen by programs: those bring AMD's headers.
//
//   state     devices from RDNA_EMULATE, the current device and last error of a thread
//   block     one allocation; the table of them says what a pointer is
//   stream    a queue with a thread of its own, so that a missing synchronization shows
//   module    a code object on one device
//
// Source of numbers, struct layouts and prototypes: AMD's HIP API reference and hip_runtime_api.h 5.2.3 (Debian).
#ifndef EMULATOR_HIP_HIP_H
#define EMULATOR_HIP_HIP_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "debug/debug.h"
#include "machine/machine.h"
#include "object/object.h"

#define API __attribute__((visibility("default")))

enum {
  HIP_SUCCESS = 0,
  HIP_INVALID_VALUE = 1,
  HIP_OUT_OF_MEMORY = 2,
  HIP_NOT_INITIALIZED = 3,
  HIP_INVALID_CONFIGURATION = 9,
  HIP_INVALID_PITCH = 12,
  HIP_INVALID_SYMBOL = 13,
  HIP_INVALID_DEVICE_POINTER = 17,
  HIP_INVALID_DIRECTION = 21,
  HIP_MISSING_CONFIGURATION = 52,
  HIP_INVALID_DEVICE_FUNCTION = 98,
  HIP_NO_DEVICE = 100,
  HIP_INVALID_DEVICE = 101,
  HIP_INVALID_IMAGE = 200,
  HIP_INVALID_CONTEXT = 201,
  HIP_NO_BINARY_FOR_GPU = 209,
  HIP_UNSUPPORTED_LIMIT = 215,
  HIP_FILE_NOT_FOUND = 301,
  HIP_OPERATING_SYSTEM = 304,
  HIP_INVALID_HANDLE = 400,
  HIP_ILLEGAL_STATE = 401,
  HIP_NOT_FOUND = 500,
  HIP_NOT_READY = 600,
  HIP_ILLEGAL_ADDRESS = 700,
  HIP_LAUNCH_OUT_OF_RESOURCES = 701,
  HIP_PEER_ALREADY_ENABLED = 704,
  HIP_PEER_NOT_ENABLED = 705,
  HIP_CONTEXT_IS_DESTROYED = 709,
  HIP_HOST_ALREADY_REGISTERED = 712,
  HIP_HOST_NOT_REGISTERED = 713,
  HIP_LAUNCH_FAILURE = 719,
  HIP_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
  HIP_NOT_SUPPORTED = 801,
  HIP_CAPTURE_UNSUPPORTED = 900,
  HIP_CAPTURE_INVALIDATED = 901,
  HIP_CAPTURE_MERGE = 902,
  HIP_CAPTURE_UNMATCHED = 903,
  HIP_CAPTURE_UNJOINED = 904,
  HIP_CAPTURE_ISOLATION = 905,
  HIP_CAPTURED_EVENT = 907,
  HIP_GRAPH_EXEC_UPDATE_FAILURE = 910,
  HIP_UNKNOWN = 999
};

// What differs between HIP 5, 6 and 7, for version.c. HIP 5 and 6 answer hipGetLastError with the last call's code, HIP
// 7 with the last one that was an error; kinds of memory and of nodes were renumbered in HIP 6.
int emu_last_error(int major, bool take);
int emu_pointer_attributes(int major, void *out, const void *pointer);
int emu_graph_node_type(int major, const void *node, int *out);
int emu_pointer_attribute(int major, void *out, int attribute, void *pointer);
int emu_driver_copy(int major, int dimensions, const void *parameters, void *stream, bool wait);
struct emu_copy_3d;
int emu_driver_copy_convert(int major, const void *parameters, struct emu_copy_3d *out);
int emu_pointer_attribute_list(int major, unsigned count, const int *attributes, void **out, void *pointer);

// ---- state

struct emu_card {
  const char *arch, *name;
  const struct emu_isa *target;
  int wgps, clock_khz, memory_khz, bus_bits, l2_bytes;
  uint64_t memory;
};

enum { EMU_MAX_DEVICES = 16 };

struct emu_stream;
struct emu_device {
  int index;
  const struct emu_card *card;
  uint64_t total, used;       // bytes; used under the blocks' lock
  _Atomic uint32_t stack;     // bytes a work-item of kernels whose need of stack the compiler cannot know
  struct emu_memory *memory;  // what its kernels may touch
  uint32_t peers;             // bit i: its kernels may touch the memory of device i
  struct emu_stream *null_stream, *streams;
};

struct emu_state {
  int device_count;
  struct emu_device devices[EMU_MAX_DEVICES];
  bool check, lint, serialize;
  bool only_reports;  // what the checker finds is no error of the launch
  unsigned long long instruction_limit;
  unsigned patience_ms;
  unsigned host_threads;
  const struct emu_observer *observer;  // of every launch; NULL: nobody looks
  unsigned long long lose_at;           // number of the launch at which all cards are lost; 0: never
};

// Made at the first call; NULL when there is no device, with a sentence on stderr.
struct emu_state *emu_state(void);
struct emu_device *emu_device(int index);  // NULL: no such device
struct emu_device *emu_current(void);      // NULL: no device at all
// Records the code for hipGetLastError and returns it. Once the cards are lost a success becomes that error.
API int emu_done(int code);
// Counts a launch. False: the cards are lost, and nothing runs.
bool emu_is_there(void);
__attribute__((format(printf, 1, 2))) void emu_say(const char *format, ...);  // one line on stderr
// Keeps the first line in `text` and prints none; NULL: prints again.
void emu_say_into(char *text, size_t room);

// ---- blocks

enum emu_block_kind { EMU_BLOCK_DEVICE, EMU_BLOCK_HOST, EMU_BLOCK_MANAGED, EMU_BLOCK_REGISTERED, EMU_BLOCK_MAPPED };
struct emu_block {
  uint64_t base, bytes;
  enum emu_block_kind kind;
  unsigned flags;
  struct emu_device *device;
  size_t mapped;          // bytes of the mapping: the block and the gap behind it; 0: not ours to unmap
  struct emu_pool *pool;  // or NULL
  int file;               // one more than the descriptor of what it lies in; 0: none
  bool adopted;           // another process's, so not the program's to free
  bool waits;             // its fills are done when the call returns
  // bit i: kernels of device i may read it, whoever else may; the other of mapped memory alone: and write it
  uint32_t readers, writers;
};

// Allocates for kernels of `device`; pinned and managed memory is seen by all devices. `name` is for reports.
int emu_block_create(struct emu_device *device, enum emu_block_kind kind, size_t bytes, unsigned flags,
                     const char *name, void **out);
int emu_block_release(void *pointer);
// Moves the device memory to a file, so that others can map it; it keeps its address. The descriptor is the block's.
int emu_block_share(void *base, int *out_file);
// Makes a mapping of another process's memory a block, which emu_block_release unmaps.
int emu_block_adopt(struct emu_device *device, void *base, size_t bytes, size_t mapped);
// Kernels of another device may access the device memory, as long as there is the block.
int emu_block_lend(void *base, struct emu_device *device);
enum emu_block_place { EMU_PLACE_HOST, EMU_PLACE_BLOCK, EMU_PLACE_GAP, EMU_PLACE_FREED };
// What is at the address. HOST: not ours. GAP: behind the end of *out. FREED: it was *out's.
enum emu_block_place emu_block_find(const void *pointer, struct emu_block *out);
// HIP_INVALID_VALUE when the range starts in one of our blocks and leaves it.
int emu_block_check(const void *pointer, size_t bytes, const char *what);
static inline bool emu_block_is_device(const struct emu_block *block) {
  return block->kind == EMU_BLOCK_DEVICE || block->kind == EMU_BLOCK_MAPPED;
}
// Kernels may read what the host has written here.
void emu_block_written(const void *pointer, size_t bytes);
// Whether the pointer is host memory that HIP does not know: copies from and to it are not asynchronous.
bool emu_block_pageable(const void *pointer);

// ---- virtual memory

// Enters a part of a reserved range, which no device sees yet.
int emu_block_map(struct emu_device *device, void *base, size_t bytes);
void emu_block_unmap(void *base);
// What kernels of the device may do with the mapped block. |written|: what lies there counts as such to the checker.
int emu_block_allow(void *base, struct emu_device *device, bool read, bool write, bool written);
// Counts memory of the device that has no address yet. False: there is not so much.
bool emu_block_take_room(struct emu_device *device, size_t bytes);
void emu_block_give_room(struct emu_device *device, size_t bytes);
// Whether the address lies in a range that hipMemAddressReserve gave.
bool emu_virtual_reserved(const void *pointer);

// ---- pools

struct emu_pool *emu_pool_current(struct emu_device *device);
struct emu_device *emu_pool_device(struct emu_pool *pool);  // NULL: no pool
void emu_pool_count(struct emu_pool *pool, uint64_t bytes, bool more);
// From now on the block counts with the pool; blocks of a pool that ends count with none.
void emu_block_enter_pool(void *pointer, struct emu_pool *pool);
void emu_block_leave_pool(struct emu_pool *pool);

// ---- streams

struct emu_dependency {
  struct emu_stream *stream;
  uint64_t number;
};
// Kinds of a graph's nodes, as HIP numbers them from 6 on; in HIP 5 each is one more.
enum emu_node_kind {
  EMU_NODE_KERNEL,
  EMU_NODE_COPY,
  EMU_NODE_FILL,
  EMU_NODE_HOST,
  EMU_NODE_GRAPH,
  EMU_NODE_EMPTY,
  EMU_NODE_WAIT,
  EMU_NODE_RECORD,
  EMU_NODE_ALLOCATION = 10,
  EMU_NODE_FREE
};
struct emu_work {
  int (*run)(void *context);  // on the stream's thread; returns a HIP code
  void (*release)(void *context);
  void *context;
  enum emu_node_kind node;
};

// The stream behind a handle: NULL and 1 are the null stream, 2 the thread's own. NULL: no such stream.
struct emu_stream *emu_stream_of(void *handle);
struct emu_device *emu_stream_device(const struct emu_stream *stream);
// Queues the work, behind `after` if given. The context is released in any case. *out_number may be NULL.
int emu_stream_submit(struct emu_stream *stream, struct emu_work work, const struct emu_dependency *after,
                      uint64_t *out_number);
// What is submitted from now on goes to the capture's graph; NULL ends it. Returns the capture before.
struct emu_capture;
struct emu_capture *emu_stream_capture(struct emu_stream *stream, struct emu_capture *capture);
struct emu_capture *emu_stream_capture_of(struct emu_stream *stream);
bool emu_stream_captures(struct emu_stream *stream);
// Keeps the work to be run at each launch. False: there is no memory; the work was released.
bool emu_capture_add(struct emu_capture *capture, struct emu_work work);
// Makes the graph invalid: something was asked of its capturing stream that cannot be captured.
void emu_capture_spoil(struct emu_capture *capture);
void emu_capture_drop(struct emu_capture *capture);  // its stream goes
struct emu_task;
int emu_stream_capture_task(struct emu_stream *stream, struct emu_task *task);  // the task is the graph's, or released
// Where a captured stream is, for an event; a stream that waits for that.
struct emu_capture_place;
int emu_capture_record(struct emu_stream *stream, struct emu_capture_place **out);
int emu_capture_wait(struct emu_stream *stream, const struct emu_capture_place *place);
void emu_capture_forget(struct emu_capture_place *place);
struct emu_graph;
void emu_graph_retain(struct emu_graph *graph);
void emu_graph_release(struct emu_graph *graph);
// What the calls of these names put into a stream, for a graph. Copies read pageable memory when they run.
struct emu_copy_3d;
int emu_copy_work(void *dst, const void *src, size_t bytes, int kind, struct emu_work *out);
int emu_copy_3d_work(const struct emu_copy_3d *parameters, struct emu_work *out);
int emu_fill_work(void *dst, size_t pitch, size_t width, size_t height, unsigned unit, uint32_t pattern,
                  struct emu_work *out);
int emu_callback_work(void (*function)(void *data), void *data, struct emu_work *out);
// What the contexts of such work are, as HIP tells nodes. NULL: of nothing to copy or to fill.
struct emu_kernel_node;
struct emu_fill_node;
struct emu_host_node;
int emu_launch_describe(void *context, struct emu_kernel_node *out);
void emu_copy_describe(const void *context, struct emu_copy_3d *out);
void emu_fill_describe(const void *context, struct emu_fill_node *out);
void emu_callback_describe(const void *context, struct emu_host_node *out);
// Waits for everything queued so far and takes the first error of it.
int emu_stream_finish(struct emu_stream *stream);
int emu_device_finish(struct emu_device *device);
bool emu_stream_reached(struct emu_stream *stream, uint64_t number);
void emu_stream_wait(struct emu_stream *stream, uint64_t number);
int emu_stream_take_error(struct emu_stream *stream);
void emu_stream_retain(struct emu_stream *stream);
void emu_stream_release(struct emu_stream *stream);

// ---- events

struct emu_event;
void emu_event_retain(struct emu_event *event);
void emu_event_release(struct emu_event *event);
int emu_event_record(struct emu_event *event, struct emu_stream *stream);
int emu_event_wait(struct emu_event *event, struct emu_stream *stream);

// ---- modules

struct emu_module;
struct emu_function {
  struct emu_module *module;
  const struct emu_object_kernel *source;
  struct emu_kernel kernel;
  uint64_t entry;  // offset in the program
};
struct emu_module {
  struct emu_module *next;  // of all that are loaded
  struct emu_device *device;
  struct emu_image image;
  void *copy;  // of the caller's bytes, which may go away
  struct emu_object object;
  uint8_t *loaded;  // address 0 of the object stands at loaded - object.low
  size_t mapped;
  struct emu_program *program;
  uint64_t program_at;  // the executable segment's address as linked
  struct emu_function *functions;
  struct emu_symbol *symbols;  // with the checker: of the variables, and those as they are loaded
  struct emu_variable *variables;
  pthread_mutex_t lines_lock;
  struct emu_lines *lines;  // read when the first report asks for one
  struct emu_dwarf *names;  // read when a debugger asks
  bool lines_read, names_read;
};

int emu_module_load(struct emu_device *device, const void *image, size_t size, struct emu_module **out);
void emu_module_unload(struct emu_module *module);
struct emu_function *emu_module_function(struct emu_module *module, const char *name);
// The kernel that the pointer names; NULL: it is none of a loaded module's.
struct emu_function *emu_function_known(const void *pointer);
// emu_dispatch's source_line; the context is the module.
bool emu_module_source_line(void *module, uint64_t pc, char *text, size_t size);
const struct emu_dwarf *emu_module_names(void *context, uint64_t *linked);  // for emu_dispatch
int emu_module_global(struct emu_module *module, const char *name, void **out, size_t *out_bytes);

// The kernel that the host names by the address |symbol|, on the current device; its first call loads the code object.
int emu_registered_function(const void *symbol, struct emu_function **out);
int emu_registered_variable(const void *symbol, void **out, size_t *bytes);
// The same for |bytes| from |offset| on. HIP_INVALID_VALUE: there are not so many.
int emu_registered_range(const void *symbol, size_t bytes, size_t offset, void **out);

bool emu_is_stub(const char *name);  // exported, and not implemented

// ---- launches

struct emu_launch {
  struct emu_function *function;
  unsigned groups[3], threads[3], lds;
  void **parameters;  // one pointer an argument, or
  const void *packed;
  size_t packed_bytes;
  bool cooperative;  // all groups at once
};
int emu_launch(const struct emu_launch *launch, struct emu_stream *stream);
int emu_launch_work(const struct emu_launch *launch, struct emu_device *device, struct emu_work *out);
// Groups that a multiprocessor (a WGP) holds at once.
int emu_groups_per_wgp(const struct emu_function *function, int threads, size_t lds, int *out);
// Whether hipLaunchAttribute's say that it is a cooperative launch.
bool emu_launch_cooperates(const void *attributes, unsigned count);
// Reads HIP_LAUNCH_PARAM_BUFFER_POINTER and _SIZE.
int emu_launch_extra(void **extra, const void **packed, size_t *bytes);

// ---- the host's side of a running kernel

// Made when the first kernel may ask for it; NULL: no memory.
struct emu_host;
struct emu_host *emu_host_of(struct emu_device *device);
uint64_t emu_host_buffer(const struct emu_host *host);  // hidden_hostcall_buffer
uint64_t emu_host_heap(const struct emu_host *host);    // hidden_heap_v1
uint64_t emu_host_shared(const struct emu_host *host, uint64_t *out_bytes);
void emu_host_interrupt(void *host);
// Prints; returns how many bytes, or -1.
int emu_print_message(const uint64_t *words, size_t count);

// ---- reports

void emu_report_findings(const struct emu_dispatch *dispatch, const struct emu_report *failure, enum emu_status status);
// Notes the launch for the file of RDNA_EMULATE_REPORT; failure: why it did not run to its end, or NULL. Any thread.
void emu_report_keep(const struct emu_dispatch *dispatch, const struct emu_report *failure);
void emu_report_leave_to_parent(void);     // in a fork's child: nothing was launched
void emu_report_write(void);               // that file, once, at the process's end
unsigned emu_report_failures(void);        // launches so far that did not run to their end
unsigned emu_report_count_findings(void);  // of the checker so far
// Whether RDNA_EMULATE_SUPPRESS's file has a line for it.
bool emu_report_is_suppressed(const char *kernel, const char *kind);
// Counts errors of queued work that no call has returned yet: +1 or -1.
void emu_report_untold(int count);
// At exit findings and failures are summed up, and change a status of 0; unless the caller tells of them itself.
void emu_report_watch_exit(bool check);
void emu_report_is_told(void);
// For test frameworks: waits for all that was launched, writes the errors that no call has given yet, one a line, and
// returns how many bytes they take without the last 0; what does not fit is left for the next call. The first call
// gives none, from then on they are kept, and they change the exit status no more.
API size_t emu_report_take(char *text, size_t room);
// Whether somebody asked for counters; then each launch adds to its kernel's row.
bool emu_report_counting(void);
void emu_report_count(const struct emu_dispatch *dispatch, const struct emu_isa *target);

#endif
