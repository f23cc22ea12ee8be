/* rdna profile: runs a program of PyTorch whose plugin then writes down what ran on the device. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "command/command.h"

extern char **environ;

/* |path| from the root, as the program may work in another folder. */
static rdna_status whole_path(const char *path, char out[PATH_MAX]) {
  char folder[PATH_MAX] = "";
  if (path[0] != '/' && !getcwd(folder, sizeof folder))
    return rdna__fail(RDNA_IO_ERROR, "the current folder has no name: %s", strerror(errno));
  int length = snprintf(out, PATH_MAX, "%s%s%s", folder, folder[0] ? "/" : "", path);
  if (length >= PATH_MAX) return rdna__fail(RDNA_INVALID_ARGUMENT, "--out %s is too long a path", path);
  return RDNA_OK;
}

/* The program's exit status, or 128 and the signal that ended it, as a shell has it. */
static rdna_status run(char **command, int *out_exit) {
  pid_t child;
  int error = posix_spawnp(&child, command[0], NULL, NULL, command, environ);
  if (error) return rdna__fail(RDNA_IO_ERROR, "cannot run %s: %s", command[0], strerror(error));
  signal(SIGINT, SIG_IGN); /* which the program gets too, and ends by as it likes */
  int state;
  while (waitpid(child, &state, 0) < 0)
    if (errno != EINTR) return rdna__fail(RDNA_IO_ERROR, "cannot wait for %s: %s", command[0], strerror(errno));
  *out_exit = WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
  return RDNA_OK;
}

/* How many of |argv| come before the program: the name of this command and its options. */
static int own_arguments(int argc, char **argv) {
  int i = 1;
  while (i < argc && argv[i][0] == '-' && argv[i][1] != 0) {
    if (strcmp(argv[i], "--") == 0) return i + 1;
    i += strcmp(argv[i], "--out") == 0 ? 2 : 1;
  }
  return i < argc ? i : argc;
}

int command_profile(int argc, char **argv) {
  const char *out = "rdna-trace.json";
  const option_row options[] = {
      {"--out", OPTION_TEXT, &out, "FILE", "where the trace goes (rdna-trace.json)", 0, 0},
  };
  const command_line line = {
      "rdna profile",
      "Runs a program of PyTorch, and writes the kernels, copies and operators that rdna's plugin saw to a file\nfor "
      "chrome://tracing or ui.perfetto.dev. What is there already is replaced; a further process that the "
      "program\nstarts "
      "writes FILE.PID. The exit status is the program's.",
      "COMMAND [ARGUMENTS...]",
      1,
      1,
      options,
      1};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status, own = own_arguments(argc, argv);
  if (!parse_command_line(&line, own < argc ? own + 1 : argc, argv, positionals, &count, &exit_status))
    return exit_status;
  char path[PATH_MAX];
  rdna_status status = whole_path(out, path);
  if (status == RDNA_OK && unlink(path) != 0 && errno != ENOENT)
    status = rdna__fail(RDNA_IO_ERROR, "cannot replace %s: %s", path, strerror(errno));
  if (status == RDNA_OK && setenv("RDNA_PROFILE", path, 1) != 0)
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the environment");
  if (status == RDNA_OK) status = run(argv + own, &exit_status);
  if (status == RDNA_OK && exit_status == 0 && access(path, F_OK) != 0)
    status =
        rdna__fail(RDNA_NOT_FOUND, "%s was not written: %s used no device through PyTorch's plugin", path, argv[own]);
  return status == RDNA_OK ? exit_status : fail_with_status();
}
