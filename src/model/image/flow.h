/* Schedules of straight lines, inside. */
#ifndef RDNA_MODEL_IMAGE_FLOW_H
#define RDNA_MODEL_IMAGE_FLOW_H

#include "model/image/family.h"
#include "rdna/image_flow.h"

/* rdna_image_flow_create, whose levels are even, with others. */
rdna_status rdna__flow_create(const char *settings, int steps, int tokens, rdna__flow_levels levels,
                              rdna_image_flow **out_flow);

#endif
