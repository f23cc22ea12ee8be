/* Opens a device for a suite of operators by a vendor's library whose stand-in is loaded, and sees at the end that
 * nothing is left of what the suite made. */
#ifndef RDNA_MATH_VENDOR_TESTING_VENDOR_H
#define RDNA_MATH_VENDOR_TESTING_VENDOR_H

#include <dlfcn.h>

#include "math/common/test/device.h"
#include "math/vendor/fake_vendor.h"
#include "math/vendor/vendor.h"

static fake_vendor_record *record;

static int open_vendor(void **state, rdna__vendor which) {
  open_device(state);
  rdna_vendor_info info;
  assert_ok(rdna_vendor_get_info(device, (int)which, &info));
  if (info.status != RDNA_OK) fail_msg("%s", info.message);
  void *library = dlopen(info.library, RTLD_NOW | RTLD_NOLOAD);
  assert_non_null(library);
  assert_non_null(rdna__vendor_handle(device, which));
  record = dlsym(library, "fake_record");
  assert_non_null(record);
  return 0;
}

/* With the device goes everything that was made. */
static int close_vendor(void **state) {
  assert_ok(rdna_stream_synchronize(stream));
  close_device(state);
  assert_int_equal(record->handles, 0);
  assert_int_equal(record->objects, 0);
  return 0;
}

#endif
