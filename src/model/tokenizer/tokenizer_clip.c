/* CLIP's vocabulary (Radford et al., 2021): byte-level BPE of small letters, in which a word's last byte is another
 * token than the same byte within it. White space parts words and is no token.
 *
 *     "A cat."  ->  a | cat | .  ->  a</w>  c a t</w>  .</w>  ->  merges  ->  a</w>  cat</w>  .</w> */
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "model/tokenizer/tokenizer.h"

enum { MOST_BYTES = 4 /* of a character; one of 2 may get one of 3 as its small letter */ };
static const uint32_t dotted_i = 0x130; /* the one letter whose small one is two characters, i and U+0307 */

/* In normal form C, in small letters, with spaces for all white space. */
rdna_status rdna__clip_encode(const rdna_tokenizer *t, rdna_text text, rdna_tokens *tokens) {
  char *normal = NULL;
  size_t size = 0;
  RDNA_TRY(rdna__normal_form(text, true, &normal, &size));
  if (normal) text = (rdna_text){normal, size};
  char *small = malloc(text.size * MOST_BYTES + 1);
  rdna_status status = small ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a text");
  size_t end = 0;
  for (size_t i = 0, length; small && i < text.size; i += length) {
    uint32_t code = rdna__next_code(text.data + i, text.size - i, &length);
    if (code >= 0x110000) /* no UTF-8: bytes as they are */
      for (size_t b = 0; b < length; b++) small[end++] = text.data[i + b];
    else if (code == dotted_i)
      end += (size_t)sprintf(small + end, "i\xcc\x87");
    else
      end += rdna__put_utf8(rdna__is_space(code) ? ' ' : rdna__lower_case(code), small + end);
  }
  if (status == RDNA_OK) status = rdna__bpe_encode(t, (rdna_text){small, end}, tokens);
  free(small);
  free(normal);
  return status;
}
