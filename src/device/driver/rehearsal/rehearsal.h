/* A device for rehearsals: what is done with it happens on no card, but its memory pool counts as the card's would. A
 * program of calls, gone through on a rehearsal of a device, leaves there the peak that it will have on the device
 * itself, by the same code: segments, scratch memory of operators and what recorded graphs keep are in it.
 *
 *     rehearse -> a device of the same name, target and units, without a bound of memory
 *     alloc    -> an address that nothing lies at         launch, copy, fill -> nothing
 *
 * Memory of the host's (rdna_host_alloc) is real, and so is what a program computes on the host meanwhile. */
#ifndef RDNA_DEVICE_DRIVER_REHEARSAL_H
#define RDNA_DEVICE_DRIVER_REHEARSAL_H

#include "device/driver.h"

/* The table, which goes with |*out_device|, for a device of |like|. */
rdna_status rdna__rehearsal_open(const rdna__driver *like, const rdna__driver **out_driver,
                                 rdna__driver_device **out_device);

#endif
