/* For tests: a folder that stands in for a machine's file system. */
#ifndef RDNA_DEVICE_TESTING_ROOT_H
#define RDNA_DEVICE_TESTING_ROOT_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char fake_root[64];

static inline int fake_root_make(void) {
  strcpy(fake_root, "/tmp/rdna_root_XXXXXX");
  return mkdtemp(fake_root) == NULL;
}

static inline void fake_root_path(char path[512], const char *name) { snprintf(path, 512, "%s%s", fake_root, name); }

/* Removes a file or folder; it need not exist. */
static inline int fake_root_remove(const char *name) {
  char command[600];
  snprintf(command, sizeof command, "rm -rf '%s%s'", fake_root, name);
  return system(command);
}

/* Writes a file, making its folders. */
__attribute__((format(printf, 2, 3))) static inline void fake_root_write(const char *name, const char *format, ...) {
  char path[512];
  fake_root_path(path, name);
  for (char *slash = path + strlen(fake_root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
    *slash = '\0';
    mkdir(path, 0755);
    *slash = '/';
  }
  FILE *file = fopen(path, "w");
  if (file == NULL) abort();
  va_list arguments;
  va_start(arguments, format);
  vfprintf(file, format, arguments);
  va_end(arguments);
  fclose(file);
}

static inline void fake_root_mode(const char *name, unsigned mode) {
  char path[512];
  fake_root_path(path, name);
  if (chmod(path, mode) != 0) abort();
}

/* A processor's node of the KFD topology. */
static inline void fake_root_cpu_node(int node) {
  char name[128];
  snprintf(name, sizeof name, "/sys/class/kfd/kfd/topology/nodes/%d/properties", node);
  fake_root_write(name, "cpu_cores_count 16\nsimd_count 0\ngfx_target_version 0\nlocation_id 0\n");
}

/* A GPU's node: |version| as in gfx_target_version, two SIMDs a CU, one bank of |vram| bytes. */
static inline void fake_root_gpu_node(int node, int version, int units, int bus, int render_minor, long long vram) {
  char name[128];
  snprintf(name, sizeof name, "/sys/class/kfd/kfd/topology/nodes/%d/properties", node);
  fake_root_write(name,
                  "cpu_cores_count 0\nsimd_count %d\nmem_banks_count 1\nsimd_per_cu 2\ngfx_target_version %d\n"
                  "vendor_id 4098\ndevice_id 29772\nlocation_id %d\ndomain 0\ndrm_render_minor %d\nunique_id "
                  "13835058055282163712\n",
                  2 * units, version, bus << 8, render_minor);
  snprintf(name, sizeof name, "/sys/class/kfd/kfd/topology/nodes/%d/mem_banks/0/properties", node);
  fake_root_write(name, "heap_type 1\nsize_in_bytes %lld\nflags 0\nwidth 384\nmem_clk_max 1249\n", vram);
}

#endif
