/* TensorFlow's functions, by their names without TF_: tf.GetInput(…). */
#ifndef RDNA_TENSORFLOW_FUNCTIONS_H
#define RDNA_TENSORFLOW_FUNCTIONS_H

#include "abi.h"

struct tensorflow_functions {
#define TF(result, name, arguments) result(*name) arguments;
#define MAYBE TF
#include "functions.def"
#undef TF
#undef MAYBE
};
extern struct tensorflow_functions tf;

/* Finds them in the TensorFlow of this process. NULL, or the name of the first that it does not have. */
const char *find_functions(void);

#endif
