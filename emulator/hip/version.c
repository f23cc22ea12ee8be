// What depends on the HIP that a program was built for, and nothing else: this file is compiled into each library of
// the drop-in folder. All of them are one emulator, whose only other code and state lie in librdna_emulator.so.
#include "hip/hip.h"

API int hipGetLastError(void) { return emu_last_error(EMU_HIP_MAJOR, true); }
API int hipExtGetLastError(void) { return emu_last_error(EMU_HIP_MAJOR, true); }
API int hipPeekAtLastError(void) { return emu_last_error(EMU_HIP_MAJOR, false); }

API int hipDriverGetVersion(int *version) {
  if (!version) return emu_done(HIP_INVALID_VALUE);
  // HIP_VERSION is major * 10^7 + minor * 10^5 + patch
  *version = EMU_HIP_MAJOR * 10000000 + (EMU_HIP_MAJOR == 5 ? 2 : 0) * 100000;
  return emu_done(HIP_SUCCESS);
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
