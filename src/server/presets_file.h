/* Presets from a file: {"models": [{"path": "…", "name": "…", …}, …]}. */
#ifndef RDNA_SERVER_PRESETS_FILE_H
#define RDNA_SERVER_PRESETS_FILE_H

#include "server/preset.h"

enum { MOST_PRESETS = 256 };

/* Appends the presets of |text| to |presets|, which has room for MOST_PRESETS, |*count| of them taken. What a preset
 * leaves out is as in |defaults|; paths that are not absolute begin in |folder|. RDNA_BAD_DATA says what is wrong, and
 * with which model; what was appended is the caller's then, too. */
rdna_status presets_parse(const char *text, size_t size, const char *folder, const preset *defaults, preset *presets,
                          size_t *count);
/* RDNA_BAD_DATA: two of them have the same name. */
rdna_status presets_check(const preset *presets, size_t count);

#endif
