/* What a choice among kernels may ask of a device. Nothing above this layer asks for a driver or an architecture by its
 * name: what differs from card to card is a property here, so that a new card is a row in traits.c. */
#ifndef RDNA_DEVICE_TRAITS_H
#define RDNA_DEVICE_TRAITS_H

#include <stdbool.h>

#include "rdna/device.h"

typedef struct rdna__device_traits {
  /* Computes, and in its own time: worth measuring. Neither the host nor the null device. */
  bool is_gpu;
  /* A kernel divides its work by itself, with the same bits for any number of threads: the host. Elsewhere the caller
   * divides it into as many groups as fill the compute units. */
  bool divides_work;
  /* Tiles of 16-bit types are copied into group memory while others are multiplied, in as many stages as that holds: a
   * kernel asks for it at launch, and needs what rdna_device_info.max_group_memory has. On others it is static. */
  bool asynchronous_copies;
  /* Matrix units that multiply by themselves what lies in group memory, while the waves do something else. */
  bool asynchronous_matrix_units;
  /* The constants in tables of routes come from a card like this one. False on AMD's cards, which nobody here has:
   * there the choice is the cautious one, and the tuner may find a better one. */
  bool is_measured;
  /* Operations in f32 in the time that memory takes for a byte, about. */
  int f32_operations_for_byte;
} rdna__device_traits;

/* Never NULL; lives as long as the process. */
const rdna__device_traits *rdna__device_traits_of(const rdna_device_info *info);

#endif
