// Textures and surfaces by HIP's own functions, compiled by Debian's hipcc with AMD's device library, against the
// formulas of HIP's and CUDA's guides in double: tex(x) = (1 - a) T[i] + a T[i + 1] with a of eight bits. Exit status 0
// when all is right.
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <vector>

enum { WIDTH = 19, HEIGHT = 11, DEPTH = 5, COUNT = 256 };
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

// ---- kernels

#define PLACE                                    \
  int i = threadIdx.x + blockIdx.x * blockDim.x; \
  float x = places[i], y = places[i + COUNT], z = places[i + 2 * COUNT]
__global__ void use_1d(float4 *out, const float *places, hipTextureObject_t t) {
  PLACE;
  out[i] = make_float4(tex1D<float>(t, x), tex1DLod<float>(t, x, 0), y, z);
}
__global__ void use_2d(float4 *out, const float *places, hipTextureObject_t t) {
  PLACE;
  out[i] = tex2D<float4>(t, x, y);
  out[i].w = tex2DLod<float4>(t, x, y, z).w;
}
__global__ void use_3d(float4 *out, const float *places, hipTextureObject_t t) {
  PLACE;
  out[i] = make_float4(tex3D<float>(t, x, y, z), tex3DLod<float>(t, x, y, z, 0), 0, 0);
}
__global__ void use_layers(float4 *out, const float *places, hipTextureObject_t t) {
  PLACE;
  out[i] = make_float4(tex2DLayered<float>(t, x, y, i % DEPTH), tex2DLayeredLod<float>(t, x, y, i % DEPTH, 0), z, 0);
}
__global__ void use_gradients(float4 *out, const float *places, hipTextureObject_t t) {
  PLACE;
  out[i] = tex2DGrad<float4>(t, x, y, float2(0.01f, 0), float2(0, z));
}
__global__ void use_bytes(float4 *out, const float *places, hipTextureObject_t t) {
  PLACE;
  out[i] = tex2D<float4>(t, x, y);
  out[i].w += 0 * z;
}
__global__ void fetch(uint2 *out, hipTextureObject_t t) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  out[i] = tex1Dfetch<uint2>(t, COUNT - 1 - i);
}
__global__ void gather(float4 *out, const float *places, hipTextureObject_t t) {
  PLACE;
  out[i] = tex2Dgather<float4>(t, x, y, 1);  // HIP 5.2 counts from 1: the first component
  out[i].x += 0 * z;
}
__global__ void turn(hipSurfaceObject_t from, hipSurfaceObject_t to) {  // a surface counts bytes along rows
  int i = threadIdx.x + blockIdx.x * blockDim.x, x = i % WIDTH, y = i / WIDTH;
  if (y >= HEIGHT) return;
  float4 value;
  surf2Dread(&value, from, x * (int)sizeof(float4), y);
  value.x += 1;
  surf2Dwrite(value, to, (WIDTH - 1 - x) * (int)sizeof(float4), HEIGHT - 1 - y);
}

// ---- the formulas

static int turned(int i, int n, hipTextureAddressMode mode) {
  if (mode == hipAddressModeWrap) return (i % n + n) % n;
  if (mode == hipAddressModeMirror) {
    i = (i % (2 * n) + 2 * n) % (2 * n);
    return i < n ? i : 2 * n - 1 - i;
  }
  if (mode == hipAddressModeBorder) return i < 0 || i >= n ? -1 : i;
  return i < 0 ? 0 : i >= n ? n - 1 : i;
}

struct kind {
  hipTextureAddressMode mode;
  bool linear, unit;
};

// The sample of `texels`, of `count` components, at `at`; sizes of 1 are dimensions that there are not.
static double sample(const std::vector<float> &texels, const int size[3], int count, int component, const double at[3],
                     kind k) {
  int first[3] = {0, 0, 0};
  double weight[3] = {0, 0, 0}, sum = 0;
  for (int d = 0; d < 3; d++) {
    if (size[d] == 1) continue;
    double x = at[d] * (k.unit ? size[d] : 1);
    double fixed = k.linear ? std::floor((x - 0.5) * 256 + 0.5) / 256 : x;
    first[d] = (int)std::floor(fixed);
    weight[d] = k.linear ? fixed - first[d] : 0;
  }
  for (int corner = 0; corner < 8; corner++) {
    double w = 1;
    int place[3] = {0, 0, 0};
    bool out = false;
    for (int d = 0; d < 3; d++) {
      int high = corner >> d & 1;
      w *= high ? weight[d] : 1 - weight[d];
      if (size[d] > 1) place[d] = turned(first[d] + high, size[d], k.mode);
      out |= place[d] < 0;
    }
    if (w != 0 && !out) sum += w * texels[((place[2] * size[1] + place[1]) * size[0] + place[0]) * count + component];
  }
  return sum;
}

// ---- what is made and looked at

static unsigned state = 1;
static double draw() { return (state = state * 1664525u + 1013904223u) / 4294967296.0; }

static hipTextureObject_t make(const hipResourceDesc &resource, kind k, hipTextureReadMode read) {
  hipTextureDesc settings = {};
  for (auto &mode : settings.addressMode) mode = k.mode;
  settings.filterMode = k.linear ? hipFilterModeLinear : hipFilterModePoint;
  settings.normalizedCoords = k.unit;
  settings.readMode = read;
  hipTextureObject_t texture = nullptr;
  CALL(hipCreateTextureObject(&texture, &resource, &settings, nullptr));
  return texture;
}

static hipResourceDesc of_array(hipArray_t array) {
  hipResourceDesc resource = {};
  resource.resType = hipResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}

struct run {
  std::vector<float> places;
  std::vector<float4> out;
  float *device_places;
  float4 *device_out;

  run() : places(3 * COUNT), out(COUNT) {
    CALL(hipMalloc(&device_places, places.size() * 4));
    CALL(hipMalloc(&device_out, out.size() * 16));
  }
  void draw_places(const int size[3], kind k) {
    for (int d = 0; d < 3; d++)
      for (int i = 0; i < COUNT; i++) {
        double scale = k.unit ? 1 : size[d], x = (3 * draw() - 1) * scale;
        // what is nearly on an edge between texels may be on either side
        double texels = x * (k.unit ? size[d] : 1);
        if (!k.linear && std::fabs(texels - std::rint(texels)) < 0.01) x += 0.25 * scale / size[d];
        places[d * COUNT + i] = (float)x;
      }
    CALL(hipMemcpy(device_places, places.data(), places.size() * 4, hipMemcpyHostToDevice));
  }
  template <typename kernel>
  void go(kernel *function, hipTextureObject_t texture) {
    function<<<COUNT / 64, 64>>>(device_out, device_places, texture);
    CALL(hipMemcpy(out.data(), device_out, out.size() * 16, hipMemcpyDeviceToHost));
    CALL(hipDestroyTextureObject(texture));
  }
  void compare(const std::vector<float> &texels, const int size[3], int count, int components, kind k, double tolerance,
               const char *what) {
    double worst = 0;
    for (int i = 0; i < COUNT; i++) {
      double at[3] = {places[i], places[i + COUNT], places[i + 2 * COUNT]};
      const float *got = (const float *)&out[i];
      for (int c = 0; c < components; c++) {
        double want = sample(texels, size, count, c < count ? c : 0, at, k);
        worst = std::fmax(worst, std::fabs(got[c] - want));
      }
    }
    if (!(worst <= tolerance))
      std::printf("%s: mode %d, linear %d, unit %d: off by %g\n", what, k.mode, k.linear, k.unit, worst);
    check(worst <= tolerance, what);
  }
};

static std::vector<float> random_texels(int count) {
  std::vector<float> texels(count);
  for (auto &t : texels) t = (float)(2 * draw() - 1);
  return texels;
}

static void test_floats(run &r, kind k) {
  const int one[3] = {WIDTH, 1, 1}, two[3] = {WIDTH, HEIGHT, 1}, three[3] = {WIDTH, HEIGHT, DEPTH};
  hipArray_t array;
  hipChannelFormatDesc single = hipCreateChannelDesc<float>(), four = hipCreateChannelDesc<float4>();

  auto texels = random_texels(WIDTH);
  CALL(hipMallocArray(&array, &single, WIDTH, 0, hipArrayDefault));
  CALL(hipMemcpy2DToArray(array, 0, 0, texels.data(), WIDTH * 4, WIDTH * 4, 1, hipMemcpyHostToDevice));
  r.draw_places(one, k);
  r.go(use_1d, make(of_array(array), k, hipReadModeElementType));
  r.compare(texels, one, 1, 2, k, 2e-6, "tex1D");
  CALL(hipFreeArray(array));

  texels = random_texels(WIDTH * HEIGHT * 4);
  CALL(hipMallocArray(&array, &four, WIDTH, HEIGHT, hipArrayDefault));
  CALL(hipMemcpy2DToArray(array, 0, 0, texels.data(), WIDTH * 16, WIDTH * 16, HEIGHT, hipMemcpyHostToDevice));
  r.draw_places(two, k);
  r.go(use_2d, make(of_array(array), k, hipReadModeElementType));
  r.compare(texels, two, 4, 4, k, 2e-6, "tex2D");
  r.go(use_gradients, make(of_array(array), k, hipReadModeElementType));
  r.compare(texels, two, 4, 4, k, 2e-6, "tex2DGrad");
  CALL(hipFreeArray(array));

  texels = random_texels(WIDTH * HEIGHT * DEPTH);
  for (unsigned flags : {(unsigned)hipArrayDefault, (unsigned)hipArrayLayered}) {
    CALL(hipMalloc3DArray(&array, &single, make_hipExtent(WIDTH, HEIGHT, DEPTH), flags));
    hipMemcpy3DParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(texels.data(), WIDTH * 4, WIDTH, HEIGHT);
    copy.dstArray = array;
    copy.extent = make_hipExtent(WIDTH, HEIGHT, DEPTH);
    copy.kind = hipMemcpyHostToDevice;
    CALL(hipMemcpy3D(&copy));
    r.draw_places(three, k);
    if (flags == hipArrayDefault) {
      r.go(use_3d, make(of_array(array), k, hipReadModeElementType));
      r.compare(texels, three, 1, 2, k, 2e-6, "tex3D");
    } else {
      r.go(use_layers, make(of_array(array), k, hipReadModeElementType));
      double worst = 0;
      for (int i = 0; i < COUNT; i++) {
        auto layer = texels.begin() + i % DEPTH * WIDTH * HEIGHT;
        std::vector<float> flat(layer, layer + WIDTH * HEIGHT);
        double at[3] = {r.places[i], r.places[i + COUNT], 0}, want = sample(flat, two, 1, 0, at, k);
        worst = std::fmax(worst, std::fmax(std::fabs(r.out[i].x - want), std::fabs(r.out[i].y - want)));
      }
      check(worst <= 2e-6, "tex2DLayered");
    }
    CALL(hipFreeArray(array));
  }
}

static void test_bytes(run &r) {
  const int size[3] = {WIDTH, HEIGHT, 1};
  const kind k = {hipAddressModeClamp, true, false};
  std::vector<unsigned char> bytes(WIDTH * HEIGHT * 4);
  std::vector<float> texels(bytes.size());
  for (size_t i = 0; i < bytes.size(); i++) texels[i] = (float)((bytes[i] = (unsigned char)(256 * draw())) / 255.0);
  hipResourceDesc resource = {};
  resource.resType = hipResourceTypePitch2D;
  // HIP 5.2 says of unsigned bytes by fours that they are signed
  resource.res.pitch2D.desc = hipCreateChannelDesc(8, 8, 8, 8, hipChannelFormatKindUnsigned);
  resource.res.pitch2D.width = WIDTH;
  resource.res.pitch2D.height = HEIGHT;
  CALL(hipMallocPitch(&resource.res.pitch2D.devPtr, &resource.res.pitch2D.pitchInBytes, WIDTH * 4, HEIGHT));
  CALL(hipMemcpy2D(resource.res.pitch2D.devPtr, resource.res.pitch2D.pitchInBytes, bytes.data(), WIDTH * 4, WIDTH * 4,
                   HEIGHT, hipMemcpyHostToDevice));
  r.draw_places(size, k);
  r.go(use_bytes, make(resource, k, hipReadModeNormalizedFloat));
  r.compare(texels, size, 4, 4, k, 2e-6, "bytes as floats, from rows of memory");
  CALL(hipFree(resource.res.pitch2D.devPtr));
}

static void test_fetch() {
  std::vector<uint2> texels(COUNT), out(COUNT);
  for (int i = 0; i < COUNT; i++) texels[i] = make_uint2(7 * i, 1u << i % 20);
  hipResourceDesc resource = {};
  uint2 *device_out;
  resource.resType = hipResourceTypeLinear;
  resource.res.linear.desc = hipCreateChannelDesc<uint2>();
  resource.res.linear.sizeInBytes = COUNT * sizeof(uint2);
  CALL(hipMalloc(&resource.res.linear.devPtr, COUNT * sizeof(uint2)));
  CALL(hipMalloc(&device_out, COUNT * sizeof(uint2)));
  CALL(hipMemcpy(resource.res.linear.devPtr, texels.data(), COUNT * sizeof(uint2), hipMemcpyHostToDevice));
  hipTextureObject_t texture = make(resource, {hipAddressModeClamp, false, false}, hipReadModeElementType);
  fetch<<<COUNT / 64, 64>>>(device_out, texture);
  CALL(hipMemcpy(out.data(), device_out, COUNT * sizeof(uint2), hipMemcpyDeviceToHost));
  bool same = true;
  for (int i = 0; i < COUNT; i++) same &= out[i].x == texels[COUNT - 1 - i].x && out[i].y == texels[COUNT - 1 - i].y;
  check(same, "tex1Dfetch");
  CALL(hipDestroyTextureObject(texture));
}

static void test_gather(run &r) {
  const int size[3] = {WIDTH, HEIGHT, 1};
  auto texels = random_texels(WIDTH * HEIGHT * 4);
  hipChannelFormatDesc four = hipCreateChannelDesc<float4>();
  hipArray_t array;
  CALL(hipMallocArray(&array, &four, WIDTH, HEIGHT, hipArrayTextureGather));
  CALL(hipMemcpy2DToArray(array, 0, 0, texels.data(), WIDTH * 16, WIDTH * 16, HEIGHT, hipMemcpyHostToDevice));
  r.draw_places(size, {hipAddressModeClamp, false, false});
  r.go(gather, make(of_array(array), {hipAddressModeClamp, true, false}, hipReadModeElementType));
  bool same = true;
  for (int i = 0; i < COUNT; i++) {
    int x = (int)std::floor(std::floor(r.places[i] * 256.0 - 128 + 0.5) / 256),
        y = (int)std::floor(std::floor(r.places[i + COUNT] * 256.0 - 128 + 0.5) / 256);
    const int dx[4] = {0, 1, 1, 0}, dy[4] = {1, 1, 0, 0};
    for (int k = 0; k < 4; k++) {
      int at = turned(y + dy[k], HEIGHT, hipAddressModeClamp) * WIDTH + turned(x + dx[k], WIDTH, hipAddressModeClamp);
      same &= ((const float *)&r.out[i])[k] == texels[at * 4];
    }
  }
  check(same, "tex2Dgather");
  CALL(hipFreeArray(array));
}

static void test_surfaces() {
  auto texels = random_texels(WIDTH * HEIGHT * 4);
  std::vector<float> out(texels.size());
  hipChannelFormatDesc four = hipCreateChannelDesc<float4>();
  hipArray_t arrays[2];
  hipSurfaceObject_t surfaces[2];
  for (int i = 0; i < 2; i++) {
    CALL(hipMallocArray(&arrays[i], &four, WIDTH, HEIGHT, hipArraySurfaceLoadStore));
    hipResourceDesc resource = of_array(arrays[i]);
    CALL(hipCreateSurfaceObject(&surfaces[i], &resource));
  }
  CALL(hipMemcpy2DToArray(arrays[0], 0, 0, texels.data(), WIDTH * 16, WIDTH * 16, HEIGHT, hipMemcpyHostToDevice));
  turn<<<4, 64>>>(surfaces[0], surfaces[1]);
  CALL(hipMemcpy2DFromArray(out.data(), WIDTH * 16, arrays[1], 0, 0, WIDTH * 16, HEIGHT, hipMemcpyDeviceToHost));
  bool same = true;
  for (int i = 0; i < WIDTH * HEIGHT; i++)
    for (int c = 0; c < 4; c++)
      same &= out[(WIDTH * HEIGHT - 1 - i) * 4 + c] == texels[i * 4 + c] + (c == 0 ? 1.0f : 0.0f);
  check(same, "surf2Dread, surf2Dwrite");
  for (int i = 0; i < 2; i++) {
    CALL(hipDestroySurfaceObject(surfaces[i]));
    CALL(hipFreeArray(arrays[i]));
  }
}

int main() {
  run r;
  for (bool linear : {false, true}) {
    for (auto mode : {hipAddressModeWrap, hipAddressModeClamp, hipAddressModeMirror, hipAddressModeBorder})
      test_floats(r, {mode, linear, true});
    for (auto mode : {hipAddressModeClamp, hipAddressModeBorder}) test_floats(r, {mode, linear, false});
  }
  test_bytes(r);
  test_fetch();
  test_gather(r);
  test_surfaces();
  return failures ? 1 : 0;
}
