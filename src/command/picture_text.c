#include "command/picture_text.h"

enum { MOST_COLUMNS = 48, MOST_LINES = 32 };

/* A place's colour, from 0 to 255: the mean over rows [y, y_end) and columns [x, x_end). */
static int colour_of(const float *plane, int width, int y, int y_end, int x, int x_end) {
  double sum = 0;
  for (int i = y; i < y_end; i++)
    for (int j = x; j < x_end; j++) sum += plane[(long)i * width + j];
  double value = 127.5 * (sum / ((double)(y_end - y) * (x_end - x)) + 1);
  return value >= 255 ? 255 : value > 0 ? (int)(value + 0.5) : 0; /* 0 of a NaN, too */
}

static int least_one(double value) { return value < 1 ? 1 : (int)value; }

int print_picture(FILE *to, const float *values, int width, int height, int before) {
  double most = MOST_COLUMNS < width ? MOST_COLUMNS : width, by = most / width;
  if (by * height > 2 * MOST_LINES) by = 2. * MOST_LINES / height;
  int columns = least_one(by * width + 0.5), lines = least_one(by * height / 2 + 0.5), rows = 2 * lines;
  if (before) fprintf(to, "\x1b[%dA", before);
  for (int line = 0; line < lines; line++) {
    for (int column = 0; column < columns; column++) {
      int x = (int)((long)column * width / columns), x_end = (int)((long)(column + 1) * width / columns);
      for (int half = 0; half < 2; half++) {
        int row = 2 * line + half, colours[3];
        int y = (int)((long)row * height / rows), y_end = (int)((long)(row + 1) * height / rows);
        if (y == y_end) y_end++; /* of a picture with fewer pixels than places */
        for (int k = 0; k < 3; k++)
          colours[k] = colour_of(values + (long)k * width * height, width, y, y_end, x, x_end);
        fprintf(to, "\x1b[%d;2;%d;%d;%dm", half ? 48 : 38, colours[0], colours[1], colours[2]);
      }
      fputs("\u2580", to);
    }
    fputs("\x1b[0m\x1b[K\n", to);
  }
  fflush(to);
  return lines;
}
