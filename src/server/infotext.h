/* What pictures say of how they were made, as AUTOMATIC1111's page writes it. */
#ifndef RDNA_SERVER_INFOTEXT_H
#define RDNA_SERVER_INFOTEXT_H

#include <jansson.h>

/* |text|, of UTF-8, as an object of texts: "Prompt", "Negative prompt", and the names of the last line where that is of
 * pairs. What is cut within a character is left out. The caller releases it. */
json_t *infotext_parse(const char *text);

#endif
