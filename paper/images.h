/*
 * images.h - reads the files of the paper's images, IDX (MNIST) and CIFAR-10's binary batches, as sequences of values; and writes
 * PNG files.
 *
 *   lin_text_read("t10k-images-idx3-ubyte.gz", &text, &n, &err);              base/textfile.h also expands gzip
 *   lin_images_parse(text, n, "t10k-images-idx3-ubyte.gz", &images, &err);
 *   lin_images_values(&images, i, 0, values);                                 values [lin_images_length(&images, 0)], 0..255
 *
 * IDX: the bytes 0 0 8 3, then count, rows and columns (32 bits, big-endian), then a byte a pixel, row by row.
 * CIFAR-10: 3,073 bytes an image, its label, then its red, green and blue planes of 32 x 32.
 * Nothing is copied: the bytes must outlive lin_images. Threads: no shared state.
 */
#ifndef LIN_PAPER_IMAGES_H
#define LIN_PAPER_IMAGES_H

#include <stddef.h>

#include "base/status.h"

enum { LIN_IMAGES_SIDE = 512 }; /* the most rows or columns */

typedef struct lin_images {
    int count, rows, columns, colours; /* colours: 1, or 3 with a label in front of each image */
    const unsigned char *bytes;        /* of the first image, or its label */
} lin_images;

/* LIN_FORMAT: neither of the two formats, or another number of bytes than the header says. name: for messages. */
lin_status lin_images_parse(const void *bytes, size_t n, const char *name, lin_images *images, lin_error *err);

/* Values of an image: pixel by pixel, row by row, R G B if it is coloured, or with grey != 0 its luma (ITU-R BT.601). */
int lin_images_length(const lin_images *images, int grey);
void lin_images_values(const lin_images *images, int i, int grey, int *values);

/* The label of a coloured image. */
int lin_images_label(const lin_images *images, int i);

/* A picture as a PNG file (ISO/IEC 15948), 8 bits a value; zlib compresses it. pixels [height, width, channels], channels 1
 * (grey) or 3 (RGB). LIN_IO, LIN_NO_MEMORY; an existing file stays then. */
lin_status lin_png_write(const char *path, const unsigned char *pixels, int width, int height, int channels, lin_error *err);

#endif
