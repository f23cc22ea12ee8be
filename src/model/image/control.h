/* ControlNets: what is made of them inside. */
#ifndef RDNA_MODEL_IMAGE_CONTROL_H
#define RDNA_MODEL_IMAGE_CONTROL_H

#include "model/image/unet_half.h"

/* Whether |use| can be added to |unet|'s pass over |given|: RDNA_INVALID_ARGUMENT. */
rdna_status rdna__control_check(const rdna_image_control_use *use, const rdna_image_unet *unet,
                                const rdna_image_unet_input *given);
/* Adds what |use| makes of what |to| was given to skips and x of |to|, whose U-Net has come to its middle. */
rdna_status rdna__control_add(const rdna_image_control_use *use, rdna__unet_pass *to);
/* Whether the ControlNet at |path| was made for a U-Net of such settings; its weights are not read. RDNA_BAD_DATA: for
 * another. And what rdna_image_control_create says. */
rdna_status rdna__control_fits(const char *path, const rdna__unet_settings *unet);

#endif
