/* Variables as operators see them that read and change several: inside of with_variables. */
#ifndef RDNA_TENSORFLOW_VARIABLE_H
#define RDNA_TENSORFLOW_VARIABLE_H

#include "kernel.h"

/* |function| of |c| while nobody else sees or changes variables. */
rdna_status with_variables(call *c, rdna_status (*function)(call *c));
#define LOCKED(name, function) \
  rdna_status name(call *c) { return with_variables(c, function); }

/* For what is shorter than an operator. */
void lock_variables(void);
void unlock_variables(void);

/* The value of the variable whose handle is input |i|; it lasts until the variable is written. */
rdna_status variable_value(call *c, int i, rdna_tensor *out_tensor);
/* Memory for its new value that nobody else sees; |keep|: with the old one in it. Where that is the variable's own
 * memory, it still holds the old value. */
rdna_status variable_to_write(call *c, int i, bool keep, rdna_tensor *out_tensor);

#endif
