

#include "device/doctor.h"
#include "base/testing.h"
#include "device/testing_root.h"

#define MAPS "/proc/self/maps"
#define DMESG "/var/log/dmesg"

static rdna__doctor_options options;
static rdna__check checks[RDNA__DOCTOR_CHECKS];
static const char *variable_name, *variable_value; /* the one variable that is set */
static const char *uncovered;

static const char *read_variable(void *data, const char *name) {
  return variable_name != NULL && strcmp(name, variable_name) == 0 ? variable_value : NULL;
}

static bool covers(void *data, const char *arch) { return uncovered == NULL || strcmp(arch, uncovered) != 0; }

/* A workstation with one RX 7900 XTX, in order. */
static int make_healthy_machine(void **state) {
  if (fake_root_make() != 0) return 1;
  variable_name = uncovered = NULL;
  fake_root_write("/proc/sys/kernel/osrelease", "6.12.5-amd64\n");
  fake_root_write("/sys/module/amdgpu/initstate", "live\n");
  fake_root_write("/dev/kfd", "%s", "");
  fake_root_mode("/dev/kfd", 0660);
  fake_root_write("/dev/dri/renderD128", "%s", "");
  fake_root_mode("/dev/dri/renderD128", 0660);
  fake_root_write("/etc/group", "root:x:100000:\nrender:x:%u:bob,alicette\n", (unsigned)getegid());
  fake_root_cpu_node(0);
  fake_root_gpu_node(1, 110000, 96, 3, 128, 25753026560);
  fake_root_write("/sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n");
  fake_root_write("/sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n");
  fake_root_write("/sys/bus/pci/devices/0000:02:00.0/vendor", "0x1002\n"); /* the card's own bridge */
  fake_root_write("/sys/bus/pci/devices/0000:02:00.0/class", "0x060400\n");
  fake_root_write("/sys/bus/pci/devices/0000:03:00.0/vendor", "0x1002\n");
  fake_root_write("/sys/bus/pci/devices/0000:03:00.0/class", "0x030000\n");
  fake_root_write("/sys/bus/pci/devices/0000:03:00.0/device", "0x744c\n");
  fake_root_write("/sys/class/drm/card1/device/vendor", "0x1002\n");
  fake_root_write("/sys/class/drm/card1/device/mem_info_vram_total", "25753026560\n");
  fake_root_write("/sys/class/drm/card1/device/mem_info_vis_vram_total", "25753026560\n");
  fake_root_write("/sys/class/drm/card1/device/mem_info_vram_used", "1073741824\n");
  fake_root_write("/sys/class/drm/card1/device/mem_info_gtt_total", "33554432000\n");
  fake_root_write("/usr/lib/x86_64-linux-gnu/libamdhip64.so.6.4.43484", "%s", "");
  fake_root_write(MAPS, "7f00-7f01 r-xp 00000000 08:01 1 /usr/lib/x86_64-linux-gnu/libc.so.6\n");
  fake_root_write(DMESG, "[    5.1] amdgpu 0000:03:00.0: amdgpu: VRAM: 24560M\n[ 6.0] usb ring timeout\n");
  options = (rdna__doctor_options){.root = fake_root,
                                   .user = "alice",
                                   .uid = getuid() + 12345,
                                   .groups = {4, getegid()},
                                   .group_count = 2,
                                   .covers = covers,
                                   .environment = read_variable};
  return 0;
}

static int drop_machine(void **state) { return fake_root_remove(""); }

static const rdna__check *check_named(const char *id) {
  for (int i = 0; i < RDNA__DOCTOR_CHECKS; i++) {
    if (strcmp(checks[i].id, id) == 0) return &checks[i];
  }
  fail_msg("there is no check '%s'", id);
  return NULL;
}

/* Runs the doctor and expects |id| to have |state|, |found| in what it found and |advice| in its advice (NULL: no
 * advice at all). */
static void expect(const char *id, rdna__check_state state, const char *found, const char *advice) {
  rdna__doctor_run(&options, checks);
  const rdna__check *check = check_named(id);
  if (check->state != state || strstr(check->found, found) == NULL ||
      (advice == NULL ? check->advice[0] != '\0' : strstr(check->advice, advice) == NULL)) {
    fail_msg("%s is %s: '%s' Advice: '%s'", id, rdna__check_state_name(check->state), check->found, check->advice);
  }
}

static void a_healthy_machine_is_healthy(void **state) {
  rdna__doctor_run(&options, checks);
  for (int i = 0; i < RDNA__DOCTOR_CHECKS; i++) {
    if (checks[i].state != RDNA__CHECK_OK || checks[i].advice[0] != '\0' || checks[i].title[0] == '\0') {
      fail_msg("%s is %s: %s", checks[i].id, rdna__check_state_name(checks[i].state), checks[i].found);
    }
    for (int j = 0; j < i; j++) assert_string_not_equal(checks[i].id, checks[j].id);
  }
  expect("gpus", RDNA__CHECK_OK, "all with kernels: gfx1100 with 96 CUs", NULL);
  expect("memory", RDNA__CHECK_OK, "card1 has 24.0 GiB, 1.0 in use, and may borrow 31.2 GiB from the host", NULL);
  expect("hip", RDNA__CHECK_OK, "/usr/lib/x86_64-linux-gnu/libamdhip64.so.6.4.43484 (soname libamdhip64.so.6)", NULL);
  expect("render", RDNA__CHECK_OK, "/dev/dri/renderD128", NULL);
  options.covers = NULL;
  expect("gpus", RDNA__CHECK_OK, "GPUs: gfx1100 with 96 CUs", NULL);
}

static void an_empty_machine_has_no_card(void **state) {
  options.root = "/nowhere";
  expect("kernel-driver", RDNA__CHECK_FAIL, "no AMD card on the PCI bus", "--driver host");
  expect("kernel-version", RDNA__CHECK_SKIP, "could not be read", NULL);
  expect("kfd", RDNA__CHECK_FAIL, "/dev/kfd is missing", "amdgpu kernel driver");
  expect("render", RDNA__CHECK_FAIL, "no /dev/dri/renderD*", "amdgpu kernel driver");
  expect("hip", RDNA__CHECK_FAIL, "not installed", "RDNA_HIP_LIBRARY");
  expect("one-runtime", RDNA__CHECK_SKIP, "could not be read", NULL);
  expect("gpus", RDNA__CHECK_FAIL, "none is on the PCI bus", "seated");
  expect("order", RDNA__CHECK_SKIP, "no cards", NULL);
  expect("memory", RDNA__CHECK_SKIP, "No card's memory is known", NULL);
  expect("log", RDNA__CHECK_SKIP, "No kernel log", "sudo dmesg");
}

static void the_kernel_driver_is_not_loaded(void **state) {
  fake_root_remove("/sys/module/amdgpu");
  expect("kernel-driver", RDNA__CHECK_FAIL, "(0000:03:00.0, device 0x744c)", "sudo modprobe amdgpu");
  fake_root_write("/.dockerenv", "%s", "");
  expect("kernel-driver", RDNA__CHECK_FAIL, "around this container", "on the machine itself");
  fake_root_write("/proc/modules", "amdgpu_other 1 0 - Live 0x0\n");
  expect("kernel-driver", RDNA__CHECK_FAIL, "around this container", "on the machine itself");
  fake_root_write("/proc/modules", "snd 16384 0 - Live 0x0\namdgpu 19652608 5 - Live 0x0\n");
  expect("kernel-driver", RDNA__CHECK_OK, "is loaded", NULL);
}

static void the_kernel_is_too_old(void **state) {
  fake_root_write("/proc/sys/kernel/osrelease", "5.15.0-91-generic\n");
  expect("kernel-version", RDNA__CHECK_WARN, "Linux 5.15.0-91-generic is older than 6.1", "Update the kernel to 6.1");
  fake_root_write("/proc/sys/kernel/osrelease", "6.1.0-30-amd64\n");
  expect("kernel-version", RDNA__CHECK_OK, "Linux 6.1.0-30-amd64.", NULL);
  fake_root_gpu_node(1, 120001, 64, 3, 128, 17095983104);
  expect("kernel-version", RDNA__CHECK_WARN, "older than 6.12", "amdgpu-dkms");
  fake_root_write("/sys/module/amdgpu/version", "6.12.12\n");
  expect("kernel-version", RDNA__CHECK_OK, "AMD's own amdgpu 6.12.12", NULL);
}

static void the_kernel_does_not_know_the_card(void **state) {
  fake_root_remove("/sys/class/kfd");
  fake_root_write("/proc/sys/kernel/osrelease", "6.1.0-30-amd64\n");
  expect("kernel-version", RDNA__CHECK_WARN, "shows no GPU for compute", "RX 9000 6.12");
  expect("gpus", RDNA__CHECK_FAIL, "(0000:03:00.0, device 0x744c)", "dmesg");
  expect("order", RDNA__CHECK_SKIP, "no cards", NULL);
  expect("memory", RDNA__CHECK_OK, "card1 has 24.0 GiB", NULL);
  fake_root_write("/proc/sys/kernel/osrelease", "6.13.0\n");
  expect("kernel-version", RDNA__CHECK_OK, "Linux 6.13.0.", NULL);
}

static void this_is_wsl(void **state) {
  fake_root_remove("/sys");
  fake_root_remove("/dev/kfd");
  fake_root_remove("/dev/dri");
  fake_root_write("/dev/dxg", "%s", "");
  expect("wsl", RDNA__CHECK_WARN, "HSA_ENABLE_DXG_DETECTION is not 1", "Set HSA_ENABLE_DXG_DETECTION=1");
  expect("kernel-driver", RDNA__CHECK_SKIP, "Windows drives the card", NULL);
  expect("kfd", RDNA__CHECK_SKIP, "as always in WSL", NULL);
  expect("render", RDNA__CHECK_SKIP, "no /dev/dri", NULL);
  expect("gpus", RDNA__CHECK_SKIP, "only HIP knows", NULL);
  variable_name = "HSA_ENABLE_DXG_DETECTION";
  variable_value = "1";
  expect("wsl", RDNA__CHECK_WARN, "with HSA_ENABLE_DXG_DETECTION=1", "Adrenalin");
}

static void the_compute_node_is_missing(void **state) {
  fake_root_remove("/dev/kfd");
  expect("kfd", RDNA__CHECK_FAIL, "/dev/kfd is missing", "CONFIG_HSA_AMD");
  fake_root_write("/run/.containerenv", "%s", "");
  expect("kfd", RDNA__CHECK_FAIL, "/dev/kfd is missing", "--device=/dev/kfd --device=/dev/dri");
}

static void the_user_is_not_in_the_group(void **state) {
  options.group_count = 1;
  expect("kfd", RDNA__CHECK_FAIL, "/dev/kfd belongs to group render with mode 0660, and alice has no access",
         "sudo usermod -aG render alice");
  expect("render", RDNA__CHECK_FAIL, "/dev/dri/renderD128 belongs to group render", "sudo usermod -aG render alice");
  options.user = "";
  expect("kfd", RDNA__CHECK_FAIL, "this user has no access", "usermod -aG render $USER");
  options.user = "bob"; /* listed already, but this login is older */
  expect("kfd", RDNA__CHECK_FAIL, "bob has no access", "log out and in again");
  expect("kfd", RDNA__CHECK_FAIL, "bob has no access", "since after this login");
  options.uid = 0;
  fake_root_mode("/dev/kfd", 0);
  expect("kfd", RDNA__CHECK_OK, "may be used", NULL);
}

static void the_group_has_no_name(void **state) {
  char number[32];
  options.group_count = 0;
  fake_root_write("/etc/group", "broken line\nroot:x:100000:\n");
  snprintf(number, sizeof number, "groupadd -g %u render", (unsigned)getegid());
  expect("kfd", RDNA__CHECK_FAIL, "alice has no access", number);
  fake_root_write("/.dockerenv", "%s", "");
  snprintf(number, sizeof number, "--group-add %u", (unsigned)getegid());
  expect("kfd", RDNA__CHECK_FAIL, "alice has no access", number);
}

static void modes_decide_access(void **state) {
  fake_root_mode("/dev/kfd", 0600);
  expect("kfd", RDNA__CHECK_FAIL, "mode 0600", "udev rule");
  options.uid = getuid(); /* the owner, and root in a container: allowed */
  expect("kfd", RDNA__CHECK_OK, "may be used", NULL);
  options.uid = getuid() + 12345;
  options.group_count = 0;
  fake_root_mode("/dev/kfd", 0666);
  expect("kfd", RDNA__CHECK_OK, "may be used", NULL);
}

static void render_nodes_of_other_vendors_do_not_count(void **state) {
  fake_root_write("/dev/dri/renderD129", "%s", ""); /* another vendor's, closed */
  fake_root_mode("/dev/dri/renderD129", 0600);
  expect("render", RDNA__CHECK_OK, "May be used: /dev/dri/renderD128.", NULL);
  fake_root_remove("/dev/dri/renderD128");
  expect("render", RDNA__CHECK_FAIL, "belongs to an AMD card", "dmesg");
  fake_root_remove("/dev/dri/renderD129");
  expect("render", RDNA__CHECK_FAIL, "no /dev/dri/renderD*", "kernel driver");
}

static void hip_is_missing_or_has_no_device(void **state) {
  fake_root_remove("/usr/lib/x86_64-linux-gnu/libamdhip64.so.6.4.43484");
  expect("hip", RDNA__CHECK_FAIL, "not installed", "libamdhip64");
  fake_root_write("/opt/rocm/lib/libamdhip64.so.7", "%s", "");
  expect("hip", RDNA__CHECK_OK, "/opt/rocm/lib/libamdhip64.so.7 (soname libamdhip64.so.7)", NULL);
  rdna_driver_info hip = {.name = "hip",
                          .status = RDNA_OK,
                          .message = "",
                          .library = "/opt/rocm/lib/libamdhip64.so.7.2.60",
                          .version = "7.2.60",
                          .device_count = 1};
  options.hip = &hip;
  expect("hip", RDNA__CHECK_OK,
         "HIP 7.2.60 from /opt/rocm/lib/libamdhip64.so.7.2.60 (soname libamdhip64.so.7) sees 1 device.", NULL);
  hip.status = RDNA_UNAVAILABLE;
  hip.message = "it finds none";
  expect("hip", RDNA__CHECK_FAIL, "has no device: it finds none", "checks above");
  hip.library = "";
  expect("hip", RDNA__CHECK_FAIL, "it finds none", "RDNA_HIP_LIBRARY");
}

static void two_runtimes_are_mapped(void **state) {
  fake_root_write(MAPS,
                  "7f00-7f01 r--p 0 08:01 1 /opt/rocm/lib/libamdhip64.so.7.2.60\n"
                  "7f01-7f02 r-xp 0 08:01 1 /opt/rocm/lib/libamdhip64.so.7.2.60\n"
                  "7f02-7f03 r-xp 0 08:01 1 /opt/libamdhip64.so.folder/other.so\n");
  expect("one-runtime", RDNA__CHECK_OK, "one HIP runtime: /opt/rocm/lib/libamdhip64.so.7.2.60.", NULL);
  fake_root_write(MAPS,
                  "7f00-7f01 r--p 0 08:01 1 /opt/rocm/lib/libamdhip64.so.7.2.60\n"
                  "7f01-7f02 r-xp 0 08:01 1 /home/a b/torch/lib/libamdhip64.so\n");
  expect("one-runtime", RDNA__CHECK_FAIL,
         "2 HIP runtimes: /opt/rocm/lib/libamdhip64.so.7.2.60; /home/a b/torch/lib/libamdhip64.so.", "PyTorch before");
}

static void a_target_has_no_kernels(void **state) {
  uncovered = "gfx1100";
  expect("gpus", RDNA__CHECK_FAIL, "no kernels for: gfx1100", "RDNA_TARGETS=all");
  fake_root_gpu_node(2, 120001, 64, 4, 128, 17095983104);
  expect("gpus", RDNA__CHECK_WARN, "gfx1100 with 96 CUs; gfx1201 with 64 CUs; no kernels for: gfx1100", "report");
}

static void the_integrated_card_is_first(void **state) {
  fake_root_gpu_node(1, 100306, 2, 0x7b, 128, 536870912);
  expect("order", RDNA__CHECK_OK, "gfx1036 comes first", NULL); /* the only one */
  fake_root_gpu_node(2, 100306, 2, 0x7c, 128, 536870912);
  fake_root_gpu_node(3, 110000, 96, 3, 128, 25753026560);
  expect("order", RDNA__CHECK_WARN, "(gfx1036) come first for HIP, before the card (gfx1100)",
         "ROCR_VISIBLE_DEVICES=2,");
  variable_name = "HIP_VISIBLE_DEVICES";
  variable_value = "2";
  expect("order", RDNA__CHECK_OK, "HIP_VISIBLE_DEVICES chooses the cards: '2'", NULL);
  variable_name = "ROCR_VISIBLE_DEVICES";
  variable_value = "-1";
  expect("order", RDNA__CHECK_FAIL, "hides every card", "Unset ROCR_VISIBLE_DEVICES");
}

static void of_several_cards_the_first_is_first(void **state) {
  fake_root_gpu_node(2, 120001, 64, 4, 129, 17095983104);
  expect("order", RDNA__CHECK_OK, "gfx1100 comes first", NULL);
  fake_root_gpu_node(3, 100306, 2, 0x7b, 130, 536870912);
  expect("order", RDNA__CHECK_OK, "gfx1100 comes first", NULL);
}

static void memory_is_short(void **state) {
  fake_root_write("/sys/class/drm/card1/device/mem_info_vis_vram_total", "268435456\n");
  expect("memory", RDNA__CHECK_WARN, "24.0 GiB", "sees only 0.25 GiB of the card: turn Resizable BAR");
  fake_root_write("/sys/class/drm/card1/device/mem_info_vram_used", "20000000000\n");
  expect("memory", RDNA__CHECK_WARN, "18.6 in use", "Other programs");
  fake_root_write("/sys/class/drm/card1/device/mem_info_vram_total", "536870912\n");
  expect("memory", RDNA__CHECK_WARN, "card1 has 0.5 GiB", "UMA frame buffer");
  fake_root_write("/sys/class/drm/card1/device/vendor", "0x8086\n");
  expect("memory", RDNA__CHECK_OK, "Memory: gfx1100 24.0 GiB.", NULL);
}

static void the_target_is_overridden(void **state) {
  variable_name = "HSA_OVERRIDE_GFX_VERSION";
  variable_value = "10.3.0";
  expect("override", RDNA__CHECK_WARN, "HSA_OVERRIDE_GFX_VERSION=10.3.0", "Unset it");
}

static void the_kernel_log_tells(void **state) {
  fake_root_write(DMESG, "[9.1] amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8)\n");
  expect("log", RDNA__CHECK_WARN, "1 line of trouble, such as: [9.1] amdgpu", "memory that it does not own");
  fake_root_write(DMESG,
                  "[8.0] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!\n"
                  "[9.1] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, signaled seq=12\n");
  expect("log", RDNA__CHECK_WARN, "2 lines of trouble, such as: [9.1]", "thrown away");
  fake_root_write(DMESG, "[9.1] amdgpu 0000:03:00.0: amdgpu: MES failed to respond to msg=MISC (WAIT_REG_MEM)\n");
  expect("log", RDNA__CHECK_WARN, "MES failed", "scheduler");
  fake_root_write(DMESG, "[3.1] amdgpu 0000:03:00.0: Direct firmware load for amdgpu/gc_12_0_1_pfp.bin failed -2\n");
  expect("log", RDNA__CHECK_FAIL, "gc_12_0_1_pfp.bin", "firmware-amd-graphics");
  fake_root_remove(DMESG);
  fake_root_write("/var/log/kern.log", "nothing\n");
  expect("log", RDNA__CHECK_OK, "/var/log/kern.log shows no trouble", NULL);
}

static void a_long_log_is_read_from_its_end(void **state) {
  char path[512];
  fake_root_path(path, DMESG);
  FILE *file = fopen(path, "w");
  fputs("[1.0] amdgpu: GPU reset begin!\n", file);
  for (int i = 0; i < 40000; i++) fprintf(file, "[2.0] nothing of interest in line %d of many\n", i);
  fclose(file);
  expect("log", RDNA__CHECK_OK, "no trouble", NULL);
}

static void this_machine_can_be_examined(void **state) {
  rdna__doctor_options_init(&options);
  assert_int_equal(options.uid, geteuid());
  assert_true(options.group_count >= 1);
  rdna__doctor_run(&options, checks);
  for (int i = 0; i < RDNA__DOCTOR_CHECKS; i++) assert_string_not_equal(checks[i].found, "");
}

#define ON_A_HEALTHY_MACHINE(test) cmocka_unit_test_setup_teardown(test, make_healthy_machine, drop_machine)

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_A_HEALTHY_MACHINE(a_healthy_machine_is_healthy),
      ON_A_HEALTHY_MACHINE(an_empty_machine_has_no_card),
      ON_A_HEALTHY_MACHINE(the_kernel_driver_is_not_loaded),
      ON_A_HEALTHY_MACHINE(the_kernel_is_too_old),
      ON_A_HEALTHY_MACHINE(the_kernel_does_not_know_the_card),
      ON_A_HEALTHY_MACHINE(this_is_wsl),
      ON_A_HEALTHY_MACHINE(the_compute_node_is_missing),
      ON_A_HEALTHY_MACHINE(the_user_is_not_in_the_group),
      ON_A_HEALTHY_MACHINE(the_group_has_no_name),
      ON_A_HEALTHY_MACHINE(modes_decide_access),
      ON_A_HEALTHY_MACHINE(render_nodes_of_other_vendors_do_not_count),
      ON_A_HEALTHY_MACHINE(hip_is_missing_or_has_no_device),
      ON_A_HEALTHY_MACHINE(two_runtimes_are_mapped),
      ON_A_HEALTHY_MACHINE(a_target_has_no_kernels),
      ON_A_HEALTHY_MACHINE(the_integrated_card_is_first),
      ON_A_HEALTHY_MACHINE(of_several_cards_the_first_is_first),
      ON_A_HEALTHY_MACHINE(memory_is_short),
      ON_A_HEALTHY_MACHINE(the_target_is_overridden),
      ON_A_HEALTHY_MACHINE(the_kernel_log_tells),
      ON_A_HEALTHY_MACHINE(a_long_log_is_read_from_its_end),
      ON_A_HEALTHY_MACHINE(this_machine_can_be_examined),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
