/* What keeps an AMD card from computing, found without touching the card: named checks over the files of a system.
 * Every check reads below a system root, so that tests bring machines of their own, each with its illness. */
#ifndef RDNA_DEVICE_DOCTOR_H
#define RDNA_DEVICE_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "rdna/device.h"

typedef enum rdna__check_state {
  RDNA__CHECK_OK,
  RDNA__CHECK_WARN, /* works, but not as well as it could, or may fail later */
  RDNA__CHECK_FAIL, /* the card cannot be used before this is cured */
  RDNA__CHECK_SKIP  /* could not be looked at, or has no meaning here */
} rdna__check_state;

typedef struct rdna__check {
  const char *id;    /* "kfd": stable, for scripts */
  const char *title; /* "compute device node" */
  rdna__check_state state;
  char found[768];  /* one sentence: what is there */
  char advice[512]; /* one sentence: what to do; "" when there is nothing to do */
} rdna__check;

enum { RDNA__DOCTOR_CHECKS = 12, RDNA__DOCTOR_MAX_GROUPS = 256 };

typedef struct rdna__doctor_options {
  const char *root; /* "" for this machine; no slash at the end */
  const char *user; /* login name, "" when unknown */
  uint32_t uid;     /* effective */
  uint32_t groups[RDNA__DOCTOR_MAX_GROUPS];
  int group_count;
  /* The hip driver's own answer (rdna_driver_get_info); NULL looks for the library's file below |root| instead. */
  const rdna_driver_info *hip;
  /* Whether there is code for a target; NULL when nobody can say. Kernel packs belong to a layer below this one. */
  bool (*covers)(void *data, const char *arch);
  void *covers_data;
  /* Reads the environment; NULL is getenv. */
  const char *(*environment)(void *data, const char *name);
  void *environment_data;
} rdna__doctor_options;

/* This machine and this process's user, whose name is borrowed from getpwuid; no |hip|, no |covers|. */
void rdna__doctor_options_init(rdna__doctor_options *out_options);

/* Runs every check, in the order in which one illness causes the next. Allocates nothing; may read large logs. */
void rdna__doctor_run(const rdna__doctor_options *options, rdna__check out_checks[RDNA__DOCTOR_CHECKS]);

/* "ok", "warn", "fail", "skip". */
const char *rdna__check_state_name(rdna__check_state state);

#endif
