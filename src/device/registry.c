#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "device/device.h"

/* in the order that "auto" tries them; the null driver, which is for tests, only ever comes by its name */
static const rdna__driver *const drivers[] = {&rdna__hip_driver, &rdna__cuda_driver, &rdna__host_driver,
                                              &rdna__null_driver};
enum { DRIVER_COUNT = sizeof drivers / sizeof *drivers, AUTO_COUNT = DRIVER_COUNT - 1 };

static rdna_driver_info infos[DRIVER_COUNT];
static bool is_probed[DRIVER_COUNT]; /* under probe_lock */
static pthread_mutex_t probe_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static rdna_device *open_devices; /* under open_lock */

/* What a driver says of itself, when it is first asked for: a program that names its driver loads no other's library.
 */
static const rdna_driver_info *info_of(int driver) {
  rdna_driver_info *info = &infos[driver];
  pthread_mutex_lock(&probe_lock);
  if (!is_probed[driver]) {
    *info = (rdna_driver_info){.name = drivers[driver]->name, .message = "", .library = "", .version = ""};
    drivers[driver]->probe(info);
    if (info->status != RDNA_OK) info->device_count = 0;
    is_probed[driver] = true;
  }
  pthread_mutex_unlock(&probe_lock);
  return info;
}

int rdna_driver_count(void) { return DRIVER_COUNT; }

rdna_status rdna_driver_get_info(int driver, rdna_driver_info *out_info) {
  if (!out_info) return rdna__fail(RDNA_INVALID_ARGUMENT, "driver information was asked for with no place to put it");
  if (driver < 0 || driver >= DRIVER_COUNT)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "driver %d was asked for; there are 0 to %d", driver, DRIVER_COUNT - 1);
  *out_info = *info_of(driver);
  return RDNA_OK;
}

const rdna__driver *rdna__driver_find(const char *name, const rdna_driver_info **out_info) {
  for (int i = 0; i < DRIVER_COUNT; i++) {
    if (strcmp(drivers[i]->name, name) != 0) continue;
    if (out_info) *out_info = info_of(i);
    return drivers[i];
  }
  return NULL;
}

/* "there are host:0 (AMD EPYC (host)); hip: no library was found; cuda: …" */
static void list_devices(char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (int i = 0; i < AUTO_COUNT && used < size; i++)
    for (int d = 0; d < info_of(i)->device_count && used < size; d++) {
      rdna_device_info info;
      const char *name = drivers[i]->describe(d, &info) == RDNA_OK ? info.name : "which cannot be described";
      used += (size_t)snprintf(text + used, size - used, "%s%s:%d (%s)", used ? ", " : "there are ", drivers[i]->name,
                               d, name);
    }
  if (!used) used += (size_t)snprintf(text, size, "there are no devices");
  for (int i = 0; i < AUTO_COUNT && used < size; i++)
    if (info_of(i)->device_count == 0)
      used += (size_t)snprintf(text + used, size - used, "; %s: %s", drivers[i]->name,
                               info_of(i)->message[0] ? info_of(i)->message : "it has no devices");
}

static rdna_status no_such_device(const char *name) {
  char list[1200];
  list_devices(list, sizeof list);
  return rdna__fail(RDNA_NOT_FOUND,
                    "no device is called '%.64s' (a name is 'auto', a driver, or a driver, ':' and a number): %s", name,
                    list);
}

/* The driver that "auto" stands for. */
static rdna_status choose(int *out_driver) {
  RDNA_TRY(rdna__config_check());
  const char *wanted = rdna__config_text(RDNA__CONFIG_DRIVER);
  for (int i = 0; i < DRIVER_COUNT; i++)
    if (strcmp(wanted, drivers[i]->name) == 0) {
      *out_driver = i;
      return RDNA_OK;
    }
  for (int i = 0; i < AUTO_COUNT; i++)
    if (info_of(i)->device_count > 0) {
      *out_driver = i;
      return RDNA_OK;
    }
  char list[1200];
  list_devices(list, sizeof list);
  return rdna__fail(RDNA_UNAVAILABLE, "no device was found: %s", list);
}

rdna_status rdna_driver_default(rdna_driver_info *out_info, bool *out_asked) {
  if (!out_info) return rdna__fail(RDNA_INVALID_ARGUMENT, "driver information was asked for with no place to put it");
  int driver = 0;
  RDNA_TRY(choose(&driver));
  *out_info = *info_of(driver);
  if (out_asked)
    *out_asked =
        strcmp(rdna__config_text(RDNA__CONFIG_DRIVER), "auto") != 0 || rdna__config_text(RDNA__CONFIG_EMULATE)[0] != 0;
  return RDNA_OK;
}

static rdna_status parse(const char *name, int *out_driver, int *out_index) {
  *out_index = 0;
  if (!name || strcmp(name, "auto") == 0) return choose(out_driver);
  size_t length = strcspn(name, ":");
  for (int i = 0; i < DRIVER_COUNT; i++) {
    if (strlen(drivers[i]->name) != length || memcmp(drivers[i]->name, name, length) != 0) continue;
    *out_driver = i;
    if (name[length] == 0) return RDNA_OK;
    const char *digits = name + length + 1;
    size_t count = strspn(digits, "0123456789");
    if (count == 0 || count > 6 || digits[count] != 0) break;
    *out_index = atoi(digits);
    return RDNA_OK;
  }
  return no_such_device(name);
}

/* Whether device |index| of driver |driver| is there at all. |name| is what the caller wrote. */
static rdna_status check_present(int driver, int index, const char *name) {
  const rdna_driver_info *info = info_of(driver);
  if (info->status != RDNA_OK)
    return rdna__fail(RDNA_UNAVAILABLE, "device '%s' was asked for, but driver %s is not available: %s", name,
                      info->name, info->message);
  if (index < 0 || index >= info->device_count) return no_such_device(name);
  return RDNA_OK;
}

rdna_status rdna_device_describe(const char *driver, int index, rdna_device_info *out_info) {
  if (!driver || !out_info)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "describing a device needs a driver's name and a place for the answer");
  char name[96];
  snprintf(name, sizeof name, "%.64s:%d", driver, index);
  for (int i = 0; i < DRIVER_COUNT; i++)
    if (strcmp(drivers[i]->name, driver) == 0) {
      RDNA_TRY(check_present(i, index, name));
      return drivers[i]->describe(index, out_info);
    }
  return no_such_device(name);
}

/* Under the lock: the device is open, with one reference. */
static void list(rdna_device *device) {
  device->references = 1;
  device->next = open_devices;
  open_devices = device;
}

rdna_status rdna__device_rehearse(rdna_device *of, rdna_device **out_device) {
  RDNA_TRY(rdna__device_create_rehearsal(of, out_device));
  pthread_mutex_lock(&open_lock);
  list(*out_device);
  pthread_mutex_unlock(&open_lock);
  return RDNA_OK;
}

rdna_status rdna_device_open(const char *name, rdna_device **out_device) {
  if (!out_device) return rdna__fail(RDNA_INVALID_ARGUMENT, "opening a device needs a place for its handle");
  *out_device = NULL;
  int driver = 0, index = 0;
  RDNA_TRY(parse(name, &driver, &index));
  RDNA_TRY(check_present(driver, index, name ? name : "auto"));

  pthread_mutex_lock(&open_lock);
  rdna_status status = RDNA_OK;
  rdna_device *device = open_devices;
  while (device && (device->driver != drivers[driver] || device->info.index != index)) device = device->next;
  if (device) {
    device->references++;
  } else {
    status = rdna__device_create(drivers[driver], index, &device);
    if (status == RDNA_OK) list(device);
  }
  pthread_mutex_unlock(&open_lock);
  if (status != RDNA_OK) return rdna__annotate(status, "opening device %s:%d", drivers[driver]->name, index);
  *out_device = device;
  return RDNA_OK;
}

rdna_device *rdna_device_retain(rdna_device *device) {
  if (!device) return NULL;
  pthread_mutex_lock(&open_lock);
  device->references++;
  pthread_mutex_unlock(&open_lock);
  return device;
}

void rdna_device_release(rdna_device *device) {
  if (!device) return;
  pthread_mutex_lock(&open_lock);
  bool last = --device->references == 0;
  if (last) {
    rdna_device **link = &open_devices;
    while (*link != device) link = &(*link)->next;
    *link = device->next;
  }
  pthread_mutex_unlock(&open_lock);
  /* outside the lock: closing runs the kernel layer's code and waits for the device */
  if (last) rdna__device_destroy(device);
}
