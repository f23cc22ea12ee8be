#include "dlpack.h"

#include <ATen/dlpack.h>

#include <cstring>

#include "device.h"

namespace rdna_torch {

void adopt_dlpack(pybind11::object capsule) {
  auto *managed = static_cast<DLManagedTensor *>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (!managed) throw pybind11::error_already_set();
  DLDevice &place = managed->dl_tensor.device;
  const char *driver = place.device_type == kDLCUDA ? "cuda" : place.device_type == kDLROCM ? "hip" : nullptr;
  TORCH_CHECK(driver, "memory of a GPU was expected, not of DLPack's device type ",
              static_cast<int>(place.device_type));
  for (c10::DeviceIndex i = 0; i < device_count(); i++) {
    const rdna_device_info *info = rdna_device_get_info(device(i));
    if (std::strcmp(info->driver, driver) != 0 || info->native_index != place.device_id) continue;
    place = {kDLExtDev, i};
    return;
  }
  TORCH_CHECK(false, "memory of device ", place.device_id, " of the ", driver,
              " driver is none that an rdna device of this process can use");
}

}  // namespace rdna_torch
