

#include "device/topology.h"
#include "base/testing.h"
#include "device/testing_root.h"

static int make_root(void **state) { return fake_root_make(); }
static int drop_root(void **state) { return fake_root_remove(""); }

static void nothing_is_no_gpu(void **state) {
  rdna__topology_gpu gpu;
  assert_int_equal(rdna__topology_read(fake_root, &gpu, 1), 0);
  assert_int_equal(rdna__topology_read("/nowhere", &gpu, 1), 0);
}

static void gpus_are_read(void **state) {
  rdna__topology_gpu gpus[4] = {0};
  fake_root_cpu_node(0);
  fake_root_gpu_node(1, 110000, 96, 3, 128, 25753026560);
  fake_root_gpu_node(2, 100306, 2, 0x7b, 129, 536870912);
  fake_root_gpu_node(3, 90010, 104, 0xc1, 130, 68702699520);
  fake_root_gpu_node(4, 90402, 304, 0xc2, 131, 205822885888);
  assert_int_equal(rdna__topology_read(fake_root, gpus, 4), 4);
  assert_string_equal(gpus[0].arch, "gfx1100");
  assert_int_equal(gpus[0].node, 1);
  assert_int_equal(gpus[0].compute_units, 96);
  assert_false(gpus[0].integrated);
  assert_int_equal(gpus[0].device_id, 0x744c);
  assert_int_equal(gpus[0].pci_domain, 0);
  assert_int_equal(gpus[0].pci_bus, 3);
  assert_int_equal(gpus[0].pci_device, 0);
  assert_int_equal(gpus[0].render_minor, 128);
  assert_true(gpus[0].vram_bytes == 25753026560);
  assert_string_equal(gpus[1].arch, "gfx1036");
  assert_true(gpus[1].integrated);
  assert_int_equal(gpus[1].pci_bus, 0x7b);
  assert_string_equal(gpus[2].arch, "gfx90a");
  assert_int_equal(gpus[2].pci_bus, 0xc1);
  assert_string_equal(gpus[3].arch, "gfx942");
}

static void more_gpus_than_room(void **state) {
  rdna__topology_gpu gpus[2] = {[1] = {.node = 77}};
  fake_root_gpu_node(0, 110000, 96, 3, 128, 1);
  fake_root_gpu_node(1, 120001, 64, 4, 129, 1);
  assert_int_equal(rdna__topology_read(fake_root, gpus, 1), 2);
  assert_int_equal(gpus[1].node, 77);
}

static void odd_files_do_no_harm(void **state) {
  rdna__topology_gpu gpus[3] = {0};
  fake_root_write("/sys/class/kfd/kfd/topology/nodes/0/properties", "%s", "");
  fake_root_write("/sys/class/kfd/kfd/topology/nodes/1/properties", "simd_count\nsimd_count x\n\n%0400d\n", 1);
  fake_root_write("/sys/class/kfd/kfd/topology/nodes/2/properties",
                  "simd_count 18446744073709551615\ngfx_target_version 18446744073709551615\n");
  int count = rdna__topology_read(fake_root, gpus, 3);
  assert_int_equal(count, 1);
  assert_int_equal(gpus[0].compute_units, 0); /* no simd_per_cu */
  assert_int_equal(gpus[0].render_minor, -1);
}

static void an_apu_of_old_is_integrated(void **state) {
  rdna__topology_gpu gpu = {0};
  fake_root_write("/sys/class/kfd/kfd/topology/nodes/0/properties",
                  "cpu_cores_count 8\nsimd_count 44\nsimd_per_cu 4\ngfx_target_version 90000\nlocation_id 2200\n");
  assert_int_equal(rdna__topology_read(fake_root, &gpu, 1), 1);
  assert_true(gpu.integrated);
  assert_int_equal(gpu.compute_units, 11);
  assert_int_equal(gpu.pci_bus, 8);
  assert_int_equal(gpu.pci_device, 19);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(nothing_is_no_gpu, make_root, drop_root),
      cmocka_unit_test_setup_teardown(gpus_are_read, make_root, drop_root),
      cmocka_unit_test_setup_teardown(more_gpus_than_room, make_root, drop_root),
      cmocka_unit_test_setup_teardown(odd_files_do_no_harm, make_root, drop_root),
      cmocka_unit_test_setup_teardown(an_apu_of_old_is_integrated, make_root, drop_root),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
