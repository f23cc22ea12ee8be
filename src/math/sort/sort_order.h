/* Values as unsigned keys that ascend as the values do, or descend: the same on the device and on the host.
 *
 * A NaN is greater than any number and all NaN are equal; so are the two zeros. Types are told apart by three
 * constants, so that kernels exist once for each size of value. */
#ifndef RDNA_MATH_SORT_ORDER_H
#define RDNA_MATH_SORT_ORDER_H

#include "kernel/scalar.h"

struct sort_order {
  uint64_t sign;     /* the top bit of a type that has a sign, or 0 */
  uint64_t infinity; /* of a floating type, or 0 */
  uint64_t ones;     /* all bits of the type */
  uint64_t invert;   /* all bits where keys descend, or 0 */
};

/* Without branches; what depends on the order alone is computed once by whoever has a loop of them. */
#define SORT_KEY_(name, type)                                                    \
  RDNA_SCALAR type name(const struct sort_order *o, type raw) {                  \
    type sign = (type)o->sign, invert = (type)o->invert;                         \
    type most = o->infinity ? (type)o->infinity : (type) ~(type)0;               \
    type negative = (o->infinity ? (type)o->ones : sign) ^ invert;               \
    type least = (o->infinity ? sign : 0) ^ invert; /* of -0, or of the least */ \
    type key = raw ^ (raw & sign ? negative : sign ^ invert);                    \
    key = raw == sign ? least : key;                                             \
    return (raw & ~sign) > most ? (type)o->ones ^ invert : key;                  \
  }
SORT_KEY_(sort_key_32, uint32_t) /* of values of at most 32 bits, the rest of which are 0 */
SORT_KEY_(sort_key_64, uint64_t)
#undef SORT_KEY_

#endif
