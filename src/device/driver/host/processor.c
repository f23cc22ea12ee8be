#include "device/driver/host/processor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/threads.h"

/* The value after "key" and its colon in a file of "key : value" lines; false when there is none. */
static bool find_line(const char *path, const char *key, char *value, size_t size) {
  FILE *file = fopen(path, "re");
  if (!file) return false;
  char line[512];
  bool found = false;
  while (!found && fgets(line, sizeof line, file)) {
    size_t length = strlen(key);
    char *colon = strchr(line, ':');
    if (!colon || strncmp(line, key, length) != 0 || strspn(line + length, " \t") != (size_t)(colon - line) - length)
      continue;
    char *text = colon + 1 + strspn(colon + 1, " \t");
    text[strcspn(text, "\n")] = 0;
    snprintf(value, size, "%s", text);
    found = true;
  }
  fclose(file);
  return found;
}

/* The number in a one-line file; UINT64_MAX when there is none ("max", or no such file). */
static uint64_t read_number(const char *path) {
  FILE *file = fopen(path, "re");
  if (!file) return UINT64_MAX;
  uint64_t value;
  if (fscanf(file, "%" SCNu64, &value) != 1) value = UINT64_MAX;
  fclose(file);
  return value;
}

void rdna__host_memory(uint64_t *out_free, uint64_t *out_total) {
  char text[64];
  uint64_t total = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  uint64_t available =
      find_line("/proc/meminfo", "MemAvailable", text, sizeof text) ? strtoull(text, NULL, 10) * 1024 : total;
  /* a container's limit; cgroup v2, then v1 */
  uint64_t limit = read_number("/sys/fs/cgroup/memory.max"), used = read_number("/sys/fs/cgroup/memory.current");
  if (used == UINT64_MAX) {
    limit = read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    used = read_number("/sys/fs/cgroup/memory/memory.usage_in_bytes");
  }
  if (limit < total) total = limit;
  if (used != UINT64_MAX && limit != UINT64_MAX) {
    uint64_t left = limit > used ? limit - used : 0;
    if (left < available) available = left;
  }
  *out_total = total;
  *out_free = available < total ? available : total;
}

static void name_arch(char *arch, size_t size) {
#if defined(__x86_64__)
  /* the levels of the x86-64 psABI, by the features that tell them apart */
  __builtin_cpu_init();
  bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("ssse3");
  bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
            __builtin_cpu_supports("bmi2");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl");
  snprintf(arch, size, "x86-64%s", v4 ? "-v4" : v3 ? "-v3" : v2 ? "-v2" : "");
#else
  struct utsname machine;
  snprintf(arch, size, "%.30s", uname(&machine) == 0 ? machine.machine : "unknown");
#endif
}

void rdna__host_describe(rdna_device_info *out_info) {
  char name[112] = "unknown processor", clock[32] = "0";
  find_line("/proc/cpuinfo", "model name", name, sizeof name);
  find_line("/proc/cpuinfo", "cpu MHz", clock, sizeof clock);
  uint64_t free_bytes, total;
  rdna__host_memory(&free_bytes, &total);
  *out_info = (rdna_device_info){
      .driver = "host",
      .integrated = true,
      .total_memory = total,
      .compute_units = rdna__thread_count(),
      .wave_size = 1,
      /* a host twin has no work-groups of its own; these are what the kernels' sizes are checked against */
      .max_group_threads = 1024,
      .max_group_memory = 65536,
      .clock_mhz = (int)strtod(clock, NULL),
      .pci_domain = -1,
      .pci_bus = -1,
      .pci_device = -1,
  };
  snprintf(out_info->name, sizeof out_info->name, "%s (host)", name);
  name_arch(out_info->arch, sizeof out_info->arch);
}
