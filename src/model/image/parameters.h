/* What a picture was made with, as text. */
#ifndef RDNA_MODEL_IMAGE_PARAMETERS_H
#define RDNA_MODEL_IMAGE_PARAMETERS_H

#include "rdna/image_model.h"

/* Of picture |i| of |request|, whose sampler, spacing, sizes and steps are said, by |model|, whose name is the last
 * part of |path|: in the form that AUTOMATIC1111's page writes, which other programs read, and behind it what that does
 * not have, names of the model's files and |more| among it (", Grid of: 4" or ""). To be given to free(); NULL without
 * memory. */
char *rdna__image_parameters(const rdna_image_model *model, const rdna_image_request *request, int i, const char *path,
                             const char *more);

#endif
