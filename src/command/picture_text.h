/* Pictures in a terminal. */
#ifndef RDNA_COMMAND_PICTURE_TEXT_H
#define RDNA_COMMAND_PICTURE_TEXT_H

#include <stdio.h>

/* |values| (3, height, width), from -1 to 1, in up to 48 columns and 32 lines of half blocks, two places above each
 * other in one, each with the mean of its pixels in 24 bits of colour (ISO 8613-6). The cursor stands at a line's
 * beginning, |before| lines below that of the picture that this one takes the place of, and then below this one.
 * Returns the number of its lines. */
int print_picture(FILE *to, const float *values, int width, int height, int before);

#endif
