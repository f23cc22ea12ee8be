#include "device/traits.h"

#include <string.h>

/* The first row whose driver and beginning of the architecture are the device's. */
static const struct {
  const char *driver, *arch;
  rdna__device_traits traits;
} rows[] = {
    {.driver = "hip", .arch = "", .traits = {.is_gpu = true, .f32_operations_for_byte = 64}},
    {.driver = "cuda",
     .arch = "sm_90", /* an H200: 67 Tflop/s beside 4.2 TB/s */
     .traits = {.is_gpu = true,
                .asynchronous_copies = true,
                .asynchronous_matrix_units = true,
                .is_measured = true,
                .f32_operations_for_byte = 16}},
    {.driver = "cuda",
     .arch = "",
     .traits = {.is_gpu = true, .asynchronous_copies = true, .is_measured = true, .f32_operations_for_byte = 16}},
    {.driver = "host", .arch = "", .traits = {.divides_work = true, .f32_operations_for_byte = 64}},
    {.driver = "", .arch = "", .traits = {.f32_operations_for_byte = 64}}, /* null: computes nothing */
};

const rdna__device_traits *rdna__device_traits_of(const rdna_device_info *info) {
  int last = (int)(sizeof rows / sizeof *rows) - 1, i = 0;
  while (i < last &&
         (strcmp(rows[i].driver, info->driver) != 0 || strncmp(rows[i].arch, info->arch, strlen(rows[i].arch)) != 0))
    i++;
  return &rows[i].traits;
}
