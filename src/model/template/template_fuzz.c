/* The bytes up to the first 0xff are a template, the rest its variables; without one the variables are those below.
 * What is rendered is UTF-8, and the same the second time. */
#include <stdlib.h>
#include <string.h>

#include "model/template/template.h"

enum { STEPS = 1000000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char usual[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"a b\"}, {\"role\": \"user\", \"content\": [{\"type\": "
    "\"text\", "
    "\"text\": \"\xc3\xa9\"}]}, {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"x\", "
    "\"function\": "
    "{\"name\": \"f\", \"arguments\": {\"a\": 1.5, \"b\": [true, null]}}}]}], \"tools\": [{\"name\": \"f\"}], \"n\": "
    "7, "
    "\"add_generation_prompt\": true, \"bos_token\": \"<s>\", \"s\": \"Hello World\", \"l\": [3, 1, 2], \"f\": -2.5}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rdna_template *compiled;
  const uint8_t *split = memchr(data, 0xff, size);
  size_t template_size = split ? (size_t)(split - data) : size;
  const char *variables = split ? (const char *)split + 1 : usual;
  size_t variables_size = split ? size - template_size - 1 : sizeof usual - 1;
  if (rdna_template_compile((const char *)data, template_size, &compiled) != RDNA_OK) return 0;
  char *first, *second;
  size_t first_size, second_size;
  rdna_status status = rdna__tpl_render(compiled, variables, variables_size, STEPS, &first, &first_size);
  if (status == RDNA_OK) {
    if (!rdna__tpl_is_utf8(first, first_size)) abort();
    bool clock = rdna__tpl_find((rdna_text){(const char *)data, template_size}, (rdna_text){"strftime", 8}, 0) >= 0;
    if (rdna__tpl_render(compiled, variables, variables_size, STEPS, &second, &second_size) != RDNA_OK) abort();
    if (!clock && (first_size != second_size || memcmp(first, second, first_size) != 0)) abort();
    free(second);
    free(first);
  }
  rdna_template_release(compiled);
  return 0;
}
