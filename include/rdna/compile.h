/* HIP source to code for a GPU at run time, kept on disk; its kernels by name, launched with checked arguments.
 *
 *     rdna_code *code; rdna_module *module; int add;
 *     rdna_compile_options options = {RDNA_COMPILE_OPTIONS_INIT, .target = "gfx1100"};
 *     rdna_compile(source, &options, &code);
 *     rdna_code_find(code, "add", &add);
 *     rdna_module_load(device, code, &module);
 *     rdna_launch_argument arguments[] = {
 *         {.data = &a, .is_pointer = true, .number = RDNA_NUMBER_FLOAT, .size = 4}, …
 *         {.data = &n, .number = RDNA_NUMBER_INTEGER, .size = sizeof n}};
 *     rdna_module_launch(stream, module, add, &(rdna_launch_shape){{groups, 1, 1}, {256, 1, 1}, 0}, arguments, 4);
 *
 * The compiler is AMD's hiprtc where the machine has an AMD card, else a clang that can be found, else for NVIDIA's
 * targets NVRTC of CUDA 11 or later, which knows CUDA's names and not all of HIP's; clang needs no ROCm,
 * as a header of this library stands in for HIP's: docs/amd/compiler.md lists what it offers. */
#ifndef RDNA_COMPILE_H
#define RDNA_COMPILE_H

#include "rdna/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compiled code with what is known of its kernels. Never changes, so any thread may read it. */
typedef struct rdna_code rdna_code;

typedef struct rdna_compile_options {
  size_t size;              /* of this struct */
  const char *target;       /* "gfx1100"; "sm_80", whose code is PTX. Needed */
  const char *name;         /* what the compiler's messages call the source; NULL is "kernel.hip" */
  const char *const *flags; /* (flag_count): -D -U -I -iquote -O0 to -O3 -std=… -f… -m… -W…, each with its value in one
                             * string ("-DN=4"). Without -O it is -O3 */
  int flag_count;
  const char *cache;      /* folder; NULL: RDNA_COMPILE_CACHE; "off": nothing is read or kept */
  uint64_t cache_entries; /* beyond so many the least recently used go; 0: RDNA_COMPILE_CACHE_ENTRIES */
  uint64_t cache_bytes;   /* the same by size; 0: RDNA_COMPILE_CACHE_MB */
} rdna_compile_options;
#define RDNA_COMPILE_OPTIONS_INIT .size = sizeof(rdna_compile_options)

/* Compiles |source|, or takes it from the cache: the key is a hash of source, flags, target and compiler, and files
 * that the source includes are compared with what they were. Processes and threads that want the same at the same time
 * compile it once. An entry that was cut short or changed is thrown away and made again. A folder that cannot be used
 * (read-only, another user's) costs the keeping alone, see rdna_code_report.notice.
 * RDNA_BAD_DATA: the source does not compile; the sentence has the compiler's own text, with file and line.
 * RDNA_UNAVAILABLE: there is no compiler. RDNA_INVALID_ARGUMENT: an unknown target, a flag of another kind. */
RDNA_CHECKED rdna_status rdna_compile(const char *source, const rdna_compile_options *options, rdna_code **out_code);
RDNA_API void rdna_code_release(rdna_code *code); /* NULL is fine */

/* An ELF code object for AMD's; NUL-terminated PTX for NVIDIA's, whose size counts the NUL. Borrowed. */
RDNA_API const void *rdna_code_data(const rdna_code *code, size_t *out_size);

typedef struct rdna_code_report {
  const char *target;
  const char *compiler; /* path of the clang or the library that made it, or would have */
  const char *notice;   /* why it could not be kept, or what was wrong with its entry; "" when all is well */
  const char *warnings; /* what the compiler said of a source that it compiled now; "" of one from the cache */
  bool cached;          /* no compiler ran */
  double milliseconds;  /* that rdna_compile took */
} rdna_code_report;
/* Strings live as long as |code|. */
RDNA_API void rdna_code_get_report(const rdna_code *code, rdna_code_report *out_report);

/* Removes every entry of a cache folder; NULL: RDNA_COMPILE_CACHE. A folder that is not there is empty. */
RDNA_CHECKED rdna_status rdna_compile_clear_cache(const char *folder);

typedef enum rdna_number {
  RDNA_NUMBER_UNKNOWN, /* void, a struct, or nothing is known */
  RDNA_NUMBER_INTEGER, /* signed or unsigned, bool and characters too */
  RDNA_NUMBER_FLOAT,   /* f16, f32, f64 by their size */
  RDNA_NUMBER_BFLOAT
} rdna_number;

typedef struct rdna_code_argument {
  const char *name;      /* "n"; "" when unknown */
  const char *type;      /* "const float*", "int"; "" when unknown, as behind extern "C", which hides it */
  const char *space;     /* of what a pointer points to: "global"; "" of values and when unknown */
  uint32_t offset, size; /* in the block of arguments, bytes */
  bool is_pointer;       /* to the GPU's memory */
  rdna_number number;    /* of a value, or of what a pointer points to */
  uint32_t number_size;  /* bytes of that; 0 when unknown */
} rdna_code_argument;

typedef struct rdna_code_kernel {
  const char *name;   /* as the source has it: "add" */
  const char *symbol; /* as the code object has it: "_Z3addPKfS0_Pfi" */
  int argument_count;
  const rdna_code_argument *arguments;
  uint32_t group_memory;      /* bytes of LDS that it declares; of NVIDIA's this and what follows are 0 */
  uint32_t private_memory;    /* bytes of scratch a thread */
  uint32_t max_group_threads; /* __launch_bounds__, or 1024 */
  uint32_t vector_registers, scalar_registers;
  uint32_t vector_spills, scalar_spills;
  uint32_t wave_size;
} rdna_code_kernel;

/* How many kernels the code has. */
RDNA_API int rdna_code_kernel_count(const rdna_code *code);
/* NULL past the last. Lives as long as |code|. */
RDNA_API const rdna_code_kernel *rdna_code_get_kernel(const rdna_code *code, int kernel);
/* By the name in the source or by the symbol. RDNA_NOT_FOUND with the kernels that there are; RDNA_INVALID_ARGUMENT
 * when several have that name, as instances of a template do, with their symbols. */
RDNA_CHECKED rdna_status rdna_code_find(const rdna_code *code, const char *name, int *out_kernel);

/* Code on a device. */
typedef struct rdna_module rdna_module;

/* |code| must be for this GPU or a relative whose code it runs; it may be released afterwards. The module keeps the
 * device. RDNA_UNSUPPORTED on a host device, which runs no GPU code, and for code of another GPU. */
RDNA_CHECKED rdna_status rdna_module_load(rdna_device *device, const rdna_code *code, rdna_module **out_module);
/* Waits for the device first. A graph that recorded a launch of it must be gone. NULL is fine. */
RDNA_API void rdna_module_release(rdna_module *module);

typedef struct rdna_launch_shape {
  uint32_t grid[3];      /* groups */
  uint32_t block[3];     /* threads of a group */
  uint32_t group_memory; /* bytes beyond those the kernel declares: what its extern __shared__ array has */
} rdna_launch_shape;

typedef struct rdna_launch_argument {
  const void *data;   /* the value's bytes; for a pointer the address of the pointer */
  bool is_pointer;    /* to memory of the device */
  rdna_number number; /* as in rdna_code_argument; UNKNOWN is not compared */
  uint32_t size;      /* bytes of the value, or of a number that a pointer points to, 0 when unknown */
} rdna_launch_argument;

/* Compares the arguments with what the kernel takes, then queues it; they are copied before the call returns. A grid
 * with a zero is no work. RDNA_INVALID_ARGUMENT, with nothing queued: another number of arguments, a pointer for a
 * value or the reverse, another size or kind of number, a group or LDS that the kernel or the device does not allow, a
 * stream of another device. Pointers are not looked up: that they are the device's is the caller's word. */
RDNA_CHECKED rdna_status rdna_module_launch(rdna_stream *stream, const rdna_module *module, int kernel,
                                            const rdna_launch_shape *shape, const rdna_launch_argument *arguments,
                                            int argument_count);

#ifdef __cplusplus
}
#endif
#endif
