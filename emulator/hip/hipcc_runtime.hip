// What ordinary programs ask of the runtime besides memory, streams and launches, compiled by Debian's hipcc. Exit
// status 0 when all is right.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <vector>

static int failures;

static void check(bool good, const char *what) {
  if (good) return;
  std::printf("wrong: %s\n", what);
  failures++;
}

static void call(hipError_t code, const char *what) {
  if (code == hipSuccess) return;
  std::printf("%s: %s\n", what, hipGetErrorString(code));
  failures++;
}
#define CALL(expression) call((expression), #expression)

// ---- managed variables

__managed__ int table[64] = {3, 1, 4};
__managed__ double total = 0.5;

__global__ void use_managed() {
  if (threadIdx.x >= 3) table[threadIdx.x] = threadIdx.x;
  if (threadIdx.x == 0) total += table[0] + table[1] + table[2];
}

static void test_managed() {
  int devices = 0;
  CALL(hipGetDeviceCount(&devices));
  check(table[0] == 3 && table[2] == 4 && table[63] == 0 && total == 0.5, "initial values on the host");
  for (int i = 0; i < devices; i++) {  // one variable, whichever device writes it
    CALL(hipSetDevice(i));
    table[1] = 10 * (i + 1);
    double before = total;
    use_managed<<<1, 64>>>();
    CALL(hipDeviceSynchronize());
    check(total == before + 7 + 10 * (i + 1), "a kernel reads what the host wrote, and the host what the kernel wrote");
    check(table[63] == 63, "an array");
  }
  CALL(hipSetDevice(0));
  hipPointerAttribute_t about;
  CALL(hipPointerGetAttributes(&about, table));
  check(about.isManaged, "it is managed memory");
}

int main() {
  test_managed();
  std::printf("%d wrong\n", failures);
  return failures != 0;
}
