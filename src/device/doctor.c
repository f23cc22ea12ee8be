#include "device/doctor.h"

#include <glob.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/targets.h"
#include "device/topology.h"

enum {
  MAX_GPUS = 64,
  MAX_RUNTIMES = 8,
  LOG_TAIL = 1 << 20,
  PCI_VENDOR_AMD = 0x1002,
  PCI_CLASS_DISPLAY = 0x03,
  PCI_CLASS_ACCELERATOR = 0x12
};

/* What several checks need, read once. */
typedef struct patient {
  const rdna__doctor_options *options;
  rdna__topology_gpu gpus[MAX_GPUS];
  int gpu_count;
  int pci_cards; /* AMD display devices on the bus, whatever the kernel made of them */
  char pci_first[64];
  bool wsl, container, amdgpu;
} patient;

/* ---- reading below the root ------------------------------------------------------------------------------- */

static void below(const patient *p, char path[PATH_MAX], const char *name) {
  snprintf(path, PATH_MAX, "%s%s", p->options->root, name);
}

static bool exists(const patient *p, const char *name) {
  char path[PATH_MAX];
  below(p, path, name);
  return access(path, F_OK) == 0;
}

/* The first line of a file, without its end; false when there is none. */
static bool read_line(const char *path, char *line, int capacity) {
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  bool read = fgets(line, capacity, file) != NULL;
  fclose(file);
  if (read) line[strcspn(line, "\n")] = '\0';
  return read;
}

static unsigned long long read_number(const char *folder, const char *name) {
  char path[PATH_MAX], line[64];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return 0;
  return read_line(path, line, sizeof line) ? strtoull(line, NULL, 0) : 0;
}

static bool glob_below(const patient *p, const char *pattern, glob_t *found) {
  char path[PATH_MAX];
  below(p, path, pattern);
  *found = (glob_t){0};
  if (glob(path, 0, NULL, found) == 0) return true;
  globfree(found);
  return false;
}

static const char *environment(const patient *p, const char *name) {
  if (p->options->environment != NULL) return p->options->environment(p->options->environment_data, name);
  return getenv(name);
}

static bool module_is_loaded(const patient *p, const char *module) {
  char path[PATH_MAX], line[256];
  snprintf(path, sizeof path, "%s/sys/module/%s", p->options->root, module);
  if (access(path, F_OK) == 0) return true;
  below(p, path, "/proc/modules");
  FILE *file = fopen(path, "re");
  bool found = false;
  size_t length = strlen(module);
  while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
    found = strncmp(line, module, length) == 0 && line[length] == ' ';
  }
  if (file != NULL) fclose(file);
  return found;
}

static void find_pci_cards(patient *p) {
  glob_t found;
  if (!glob_below(p, "/sys/bus/pci/devices/*", &found)) return;
  for (size_t i = 0; i < found.gl_pathc; i++) {
    const char *folder = found.gl_pathv[i];
    unsigned long long class = read_number(folder, "class") >> 16;
    if (read_number(folder, "vendor") != PCI_VENDOR_AMD) continue;
    if (class != PCI_CLASS_DISPLAY && class != PCI_CLASS_ACCELERATOR) continue;
    if (p->pci_cards++ == 0) {
      snprintf(p->pci_first, sizeof p->pci_first, "%.20s, device 0x%04llx", strrchr(folder, '/') + 1,
               read_number(folder, "device"));
    }
  }
  globfree(&found);
}

static void examine(patient *p, const rdna__doctor_options *options) {
  memset(p, 0, sizeof *p);
  p->options = options;
  p->gpu_count = rdna__topology_read(options->root, p->gpus, MAX_GPUS);
  if (p->gpu_count > MAX_GPUS) p->gpu_count = MAX_GPUS;
  p->wsl = exists(p, "/dev/dxg");
  p->container = exists(p, "/.dockerenv") || exists(p, "/run/.containerenv");
  p->amdgpu = module_is_loaded(p, "amdgpu");
  find_pci_cards(p);
}

/* ---- writing results -------------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void found(rdna__check *check, rdna__check_state state, const char *format,
                                                        ...) {
  va_list arguments;
  va_start(arguments, format);
  check->state = state;
  vsnprintf(check->found, sizeof check->found, format, arguments);
  va_end(arguments);
}

__attribute__((format(printf, 2, 3))) static void advise(rdna__check *check, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(check->advice, sizeof check->advice, format, arguments);
  va_end(arguments);
}

/* Adds to a list in |text|: "a", "a; b". */
__attribute__((format(printf, 3, 4))) static void append(char *text, size_t capacity, const char *format, ...) {
  size_t used = strlen(text);
  if (used > 0 && used + 2 < capacity) used += (size_t)snprintf(text + used, capacity - used, "; ");
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + used, capacity - used, format, arguments);
  va_end(arguments);
}

/* ---- checks: kernel --------------------------------------------------------------------------------------- */

static void check_kernel_driver(const patient *p, rdna__check *check) {
  if (p->wsl && !p->amdgpu) {
    found(check, RDNA__CHECK_SKIP, "This is WSL, where Windows drives the card.");
  } else if (p->amdgpu) {
    found(check, RDNA__CHECK_OK, "The amdgpu kernel driver is loaded.");
  } else if (p->container && p->pci_cards > 0) {
    found(check, RDNA__CHECK_FAIL, "The machine around this container has an AMD card (%s) but no amdgpu driver.",
          p->pci_first);
    advise(check, "Load amdgpu on the machine itself: sudo modprobe amdgpu.");
  } else if (p->pci_cards > 0) {
    found(check, RDNA__CHECK_FAIL, "There is an AMD card (%s), but the amdgpu kernel driver is not loaded.",
          p->pci_first);
    advise(check,
           "Run sudo modprobe amdgpu; if that fails, look for a blacklist in /etc/modprobe.d and for nomodeset on the "
           "kernel's command line, and install your distribution's AMD firmware package.");
  } else {
    found(check, RDNA__CHECK_FAIL, "There is no AMD card on the PCI bus and no amdgpu kernel driver.");
    advise(check, "Without an AMD card use the host driver (--driver host), or emulate one with RDNA_EMULATE=gfx1100.");
  }
}

static bool kernel_before(int major, int minor, const rdna__series *series) {
  return major < series->linux_major || (major == series->linux_major && minor < series->linux_minor);
}

/* Which series of the cards that are there the kernel is too old for; NULL when none. */
static const rdna__series *find_too_new_series(const patient *p, int major, int minor) {
  for (int s = 0; s < rdna__gpu_series_count; s++) {
    const rdna__series *series = &rdna__gpu_series[s];
    for (int i = 0; i < p->gpu_count && kernel_before(major, minor, series); i++) {
      if (strncmp(p->gpus[i].arch, series->prefix, strlen(series->prefix)) == 0) return series;
    }
  }
  return NULL;
}

/* Lists the series that the kernel is too old for, with what they need; false when there is none. */
static bool list_newer_series(int major, int minor, char *list, size_t capacity) {
  list[0] = '\0';
  for (int s = 0; s < rdna__gpu_series_count; s++) {
    const rdna__series *series = &rdna__gpu_series[s];
    if (kernel_before(major, minor, series)) {
      append(list, capacity, "%s %d.%d", series->name, series->linux_major, series->linux_minor);
    }
  }
  return list[0] != '\0';
}

static void check_kernel_version(const patient *p, rdna__check *check) {
  char path[PATH_MAX], release[128], own_driver[128];
  below(p, path, "/proc/sys/kernel/osrelease");
  int major = 0, minor = 0;
  if (!read_line(path, release, sizeof release) || sscanf(release, "%d.%d", &major, &minor) != 2) {
    found(check, RDNA__CHECK_SKIP, "The kernel's version could not be read.");
    return;
  }
  below(p, path, "/sys/module/amdgpu/version"); /* only AMD's own packaged module has this file */
  if (read_line(path, own_driver, sizeof own_driver)) {
    found(check, RDNA__CHECK_OK, "Linux %s with AMD's own amdgpu %s.", release, own_driver);
    return;
  }
  char newer[256];
  const rdna__series *series = find_too_new_series(p, major, minor);
  if (series != NULL) {
    found(check, RDNA__CHECK_WARN, "Linux %s is older than %d.%d, from which on it drives the %s family (%s).", release,
          series->linux_major, series->linux_minor, series->name, series->prefix);
    advise(check, "Update the kernel to %d.%d or later, or install AMD's amdgpu-dkms.", series->linux_major,
           series->linux_minor);
  } else if (p->pci_cards > 0 && p->gpu_count == 0 && !p->wsl && list_newer_series(major, minor, newer, sizeof newer)) {
    found(check, RDNA__CHECK_WARN, "Linux %s shows no GPU for compute although there is an AMD card (%s).", release,
          p->pci_first);
    advise(check, "If the card is newer than the kernel, update it (needed: %s), or install AMD's amdgpu-dkms.", newer);
  } else {
    found(check, RDNA__CHECK_OK, "Linux %s.", release);
  }
}

static void check_wsl(const patient *p, rdna__check *check) {
  if (!p->wsl) {
    found(check, RDNA__CHECK_OK, "This is not WSL.");
    return;
  }
  const char *detection = environment(p, "HSA_ENABLE_DXG_DETECTION");
  bool enabled = detection != NULL && strcmp(detection, "1") == 0;
  found(check, RDNA__CHECK_WARN, "This is WSL (/dev/dxg is there)%s.",
        enabled ? " with HSA_ENABLE_DXG_DETECTION=1" : " and HSA_ENABLE_DXG_DETECTION is not 1");
  advise(check,
         "%sinstall a current Adrenalin driver in Windows and ROCm 7 or later with librocdxg here; RX 6000 cards are "
         "not offered in WSL.",
         enabled ? "If no card is found, " : "Set HSA_ENABLE_DXG_DETECTION=1; ");
}

/* ---- checks: device nodes --------------------------------------------------------------------------------- */

/* Looks a group up in etc/group below the root: its name, and whether |user| is listed as a member. */
static bool find_group(const patient *p, unsigned gid, char name[64], bool *member) {
  char path[PATH_MAX], line[4096];
  below(p, path, "/etc/group");
  FILE *file = fopen(path, "re");
  bool known = false;
  *member = false;
  snprintf(name, 64, "%u", gid);
  while (file != NULL && !known && fgets(line, sizeof line, file) != NULL) {
    char *rest = line; /* name:password:gid:member,member */
    char *group = strsep(&rest, ":"), *password = strsep(&rest, ":"), *id = strsep(&rest, ":");
    if (password == NULL || id == NULL || rest == NULL || strtoul(id, NULL, 10) != gid) continue;
    known = true;
    snprintf(name, 64, "%s", group);
    rest[strcspn(rest, "\n")] = '\0';
    for (char *one; (one = strsep(&rest, ",")) != NULL;) {
      *member = *member || (one[0] != '\0' && strcmp(one, p->options->user) == 0);
    }
  }
  if (file != NULL) fclose(file);
  return known;
}

static bool may_use(const rdna__doctor_options *options, const struct stat *node) {
  if (options->uid == 0) return true;
  if (options->uid == node->st_uid) return (node->st_mode & 0600) == 0600;
  for (int i = 0; i < options->group_count; i++) {
    if (options->groups[i] == node->st_gid) return (node->st_mode & 0060) == 0060;
  }
  return (node->st_mode & 0006) == 0006;
}

/* True when the user may read and write |path|; otherwise the check says why not. */
static bool node_is_usable(const patient *p, const char *path, const char *shown, rdna__check *check) {
  struct stat node;
  if (stat(path, &node) != 0) {
    found(check, RDNA__CHECK_FAIL, "%s cannot be looked at.", shown);
    advise(check, "Check the permissions of /dev.");
    return false;
  }
  if (may_use(p->options, &node)) return true;
  char group[64];
  bool member = false;
  const char *user = p->options->user[0] == '\0' ? "$USER" : p->options->user;
  bool known = find_group(p, node.st_gid, group, &member);
  found(check, RDNA__CHECK_FAIL, "%s belongs to group %s with mode %04o, and %s has no access.", shown, group,
        (unsigned)node.st_mode & 07777u, p->options->user[0] == '\0' ? "this user" : user);
  if ((node.st_mode & 0060) != 0060) {
    advise(check, "Give the group access: a udev rule with GROUP=\"render\", MODE=\"0660\" for %s.", shown);
  } else if (member) {
    advise(check, "%s is in group %s since after this login: log out and in again.", user, group);
  } else if (p->container) {
    advise(check, "Start the container with --group-add %u (group %s of the machine).", (unsigned)node.st_gid, group);
  } else if (!known) {
    advise(check, "Give group %s a name (sudo groupadd -g %s render), add %s to it, and log in again.", group, group,
           user);
  } else {
    advise(check, "Run sudo usermod -aG %s %s, then log out and in again.", group, user);
  }
  return false;
}

static void check_kfd(const patient *p, rdna__check *check) {
  char path[PATH_MAX];
  below(p, path, "/dev/kfd");
  if (access(path, F_OK) != 0) {
    if (p->wsl) {
      found(check, RDNA__CHECK_SKIP, "/dev/kfd is missing, as always in WSL.");
      return;
    }
    found(check, RDNA__CHECK_FAIL, "/dev/kfd is missing.");
    if (p->container) {
      advise(check, "Start the container with --device=/dev/kfd --device=/dev/dri.");
    } else if (p->amdgpu) {
      advise(check, "The kernel was built without CONFIG_HSA_AMD, or the card has no compute support: see dmesg.");
    } else {
      advise(check, "It comes with the amdgpu kernel driver: see the check of the kernel driver.");
    }
    return;
  }
  if (node_is_usable(p, path, "/dev/kfd", check)) found(check, RDNA__CHECK_OK, "/dev/kfd is there and may be used.");
}

static void check_render_nodes(const patient *p, rdna__check *check) {
  glob_t nodes;
  if (!glob_below(p, "/dev/dri/renderD*", &nodes)) {
    found(check, p->wsl ? RDNA__CHECK_SKIP : RDNA__CHECK_FAIL, "There is no /dev/dri/renderD*.");
    if (!p->wsl) {
      advise(check, p->container ? "Start the container with --device=/dev/dri."
                                 : "They come with the amdgpu kernel driver: see the check of the kernel driver.");
    }
    return;
  }
  bool usable = true;
  char list[256] = "";
  for (size_t i = 0; i < nodes.gl_pathc && usable; i++) {
    const char *shown = nodes.gl_pathv[i] + strlen(p->options->root);
    /* other vendors' cards have render nodes as well; those that the topology names are AMD's */
    bool ours = p->gpu_count == 0;
    for (int g = 0; g < p->gpu_count; g++) {
      ours = ours || p->gpus[g].render_minor < 0 || p->gpus[g].render_minor == atoi(shown + strlen("/dev/dri/renderD"));
    }
    if (!ours) continue;
    usable = node_is_usable(p, nodes.gl_pathv[i], shown, check);
    append(list, sizeof list, "%s", shown);
  }
  globfree(&nodes);
  if (usable && list[0] == '\0') {
    found(check, RDNA__CHECK_FAIL, "No /dev/dri/renderD* belongs to an AMD card.");
    advise(check, "%s", p->container ? "Start the container with --device=/dev/dri." : "See dmesg for amdgpu.");
  } else if (usable) {
    found(check, RDNA__CHECK_OK, "May be used: %s.", list);
  }
}

/* ---- checks: HIP ------------------------------------------------------------------------------------------ */

/* "libamdhip64.so.7" of /a/libamdhip64.so.7.2.60 */
static void soname_of(const char *path, char soname[64]) {
  const char *slash = strrchr(path, '/');
  const char *name = slash == NULL ? path : slash + 1;
  const char *number = strstr(name, ".so.");
  size_t length = strlen(name);
  if (number != NULL) length = (size_t)(number - name) + 4 + strcspn(number + 4, ".");
  snprintf(soname, 64, "%.*s", (int)length, name);
}

static void look_for_hip_file(const patient *p, rdna__check *check) {
  static const char *const places[] = {"/opt/rocm/lib/libamdhip64.so.*",        "/opt/rocm*/lib/libamdhip64.so.*",
                                       "/opt/rocm/core-*/lib/libamdhip64.so.*", "/usr/lib/*/libamdhip64.so.*",
                                       "/usr/lib64/libamdhip64.so.*",           "/usr/lib/libamdhip64.so.*"};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    glob_t files;
    if (!glob_below(p, places[i], &files)) continue;
    char soname[64];
    const char *file = files.gl_pathv[files.gl_pathc - 1] + strlen(p->options->root);
    soname_of(file, soname);
    found(check, RDNA__CHECK_OK, "AMD's HIP runtime is %s (soname %s).", file, soname);
    globfree(&files);
    return;
  }
  found(check, RDNA__CHECK_FAIL, "AMD's HIP runtime (libamdhip64.so) is not installed in the usual places.");
  advise(check, "Install it (Debian and Ubuntu: libamdhip64-5 or later; pip: rocm), or set RDNA_HIP_LIBRARY.");
}

static void check_hip(const patient *p, rdna__check *check) {
  const rdna_driver_info *hip = p->options->hip;
  if (hip == NULL) {
    look_for_hip_file(p, check);
    return;
  }
  char soname[64];
  soname_of(hip->library, soname);
  if (hip->status == RDNA_OK) {
    found(check, RDNA__CHECK_OK, "HIP %s from %s (soname %s) sees %d device%s.", hip->version, hip->library, soname,
          hip->device_count, hip->device_count == 1 ? "" : "s");
  } else if (hip->library[0] == '\0') {
    found(check, RDNA__CHECK_FAIL, "%s.", hip->message);
    advise(check,
           "Install AMD's HIP runtime (Debian and Ubuntu: libamdhip64-5 or later; pip: rocm), or set "
           "RDNA_HIP_LIBRARY to the file.");
  } else {
    found(check, RDNA__CHECK_FAIL, "HIP %s from %s (soname %s) has no device: %s.", hip->version, hip->library, soname,
          hip->message);
    advise(check, "Cure the failed checks above first; if there are none, this HIP is too old for the card.");
  }
}

/* Two copies of the runtime in one process share nothing and crash each other. */
static void check_one_runtime(const patient *p, rdna__check *check) {
  char path[PATH_MAX], line[PATH_MAX + 128], seen[MAX_RUNTIMES][512], list[512] = "";
  int count = 0;
  below(p, path, "/proc/self/maps");
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    found(check, RDNA__CHECK_SKIP, "/proc/self/maps could not be read.");
    return;
  }
  while (fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    char *name = strstr(line, "/libamdhip64.so"), *start = strchr(line, '/');
    if (name == NULL || strchr(name + 1, '/') != NULL) continue;
    bool known = false;
    for (int i = 0; i < count; i++) known = known || strncmp(seen[i], start, sizeof *seen - 1) == 0;
    if (known || count == MAX_RUNTIMES) continue;
    snprintf(seen[count++], sizeof *seen, "%.511s", start);
    append(list, sizeof list, "%.200s", start);
  }
  fclose(file);
  if (count > 1) {
    found(check, RDNA__CHECK_FAIL, "This process has %d HIP runtimes: %s.", count, list);
    advise(check, "Use one: import PyTorch before this library, or set RDNA_HIP_LIBRARY to the copy that PyTorch has.");
  } else {
    found(check, RDNA__CHECK_OK, count == 1 ? "This process has one HIP runtime: %s." : "No second HIP runtime%s.",
          list);
  }
}

/* ---- checks: cards ---------------------------------------------------------------------------------------- */

static void check_gpus(const patient *p, rdna__check *check) {
  if (p->gpu_count == 0) {
    if (p->wsl) {
      found(check, RDNA__CHECK_SKIP, "In WSL only HIP knows the cards.");
      return;
    }
    found(check, RDNA__CHECK_FAIL, "The kernel offers no AMD GPU for compute (%s).",
          p->pci_cards > 0 ? p->pci_first : "none is on the PCI bus");
    advise(check, p->pci_cards > 0 ? "See the kernel's version and log below, and dmesg for amdgpu and kfd."
                                   : "Check that the card is seated, powered and passed through to this machine.");
    return;
  }
  char list[512] = "", missing[128] = "";
  int covered = 0;
  for (int i = 0; i < p->gpu_count; i++) {
    const rdna__topology_gpu *gpu = &p->gpus[i];
    append(list, sizeof list, "%s with %d CUs%s", gpu->arch, gpu->compute_units, gpu->integrated ? ", integrated" : "");
    if (p->options->covers == NULL) continue;
    if (p->options->covers(p->options->covers_data, gpu->arch)) {
      covered++;
    } else {
      append(missing, sizeof missing, "%s", gpu->arch);
    }
  }
  if (missing[0] == '\0') {
    found(check, RDNA__CHECK_OK, "%s: %s.", p->options->covers == NULL ? "GPUs" : "GPUs, all with kernels", list);
    return;
  }
  found(check, covered > 0 ? RDNA__CHECK_WARN : RDNA__CHECK_FAIL, "GPUs: %s; no kernels for: %s.", list, missing);
  advise(check,
         "Install or build the kernel packs with this target (cmake -DRDNA_TARGETS=all), and report it if it is "
         "not among them.");
}

static void check_order(const patient *p, rdna__check *check) {
  static const char *const masks[] = {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"};
  for (int i = 0; i < 2; i++) {
    const char *mask = environment(p, masks[i]);
    if (mask == NULL) continue;
    if (mask[0] == '\0' || mask[0] == '-') {
      found(check, RDNA__CHECK_FAIL, "%s is '%s', which hides every card.", masks[i], mask);
      advise(check, "Unset %s.", masks[i]);
    } else {
      found(check, RDNA__CHECK_OK, "%s chooses the cards: '%.64s'.", masks[i], mask);
    }
    return;
  }
  int discrete = -1; /* the first; above 0 means that integrated ones come before it */
  for (int i = p->gpu_count - 1; i >= 0; i--) {
    if (!p->gpus[i].integrated) discrete = i;
  }
  if (p->gpu_count == 0) {
    found(check, RDNA__CHECK_SKIP, "There are no cards to put in order.");
  } else if (discrete > 0) {
    found(check, RDNA__CHECK_WARN, "The processor's own graphics (%s) come first for HIP, before the card (%s).",
          p->gpus[0].arch, p->gpus[discrete].arch);
    advise(check,
           "This library puts cards first by itself; for other programs set ROCR_VISIBLE_DEVICES=%d, or turn the "
           "processor's graphics off in the firmware.",
           discrete);
  } else {
    found(check, RDNA__CHECK_OK, "%s comes first.", p->gpus[0].arch);
  }
}

static double gib(unsigned long long bytes) { return (double)bytes / (1 << 30); }

static void check_memory(const patient *p, rdna__check *check) {
  char list[512] = "";
  for (int i = 0; i < p->gpu_count; i++) {
    append(list, sizeof list, "%s %.1f GiB", p->gpus[i].arch, gib(p->gpus[i].vram_bytes));
  }
  check->state = p->gpu_count > 0 ? RDNA__CHECK_OK : RDNA__CHECK_SKIP;
  glob_t cards = {0};
  if (!glob_below(p, "/sys/class/drm/card*/device", &cards)) cards.gl_pathc = 0;
  for (size_t i = 0; i < cards.gl_pathc; i++) {
    const char *folder = cards.gl_pathv[i];
    unsigned long long vram = read_number(folder, "mem_info_vram_total"),
                       gtt = read_number(folder, "mem_info_gtt_total");
    unsigned long long used = read_number(folder, "mem_info_vram_used");
    unsigned long long visible = read_number(folder, "mem_info_vis_vram_total");
    if (read_number(folder, "vendor") != PCI_VENDOR_AMD || vram == 0) continue;
    if (check->state == RDNA__CHECK_SKIP) check->state = RDNA__CHECK_OK;
    const char *card = folder + strlen(p->options->root) + strlen("/sys/class/drm/");
    append(list, sizeof list, "%.*s has %.1f GiB, %.1f in use, and may borrow %.1f GiB from the host",
           (int)strcspn(card, "/"), card, gib(vram), gib(used), gib(gtt));
    if (gtt > 0 && vram < 2ull << 30) {
      check->state = RDNA__CHECK_WARN;
      advise(check,
             "A card with %.1f GiB of its own (an integrated one) lives on host memory: raise the UMA frame "
             "buffer in the firmware, or choose small models.",
             gib(vram));
    } else if (used > vram / 2 && check->state != RDNA__CHECK_WARN) {
      check->state = RDNA__CHECK_WARN;
      advise(check, "Other programs hold more than half of the card's memory: close them, or choose a smaller model.");
    } else if (visible > 0 && visible < vram && check->state != RDNA__CHECK_WARN) {
      check->state = RDNA__CHECK_WARN;
      advise(check,
             "The host sees only %.2f GiB of the card: turn Resizable BAR (Smart Access Memory) on in the "
             "firmware for faster loading.",
             gib(visible));
    }
  }
  if (cards.gl_pathc > 0) globfree(&cards);
  snprintf(check->found, sizeof check->found, "%s%s.",
           list[0] == '\0' ? "No card's memory is known" : "Memory: ", list);
}

static void check_override(const patient *p, rdna__check *check) {
  const char *value = environment(p, "HSA_OVERRIDE_GFX_VERSION");
  if (value == NULL) {
    found(check, RDNA__CHECK_OK, "HSA_OVERRIDE_GFX_VERSION is not set.");
    return;
  }
  found(check, RDNA__CHECK_WARN, "HSA_OVERRIDE_GFX_VERSION=%.32s makes HIP take the card for another.", value);
  advise(check,
         "Unset it: this library has kernels for the real target, and the wrong one gives wrong results or hangs.");
}

/* ---- checks: log ------------------------------------------------------------------------------------------ */

typedef struct symptom {
  const char *first, *second; /* both in one line that also says amdgpu */
  rdna__check_state state;
  const char *advice;
} symptom;

/* The gravest first. Source: messages of the Linux amdgpu driver. */
static const symptom symptoms[] = {
    {"firmware", "failed", RDNA__CHECK_FAIL,
     "Install the firmware (Debian: firmware-amd-graphics; else linux-firmware), "
     "and restart."},
    {"MES", "failed to respond", RDNA__CHECK_WARN,
     "The card's scheduler stopped answering: update kernel and firmware; "
     "restart to be sure that it is healthy again."},
    {"ring ", "timeout", RDNA__CHECK_WARN,
     "A job on the card did not end and was thrown away: update kernel and "
     "firmware; undo overclocking; report it with the kernel's name if it was ours."},
    {"GPU reset", "", RDNA__CHECK_WARN,
     "The card was reset: restart programs that used it, and look in dmesg for what "
     "came before."},
    {"page fault", "", RDNA__CHECK_WARN,
     "A program touched memory that it does not own on the card; if it was ours, "
     "please report it."},
};

static void check_log(const patient *p, rdna__check *check) {
  static const char *const logs[] = {"/var/log/dmesg", "/var/log/kern.log", "/var/log/messages"};
  char path[PATH_MAX], line[1024], last[300] = "";
  FILE *file = NULL;
  size_t log = 0;
  for (; log < sizeof logs / sizeof *logs && file == NULL; log++) {
    below(p, path, logs[log]);
    file = fopen(path, "re");
  }
  if (file == NULL) {
    found(check, RDNA__CHECK_SKIP, "No kernel log can be read.");
    advise(check, "If the card hangs, look at sudo dmesg | grep -i amdgpu.");
    return;
  }
  if (fseek(file, -(long)LOG_TAIL, SEEK_END) != 0) rewind(file);
  int count = 0;
  const symptom *worst = NULL;
  while (fgets(line, sizeof line, file) != NULL) {
    if (strstr(line, "amdgpu") == NULL) continue;
    for (size_t i = 0; i < sizeof symptoms / sizeof *symptoms; i++) {
      if (strstr(line, symptoms[i].first) == NULL || strstr(line, symptoms[i].second) == NULL) continue;
      count++;
      if (worst == NULL || &symptoms[i] < worst) {
        worst = &symptoms[i];
        line[strcspn(line, "\n")] = '\0';
        snprintf(last, sizeof last, "%.299s", line);
      }
      break;
    }
  }
  fclose(file);
  if (worst == NULL) {
    found(check, RDNA__CHECK_OK, "%s shows no trouble with amdgpu.", logs[log - 1]);
    return;
  }
  found(check, worst->state, "%s has %d line%s of trouble, such as: %s", logs[log - 1], count, count == 1 ? "" : "s",
        last);
  advise(check, "%s", worst->advice);
}

/* ---- all -------------------------------------------------------------------------------------------------- */

static const struct {
  const char *id, *title;
  void (*run)(const patient *p, rdna__check *check);
} all_checks[RDNA__DOCTOR_CHECKS] = {
    {"kernel-driver", "kernel driver", check_kernel_driver},
    {"kernel-version", "kernel version", check_kernel_version},
    {"wsl", "Windows subsystem", check_wsl},
    {"kfd", "compute device node", check_kfd},
    {"render", "render device nodes", check_render_nodes},
    {"hip", "HIP runtime", check_hip},
    {"one-runtime", "one HIP runtime", check_one_runtime},
    {"gpus", "GPUs and their targets", check_gpus},
    {"order", "order of cards", check_order},
    {"memory", "memory", check_memory},
    {"override", "target override", check_override},
    {"log", "kernel log", check_log},
};

void rdna__doctor_options_init(rdna__doctor_options *out_options) {
  *out_options = (rdna__doctor_options){.root = "", .user = "", .uid = geteuid()};
  gid_t groups[RDNA__DOCTOR_MAX_GROUPS - 1];
  int count = getgroups(RDNA__DOCTOR_MAX_GROUPS - 1, groups);
  for (int i = 0; i < count; i++) out_options->groups[i] = groups[i];
  out_options->group_count = count < 0 ? 0 : count;
  out_options->groups[out_options->group_count++] = getegid();
  const struct passwd *entry = getpwuid(geteuid());
  if (entry != NULL) out_options->user = entry->pw_name;
}

void rdna__doctor_run(const rdna__doctor_options *options, rdna__check out_checks[RDNA__DOCTOR_CHECKS]) {
  patient p;
  examine(&p, options);
  for (int i = 0; i < RDNA__DOCTOR_CHECKS; i++) {
    out_checks[i] = (rdna__check){.id = all_checks[i].id, .title = all_checks[i].title};
    all_checks[i].run(&p, &out_checks[i]);
  }
}

const char *rdna__check_state_name(rdna__check_state state) {
  static const char *const names[] = {"ok", "warn", "fail", "skip"};
  return (unsigned)state < sizeof names / sizeof *names ? names[state] : "unknown";
}
