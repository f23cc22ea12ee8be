/* Finds and opens the vendors' libraries: each file once for the process, at its first use, and a handle of it once for
 * each device. Both answers are kept, a failure's sentence too. */
#include "math/vendor/vendor.h"

#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "device/device.h"
#include "device/driver.h"

static const rdna__vendor_description *const descriptions[RDNA__VENDOR_COUNT] = {
    [RDNA__CUBLASLT] = &rdna__cublaslt, [RDNA__ROCBLAS] = &rdna__rocblas, [RDNA__HIPBLASLT] = &rdna__hipblaslt,
    [RDNA__MIOPEN] = &rdna__miopen,     [RDNA__NCCL] = &rdna__nccl,       [RDNA__RCCL] = &rdna__rccl,
};

/* The library's file, opened once for the process. Under libraries_lock. */
static struct {
  rdna__library library;
  bool tried;
  rdna_status status;
  char message[1024];
} libraries[RDNA__VENDOR_COUNT];
static pthread_mutex_t libraries_lock = PTHREAD_MUTEX_INITIALIZER;

/* What a library is on one device. */
typedef struct device_vendor {
  atomic_bool tried; /* set last: whoever sees it set may read the rest without the lock */
  rdna_status status;
  void *handle;
  char message[1200], version[32], path[1024];
} device_vendor;

typedef struct device_vendors {
  pthread_mutex_t lock;
  device_vendor vendors[RDNA__VENDOR_COUNT];
} device_vendors;

/* Whether the list RDNA_VENDOR, separated by commas, admits the library. */
static bool is_allowed(const rdna__vendor_description *d) {
  if (d->alone) return true;
  const char *name = d->name;
  const char *list = rdna__config_text(RDNA__CONFIG_VENDOR);
  if (strcmp(list, "auto") == 0) return true;
  size_t length = strlen(name);
  for (const char *at = list; *at; at += strcspn(at, ",")) {
    at += strspn(at, ", ");
    if (strcspn(at, ", ") == length && strncmp(at, name, length) == 0) return true;
  }
  return false;
}

/* Returns a word of RDNA_VENDOR that names no library, copied to |word|, or NULL. */
static const char *unknown_word(char word[64]) {
  const char *list = rdna__config_text(RDNA__CONFIG_VENDOR);
  if (strcmp(list, "auto") == 0 || strcmp(list, "off") == 0) return NULL;
  for (const char *at = list; *at; at += strcspn(at, ",")) {
    at += strspn(at, ", ");
    snprintf(word, 64, "%.*s", (int)strcspn(at, ", "), at);
    bool known = word[0] == 0;
    for (int i = 0; i < RDNA__VENDOR_COUNT; i++)
      known = known || (!descriptions[i]->alone && strcmp(word, descriptions[i]->name) == 0);
    if (!known) return word;
  }
  return NULL;
}

/* The folder of the HIP runtime in use: AMD's libraries stand beside it, or in the wheel beside its wheel. */
static void runtime_folder(const char *driver_name, char folder[PATH_MAX]) {
  const rdna_driver_info *info = NULL;
  folder[0] = 0;
  if (!rdna__driver_find(driver_name, &info)) return;
  snprintf(folder, PATH_MAX, "%s", info->library);
  char *slash = strrchr(folder, '/');
  if (slash) *slash = 0;
}

static bool open_file(rdna__library *library, const rdna__vendor_description *d, const char *file, bool emulated) {
  char beside[PATH_MAX];
  const char *chosen = rdna__config_text(RDNA__CONFIG_VENDOR_PATH);
  if (chosen[0] && rdna__library_open_newest(library, chosen, file)) return true;
  /* the real libraries would load AMD's runtime beside the emulator, and two runtimes in a process crash */
  if (emulated) return false;
  if (rdna__library_open_loaded(library, file)) return true;
  runtime_folder(d->driver, beside);
  if (rdna__library_open_newest(library, beside, file) ||
      rdna__library_open_below(library, beside, "../../_rocm_sdk_libraries*/lib", file)) {
    return true;
  }
  for (int i = 0; d->wheels[i]; i++)
    if (rdna__library_open_wheel(library, d->wheels[i], file)) return true;
  bool amd = strcmp(d->driver, "hip") == 0;
  if (rdna__library_open_below(library, getenv(amd ? "ROCM_PATH" : "CUDA_HOME"), amd ? "lib" : "lib64", file) ||
      rdna__library_open_in_folders(library, amd ? "/opt/rocm/lib" : "/usr/local/cuda/lib64", file) ||
      (amd && (rdna__library_open_in_folders(library, "/opt/rocm/core-*/lib", file) ||
               rdna__library_open_in_folders(library, "/opt/rocm-*/lib", file)))) {
    return true;
  }
  return rdna__library_open(library, file, false);
}

static void open_library(rdna__vendor vendor, bool emulated) {
  const rdna__vendor_description *d = descriptions[vendor];
  rdna__library *library = &libraries[vendor].library;
  libraries[vendor].tried = true;
  bool opened = false;
  for (int i = 0; d->files[i] && !opened; i++) opened = open_file(library, d, d->files[i], emulated);
  rdna_status status = RDNA_OK;
  const char *missing = opened ? rdna__library_bind(library, d->symbols, d->symbol_count, d->table) : NULL;
  if (!opened && emulated)
    status = rdna__fail(RDNA_UNAVAILABLE,
                        "%s is not looked for on an emulated card, but in the folder that RDNA_VENDOR_PATH names",
                        d->files[0]);
  else if (!opened)
    status =
        rdna__fail(RDNA_UNAVAILABLE, "%s was not found (%s); %s: install it, or name its folder in RDNA_VENDOR_PATH",
                   d->files[0], library->failure[0] ? library->failure : "no such file",
                   d->alone ? "work among several devices needs it" : "it is not needed, but may be faster");
  else if (missing)
    status =
        rdna__fail(RDNA_UNSUPPORTED, "%s has no function %s, so it is older than what we call", library->path, missing);
  libraries[vendor].status = status;
  if (status != RDNA_OK) snprintf(libraries[vendor].message, sizeof libraries[vendor].message, "%s", rdna_last_error());
}

/* Fails unless the library's folder has kernels for the card's target: without them it aborts the process. */
static rdna_status check_kernels(rdna__vendor vendor, const rdna_device_info *info) {
  const rdna__vendor_description *d = descriptions[vendor];
  if (!d->kernels) return RDNA_OK;
  char folder[PATH_MAX], pattern[PATH_MAX + 64];
  const char *chosen = getenv(d->kernels_environment);
  const char *path = libraries[vendor].library.path, *slash = strrchr(path, '/');
  if (chosen && chosen[0])
    snprintf(folder, sizeof folder, "%s", chosen);
  else
    snprintf(folder, sizeof folder, "%.*s/%s", slash ? (int)(slash - path) : 1, slash ? path : ".", d->kernels);
  int target = (int)strcspn(info->arch, ":");
  /* files and folders; gfx90a does not serve gfx90, so what follows the name is no letter or digit */
  static const char *const ends[] = {"[!0-9a-z]*", ""};
  for (int i = 0; i < 2; i++) {
    glob_t found = {0};
    snprintf(pattern, sizeof pattern, "%s/*%.*s%s", folder, target, info->arch, ends[i]);
    int code = glob(pattern, GLOB_NOSORT, NULL, &found);
    globfree(&found);
    if (code == 0) return RDNA_OK;
  }
  return rdna__fail(RDNA_UNSUPPORTED, "%s has no kernels for %.*s in %s, so it stays out of the way", path, target,
                    info->arch, folder);
}

typedef struct opening {
  const rdna__vendor_description *description;
  rdna_device *device;
  device_vendor *out;
} opening;

static rdna_status open_handle(void *native_stream, void *data) {
  opening *o = data;
  return o->description->open(o->device, &o->out->handle, o->out->version);
}

static rdna_status try_vendor(rdna_device *device, rdna__vendor vendor, device_vendor *out) {
  const rdna__vendor_description *d = descriptions[vendor];
  const rdna_device_info *info = rdna_device_get_info(device);
  char word[64];
  if (strcmp(info->driver, d->driver) != 0)
    return rdna__fail(RDNA_UNSUPPORTED, "it serves devices of the %s driver, and this is one of %s", d->driver,
                      info->driver);
  if (!d->alone && unknown_word(word))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "RDNA_VENDOR is '%s', and '%s' is no library; it must be auto, off or some of cublaslt, rocblas, "
                      "hipblaslt, miopen",
                      rdna__config_text(RDNA__CONFIG_VENDOR), word);
  if (!is_allowed(d))
    return rdna__fail(RDNA_UNAVAILABLE, "RDNA_VENDOR is '%s', which leaves it out",
                      rdna__config_text(RDNA__CONFIG_VENDOR));
  if (!rdna__device_driver(device)->native_call)
    return rdna__fail(RDNA_UNSUPPORTED, "the device has no stream of a vendor's to queue its work in");
  pthread_mutex_lock(&libraries_lock);
  if (!libraries[vendor].tried) open_library(vendor, info->emulated);
  pthread_mutex_unlock(&libraries_lock);
  if (libraries[vendor].status != RDNA_OK) return rdna__fail(libraries[vendor].status, "%s", libraries[vendor].message);
  snprintf(out->path, sizeof out->path, "%s", libraries[vendor].library.path);
  RDNA_TRY(check_kernels(vendor, info));
  opening o = {d, device, out};
  return rdna__stream_native_call(rdna_device_default_stream(device), d->name, open_handle, &o);
}

static rdna_status close_handles(void *native_stream, void *data) {
  device_vendors *all = data;
  for (int i = 0; i < RDNA__VENDOR_COUNT; i++)
    if (all->vendors[i].handle) descriptions[i]->close(all->vendors[i].handle);
  return RDNA_OK;
}

static void destroy(rdna_device *device, void *data) {
  device_vendors *all = data;
  const rdna__driver *driver = rdna__device_driver(device);
  /* with the device current, as some of them free memory on it */
  if (driver->native_call &&
      driver->native_call(rdna__device_handle(device), NULL, NULL, close_handles, all) != RDNA_OK)
    rdna__log(RDNA__LOG_WARNING, "vendors' libraries were not closed: %s", rdna_last_error());
  pthread_mutex_destroy(&all->lock);
  free(all);
}

/* What the library is on the device, tried at the first call. NULL: out of host memory. */
static device_vendor *vendor_of(rdna_device *device, rdna__vendor vendor) {
  device_vendors *all = rdna__device_get_slot(device, RDNA__SLOT_VENDORS);
  if (!all) {
    device_vendors *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    pthread_mutex_init(&made->lock, NULL);
    all = rdna__device_set_slot(device, RDNA__SLOT_VENDORS, made, destroy);
    if (all != made) destroy(device, made);
  }
  device_vendor *v = &all->vendors[vendor];
  if (atomic_load_explicit(&v->tried, memory_order_acquire)) return v;
  char last_error[2048]; /* the caller's, which is not ours to change */
  snprintf(last_error, sizeof last_error, "%s", rdna_last_error());
  pthread_mutex_lock(&all->lock);
  if (!atomic_load(&v->tried)) {
    v->status = try_vendor(device, vendor, v);
    char message[sizeof v->message];
    snprintf(message, sizeof message, "%s %s, from %s", descriptions[vendor]->name, v->version, v->path);
    snprintf(v->message, sizeof v->message, "%s", v->status == RDNA_OK ? message : rdna_last_error());
    if (v->status == RDNA_INVALID_ARGUMENT) rdna__log(RDNA__LOG_WARNING, "%s", v->message);
    atomic_store_explicit(&v->tried, true, memory_order_release);
  }
  pthread_mutex_unlock(&all->lock);
  rdna__set_last_error(last_error);
  return v;
}

void *rdna__vendor_handle(rdna_device *device, rdna__vendor vendor) {
  device_vendor *v = vendor_of(device, vendor);
  return v && v->status == RDNA_OK ? v->handle : NULL;
}

void rdna__vendor_text(rdna_device *device, rdna__vendor vendor, char text[64]) {
  text[0] = 0;
  if (!rdna__vendor_handle(device, vendor)) return;
  snprintf(text, 64, "%s %s", descriptions[vendor]->name, vendor_of(device, vendor)->version);
}

int rdna_vendor_count(void) { return RDNA__VENDOR_COUNT; }

rdna_status rdna_vendor_get_info(rdna_device *device, int vendor, rdna_vendor_info *out_info) {
  if (!device || !out_info || vendor < 0 || vendor >= RDNA__VENDOR_COUNT)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "asking about a vendor's library needs a device, a number below %d, not %d, and a place for the "
                      "answer",
                      RDNA__VENDOR_COUNT, vendor);
  const device_vendor *v = vendor_of(device, (rdna__vendor)vendor);
  if (!v) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for what is known of vendors' libraries");
  *out_info = (rdna_vendor_info){
      descriptions[vendor]->name, descriptions[vendor]->driver, v->status, v->message, v->path, v->version};
  return RDNA_OK;
}
