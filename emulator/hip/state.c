// Devices from the environment, and what HIP keeps a thread: the current device and the last error.
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hip/hip.h"

// One card that one can buy with each processor, as AMD specifies it. Multiprocessors, as HIP counts them, are WGPs,
// and compute units on GFX9, which has no WGPs.
// Sizes are in bytes, clocks in kHz.
static const struct emu_card cards[] = {
    {.arch = "gfx900",
     .name = "AMD Radeon RX Vega 64",
     .target = &emu_isa_gfx900,
     .wgps = 64,
     .clock_khz = 1546000,
     .memory_khz = 945000,
     .bus_bits = 2048,
     .l2_bytes = 4 << 20,
     .memory = UINT64_C(8) << 30},
    {.arch = "gfx906",
     .name = "AMD Radeon VII",
     .target = &emu_isa_gfx906,
     .wgps = 60,
     .clock_khz = 1750000,
     .memory_khz = 1000000,
     .bus_bits = 4096,
     .l2_bytes = 4 << 20,
     .memory = UINT64_C(16) << 30},
    {.arch = "gfx908",
     .name = "AMD Instinct MI100",
     .target = &emu_isa_gfx908,
     .wgps = 120,
     .clock_khz = 1502000,
     .memory_khz = 1200000,
     .bus_bits = 4096,
     .l2_bytes = 8 << 20,
     .memory = UINT64_C(32) << 30},
    {.arch = "gfx90a",
     .name = "AMD Instinct MI210",
     .target = &emu_isa_gfx90a,
     .wgps = 104,
     .clock_khz = 1700000,
     .memory_khz = 1600000,
     .bus_bits = 4096,
     .l2_bytes = 8 << 20,
     .memory = UINT64_C(64) << 30},
    {.arch = "gfx942",
     .name = "AMD Instinct MI300X",
     .target = &emu_isa_gfx942,
     .wgps = 304,
     .clock_khz = 2100000,
     .memory_khz = 2600000,
     .bus_bits = 8192,
     .l2_bytes = 4 << 20,
     .memory = UINT64_C(192) << 30},
    // Source: AMD "GPU hardware specifications" of ROCm's documentation (compute units, memory, L2 of an accelerator
    // die), and reports of AMD's talk at Hot Chips 2025 (2.2 GHz; 8 TB/s, 8,192 bits with 8 Gbit/s a pin, twice the
    // clock)
    {.arch = "gfx950",
     .name = "AMD Instinct MI350X",
     .target = &emu_isa_gfx950,
     .wgps = 256,
     .clock_khz = 2200000,
     .memory_khz = 4000000,
     .bus_bits = 8192,
     .l2_bytes = 4 << 20,
     .memory = UINT64_C(288) << 30},
    {.arch = "gfx1010",
     .name = "AMD Radeon RX 5700 XT",
     .target = &emu_isa_gfx1010,
     .wgps = 20,
     .clock_khz = 1905000,
     .memory_khz = 875000,
     .bus_bits = 256,
     .l2_bytes = 4 << 20,
     .memory = UINT64_C(8) << 30},
    {.arch = "gfx1012",
     .name = "AMD Radeon RX 5500 XT",
     .target = &emu_isa_gfx1012,
     .wgps = 11,
     .clock_khz = 1845000,
     .memory_khz = 875000,
     .bus_bits = 128,
     .l2_bytes = 2 << 20,
     .memory = UINT64_C(8) << 30},
    {.arch = "gfx1030",
     .name = "AMD Radeon RX 6800 XT",
     .target = &emu_isa_gfx1030,
     .wgps = 36,
     .clock_khz = 2250000,
     .memory_khz = 1000000,
     .bus_bits = 256,
     .l2_bytes = 4 << 20,
     .memory = UINT64_C(16) << 30},
    {.arch = "gfx1031",
     .name = "AMD Radeon RX 6700 XT",
     .target = &emu_isa_gfx1030,
     .wgps = 20,
     .clock_khz = 2581000,
     .memory_khz = 1000000,
     .bus_bits = 192,
     .l2_bytes = 3 << 20,
     .memory = UINT64_C(12) << 30},
    {.arch = "gfx1032",
     .name = "AMD Radeon RX 6600 XT",
     .target = &emu_isa_gfx1030,
     .wgps = 16,
     .clock_khz = 2589000,
     .memory_khz = 1000000,
     .bus_bits = 128,
     .l2_bytes = 2 << 20,
     .memory = UINT64_C(8) << 30},
    {.arch = "gfx1100",
     .name = "AMD Radeon RX 7900 XTX",
     .target = &emu_isa_gfx1100,
     .wgps = 48,
     .clock_khz = 2500000,
     .memory_khz = 1250000,
     .bus_bits = 384,
     .l2_bytes = 6 << 20,
     .memory = UINT64_C(24) << 30},
    {.arch = "gfx1101",
     .name = "AMD Radeon RX 7800 XT",
     .target = &emu_isa_gfx1100,
     .wgps = 30,
     .clock_khz = 2430000,
     .memory_khz = 1219000,
     .bus_bits = 256,
     .l2_bytes = 4 << 20,
     .memory = UINT64_C(16) << 30},
    {.arch = "gfx1102",
     .name = "AMD Radeon RX 7600",
     .target = &emu_isa_gfx1103,  // with its registers
     .wgps = 16,
     .clock_khz = 2655000,
     .memory_khz = 1125000,
     .bus_bits = 128,
     .l2_bytes = 2 << 20,
     .memory = UINT64_C(8) << 30},
    {.arch = "gfx1103",
     .name = "AMD Radeon 780M Graphics",
     .target = &emu_isa_gfx1103,
     .wgps = 6,
     .clock_khz = 2700000,
     .memory_khz = 2800000,
     .bus_bits = 128,
     .l2_bytes = 2 << 20,
     .memory = UINT64_C(8) << 30},
    {.arch = "gfx1150",
     .name = "AMD Radeon 890M Graphics",
     .target = &emu_isa_gfx1150,
     .wgps = 8,
     .clock_khz = 2900000,
     .memory_khz = 3750000,
     .bus_bits = 128,
     .l2_bytes = 2 << 20,
     .memory = UINT64_C(16) << 30},
    {.arch = "gfx1151",
     .name = "AMD Radeon 8060S Graphics",
     .target = &emu_isa_gfx1151,
     .wgps = 20,
     .clock_khz = 2900000,
     .memory_khz = 4000000,
     .bus_bits = 256,
     .l2_bytes = 2 << 20,
     .memory = UINT64_C(64) << 30},
    {.arch = "gfx1152",
     .name = "AMD Radeon 860M Graphics",
     .target = &emu_isa_gfx1150,
     .wgps = 4,
     .clock_khz = 3000000,
     .memory_khz = 3750000,
     .bus_bits = 128,
     .l2_bytes = 1 << 20,
     .memory = UINT64_C(16) << 30},
    {.arch = "gfx1153",
     .name = "AMD Radeon 820M Graphics",
     .target = &emu_isa_gfx1150,
     .wgps = 1,
     .clock_khz = 2800000,
     .memory_khz = 2800000,
     .bus_bits = 128,
     .l2_bytes = 1 << 20,
     .memory = UINT64_C(16) << 30},
    {.arch = "gfx1200",
     .name = "AMD Radeon RX 9060 XT",
     .target = &emu_isa_gfx1201,
     .wgps = 16,
     .clock_khz = 3130000,
     .memory_khz = 1258000,
     .bus_bits = 128,
     .l2_bytes = 4 << 20,
     .memory = UINT64_C(16) << 30},
    {.arch = "gfx1201",
     .name = "AMD Radeon RX 9070 XT",
     .target = &emu_isa_gfx1201,
     .wgps = 32,
     .clock_khz = 2970000,
     .memory_khz = 1258000,
     .bus_bits = 256,
     .l2_bytes = 8 << 20,
     .memory = UINT64_C(16) << 30},
};

static struct emu_state state;
static struct emu_state *ready;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local int current, last_code, last_error;

static struct {
  pthread_mutex_t lock;
  char *into;
  size_t room;
} speech = {.lock = PTHREAD_MUTEX_INITIALIZER};

void emu_say_into(char *text, size_t room) {
  pthread_mutex_lock(&speech.lock);
  speech.into = text;
  speech.room = room;
  pthread_mutex_unlock(&speech.lock);
}

void emu_say(const char *format, ...) {
  char line[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  pthread_mutex_lock(&speech.lock);
  if (!speech.into) {
    fprintf(stderr, "rdna emulator: %s\n", line);
  } else if (speech.into[0] == '\0') {
    snprintf(speech.into, speech.room, "%s", line);
  }
  pthread_mutex_unlock(&speech.lock);
}

static bool is_set(const char *name) {
  const char *value = getenv(name);
  return value && value[0] && strcmp(value, "0") != 0;
}

static const char *wish(const char *name) {
  const char *value = getenv(name);
  return value && value[0] ? value : NULL;
}

// Bytes of a device: RDNA_EMULATE_MEMORY in MiB, else the card's, at most half of what this machine has.
static uint64_t device_bytes(const struct emu_card *card) {
  const char *text = getenv("RDNA_EMULATE_MEMORY");
  if (text && text[0]) {
    char *end;
    unsigned long long mib = strtoull(text, &end, 10);
    if (*end == '\0' && mib >= 64 && mib < 1 << 24) return (uint64_t)mib << 20;
    emu_say("RDNA_EMULATE_MEMORY='%s' is not a number of MiB from 64 on; it is ignored", text);
  }
  uint64_t half = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2;
  return card->memory < half ? card->memory : half >> 20 << 20;
}

static const struct emu_card *card_of(const char *arch) {
  for (size_t i = 0; i < sizeof cards / sizeof *cards; i++)
    if (strcmp(cards[i].arch, arch) == 0) return &cards[i];
  return NULL;
}

static void start(void) {
  const char *targets = getenv("RDNA_EMULATE");
  char names[256];
  char *rest = names;
  snprintf(names, sizeof names, "%s", targets ? targets : "");
  if (names[0] == '\0') {
    emu_say("RDNA_EMULATE is not set, so there is no device; set it to gfx1100, gfx1030 or several with commas");
    return;
  }
  state.check = is_set("RDNA_EMULATE_CHECK");
  state.only_reports = state.check && strcmp(getenv("RDNA_EMULATE_CHECK"), "report") == 0;
  state.lint = is_set("RDNA_EMULATE_LINT");
  const char *limit = getenv("RDNA_EMULATE_LIMIT"), *patience = getenv("RDNA_EMULATE_PATIENCE");
  state.instruction_limit = limit ? strtoull(limit, NULL, 10) : 0;
  state.patience_ms = patience ? (unsigned)(strtod(patience, NULL) * 1000) : 10000;
  state.lose_at = strtoull(getenv("RDNA_EMULATE_LOSE") ? getenv("RDNA_EMULATE_LOSE") : "0", NULL, 10);
  state.serialize = is_set("AMD_SERIALIZE_KERNEL") || is_set("HIP_LAUNCH_BLOCKING");
  for (char *name; (name = strsep(&rest, ",")) != NULL;) {
    const struct emu_card *card = card_of(name);
    if (!card) {
      char known[256] = "";
      for (size_t i = 0, at = 0; i < sizeof cards / sizeof *cards && at < sizeof known; i++)
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "", cards[i].arch);
      emu_say("RDNA_EMULATE names '%s', which is not emulated; these are: %s", name, known);
      state.device_count = 0;
      return;
    }
    if (state.device_count == EMU_MAX_DEVICES) break;
    struct emu_device *device = &state.devices[state.device_count];
    device->index = state.device_count++;
    device->card = card;
    device->total = device_bytes(card);
    device->stack = 1024;
    device->memory = emu_memory_create();
    if (!device->memory) {
      emu_say("no host memory for device %s", name);
      state.device_count = 0;
      return;
    }
    if (state.check) emu_memory_watch(device->memory);
  }
  emu_report_watch_exit(state.check);
  const struct emu_debug_wishes wishes = {.gdb = wish("RDNA_EMULATE_GDB"),
                                          .breaks = wish("RDNA_EMULATE_BREAK"),
                                          .trace = wish("RDNA_EMULATE_TRACE"),
                                          .trace_wave = wish("RDNA_EMULATE_TRACE_WAVE"),
                                          .say = emu_say};
  if (!emu_debug_start(&wishes, &state.observer)) state.device_count = 0;
  ready = &state;
}

struct emu_state *emu_state(void) {
  pthread_once(&once, start);
  return ready;
}

struct emu_device *emu_device(int index) {
  struct emu_state *s = emu_state();
  return s && index >= 0 && index < s->device_count ? &s->devices[index] : NULL;
}

struct emu_device *emu_current(void) { return emu_device(current); }

static atomic_ullong launches;
static atomic_bool lost;

bool emu_is_there(void) {
  struct emu_state *s = emu_state();
  if (s && s->lose_at && atomic_fetch_add(&launches, 1) + 1 >= s->lose_at) atomic_store(&lost, true);
  return !atomic_load(&lost);
}

int emu_done(int code) {
  if (code == HIP_SUCCESS && atomic_load(&lost)) code = HIP_CONTEXT_IS_DESTROYED;
  if (code != HIP_SUCCESS && code != HIP_NOT_READY) last_error = code;
  last_code = code;
  return code;
}

API int emu_last_error(int major, bool take) {
  int code = major < 7 ? last_code : last_error;
  if (take) last_code = last_error = HIP_SUCCESS;
  return code;
}

API int hipInit(unsigned flags) {
  if (flags != 0) return emu_done(HIP_INVALID_VALUE);
  return emu_done(emu_state() ? HIP_SUCCESS : HIP_NO_DEVICE);
}

API int hipGetDeviceCount(int *count) {
  if (!count) return emu_done(HIP_INVALID_VALUE);
  struct emu_state *s = emu_state();
  *count = s ? s->device_count : 0;
  return emu_done(s ? HIP_SUCCESS : HIP_NO_DEVICE);
}

API int hipGetDevice(int *device) {
  if (!device) return emu_done(HIP_INVALID_VALUE);
  *device = current;
  return emu_done(emu_state() ? HIP_SUCCESS : HIP_NO_DEVICE);
}

API int hipSetDevice(int device) {
  if (!emu_state()) return emu_done(HIP_NO_DEVICE);
  if (!emu_device(device)) return emu_done(HIP_INVALID_DEVICE);
  current = device;
  return emu_done(HIP_SUCCESS);
}

API int hipDeviceGet(int *device, int ordinal) {
  if (!device) return emu_done(HIP_INVALID_VALUE);
  if (!emu_device(ordinal)) return emu_done(HIP_INVALID_DEVICE);
  *device = ordinal;
  return emu_done(HIP_SUCCESS);
}

API int hipSetDeviceFlags(unsigned flags) { return emu_done(emu_current() ? HIP_SUCCESS : HIP_NO_DEVICE); }
API int hipGetDeviceFlags(unsigned *flags) {
  if (!flags) return emu_done(HIP_INVALID_VALUE);
  *flags = 0;
  return emu_done(HIP_SUCCESS);
}

API int hipDeviceSynchronize(void) {
  struct emu_device *device = emu_current();
  return emu_done(device ? emu_device_finish(device) : HIP_NO_DEVICE);
}
API int hipCtxSynchronize(void) { return hipDeviceSynchronize(); }

API int hipDeviceCanAccessPeer(int *can, int device, int peer) {
  if (!can) return emu_done(HIP_INVALID_VALUE);
  if (!emu_device(device) || !emu_device(peer)) return emu_done(HIP_INVALID_DEVICE);
  *can = device != peer;
  return emu_done(HIP_SUCCESS);
}

API int hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
  if (least) *least = 1;
  if (greatest) *greatest = -1;
  return emu_done(HIP_SUCCESS);
}
