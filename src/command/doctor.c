/* rdna doctor: each check with its result and what to do. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command/command.h"
#include "device/doctor.h"
#include "kernel/loader.h"

typedef struct coverage {
  const char *arch;
  bool covered;
} coverage;

static rdna_status visit_pack(void *context, const char *path, const char *target) {
  coverage *c = context;
  if (rdna__target_fitness(target, c->arch) > 0) c->covered = true;
  return RDNA_OK;
}

static bool has_pack(void *data, const char *arch) {
  coverage c = {arch, false};
  return rdna__loader_visit(visit_pack, &c) == RDNA_OK && c.covered;
}

static const char *colour(rdna__check_state state) {
  static const char *const colours[] = {"\033[32m", "\033[33m", "\033[31m", "\033[2m"};
  return isatty(STDOUT_FILENO) ? colours[state] : "";
}

static void print_check(const rdna__check *check) {
  printf("%s%-4s%s  %-24s %s\n", colour(check->state), rdna__check_state_name(check->state),
         isatty(STDOUT_FILENO) ? "\033[0m" : "", check->title, check->found);
  if (check->advice[0]) printf("%32s-> %s\n", "", check->advice);
}

int command_doctor(int argc, char **argv) {
  const char *root = "";
  bool json = false;
  const option_row options[] = {
      {"--root", OPTION_TEXT, &root, "DIR", "look at the system below DIR instead of this one", 0, 0},
      {"--json", OPTION_FLAG, &json, NULL, "print JSON", 0, 0},
  };
  const command_line line = {"rdna doctor",
                             "Checks what keeps an AMD card from computing. Exit status 1 when something does.",
                             "",
                             0,
                             0,
                             options,
                             2};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;

  rdna__doctor_options doctor;
  rdna__doctor_options_init(&doctor);
  doctor.covers = has_pack;
  rdna_driver_info hip;
  if (root[0])
    doctor.root = root;
  else
    for (int i = 0; i < rdna_driver_count(); i++)
      if (rdna_driver_get_info(i, &hip) == RDNA_OK && strcmp(hip.name, "hip") == 0) {
        doctor.hip = &hip;
        break;
      }
  rdna__check checks[RDNA__DOCTOR_CHECKS];
  rdna__doctor_run(&doctor, checks);

  int failed = 0, warned = 0;
  json_t *rows = json_array();
  for (int i = 0; i < RDNA__DOCTOR_CHECKS; i++) {
    failed += checks[i].state == RDNA__CHECK_FAIL;
    warned += checks[i].state == RDNA__CHECK_WARN;
    json_array_append_new(
        rows, json_pack("{s:s, s:s, s:s, s:s, s:s}", "id", checks[i].id, "title", checks[i].title, "state",
                        rdna__check_state_name(checks[i].state), "found", checks[i].found, "advice", checks[i].advice));
    if (!json) print_check(&checks[i]);
  }
  if (json)
    print_json(json_pack("{s:i, s:i, s:o}", "failed", failed, "warned", warned, "checks", rows));
  else {
    json_decref(rows);
    printf("\n%d of %d checks failed, %d warned\n", failed, RDNA__DOCTOR_CHECKS, warned);
  }
  return failed ? EXIT_FAILED : EXIT_OK;
}
