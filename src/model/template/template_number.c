/* Numbers as Python writes them, in every locale the same. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/template/template.h"

/* The C locale; glibc has it ready and never fails. */
static locale_t plain(void) { return newlocale(LC_ALL_MASK, "C", (locale_t)0); }

double rdna__tpl_parse_real(const char *text, char **out_end) { return strtod_l(text, out_end, plain()); }

void rdna__tpl_append_printf(tpl_run *run, tpl_buffer *buffer, char conversion, int precision, double value) {
  char format[] = {'%', '.', '*', conversion, 0};
  char text[512];
  locale_t before = uselocale(plain());
  int size = snprintf(text, sizeof text, format, precision > 120 ? 120 : precision, value);
  uselocale(before);
  rdna__tpl_append(run, buffer, text, (size_t)size);
}

void rdna__tpl_append_real(tpl_run *run, tpl_buffer *buffer, double value) {
  if (!isfinite(value)) {
    rdna__tpl_append_text(run, buffer, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    return;
  }
  char text[40];
  locale_t before = uselocale(plain());
  for (int digits = 0; digits < 17; digits++) { /* d.ddde+xx with the fewest digits that read back */
    snprintf(text, sizeof text, "%.*e", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  uselocale(before);
  char *exponent = strchr(text, 'e');
  int power = atoi(exponent + 1);
  if (power < -4 || power >= 16) {
    rdna__tpl_append_text(run, buffer, text);
    return;
  }
  char digits[24];
  int count = 0;
  for (const char *p = text; p < exponent; p++)
    if (*p >= '0' && *p <= '9') digits[count++] = *p;
  if (text[0] == '-') rdna__tpl_append(run, buffer, "-", 1);
  if (power < 0) rdna__tpl_append(run, buffer, "0.000", (size_t)(1 - power));
  for (int i = 0; i < count || i <= power + 1; i++) {
    if (power >= 0 && i == power + 1) rdna__tpl_append(run, buffer, ".", 1);
    rdna__tpl_append(run, buffer, i < count ? &digits[i] : "0", 1);
    if (power < 0 && i + 1 == count) break;
  }
}

double rdna__tpl_round(double value, int digits) {
  if (!isfinite(value) || digits > 300) return value;
  if (digits < 0) {
    double unit = pow(10, -digits);
    return isfinite(unit) ? nearbyint(value / unit) * unit : 0;
  }
  char text[700];
  locale_t before = uselocale(plain());
  snprintf(text, sizeof text, "%.*f", digits, value);
  double rounded = strtod(text, NULL);
  uselocale(before);
  return rounded;
}
