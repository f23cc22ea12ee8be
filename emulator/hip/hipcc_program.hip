// A program as people write them, compiled by Debian's hipcc and linked against AMD's libamdhip64; the drop-in runs it
// unmodified. Exit status 0 when every result is right.
#include <hip/hip_runtime.h>

#include <cmath>
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

__device__ unsigned long long counter;
__constant__ float factors[2] = {2.0f, 0.5f};

__global__ void saxpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = a * factors[0] * x[i] + y[i];
  atomicAdd(&counter, 1ull);
}

template <int N>
__global__ void reverse(float *data, int n) {
  __shared__ float tile[N];
  if (threadIdx.x < n) tile[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < n) data[threadIdx.x] = tile[n - 1 - threadIdx.x];
}

// (rows, columns) to (columns, rows), a tile of 16 x 16 in LDS whose size the launch gives
__global__ void transpose(const double *in, double *out, int rows, int columns) {
  extern __shared__ double tile2[];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < columns && y < rows) tile2[threadIdx.y * 17 + threadIdx.x] = in[y * columns + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x;
  y = blockIdx.x * 16 + threadIdx.y;
  if (x < rows && y < columns) out[y * rows + x] = tile2[threadIdx.x * 17 + threadIdx.y];
}

struct shape {
  int n;
  float low, high;
  char pad[5];
};
__global__ void count_between(const float *x, shape s, unsigned *out) {
  unsigned own = 0;
  for (int i = threadIdx.x; i < s.n; i += blockDim.x) own += x[i] >= s.low && x[i] < s.high;
  for (int d = warpSize / 2; d; d /= 2) own += __shfl_down(own, d);
  if (threadIdx.x % warpSize == 0) atomicAdd(out, own);
}

__global__ void functions(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = sinf(x[i]) + expf(-x[i]) + sqrtf(x[i]) / (1.0f + x[i]) + powf(x[i], 1.5f);
}

static void test_arithmetic(void) {
  const int n = 1000;
  std::vector<float> x(n), y(n, 1.0f);
  for (int i = 0; i < n; i++) x[i] = i;
  float *dx = nullptr, *dy = nullptr;
  CALL(hipMalloc(&dx, n * sizeof(float)));
  CALL(hipMalloc(&dy, n * sizeof(float)));
  CALL(hipMemcpy(dx, x.data(), n * sizeof(float), hipMemcpyHostToDevice));
  CALL(hipMemcpy(dy, y.data(), n * sizeof(float), hipMemcpyHostToDevice));
  saxpy<<<(n + 255) / 256, 256>>>(3.0f, dx, dy, n);
  reverse<256><<<1, 256>>>(dy, 100);
  CALL(hipGetLastError());
  CALL(hipMemcpy(y.data(), dy, n * sizeof(float), hipMemcpyDeviceToHost));
  bool good = true;
  for (int i = 0; i < n; i++) good = good && y[i] == 6.0f * (i < 100 ? 99 - i : i) + 1;
  check(good, "saxpy and reverse");
  unsigned long long count = 0;
  CALL(hipMemcpyFromSymbol(&count, HIP_SYMBOL(counter), sizeof count));
  check(count == n, "a counter in a device variable");
  float changed[2] = {5.0f, 0.0f};
  CALL(hipMemcpyToSymbol(HIP_SYMBOL(factors), changed, sizeof changed));
  saxpy<<<4, 256>>>(1.0f, dx, dy, n);
  CALL(hipMemcpy(y.data(), dy, n * sizeof(float), hipMemcpyDeviceToHost));
  check(y[200] == 6.0f * 200 + 1 + 5.0f * 200, "a constant that the host changed");
  functions<<<4, 256>>>(dx, dy, n);
  CALL(hipMemcpy(y.data(), dy, n * sizeof(float), hipMemcpyDeviceToHost));
  good = true;
  for (int i = 0; i < n; i++) {
    double v = x[i], want = std::sin(v) + std::exp(-v) + std::sqrt(v) / (1 + v) + std::pow(v, 1.5);
    // four functions of a few ulp each
    good = good && std::fabs(y[i] - want) <= 16 * 0x1p-24 * (2 + std::fabs(want));
  }
  check(good, "sinf, expf, sqrtf, powf and a division");
  CALL(hipFree(dx));
  CALL(hipFree(dy));
}

static void test_streams(void) {
  const int rows = 37, columns = 50, cells = rows * columns;
  std::vector<double> back(cells);
  double *in = nullptr, *out = nullptr, *pinned = nullptr;
  hipStream_t stream = nullptr;
  hipEvent_t start = nullptr, end = nullptr;
  CALL(hipStreamCreate(&stream));
  CALL(hipEventCreate(&start));
  CALL(hipEventCreate(&end));
  CALL(hipHostMalloc(reinterpret_cast<void **>(&pinned), cells * sizeof(double), 0));
  CALL(hipMalloc(&in, cells * sizeof(double)));
  CALL(hipMalloc(&out, cells * sizeof(double)));
  for (int i = 0; i < cells; i++) pinned[i] = i + 0.25;
  CALL(hipEventRecord(start, stream));
  CALL(hipMemcpyAsync(in, pinned, cells * sizeof(double), hipMemcpyHostToDevice, stream));
  transpose<<<dim3((columns + 15) / 16, (rows + 15) / 16), dim3(16, 16), 16 * 17 * sizeof(double), stream>>>(
      in, out, rows, columns);
  CALL(hipMemcpyAsync(back.data(), out, cells * sizeof(double), hipMemcpyDeviceToHost, stream));
  CALL(hipEventRecord(end, stream));
  CALL(hipEventSynchronize(end));
  float milliseconds = -1;
  CALL(hipEventElapsedTime(&milliseconds, start, end));
  check(milliseconds >= 0, "an event's time");
  bool good = true;
  for (int y = 0; y < rows; y++)
    for (int x = 0; x < columns; x++) good = good && back[x * rows + y] == y * columns + x + 0.25;
  check(good, "transpose in a stream, with LDS sized by the launch");
  CALL(hipFree(in));
  CALL(hipFree(out));
  CALL(hipHostFree(pinned));
  CALL(hipEventDestroy(start));
  CALL(hipEventDestroy(end));
  CALL(hipStreamDestroy(stream));
}

static void test_struct(void) {
  const int n = 5000;
  std::vector<float> x(n);
  unsigned want = 0, got = 0;
  for (int i = 0; i < n; i++) {
    x[i] = static_cast<float>(i * 7919 % 1000);
    want += x[i] >= 100 && x[i] < 250;
  }
  float *dx = nullptr;
  unsigned *out = nullptr;
  CALL(hipMalloc(&dx, n * sizeof(float)));
  CALL(hipMalloc(&out, sizeof(unsigned)));
  CALL(hipMemset(out, 0, sizeof(unsigned)));
  CALL(hipMemcpy(dx, x.data(), n * sizeof(float), hipMemcpyHostToDevice));
  count_between<<<1, 512>>>(dx, shape{n, 100, 250, {}}, out);
  CALL(hipMemcpy(&got, out, sizeof got, hipMemcpyDeviceToHost));
  check(got == want, "a struct by value, shuffles and an atomic");
  CALL(hipFree(dx));
  CALL(hipFree(out));
}

int main() {
  int devices = 0;
  CALL(hipGetDeviceCount(&devices));
  hipDeviceProp_t properties;
  CALL(hipGetDeviceProperties(&properties, 0));
  check(devices >= 1 && properties.warpSize == 32 && properties.gcnArch == 1030 && properties.multiProcessorCount > 0 &&
            properties.maxThreadsPerBlock == 1024 && properties.totalGlobalMem > 0,
        "the device's properties");
  test_arithmetic();
  test_streams();
  test_struct();
  hipFuncAttributes attributes;
  CALL(hipFuncGetAttributes(&attributes, reinterpret_cast<const void *>(saxpy)));
  check(attributes.maxThreadsPerBlock > 0 && attributes.numRegs > 0, "a kernel's attributes");
  int groups = 0;
  CALL(hipOccupancyMaxActiveBlocksPerMultiprocessor(&groups, reinterpret_cast<const void *>(saxpy), 256, 0));
  check(groups > 0, "occupancy");
  std::printf("%s: %d wrong\n", properties.name, failures);
  return failures != 0;
}
