// A program for AMD's libamdhip64: runs a kernel of the test's own on the first card and looks at its result.
//   consumer FOLDER [unwritten | casts]     unwritten: the kernel reads what nobody wrote; casts: a lint
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hipMalloc(void **, size_t);
int hipMemset(void *, int, size_t);
int hipMemcpy(void *, const void *, size_t, int);
int hipModuleLoad(void **, const char *);
int hipModuleGetFunction(void **, void *, const char *);
int hipModuleLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);
int hipDeviceSynchronize(void);

int main(int argc, char **argv) {
  const char *folder = argc > 1 ? argv[1] : ".", *what = argc > 2 ? argv[2] : "";
  const char *target = getenv("RDNA_EMULATE");
  void *module, *kernel, *out, *in;
  char path[4096];
  unsigned result = 1;
  snprintf(path, sizeof path, "%s/probe_%s.hsaco", folder, target ? target : "");
  if (hipModuleLoad(&module, path) || hipMalloc(&out, 256) || hipMalloc(&in, 256)) return 2;
  int casts = !strcmp(what, "casts");
  if (strcmp(what, "unwritten") && hipMemset(in, 0, 256)) return 3;
  if (hipMemset(out, 0, 256)) return 3;
  if (hipModuleGetFunction(&kernel, module, casts ? "casts" : "chooses")) return 4;
  void *both[] = {&in, &out}, *one[] = {&out};
  if (hipModuleLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, casts ? one : both, NULL)) return 5;
  (void)hipDeviceSynchronize();
  if (hipMemcpy(&result, out, sizeof result, 2)) return 6;
  printf("%u\n", result);
  return 0;
}
