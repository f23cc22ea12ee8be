/* What a picture was made with, as text. */
#ifndef RDNA_MODEL_IMAGE_PARAMETERS_H
#define RDNA_MODEL_IMAGE_PARAMETERS_H

#include "rdna/image_model.h"

/* Of picture |i| of |request|, whose sampler, spacing, sizes and steps are said, by the model at |path|, whose last
 * part is its name: in the form that AUTOMATIC1111's page writes, which other programs read, and behind it what that
 * does not have, |more| among it (", Grid of: 4" or ""). To be given to free(); NULL without memory. */
char *rdna__image_parameters(const rdna_image_request *request, int i, const char *path, rdna_dtype dtype,
                             const char *more);

#endif
