/* Settings of a model of pictures: the JSON object in its config.json. A setting that is missing or null has its
 * |initial| value; where that is outside of the limits it must be there. */
#ifndef RDNA_MODEL_IMAGE_SETTINGS_H
#define RDNA_MODEL_IMAGE_SETTINGS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/status.h"

/* What stands for Infinity, which Python writes and JSON does not have: beyond the limits of every setting. */
#define RDNA__SETTING_INFINITY 1e308

/* Of |size| bytes of |text|, in which Infinity, -Infinity and NaN are no error as long as nobody reads them: the first
 * two become RDNA__SETTING_INFINITY and its negative, the last a text. The caller gives |out_settings| back with
 * json_decref. RDNA_BAD_DATA: no JSON object, or one with a key twice. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__settings_parse(const char *text, size_t size, json_t **out_settings);
/* Of config.json in |folder|. RDNA_NOT_FOUND too. The sentence begins with the file's path. */
rdna_status rdna__settings_open(const char *folder, json_t **out_settings);

/* Each is RDNA_BAD_DATA where the value is of another kind or outside of the limits. */
rdna_status rdna__setting_whole(const json_t *settings, const char *name, int initial, int low, int high, int *out);
rdna_status rdna__setting_number(const json_t *settings, const char *name, double initial, double low, double high,
                                 double *out);
rdna_status rdna__setting_flag(const json_t *settings, const char *name, bool initial, bool *out);
/* |initial| NULL: it must be there. |out| is borrowed. */
rdna_status rdna__setting_text(const json_t *settings, const char *name, const char *initial, const char **out);
/* From 1 to |most| of |out| (most); a whole number in place of a list is a list of one. */
rdna_status rdna__setting_wholes(const json_t *settings, const char *name, int low, int high, int most, int *out,
                                 int *out_count);
rdna_status rdna__setting_texts(const json_t *settings, const char *name, int most, const char **out, int *out_count);
/* RDNA_UNSUPPORTED where a setting that is there is another value than |known|, as which it counts when missing. */
rdna_status rdna__setting_is(const json_t *settings, const char *name, const char *known); /* a text */
rdna_status rdna__setting_is_flag(const json_t *settings, const char *name, bool known);
rdna_status rdna__setting_is_null(const json_t *settings, const char *name);
/* RDNA_UNSUPPORTED: there is a setting with a value that is none of |known| (count), and no note of diffusers' "_…". */
rdna_status rdna__settings_are(json_t *settings, const char *const *known, size_t count);

#endif
