// clang as a process of its own, and a folder for what it reads and writes: for the calls that compile and link at run
// time. No shell is asked; nothing is left behind.
#ifndef EMULATOR_HIP_CLANG_H
#define EMULATOR_HIP_CLANG_H

#include <stdbool.h>
#include <stddef.h>

enum { EMU_PATH = 1024, EMU_WORDS = 256 };

// RDNA_EMULATE_CLANG, else clang-19, clang or amdclang in PATH, else ROCm's. False: there is none.
bool emu_clang_find(char path[EMU_PATH]);

struct emu_workshop {
  char folder[EMU_PATH / 2];
};
bool emu_workshop_open(struct emu_workshop *w);
void emu_workshop_close(const struct emu_workshop *w);
// A file there, with the folders that its name has. False: the name leads out of it, or it cannot be written.
bool emu_workshop_write(const struct emu_workshop *w, const char *name, const void *data, size_t size);
// The file's bytes and a zero behind them, the caller's to free; NULL: there is none, or no memory.
void *emu_workshop_read(const struct emu_workshop *w, const char *name, size_t *out_size);

struct emu_words {
  char *list[EMU_WORDS + 1];
  int count;
  bool failed;  // there were too many, or no memory
};
__attribute__((format(printf, 2, 3))) void emu_words_add(struct emu_words *words, const char *format, ...);
void emu_words_release(struct emu_words *words);

// Runs the program that the first word names to its end. *out_said is what it wrote, the caller's to free; NULL: no
// memory, or nothing ran. Its exit status, or -1 where it could not be started.
int emu_words_run(struct emu_words *words, char **out_said);

#endif
