// What ordinary programs ask of the runtime besides memory, streams and launches, compiled by Debian's hipcc. Exit
// status 0 when all is right.
#include <hip/hip_runtime.h>
// after the one above
#include <hip/hip_cooperative_groups.h>

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

// ---- cooperative launches

__global__ void grid_sums(unsigned *sums, unsigned *seen, int rounds) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  for (int i = 0; i < rounds; i++) {
    atomicAdd(&sums[i], grid.is_valid());
    grid.sync();
    if (sums[i] != grid.size()) atomicAdd(seen, 1u);
  }
}

static void test_cooperative() {
  int rounds = 4, each = 0;
  unsigned *sums = nullptr, *wrong = nullptr;
  hipDeviceProp_t properties;
  CALL(hipGetDeviceProperties(&properties, 0));
  check(properties.cooperativeLaunch, "the device launches cooperatively");
  CALL(hipMalloc(&sums, rounds * sizeof *sums));
  CALL(hipHostMalloc(reinterpret_cast<void **>(&wrong), sizeof *wrong, 0));
  CALL(hipOccupancyMaxActiveBlocksPerMultiprocessor(&each, reinterpret_cast<const void *>(grid_sums), 96, 0));
  int most = each * properties.multiProcessorCount;
  void *arguments[] = {&sums, &wrong, &rounds};
  for (int groups : {1, 13, most}) {
    *wrong = 0;
    CALL(hipMemset(sums, 0, rounds * sizeof *sums));
    CALL(hipLaunchCooperativeKernel(reinterpret_cast<const void *>(grid_sums), dim3(groups), dim3(96), arguments, 0,
                                    hipStream_t(0)));
    CALL(hipDeviceSynchronize());
    check(*wrong == 0, "all groups have come when one goes on");
  }
  check(hipLaunchCooperativeKernel(reinterpret_cast<const void *>(grid_sums), dim3(most + 1), dim3(96), arguments, 0,
                                   hipStream_t(0)) == hipErrorCooperativeLaunchTooLarge,
        "more groups than there is room for");
  CALL(hipFree(sums));
  CALL(hipHostFree(wrong));
}

// ---- three dimensions

static void test_3d() {
  const size_t width = 40, height = 5, depth = 6, bytes = width * height * depth;
  std::vector<unsigned char> from(bytes), back(bytes, 7), want(bytes, 7);
  for (size_t i = 0; i < bytes; i++) from[i] = static_cast<unsigned char>(i * 31 + i / width);
  hipPitchedPtr device;
  CALL(hipMalloc3D(&device, make_hipExtent(width, height, depth)));
  check(device.ptr && device.pitch >= width && device.xsize == width && device.ysize == height, "hipMalloc3D");
  hipMemcpy3DParms to = {};
  to.srcPtr = make_hipPitchedPtr(from.data(), width, width, height);
  to.dstPtr = device;
  to.extent = make_hipExtent(width, height, depth);
  to.kind = hipMemcpyHostToDevice;
  CALL(hipMemcpy3D(&to));
  // a part of it to another place: 10 x 2 x 3 from (4, 1, 2) to (6, 3, 1)
  hipMemcpy3DParms part = {};
  part.srcPtr = device;
  part.srcPos = make_hipPos(4, 1, 2);
  part.dstPtr = make_hipPitchedPtr(back.data(), width, width, height);
  part.dstPos = make_hipPos(6, 3, 1);
  part.extent = make_hipExtent(10, 2, 3);
  part.kind = hipMemcpyDeviceToHost;
  hipStream_t stream = nullptr;
  CALL(hipStreamCreate(&stream));
  CALL(hipMemcpy3DAsync(&part, stream));
  CALL(hipStreamSynchronize(stream));
  for (size_t z = 0; z < 3; z++)
    for (size_t y = 0; y < 2; y++)
      for (size_t x = 0; x < 10; x++)
        want[((z + 1) * height + y + 3) * width + x + 6] = from[((z + 2) * height + y + 1) * width + x + 4];
  check(back == want, "a part to another place");
  CALL(hipMemset3D(device, 9, make_hipExtent(7, 3, 2)));
  for (size_t z = 0; z < 2; z++)
    for (size_t y = 0; y < 3; y++)
      for (size_t x = 0; x < 7; x++) from[(z * height + y) * width + x] = 9;
  part.srcPos = part.dstPos = make_hipPos(0, 0, 0);
  part.extent = make_hipExtent(width, height, depth);
  CALL(hipMemcpy3D(&part));
  check(back == from, "a part filled, and all of it back");
  part.extent = make_hipExtent(width, height, depth + 1);
  check(hipMemcpy3D(&part) == hipErrorInvalidValue, "past the last slice");
  part.extent = make_hipExtent(device.pitch + 1, 1, 1);
  check(hipMemcpy3D(&part) == hipErrorInvalidValue, "past a row");
  CALL(hipStreamDestroy(stream));
  CALL(hipFree(device.ptr));
}

// ---- memory pools

static uint64_t count_of(hipMemPool_t pool, hipMemPoolAttr attribute) {
  uint64_t value = 12345;
  CALL(hipMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

static void test_pools() {
  hipStream_t stream = nullptr;
  hipMemPool_t own = nullptr, current = nullptr, pool = nullptr;
  void *p = nullptr, *q = nullptr;
  uint64_t keep = ~0ull, zero = 0;
  int supported = 0, flag = 7;
  CALL(hipDeviceGetAttribute(&supported, hipDeviceAttributeMemoryPoolsSupported, 0));
  check(supported == 1, "the device has pools");
  CALL(hipStreamCreate(&stream));
  CALL(hipDeviceGetDefaultMemPool(&own, 0));
  CALL(hipDeviceGetMemPool(&current, 0));
  check(own && current == own, "the default pool is current at first");
  CALL(hipMemPoolSetAttribute(own, hipMemPoolAttrReleaseThreshold, &keep));
  check(count_of(own, hipMemPoolAttrReleaseThreshold) == keep, "a threshold");
  CALL(hipMemPoolGetAttribute(own, hipMemPoolReuseAllowOpportunistic, &flag));
  check(flag == 1, "reuse is allowed");
  uint64_t before = count_of(own, hipMemPoolAttrUsedMemCurrent);
  CALL(hipMallocAsync(&p, 1000, stream));
  check(count_of(own, hipMemPoolAttrUsedMemCurrent) == before + 1000, "hipMallocAsync takes from the default pool");
  hipMemPoolProps properties = {};
  properties.allocType = hipMemAllocationTypePinned;
  properties.location.type = hipMemLocationTypeDevice;
  CALL(hipMemPoolCreate(&pool, &properties));
  CALL(hipMallocFromPoolAsync(&q, 500, pool, stream));
  check(count_of(pool, hipMemPoolAttrUsedMemCurrent) == 500, "a pool counts its own");
  CALL(hipFreeAsync(q, stream));
  CALL(hipStreamSynchronize(stream));
  check(count_of(pool, hipMemPoolAttrUsedMemCurrent) == 0 && count_of(pool, hipMemPoolAttrUsedMemHigh) == 500,
        "memory goes back, the mark stays");
  CALL(hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemHigh, &zero));
  check(count_of(pool, hipMemPoolAttrUsedMemHigh) == 0, "a mark can be reset");
  check(hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &zero) == hipErrorInvalidValue, "a count cannot");
  CALL(hipDeviceSetMemPool(0, pool));
  CALL(hipMallocAsync(&q, 300, stream));
  check(count_of(pool, hipMemPoolAttrUsedMemCurrent) == 300, "hipMallocAsync takes from the pool that is current");
  CALL(hipMemPoolTrimTo(pool, 0));
  CALL(hipMemPoolDestroy(pool));
  CALL(hipDeviceGetMemPool(&current, 0));
  check(current == own, "the default pool takes the place of one that is gone");
  check(hipMemPoolTrimTo(pool, 0) == hipErrorInvalidValue && hipMemPoolDestroy(own) == hipErrorInvalidValue,
        "no such pool");
  CALL(hipMemsetAsync(q, 1, 300, stream));  // outlives its pool
  CALL(hipFreeAsync(q, stream));
  CALL(hipFree(p));
  CALL(hipStreamSynchronize(stream));
  check(count_of(own, hipMemPoolAttrUsedMemCurrent) == before, "all is back");
  CALL(hipStreamDestroy(stream));
}

// ---- graphs

__global__ void add(int *p, int n, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += value;
}

static hipKernelNodeParams addition(void **arguments, int groups) {
  hipKernelNodeParams k = {};
  k.func = reinterpret_cast<void *>(add);
  k.gridDim = dim3(groups);
  k.blockDim = dim3(256);
  k.kernelParams = arguments;
  return k;
}

static void count_up(void *count) { ++*static_cast<int *>(count); }

// fill with 5, add 9, to the host; beside it what was on the host before goes through three dimensions
static void test_explicit_graph() {
  int n = 1000, *p = nullptr, *q = nullptr, nine = 9, calls = 0;
  std::vector<int> result(n, -1), source(n, 3), beside(n, -1);
  hipGraph_t graph = nullptr;
  hipGraphExec_t run = nullptr;
  hipGraphNode_t fill, kernel, back, there, here, host, last;
  hipStream_t stream = nullptr;
  CALL(hipStreamCreate(&stream));
  CALL(hipMalloc(&p, n * sizeof(int)));
  CALL(hipMalloc(&q, n * sizeof(int)));
  CALL(hipGraphCreate(&graph, 0));
  hipMemsetParams five = {};
  five.dst = p;
  five.elementSize = 4;
  five.width = n;
  five.height = 1;
  five.value = 5;
  void *arguments[] = {&p, &n, &nine};
  hipKernelNodeParams k = addition(arguments, 4);
  // in an order that is not the one in which they must run
  CALL(hipGraphAddMemcpyNode1D(&back, graph, nullptr, 0, result.data(), p, n * sizeof(int), hipMemcpyDeviceToHost));
  CALL(hipGraphAddKernelNode(&kernel, graph, nullptr, 0, &k));
  CALL(hipGraphAddMemsetNode(&fill, graph, nullptr, 0, &five));
  hipGraphNode_t from[] = {kernel, fill}, to[] = {back, kernel};
  CALL(hipGraphAddDependencies(graph, from, to, 2));
  hipMemcpy3DParms cube = {};
  cube.srcPtr = make_hipPitchedPtr(source.data(), 40, 40, 10);
  cube.dstPtr = make_hipPitchedPtr(q, 40, 40, 10);
  cube.extent = make_hipExtent(40, 10, 10);
  cube.kind = hipMemcpyHostToDevice;
  CALL(hipGraphAddMemcpyNode(&there, graph, nullptr, 0, &cube));
  CALL(hipGraphAddMemcpyNode1D(&here, graph, &there, 1, beside.data(), q, n * sizeof(int), hipMemcpyDeviceToHost));
  hipHostNodeParams counting = {count_up, &calls};
  hipGraphNode_t both[] = {back, here};
  CALL(hipGraphAddHostNode(&host, graph, both, 2, &counting));
  CALL(hipGraphAddEmptyNode(&last, graph, &host, 1));
  nine = 100;  // arguments were taken when the node was added
  size_t count = 0, roots = 10;
  CALL(hipGraphGetNodes(graph, nullptr, &count));
  check(count == 7, "nodes");
  hipGraphNode_t some[10];
  CALL(hipGraphGetRootNodes(graph, some, &roots));
  check(roots == 2 && some[0] == fill && some[1] == there && some[2] == nullptr, "roots");
  size_t before = 1;
  CALL(hipGraphNodeGetDependencies(host, some, &before));
  check(before == 1 && some[0] == back, "the first of what a node comes after");
  hipGraphNodeType types[4];
  CALL(hipGraphNodeGetType(kernel, &types[0]));
  CALL(hipGraphNodeGetType(fill, &types[1]));
  CALL(hipGraphNodeGetType(host, &types[2]));
  CALL(hipGraphNodeGetType(last, &types[3]));
  check(types[0] == hipGraphNodeTypeKernel && types[1] == hipGraphNodeTypeMemset && types[2] == hipGraphNodeTypeHost &&
            types[3] == hipGraphNodeTypeEmpty,
        "types of nodes");
  CALL(hipGraphInstantiate(&run, graph, nullptr, nullptr, 0));
  hipGraphNode_t extra;
  CALL(hipGraphAddHostNode(&extra, graph, nullptr, 0, &counting));  // comes too late for it
  CALL(hipGraphDestroy(graph));
  for (int i = 0; i < 2; i++) {
    source.assign(n, i);  // read at each launch
    CALL(hipGraphLaunch(run, stream));
    CALL(hipStreamSynchronize(stream));
    check(result == std::vector<int>(n, 14) && beside == std::vector<int>(n, i) && calls == i + 1, "what a graph does");
  }
  CALL(hipGraphLaunch(run, stream));
  CALL(hipGraphExecDestroy(run));
  CALL(hipStreamSynchronize(stream));
  check(calls == 3, "a graph that is destroyed while it runs");
  CALL(hipGraphCreate(&graph, 0));
  CALL(hipGraphAddEmptyNode(&some[0], graph, nullptr, 0));
  CALL(hipGraphAddEmptyNode(&some[1], graph, &some[0], 1));
  check(hipGraphAddDependencies(graph, &some[0], &some[0], 1) == hipErrorInvalidValue, "a node after itself");
  CALL(hipGraphAddDependencies(graph, &some[1], &some[0], 1));
  check(hipGraphInstantiate(&run, graph, nullptr, nullptr, 0) == hipErrorInvalidValue, "nodes in a circle");
  check(hipGraphAddEmptyNode(&some[2], graph, &last, 0) == hipSuccess, "an empty node");
  CALL(hipGraphDestroy(graph));
  CALL(hipFree(p));
  CALL(hipFree(q));
  CALL(hipStreamDestroy(stream));
}

static void test_captured_graph() {
  int n = 4096, *p = nullptr;
  std::vector<int> got(n);
  hipStream_t stream = nullptr;
  hipGraph_t graph = nullptr;
  hipGraphExec_t run = nullptr;
  CALL(hipStreamCreate(&stream));
  CALL(hipMalloc(&p, n * sizeof(int)));
  CALL(hipMemset(p, 0, n * sizeof(int)));
  CALL(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  for (int i = 0; i < 5; i++) add<<<16, 256, 0, stream>>>(p, n, i);
  CALL(hipMemsetAsync(p, 0, 4, stream));
  CALL(hipStreamEndCapture(stream, &graph));
  hipGraphNode_t nodes[6], before;
  size_t count = 6, one = 1;
  CALL(hipGraphGetNodes(graph, nodes, &count));
  check(count == 6, "captured nodes");
  CALL(hipGraphNodeGetDependencies(nodes[3], &before, &one));
  check(one == 1 && before == nodes[2], "captured nodes follow each other");
  hipGraphNodeType type;
  CALL(hipGraphNodeGetType(nodes[5], &type));
  check(type == hipGraphNodeTypeMemset, "a captured fill");
  CALL(hipGraphInstantiate(&run, graph, nullptr, nullptr, 0));
  for (int i = 0; i < 3; i++) CALL(hipGraphLaunch(run, stream));
  CALL(hipMemcpyAsync(got.data(), p, n * sizeof(int), hipMemcpyDeviceToHost, stream));
  CALL(hipStreamSynchronize(stream));
  check(got[0] == 0 && got[1] == 30 && got[n - 1] == 30, "what a captured graph does");
  CALL(hipGraphExecDestroy(run));
  CALL(hipGraphDestroy(graph));
  CALL(hipFree(p));
  CALL(hipStreamDestroy(stream));
}

int main() {
  test_managed();
  test_explicit_graph();
  test_captured_graph();
  test_pools();
  test_cooperative();
  test_3d();
  std::printf("%d wrong\n", failures);
  return failures != 0;
}
