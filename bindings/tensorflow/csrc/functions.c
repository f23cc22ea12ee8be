/* TensorFlow is loaded by Python with its names hidden from others, so they are asked of its library alone. */
#include "functions.h"

#include <dlfcn.h>
#include <string.h>

struct tensorflow_functions tf;

const char *find_functions(void) {
  void *library = dlopen("libtensorflow_framework.so.2", RTLD_NOW | RTLD_NOLOAD);
  if (!library) return "libtensorflow_framework.so.2";
  void *found;
#define TF(result, name, arguments)    \
  found = dlsym(library, "TF_" #name); \
  if (!found) return "TF_" #name;      \
  memcpy(&tf.name, &found, sizeof found);
#define MAYBE(result, name, arguments) \
  found = dlsym(library, "TF_" #name); \
  memcpy(&tf.name, &found, sizeof found);
#include "functions.def"
#undef TF
#undef MAYBE
  return NULL;
}
