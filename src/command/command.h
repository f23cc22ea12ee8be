/* What the subcommands share. Each is a function of its own file and returns the process's exit status. */
#ifndef RDNA_COMMAND_COMMAND_H
#define RDNA_COMMAND_COMMAND_H

#include <jansson.h>

#include "command/options.h"
#include "rdna/device.h"
#include "rdna/model.h"

int command_info(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_run(int argc, char **argv);
int command_logits(int argc, char **argv);
int command_tokenize(int argc, char **argv);
int command_kernels(int argc, char **argv);
int command_emulate(int argc, char **argv);
int command_selftest(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_tune(int argc, char **argv);
int command_imatrix(int argc, char **argv);
int command_perplexity(int argc, char **argv);
int command_convert(int argc, char **argv);
int command_quantize(int argc, char **argv);
int command_chat(int argc, char **argv);
int command_template(int argc, char **argv);
int command_serve(int argc, char **argv);
int command_embed(int argc, char **argv);
int command_image(int argc, char **argv);
int command_upscale(int argc, char **argv);
int command_compile(int argc, char **argv);
int command_profile(int argc, char **argv);

/* Prints "rdna: " and the thread's last error on stderr; returns EXIT_FAILED. */
int fail_with_status(void);

/* Appends the numbers of "1,2,3", which |option| was given, to |numbers|: each from 0 to INT32_MAX. */
rdna_status parse_numbers(const char *option, const char *text, rdna_tokens *numbers);

/* RDNA_INVALID_ARGUMENT when |out| is the file |in|, which would be lost. */
rdna_status check_not_input(const char *in, const char *out);

/* Prints JSON to stdout and frees it. */
int print_json(json_t *json);

/* --driver and --device, which most subcommands take. */
typedef struct device_choice {
  const char *driver; /* "auto", "hip", … */
  const char *device; /* "", "1", or a whole name such as "cuda:1" */
} device_choice;
#define DEVICE_OPTIONS(choice)           \
  {"--driver",                           \
   OPTION_CHOICE,                        \
   &(choice).driver,                     \
   "auto|hip|cuda|host|null",            \
   "which driver (auto: the first that " \
   "has a device)",                      \
   0,                                    \
   0},                                   \
      {"--device", OPTION_TEXT, &(choice).device, "N", "which of its devices, or a whole name such as hip:1", 0, 0}
#define DEVICE_CHOICE_DEFAULT {"auto", ""}
rdna_status open_chosen_device(const device_choice *choice, rdna_device **out_device);

/* Host memory by what it holds: "16.0 GiB", "312 KiB". */
const char *format_bytes(double bytes, char text[32]);

/* The types that --kv takes, and which one |name| is. */
#define KV_CHOICES "f16|bf16|f32|q8_0"
rdna_dtype kv_type(const char *name);

/* All bytes of |path|, or of standard input when it is "-". The caller frees them. */
rdna_status read_whole(const char *path, char **out_data, size_t *out_size);

/* Of a clock that only goes forward. */
double seconds(void);

/* A bar on stderr when that is a terminal; nothing otherwise. */
void show_progress(const char *what, double share);
void show_progress_note(const char *what, double share, const char *note); /* with up to 30 characters behind it */
void end_progress(void);
/* For rdna_llm_open. */
void show_loading(void *data, double share);

#endif
