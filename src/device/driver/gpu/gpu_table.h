/* The functions of a vendor's library, from a driver's file of rows: GPU_TABLE, a struct with a pointer to each, and
 * |symbols|, by which rdna__library_bind fills it. Included once by each driver, which names GPU_TABLE and GPU_SYMBOLS,
 * the file. A row is one of
 *   RDNA__REQUIRED(result, name, arguments), RDNA__OPTIONAL(…)   a function that this driver alone calls
 *   RDNA__SHARED(member, name), RDNA__SHARED_OPTIONAL(…)         one of rdna__gpu_calls
 * so it has no include guard. */
#define RDNA__REQUIRED(result, name, arguments) result(*name) arguments;
#define RDNA__OPTIONAL(result, name, arguments) result(*name) arguments;
#define RDNA__SHARED(member, name)
#define RDNA__SHARED_OPTIONAL(member, name)
static struct gpu_table {
  rdna__gpu_calls shared;
#include GPU_SYMBOLS
} GPU_TABLE;
#undef RDNA__REQUIRED
#undef RDNA__OPTIONAL
#undef RDNA__SHARED
#undef RDNA__SHARED_OPTIONAL

#define RDNA__REQUIRED(result, name, arguments) {#name, offsetof(struct gpu_table, name), true},
#define RDNA__OPTIONAL(result, name, arguments) {#name, offsetof(struct gpu_table, name), false},
#define RDNA__SHARED(member, name) {#name, offsetof(struct gpu_table, shared.member), true},
#define RDNA__SHARED_OPTIONAL(member, name) {#name, offsetof(struct gpu_table, shared.member), false},
static const rdna__symbol symbols[] = {
#include GPU_SYMBOLS
};
#undef RDNA__REQUIRED
#undef RDNA__OPTIONAL
#undef RDNA__SHARED
#undef RDNA__SHARED_OPTIONAL
