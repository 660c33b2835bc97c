/* png.h - a picture as a PNG file (ISO/IEC 15948), grey or RGB, 8 bits a value; zlib compresses it. */
#ifndef LIN_PAPER_PNG_H
#define LIN_PAPER_PNG_H

#include "base/status.h"

/* pixels [height, width, channels], channels 1 or 3. LIN_IO, LIN_NO_MEMORY; an existing file stays then. */
lin_status lin_png_write(const char *path, const unsigned char *pixels, int width, int height, int channels, lin_error *err);

#endif
