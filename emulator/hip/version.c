// What depends on the HIP that a program was built for, and nothing else: this file is compiled into each library of
// the drop-in folder. All of them are one emulator, whose only other code and state lie in librdna_emulator.so.
#include "hip/hip.h"
#include "hip/layouts.h"
#include "hip/rtc.h"

int hipGraphAddMemcpyNode(void **out, void *graph, void *const *after, size_t count, const struct emu_copy_3d *with);
int hipGraphMemcpyNodeSetParams(void *node, const struct emu_copy_3d *with);
int hipGraphExecMemcpyNodeSetParams(void *executable, void *node, const struct emu_copy_3d *with);

API int hipGetLastError(void) { return emu_last_error(EMU_HIP_MAJOR, true); }
API int hipExtGetLastError(void) { return emu_last_error(EMU_HIP_MAJOR, true); }
API int hipPeekAtLastError(void) { return emu_last_error(EMU_HIP_MAJOR, false); }

API int hipDriverGetVersion(int *version) {
  if (!version) return emu_done(HIP_INVALID_VALUE);
  // HIP_VERSION is major * 10^7 + minor * 10^5 + patch
  *version = EMU_HIP_MAJOR * 10000000 + (EMU_HIP_MAJOR == 5 ? 2 : 0) * 100000;
  return emu_done(HIP_SUCCESS);
}
API int hiprtcVersion(int *major, int *minor) {
  if (!major || !minor) return RTC_INVALID_INPUT;
  *major = EMU_HIP_MAJOR;
  *minor = EMU_HIP_MAJOR == 5 ? 2 : 0;
  return RTC_SUCCESS;
}
API int hipRuntimeGetVersion(int *version) { return hipDriverGetVersion(version); }

API int hipPointerGetAttributes(void *out, const void *pointer) {
  return emu_pointer_attributes(EMU_HIP_MAJOR, out, pointer);
}
API int hipPointerGetAttribute(void *out, int attribute, void *pointer) {
  return emu_pointer_attribute(EMU_HIP_MAJOR, out, attribute, pointer);
}
API int hipDrvPointerGetAttributes(unsigned count, const int *attributes, void **out, void *pointer) {
  return emu_pointer_attribute_list(EMU_HIP_MAJOR, count, attributes, out, pointer);
}
API int hipGraphNodeGetType(const void *node, int *out) { return emu_graph_node_type(EMU_HIP_MAJOR, node, out); }

API int hipMemcpyParam2D(const void *c) { return emu_driver_copy(EMU_HIP_MAJOR, 2, c, NULL, true); }
API int hipMemcpyParam2DAsync(const void *c, void *stream) {
  return emu_driver_copy(EMU_HIP_MAJOR, 2, c, stream, false);
}
API int hipDrvMemcpy2DUnaligned(const void *c) { return emu_driver_copy(EMU_HIP_MAJOR, 2, c, NULL, true); }
API int hipDrvMemcpy3D(const void *c) { return emu_driver_copy(EMU_HIP_MAJOR, 3, c, NULL, true); }
API int hipDrvMemcpy3DAsync(const void *c, void *stream) { return emu_driver_copy(EMU_HIP_MAJOR, 3, c, stream, false); }

API int hipDrvGraphAddMemcpyNode(void **out, void *graph, void *const *after, size_t count, const void *c,
                                 void *context) {
  struct emu_copy_3d copy;
  int code = emu_driver_copy_convert(EMU_HIP_MAJOR, c, &copy);
  return code == HIP_SUCCESS ? hipGraphAddMemcpyNode(out, graph, after, count, &copy) : code;
}
API int hipDrvGraphMemcpyNodeSetParams(void *node, const void *c) {
  struct emu_copy_3d copy;
  int code = emu_driver_copy_convert(EMU_HIP_MAJOR, c, &copy);
  return code == HIP_SUCCESS ? hipGraphMemcpyNodeSetParams(node, &copy) : code;
}
API int hipDrvGraphExecMemcpyNodeSetParams(void *executable, void *node, const void *c, void *context) {
  struct emu_copy_3d copy;
  int code = emu_driver_copy_convert(EMU_HIP_MAJOR, c, &copy);
  return code == HIP_SUCCESS ? hipGraphExecMemcpyNodeSetParams(executable, node, &copy) : code;
}
