/* What a choice among kernels may ask of a device. No operator chooses by a driver's or an architecture's name, as
 * tools/check_layers.py sees to: what differs from card to card is a property here, so that a new card is a row in
 * traits.c. Loading vendors' libraries and reports do ask for names. */
#ifndef RDNA_DEVICE_TRAITS_H
#define RDNA_DEVICE_TRAITS_H

#include <stdbool.h>

#include "rdna/device.h"

typedef struct rdna__device_traits {
  /* A card, whose time is worth measuring. Neither the host nor the null device. */
  bool is_gpu;
  /* A kernel divides its work among threads by itself, with the same bits for any number of them: the host. Elsewhere
   * the caller divides it into as many groups as fill the compute units. */
  bool divides_work;
  /* Copies a tile from global to group memory while the waves multiply another, with as many tiles in flight as group
   * memory holds. Such kernels ask for their group memory at launch, up to rdna_device_info.max_group_memory; those of
   * other devices have it static. */
  bool asynchronous_copies;
  /* Matrix units read their operands from group memory and run while the waves do something else. */
  bool asynchronous_matrix_units;
  /* The constants in tables of routes hold here: they were measured on an H200, and are taken to hold for NVIDIA's
   * other cards. False on AMD's: there the choice is the cautious one, and the tuner may find a better one. */
  bool is_measured;
  /* About how many f32 operations it does in the time in which memory moves one byte. */
  int f32_operations_for_byte;
} rdna__device_traits;

/* Never NULL; lives as long as the process. */
const rdna__device_traits *rdna__device_traits_of(const rdna_device_info *info);

#endif
