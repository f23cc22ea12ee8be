/* Chat templates: the Jinja text with which a model says how messages become a prompt. */
#ifndef RDNA_TEMPLATE_H
#define RDNA_TEMPLATE_H

#include <stddef.h>

#include "rdna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A compiled template. Never changes; any number of threads may render it at once. */
typedef struct rdna_template rdna_template;

/* Compiles |size| bytes of UTF-8 at |text|, which may go away afterwards. The language is Jinja 3 as Hugging Face's
 * libraries set it up: a block's first newline and the white space before it go away, loops know break and continue,
 * `generation` blocks are transparent, tojson leaves characters as they are, values cannot be changed. There is no
 * include, import or inheritance, and no other way out of the template.
 * RDNA_BAD_DATA: not a template, with the line and what was expected. RDNA_UNSUPPORTED: a statement that is not
 * offered, or nesting beyond all sense. */
RDNA_CHECKED rdna_status rdna_template_compile(const char *text, size_t size, rdna_template **out_template);
RDNA_API void rdna_template_release(rdna_template *compiled); /* NULL is fine */

/* Writes the text for |variables|, a JSON object of |size| bytes: messages, tools, add_generation_prompt, bos_token and
 * whatever else the template asks for. |out_text| is the caller's, to be released with free(); it has a zero behind its
 * |out_size| bytes, and may hold others.
 * RDNA_BAD_DATA: the variables are not a JSON object. RDNA_INVALID_ARGUMENT: the template cannot be rendered with these
 * variables, or refuses them, with the line and its sentence. RDNA_UNSUPPORTED: it ran for longer, nested deeper or
 * wrote more than any template should. */
RDNA_CHECKED rdna_status rdna_template_render(const rdna_template *compiled, const char *variables, size_t size,
                                              char **out_text, size_t *out_size);

#ifdef __cplusplus
}
#endif
#endif
