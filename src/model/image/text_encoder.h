#ifndef RDNA_MODEL_IMAGE_TEXT_ENCODER_H
#define RDNA_MODEL_IMAGE_TEXT_ENCODER_H

#include "model/image/lora.h"
#include "rdna/image.h"
#include "rdna/model.h"

/* rdna_image_text_encoder_create with |loras|' changes, or NULL, as a model's first or |second| encoder. */
rdna_status rdna__text_encoder_create(rdna_device *device, const char *folder, const char *encoder,
                                      const char *tokenizer, rdna__loras *loras, bool second,
                                      rdna_image_text_encoder **out_encoder);
/* Borrowed; lives as long as the encoder. */
const rdna_tokenizer *rdna__text_encoder_tokenizer(const rdna_image_text_encoder *encoder);

#endif
