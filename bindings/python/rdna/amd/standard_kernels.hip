// The kernels of ROCmCompiler.precompile_standard_kernels: f32, one thread an element, row_softmax one group of 256 a row.
__global__ void vector_add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

__global__ void vector_multiply(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] * b[i];
}

__global__ void vector_scale(const float* a, float* c, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] * factor;
}

__global__ void relu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

__global__ void gelu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678118654752f));
}

__global__ void silu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}

// Tree over the group's threads in shared memory; all of them get the result.
template <typename combine>
__device__ float over_group(float value, float* shared, combine with) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = blockDim.x / 2; half; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] = with(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  float result = shared[0];
  __syncthreads();
  return result;
}

__global__ __launch_bounds__(256) void row_softmax(const float* x, float* y, int columns) {
  __shared__ float shared[256];
  const float* row = x + (long)blockIdx.x * columns;
  float largest = -INFINITY, sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, row[i]);
  largest = over_group(largest, shared, [](float a, float b) { return fmaxf(a, b); });
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - largest);
  sum = over_group(sum, shared, [](float a, float b) { return a + b; });
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    y[(long)blockIdx.x * columns + i] = expf(row[i] - largest) / sum;
}
