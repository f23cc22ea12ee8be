// Contexts: the primary one of each device, its handle the device's own address, and a thread's stack of them. What is
// asked of two devices together.
#include "hip/hip.h"

int hipGetDevice(int *device);
int hipSetDevice(int device);
int hipDeviceReset(void);
int hipDeviceEnablePeerAccess(int peer, unsigned flags);
int hipDeviceDisablePeerAccess(int peer);
int hipDriverGetVersion(int *version);

enum { DEPTH = 64 };
static _Thread_local struct {
  int devices[DEPTH];  // that were current before each push
  int count;
} stack;

static struct emu_device *device_of(void *context) {
  struct emu_state *s = emu_state();
  for (int i = 0; s && i < s->device_count; i++)
    if (&s->devices[i] == context) return &s->devices[i];
  return NULL;
}

API int hipCtxGetCurrent(void **context) {
  if (!context) return emu_done(HIP_INVALID_VALUE);
  *context = emu_current();
  return emu_done(HIP_SUCCESS);
}
API int hipCtxSetCurrent(void *context) {
  struct emu_device *device = device_of(context);
  if (!context) return emu_done(HIP_SUCCESS);
  return device ? hipSetDevice(device->index) : emu_done(HIP_INVALID_CONTEXT);
}
API int hipCtxGetDevice(int *device) { return hipGetDevice(device); }
API int hipDevicePrimaryCtxRetain(void **context, int device) {
  if (!context) return emu_done(HIP_INVALID_VALUE);
  *context = emu_device(device);
  return emu_done(*context ? HIP_SUCCESS : HIP_INVALID_DEVICE);
}
API int hipDevicePrimaryCtxRelease(int device) {
  return emu_done(emu_device(device) ? HIP_SUCCESS : HIP_INVALID_DEVICE);
}
API int hipDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  if (!emu_device(device)) return emu_done(HIP_INVALID_DEVICE);
  if (flags) *flags = 0;
  if (active) *active = 1;
  return emu_done(HIP_SUCCESS);
}
API int hipDevicePrimaryCtxReset(int index) {
  struct emu_device *device = emu_device(index);
  return emu_done(device ? emu_device_finish(device) : HIP_INVALID_DEVICE);
}
API int hipDevicePrimaryCtxSetFlags(int device, unsigned flags) {
  enum { SCHEDULES_AND_MORE = 31 };
  if (!emu_device(device)) return emu_done(HIP_INVALID_DEVICE);
  return emu_done(flags > SCHEDULES_AND_MORE ? HIP_INVALID_VALUE : HIP_SUCCESS);
}

static int push(struct emu_device *device) {
  if (!device) return HIP_INVALID_CONTEXT;
  if (stack.count == DEPTH) return HIP_OUT_OF_MEMORY;
  (void)hipGetDevice(&stack.devices[stack.count]);
  stack.count++;
  return hipSetDevice(device->index);
}

API int hipCtxPushCurrent(void *context) { return emu_done(push(device_of(context))); }
API int hipCtxPopCurrent(void **context) {
  if (stack.count == 0) return emu_done(HIP_INVALID_CONTEXT);
  if (context) *context = emu_current();
  return emu_done(hipSetDevice(stack.devices[--stack.count]));
}
// There is but one, so that making it is to make it current.
API int hipCtxCreate(void **context, unsigned flags, int index) {
  struct emu_device *device = emu_device(index);
  if (!context || !device) return emu_done(context ? HIP_INVALID_DEVICE : HIP_INVALID_VALUE);
  *context = device;
  return emu_done(push(device));
}
API int hipCtxDestroy(void *context) {
  struct emu_device *device = device_of(context);
  if (!device) return emu_done(HIP_INVALID_VALUE);
  int code = emu_device_finish(device);
  if (device == emu_current() && stack.count) (void)hipSetDevice(stack.devices[--stack.count]);
  return emu_done(code);
}
API int hipCtxGetApiVersion(void *context, int *version) {
  if (!device_of(context) || !version) return emu_done(HIP_INVALID_VALUE);
  return hipDriverGetVersion(version);
}
API int hipCtxGetFlags(unsigned *flags) {
  if (!flags) return emu_done(HIP_INVALID_VALUE);
  *flags = 0;
  return emu_done(HIP_SUCCESS);
}
API int hipCtxEnablePeerAccess(void *context, unsigned flags) {
  struct emu_device *peer = device_of(context);
  return peer ? hipDeviceEnablePeerAccess(peer->index, flags) : emu_done(HIP_INVALID_CONTEXT);
}
API int hipCtxDisablePeerAccess(void *context) {
  struct emu_device *peer = device_of(context);
  return peer ? hipDeviceDisablePeerAccess(peer->index) : emu_done(HIP_INVALID_CONTEXT);
}

// ---- two devices

// hipDeviceP2PAttr: all links are alike, carry accesses and atomics, and reach no arrays.
API int hipDeviceGetP2PAttribute(int *out, int attribute, int from, int to) {
  enum { RANK, ACCESS, ATOMICS, ARRAYS };
  if (!emu_device(from) || !emu_device(to)) return emu_done(HIP_INVALID_DEVICE);
  if (!out || from == to || attribute < RANK || attribute > ARRAYS) return emu_done(HIP_INVALID_VALUE);
  *out = attribute == ACCESS || attribute == ATOMICS;
  return emu_done(HIP_SUCCESS);
}
// As of cards on one bus.
API int hipExtGetLinkTypeAndHopCount(int from, int to, uint32_t *type, uint32_t *hops) {
  enum { PCI_EXPRESS = 2 };  // HSA_AMD_LINK_INFO_TYPE_PCIE
  if (!emu_device(from) || !emu_device(to)) return emu_done(HIP_INVALID_DEVICE);
  if (!type || !hops || from == to) return emu_done(HIP_INVALID_VALUE);
  *type = PCI_EXPRESS;
  *hops = 1;
  return emu_done(HIP_SUCCESS);
}
