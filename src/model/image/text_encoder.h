#ifndef RDNA_MODEL_IMAGE_TEXT_ENCODER_H
#define RDNA_MODEL_IMAGE_TEXT_ENCODER_H

#include "model/image/inversion.h"
#include "model/image/lora.h"
#include "rdna/image.h"
#include "rdna/model.h"

/* rdna_image_text_encoder_create with |loras|' changes and the words of |words|, which must stay, each or NULL, as a
 * model's first or |second| encoder. RDNA_BAD_DATA, besides: words for another version of the model. */
rdna_status rdna__text_encoder_create(rdna_device *device, const char *folder, const char *encoder,
                                      const char *tokenizer, rdna__loras *loras, const rdna__inversions *words,
                                      bool second, rdna_image_text_encoder **out_encoder);
/* Appends the tokens of a text, in which words of files stand as as many ids as they have vectors, from vocabulary on.
 */
rdna_status rdna__text_encoder_read(const rdna_image_text_encoder *encoder, const char *text, size_t size,
                                    rdna_tokens *tokens);
/* How many ids from |id| on are one word of a file; 1 where it is none. */
int rdna__text_encoder_word(const rdna_image_text_encoder *encoder, int32_t id);
/* Borrowed; lives as long as the encoder. */
const rdna_tokenizer *rdna__text_encoder_tokenizer(const rdna_image_text_encoder *encoder);

#endif
