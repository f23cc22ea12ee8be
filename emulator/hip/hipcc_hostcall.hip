// What kernels ask of the host while they run, compiled by Debian's hipcc: printf, assert and malloc. Exit status 0
// when all is right.
#include <hip/hip_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

static int failures;

static void check(bool good, const char *what) {
  if (good) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  failures++;
}

static void call(hipError_t code, const char *what) {
  if (code == hipSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, hipGetErrorString(code));
  failures++;
}
#define CALL(expression) call((expression), #expression)

// What comes out of a stream of the C library between begin and end.
struct capture {
  FILE *stream, *file;
  int number, old;
  explicit capture(FILE *s) : stream(s), file(std::tmpfile()), number(fileno(s)), old(dup(fileno(s))) {
    std::fflush(stream);
    dup2(fileno(file), number);
  }
  std::string end() {
    std::string text;
    std::fflush(stream);
    dup2(old, number);
    close(old);
    std::rewind(file);
    for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
    std::fclose(file);
    return text;
  }
};

static std::vector<std::string> lines(const std::string &text) {
  std::vector<std::string> out;
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    out.push_back(text.substr(at, end - at));
  return out;
}

// ---- printf

__global__ void formats(int *lengths) {
  int minus = -5;
  lengths[0] = printf("%d %u %x %o %c %%|%5d|%-5d|%05d|%+d\n", minus, 7u, 255u, 8u, 'q', 42, 42, 42, 42);
  lengths[1] = printf("%lld %llu %lx\n", -1234567890123ll, 18446744073709551615ull, 0xabcdef0123456789ul);
  lengths[2] = printf("%f %.3f %e %g %10.2f|\n", 1.5, 3.14159, 1e10, 0.0001, 2.5f);
  lengths[3] = printf("%s|%10s|%-6s|%.2s\n", "text", "right", "left", "cut off");
  lengths[4] = printf("%*d|%.*f\n", 6, 42, 2, 3.14159);
  lengths[5] = printf("%hhd %hd %zu %ld\n", (signed char)-3, (short)-300, (size_t)99, -7l);
  lengths[6] = printf("a string that takes several packets, since one has room for only fifty-six bytes: %s %d\n",
                      "and another one, which is a good deal longer than a packet of that size can be", 77);
  lengths[7] = printf("no argument\n");
  lengths[8] = printf("%p\n", (void *)0x1234);
}

static void test_formats() {
  int *lengths = nullptr;
  CALL(hipHostMalloc(reinterpret_cast<void **>(&lengths), 9 * sizeof(int), 0));
  capture out(stdout);
  formats<<<1, 1>>>(lengths);
  hipError_t code = hipDeviceSynchronize();
  std::string got = out.end();
  CALL(code);
  const char *want[] = {
      "-5 7 ff 10 q %|   42|42   |00042|+42\n",
      "-1234567890123 18446744073709551615 abcdef0123456789\n",
      "1.500000 3.142 1.000000e+10 0.0001       2.50|\n",
      "text|     right|left  |cu\n",
      "    42|3.14\n",
      "-3 -300 99 -7\n",
      "a string that takes several packets, since one has room for only fifty-six bytes: and another one, which is a "
      "good deal longer than a packet of that size can be 77\n",
      "no argument\n",
      "0x1234\n",
  };
  std::string all;
  for (int i = 0; i < 9; i++) {
    all += want[i];
    check(lengths[i] == static_cast<int>(std::string(want[i]).size()), "what printf returns");
  }
  check(got == all, "formats");
  if (got != all) std::fprintf(stderr, "%s", got.c_str());
  CALL(hipHostFree(lengths));
}

__global__ void many(int rounds) {
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < rounds; i++)
    if ((id + i) % 3) printf("%d of %d: %s\n", i, id, id % 2 ? "odd" : "even");
}

// Every lane of many waves at once, some of them off: no line is lost or torn, and each lane's are in its order.
static void test_many() {
  const int groups = 24, threads = 96, rounds = 3;
  capture out(stdout);
  many<<<groups, threads>>>(rounds);
  hipError_t code = hipDeviceSynchronize();
  std::vector<std::string> got = lines(out.end());
  CALL(code);
  std::vector<std::string> want;
  for (int id = 0; id < groups * threads; id++)
    for (int i = 0; i < rounds; i++)
      if ((id + i) % 3)
        want.push_back(std::to_string(i) + " of " + std::to_string(id) + ": " + (id % 2 ? "odd" : "even"));
  std::vector<int> round_of(groups * threads, -1);
  bool ordered = true;
  for (const std::string &line : got) {
    int round = -1, id = -1;
    if (std::sscanf(line.c_str(), "%d of %d:", &round, &id) != 2 || id < 0 || id >= groups * threads) continue;
    ordered = ordered && round > round_of[id];
    round_of[id] = round;
  }
  check(ordered, "a lane's lines are in order");
  std::sort(got.begin(), got.end());
  std::sort(want.begin(), want.end());
  check(got == want, "lines of many waves");
}

// ---- assert

__global__ void asserts(int *out, int limit) {
  assert((int)threadIdx.x < limit);
  out[threadIdx.x] = 1;
}

static void test_assert() {
  int *out = nullptr;
  CALL(hipMalloc(&out, 64 * sizeof(int)));
  capture none(stderr);
  asserts<<<1, 64>>>(out, 64);
  hipError_t passes = hipDeviceSynchronize();
  std::string nothing = none.end();
  CALL(passes);
  check(nothing.empty(), "an assertion that holds says nothing");
  capture message(stderr);
  asserts<<<1, 64>>>(out, 63);
  hipError_t fails = hipDeviceSynchronize();
  std::string said = message.end();
  check(fails == hipErrorLaunchFailure, "an assertion that fails is the launch's failure");
  check(said.find("Device-side assertion `(int)threadIdx.x < limit' failed.") != std::string::npos,
        "an assertion's message");
  asserts<<<1, 64>>>(out, 64);
  CALL(hipDeviceSynchronize());
  CALL(hipFree(out));
}

// ---- malloc

__global__ void lists(int **heads, int rounds, int bytes) {
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  int **last = nullptr;
  for (int i = 0; i < rounds; i++) {  // each block holds the one before it, and its own mark
    char *block = static_cast<char *>(malloc(bytes));
    if (!block) return;
    *reinterpret_cast<int ***>(block) = last;
    for (int k = 8; k + 4 <= bytes; k += 4) *reinterpret_cast<int *>(block + k) = id * 1000 + i;
    last = reinterpret_cast<int **>(block);
  }
  heads[id] = reinterpret_cast<int *>(last);
}

__global__ void sum_and_free(int **heads, unsigned *bad, int rounds, int bytes) {
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  char *block = reinterpret_cast<char *>(heads[id]);
  for (int i = rounds - 1; i >= 0; i--) {
    if (!block) {
      atomicAdd(bad, 1u);
      return;
    }
    for (int k = 8; k + 4 <= bytes; k += 4)
      if (*reinterpret_cast<int *>(block + k) != id * 1000 + i) atomicAdd(bad, 1u);
    char *before = *reinterpret_cast<char **>(block);
    free(block);
    block = before;
  }
}

static void test_malloc(int groups, int threads, int rounds, int bytes) {
  int **heads = nullptr;
  unsigned *bad = nullptr;
  CALL(hipMalloc(&heads, groups * threads * sizeof(int *)));
  CALL(hipMemset(heads, 0, groups * threads * sizeof(int *)));
  CALL(hipHostMalloc(reinterpret_cast<void **>(&bad), sizeof *bad, 0));
  *bad = 0;
  lists<<<groups, threads>>>(heads, rounds, bytes);
  sum_and_free<<<groups, threads>>>(heads, bad, rounds, bytes);
  CALL(hipDeviceSynchronize());
  check(*bad == 0, "blocks of the device's malloc");
  CALL(hipFree(heads));
  CALL(hipHostFree(bad));
}

int main() {
  test_formats();
  test_many();
  test_assert();
  test_malloc(8, 64, 4, 16);
  test_malloc(2, 70, 3, 900);
  test_malloc(1, 40, 2, 20000);  // more than the device keeps in its own pages
  std::printf("%d wrong\n", failures);
  return failures != 0;
}
