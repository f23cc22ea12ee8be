/* What families whose transformers are kinds of FLUX's have in common. */
#ifndef RDNA_MODEL_IMAGE_PIPELINE_FLUX_H
#define RDNA_MODEL_IMAGE_PIPELINE_FLUX_H

#include "model/image/autoencoder.h"
#include "model/image/flux.h"
#include "model/image/pipeline.h"

/* Settings of transformer and autoencoder, and the model's schedule. RDNA_UNSUPPORTED: pictures of other than 3
 * channels. */
rdna_status rdna__flux_read_parts(rdna_image_model *model, rdna__flux_settings *out_flux,
                                  rdna__autoencoder_settings *out_autoencoder);

/* As rdna__image_family has them. */
rdna_status rdna__flux_need(rdna_image_model *model, const rdna__image_texts *texts);
uint64_t rdna__flux_weights_of(const void *network);
void rdna__flux_release(void *network);
rdna_status rdna__flux_ask(rdna_image_model *model, const rdna__image_asking *asking, float *out);

#endif
