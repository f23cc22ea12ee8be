/* What JSON output needs beside jansson. */
#ifndef RDNA_BASE_JSON_H
#define RDNA_BASE_JSON_H

#include <jansson.h>

/* |text| as a JSON string; U+FFFD stands for bytes that are no UTF-8, as where a text was cut in a character. NULL
 * without memory. */
json_t *rdna__json_of_text(const char *text, size_t size);

#endif
