// From a launch to a dispatch: the argument block with its hidden part, limits, and the work on the stream.
#include <stdlib.h>
#include <string.h>

#include "hip/hip.h"
#include "hip/layouts.h"

enum { REPORT_ROOM = 32, THREADS_MAX = 1024 };

struct job {
  struct emu_function *function;
  struct emu_dispatch dispatch;
  struct emu_counters counters;
  uint8_t *kernarg;
  struct grid_sync *sync;  // or NULL
  void **arguments;        // where each lies, for who asks; NULL: nobody has
};

// The barrier in memory at which the groups of a cooperative launch on RDNA 3 meet: mg_info of the device libraries.
// `others` are its members for grids that span devices.
struct grid_sync {
  uint64_t others[4];
  uint32_t arrived, unused, groups;
};

static void release(void *context) {
  struct job *job = context;
  if (job->sync) (void)emu_memory_remove(job->dispatch.memory, (uint64_t)job->sync);
  free(job->sync);
  free(job->arguments);
  free(job->kernarg);
  free(job);
}

static int run(void *context) {
  struct job *job = context;
  struct emu_report failure = {0};
  struct emu_report *reports = job->dispatch.check ? calloc(REPORT_ROOM, sizeof *reports) : NULL;
  job->dispatch.reports = reports;
  job->dispatch.report_room = reports ? REPORT_ROOM : 0;
  if (emu_report_counting()) job->dispatch.counters = &job->counters;
  enum emu_status status = emu_dispatch_run(&job->dispatch, &failure);
  if (emu_report_counting()) emu_report_count(&job->dispatch, job->function->module->device->card->target);
  emu_report_findings(&job->dispatch, &failure, status);
  free(reports);
  switch (status) {
    case EMU_OK:
      return HIP_SUCCESS;
    case EMU_CHECK:
      return emu_state()->only_reports ? HIP_SUCCESS : HIP_LAUNCH_FAILURE;
    case EMU_FAULT:
      return HIP_ILLEGAL_ADDRESS;
    case EMU_NO_MEMORY:
      return HIP_OUT_OF_MEMORY;
    case EMU_INVALID:
      return HIP_INVALID_CONFIGURATION;
    default:
      return HIP_LAUNCH_FAILURE;
  }
}

static void put(uint8_t *kernarg, const struct emu_arg *arg, uint64_t value) {
  memcpy(kernarg + arg->offset, &value, arg->size < 8 ? arg->size : 8);
}

static bool asks_host(const struct emu_object_kernel *kernel) {
  for (unsigned i = 0; i < kernel->arg_count; i++)
    if (kernel->args[i].kind == EMU_ARG_HOSTCALL_BUFFER || kernel->args[i].kind == EMU_ARG_HEAP) return true;
  return false;
}

// The grid is a whole number of groups, so that remainders are 0.
static void fill_hidden(uint8_t *kernarg, const struct emu_object_kernel *kernel, const struct emu_launch *launch,
                        const struct emu_host *host, const struct grid_sync *sync) {
  for (unsigned i = 0; i < kernel->arg_count; i++) {
    const struct emu_arg *arg = &kernel->args[i];
    switch (arg->kind) {
      case EMU_ARG_BLOCK_COUNT_X:
      case EMU_ARG_BLOCK_COUNT_Y:
      case EMU_ARG_BLOCK_COUNT_Z:
        put(kernarg, arg, launch->groups[arg->kind - EMU_ARG_BLOCK_COUNT_X]);
        break;
      case EMU_ARG_GROUP_SIZE_X:
      case EMU_ARG_GROUP_SIZE_Y:
      case EMU_ARG_GROUP_SIZE_Z:
        put(kernarg, arg, launch->threads[arg->kind - EMU_ARG_GROUP_SIZE_X]);
        break;
      case EMU_ARG_GRID_DIMS:
        put(kernarg, arg,
            launch->groups[2] * launch->threads[2] > 1   ? 3
            : launch->groups[1] * launch->threads[1] > 1 ? 2
                                                         : 1);
        break;
      case EMU_ARG_DYNAMIC_LDS_SIZE:
        put(kernarg, arg, launch->lds);
        break;
      case EMU_ARG_HOSTCALL_BUFFER:
        put(kernarg, arg, emu_host_buffer(host));
        break;
      case EMU_ARG_HEAP:
        put(kernarg, arg, emu_host_heap(host));
        break;
      case EMU_ARG_GRID_SYNC:
        // RDNA 2 has a barrier for it; 1 says that the grid may use it
        put(kernarg, arg, sync ? (uint64_t)sync : launch->cooperative);
        break;
      default:
        break;
    }
  }
}

static bool is_hidden(const struct emu_arg *arg) { return arg->kind > EMU_ARG_POINTER; }

static int fill_visible(uint8_t *kernarg, const struct emu_object_kernel *kernel, const struct emu_launch *launch) {
  if (launch->packed) {
    if (launch->packed_bytes > kernel->kernarg_bytes) {
      // a caller may round its struct up; what lies behind the kernel's own block is never read
      memcpy(kernarg, launch->packed, kernel->kernarg_bytes);
    } else {
      memcpy(kernarg, launch->packed, launch->packed_bytes);
    }
    return HIP_SUCCESS;
  }
  if (!kernel->has_args) {
    emu_say("kernel '%s' has no metadata for its arguments, so they can only be passed packed", kernel->name);
    return HIP_INVALID_VALUE;
  }
  for (unsigned i = 0, parameter = 0; i < kernel->arg_count; i++) {
    const struct emu_arg *arg = &kernel->args[i];
    if (is_hidden(arg)) continue;
    if (!launch->parameters || !launch->parameters[parameter]) return HIP_INVALID_VALUE;
    memcpy(kernarg + arg->offset, launch->parameters[parameter++], arg->size);
  }
  return HIP_SUCCESS;
}

// Where the arguments end that the caller passes: hidden ones come behind them.
static uint32_t visible_end(const struct emu_object_kernel *kernel) {
  if (!kernel->has_args) return kernel->kernarg_bytes;
  uint32_t end = 0;
  for (unsigned i = 0; i < kernel->arg_count; i++) {
    const struct emu_arg *arg = &kernel->args[i];
    if (!is_hidden(arg) && arg->offset + arg->size > end) end = arg->offset + arg->size;
  }
  return end;
}

// How many groups of the launch the card holds at once.
static uint32_t resident_groups(const struct emu_launch *launch) {
  const struct emu_function *function = launch->function;
  const struct emu_card *card = function->module->device->card;
  unsigned threads = launch->threads[0] * launch->threads[1] * launch->threads[2];
  unsigned wave = emu_kernel_wave(&function->kernel), waves = (threads + wave - 1) / wave;
  unsigned a_simd =
      emu_kernel_occupancy(card->target, &function->kernel, threads, function->kernel.lds_bytes + launch->lds);
  uint32_t groups = a_simd * (uint32_t)card->wgps * 4 / waves;
  return groups ? groups : 1;
}

static int check_shape(const struct emu_launch *launch) {
  const struct emu_function *function = launch->function;
  uint64_t threads = 1;
  for (int i = 0; i < 3; i++) {
    if (launch->groups[i] == 0 || launch->threads[i] == 0 || launch->threads[i] > THREADS_MAX)
      return HIP_INVALID_CONFIGURATION;
    threads *= launch->threads[i];
  }
  if (threads > THREADS_MAX || threads > function->source->max_threads) {
    emu_say("kernel '%s' was launched with %llu threads a block; it was compiled for %u at most",
            function->source->name, (unsigned long long)threads, function->source->max_threads);
    return threads > THREADS_MAX ? HIP_INVALID_CONFIGURATION : HIP_LAUNCH_FAILURE;
  }
  if ((uint64_t)launch->groups[0] * launch->threads[0] > UINT32_MAX ||
      (uint64_t)launch->groups[1] * launch->threads[1] > UINT32_MAX ||
      (uint64_t)launch->groups[2] * launch->threads[2] > UINT32_MAX)
    return HIP_INVALID_CONFIGURATION;
  unsigned most = function->module->device->card->target->group_lds;
  if ((uint64_t)launch->lds + function->kernel.lds_bytes > most) {
    emu_say("kernel '%s' was launched with %u bytes of LDS besides its own %u; a group has %u", function->source->name,
            launch->lds, function->kernel.lds_bytes, most);
    return HIP_LAUNCH_OUT_OF_RESOURCES;
  }
  return HIP_SUCCESS;
}

static int check_cooperation(const struct emu_launch *launch) {
  const struct emu_function *function = launch->function;
  const struct emu_card *card = function->module->device->card;
  uint64_t groups = (uint64_t)launch->groups[0] * launch->groups[1] * launch->groups[2];
  int threads = (int)(launch->threads[0] * launch->threads[1] * launch->threads[2]), per_wgp = 0;
  (void)emu_groups_per_wgp(function, threads, launch->lds, &per_wgp);
  if (groups <= (uint64_t)per_wgp * (uint64_t)card->wgps) return HIP_SUCCESS;
  emu_say("kernel '%s' was launched cooperatively with %llu groups; %s holds %d of them at once",
          function->source->name, (unsigned long long)groups, card->name, per_wgp * card->wgps);
  return HIP_COOPERATIVE_LAUNCH_TOO_LARGE;
}

static bool make_sync(struct job *job, const struct emu_launch *launch, const struct emu_device *device) {
  enum { LINE = 64 };
  if (!launch->cooperative || device->card->target->grid_barrier_gws) return true;
  struct grid_sync *sync = aligned_alloc(LINE, LINE);
  if (!sync) return false;
  *sync = (struct grid_sync){.groups = launch->groups[0] * launch->groups[1] * launch->groups[2]};
  if (!emu_memory_add(device->memory, (uint64_t)sync, sizeof *sync, "the grid's barrier", true)) {
    free(sync);
    return false;
  }
  job->sync = sync;
  return true;
}

// Somebody looks, and may let it wait for long.
static void observe(struct emu_dispatch *dispatch, const struct emu_function *function,
                    const struct emu_observer *observer) {
  const struct emu_symbol *code = emu_object_symbol(&function->module->object, function->source->name);
  dispatch->code_bytes = code ? code->bytes : 0;
  dispatch->observer = observer;
  if (!emu_debug_stops()) return;
  dispatch->patience_ms = 0;
  dispatch->host_threads = 1;
}

int emu_launch_work(const struct emu_launch *launch, struct emu_device *device, struct emu_work *out) {
  if (!launch->function) return HIP_INVALID_HANDLE;
  struct emu_function *function = launch->function;
  struct emu_module *module = function->module;
  if (device != module->device) {
    emu_say("kernel '%s' belongs to device %d and was launched on a stream of device %d", function->source->name,
            module->device->index, device->index);
    return HIP_INVALID_HANDLE;
  }
  int code = check_shape(launch);
  if (code == HIP_SUCCESS && launch->cooperative) code = check_cooperation(launch);
  if (code != HIP_SUCCESS) return code;
  struct job *job = calloc(1, sizeof *job);
  // 64-byte lines, as the runtime's own pool hands them out. The last one is readable to its end: compilers widen the
  // scalar load of three last dwords to four, past the size that the object states
  size_t bytes = ((size_t)function->source->kernarg_bytes + 63) / 64 * 64;
  uint8_t *kernarg = aligned_alloc(64, bytes + 64);
  if (!job || !kernarg) {
    free(job);
    free(kernarg);
    return HIP_OUT_OF_MEMORY;
  }
  memset(kernarg, 0, bytes);
  job->kernarg = kernarg;
  job->dispatch.memory = module->device->memory;
  code = fill_visible(kernarg, function->source, launch);
  if (code != HIP_SUCCESS) {
    release(job);
    return code;
  }
  struct emu_host *host = asks_host(function->source) ? emu_host_of(module->device) : NULL;
  if ((!host && asks_host(function->source)) || !make_sync(job, launch, module->device)) {
    release(job);
    return HIP_OUT_OF_MEMORY;
  }
  fill_hidden(kernarg, function->source, launch, host, job->sync);
  struct emu_state *s = emu_state();
  // the limit is for the whole of the stack, as with AMD's runtime: a kernel's own part is not added to it
  bool dynamic = function->source->dynamic_stack;
  uint32_t stack = module->device->stack, own = function->kernel.scratch_bytes;
  job->function = function;
  job->dispatch = (struct emu_dispatch){
      .program = module->program,
      .entry = function->entry,
      .kernel = function->kernel,
      .name = function->source->name,
      .groups = {launch->groups[0], launch->groups[1], launch->groups[2]},
      .threads = {launch->threads[0], launch->threads[1], launch->threads[2]},
      .dynamic_lds_bytes = launch->lds,
      .scratch_bytes = dynamic && stack > own ? stack : own,
      .dynamic_stack = dynamic,
      .together = launch->cooperative,
      .resident_groups = resident_groups(launch),
      .instruction_limit = s->instruction_limit,
      .patience_ms = s->patience_ms,
      .kernarg = (uint64_t)kernarg,
      .kernarg_bytes = (uint32_t)bytes,
      .memory = module->device->memory,
      .check = s->check,
      .is_suppressed = s->check ? emu_report_is_suppressed : NULL,
      .lint = s->lint,
      .source_line = emu_module_source_line,
      .names = emu_module_names,
      .source_context = module,
  };
  if (s->observer) observe(&job->dispatch, function, s->observer);
  if (host) {
    job->dispatch.shared = emu_host_shared(host, &job->dispatch.shared_bytes);
    job->dispatch.interrupt = emu_host_interrupt;
    job->dispatch.interrupt_context = host;
  }
  uint32_t visible = visible_end(function->source);
  if (launch->packed && launch->packed_bytes < visible) {
    job->dispatch.kernarg_missing[0] = (uint32_t)launch->packed_bytes;
    job->dispatch.kernarg_missing[1] = visible;
  }
  *out = (struct emu_work){run, release, job, EMU_NODE_KERNEL};
  return HIP_SUCCESS;
}

int emu_launch_describe(void *context, struct emu_kernel_node *out) {
  struct job *job = context;
  const struct emu_object_kernel *kernel = job->function->source;
  if (!job->arguments) job->arguments = calloc(kernel->arg_count + 1, sizeof *job->arguments);
  if (!job->arguments) return HIP_OUT_OF_MEMORY;
  for (unsigned i = 0, count = 0; i < kernel->arg_count; i++)
    if (!is_hidden(&kernel->args[i])) job->arguments[count++] = job->kernarg + kernel->args[i].offset;
  const uint32_t *groups = job->dispatch.groups, *threads = job->dispatch.threads;
  *out = (struct emu_kernel_node){.block = {threads[0], threads[1], threads[2]},
                                  .function = job->function,
                                  .grid = {groups[0], groups[1], groups[2]},
                                  .parameters = job->arguments,
                                  .lds = job->dispatch.dynamic_lds_bytes};
  return HIP_SUCCESS;
}

int emu_launch(const struct emu_launch *launch, struct emu_stream *stream) {
  struct emu_work work;
  if (!stream) return HIP_INVALID_HANDLE;
  int code = emu_launch_work(launch, emu_stream_device(stream), &work);
  if (code != HIP_SUCCESS) return code;
  if (!emu_is_there()) {
    work.release(work.context);
    return HIP_CONTEXT_IS_DESTROYED;
  }
  struct emu_state *s = emu_state();
  code = emu_stream_submit(stream, work, NULL, NULL);
  if (code == HIP_SUCCESS && s->serialize && !emu_stream_captures(stream)) return emu_stream_finish(stream);
  return code;
}

bool emu_launch_cooperates(const void *attributes, unsigned count) {
  enum { COOPERATIVE = 2 };
  const struct {
    uint32_t id, padding;
    uint32_t value[16];
  } *row = attributes;
  for (unsigned i = 0; i < count; i++)
    if (row[i].id == COOPERATIVE) return row[i].value[0] != 0;
  return false;
}

int emu_launch_extra(void **extra, const void **packed, size_t *bytes) {
  // HIP_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END
  enum { POINTER = 1, SIZE = 2, END = 3 };
  const size_t *size = NULL;
  *packed = NULL;
  for (unsigned i = 0; (uintptr_t)extra[i] != END; i += 2) {
    if (i > 8) return HIP_INVALID_VALUE;
    if ((uintptr_t)extra[i] == POINTER) *packed = extra[i + 1];
    if ((uintptr_t)extra[i] == SIZE) size = extra[i + 1];
  }
  if (!*packed || !size) return HIP_INVALID_VALUE;
  *bytes = *size;
  return HIP_SUCCESS;
}

API int hipModuleLaunchKernel(struct emu_function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z, unsigned lds, void *handle,
                              void **parameters, void **extra) {
  struct emu_launch launch = {.function = function,
                              .groups = {grid_x, grid_y, grid_z},
                              .threads = {block_x, block_y, block_z},
                              .lds = lds,
                              .parameters = parameters};
  if (parameters && extra) return emu_done(HIP_INVALID_VALUE);
  if (extra) {
    int code = emu_launch_extra(extra, &launch.packed, &launch.packed_bytes);
    if (code != HIP_SUCCESS) return emu_done(code);
  }
  return emu_done(emu_launch(&launch, emu_stream_of(handle)));
}

API int hipModuleLaunchCooperativeKernel(struct emu_function *function, unsigned grid_x, unsigned grid_y,
                                         unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                                         unsigned lds, void *handle, void **parameters) {
  return emu_done(emu_launch(&(struct emu_launch){.function = function,
                                                  .groups = {grid_x, grid_y, grid_z},
                                                  .threads = {block_x, block_y, block_z},
                                                  .lds = lds,
                                                  .parameters = parameters,
                                                  .cooperative = true},
                             emu_stream_of(handle)));
}
