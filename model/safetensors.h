/*
 * safetensors.h - the container of model files: u64 little-endian length, a JSON header, then the tensors' bytes.
 *
 *   lin_safetensors st;
 *   lin_safetensors_parse(bytes, n, "x.safetensors", &st, &err);     checks everything; tensors point into bytes
 *   const lin_tensor *t = lin_safetensors_find(&st, "input.weight");
 *   lin_safetensors_free(&st);
 *
 * Checked before use: header length against the file, nesting and number of JSON values, every offset in bounds, no
 * overlap, no gap, no repeated name, shape times element size equal to the bytes, metadata a map of strings in UTF-8.
 */
#ifndef LIN_MODEL_SAFETENSORS_H
#define LIN_MODEL_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum lin_dtype { LIN_F32, LIN_F16, LIN_I8, LIN_DTYPES } lin_dtype;

/* "F32", ... */
const char *lin_dtype_name(lin_dtype dtype);

typedef struct lin_tensor {
    const char *name;
    lin_dtype dtype;
    int n_dims;       /* 0..4; 0: one element */
    size_t shape[4];
    const void *data; /* little-endian in the file; from lin_safetensors_parse it may be unaligned: use memcpy */
} lin_tensor;

typedef struct lin_text {
    const char *key, *value;
} lin_text;

/* Product of the shape. */
size_t lin_tensor_count(const lin_tensor *tensor);

typedef struct lin_safetensors {
    int n_tensors;
    lin_tensor *tensors; /* sorted by name */
    int n_texts;
    lin_text *texts; /* sorted by key */
    void *json;
} lin_safetensors;

/* LIN_FORMAT, LIN_UNSUPPORTED (a dtype not listed above), LIN_NO_MEMORY; *st is then empty. bytes must outlive *st. */
lin_status lin_safetensors_parse(const void *bytes, size_t n_bytes, const char *name, lin_safetensors *st, lin_error *err);
const lin_tensor *lin_safetensors_find(const lin_safetensors *st, const char *name);
const char *lin_safetensors_text(const lin_safetensors *st, const char *key);
void lin_safetensors_free(lin_safetensors *st);

/*
 * 64 bits over all contents of a file: name, type, shape and bytes of every tensor, key and value of every text but `checksum`.
 * It does not depend on their order, so it stays valid if another program rewrites the file. docs/formats.md has the formula.
 */
#define LIN_CHECKSUM_KEY "checksum"
uint64_t lin_safetensors_checksum(const lin_tensor *tensors, int n_tensors, const lin_text *texts, int n_texts);

/* Writes atomically (file.h). Tensors are stored by element size, largest first, then in the order given, so that each is
 * aligned. */
lin_status lin_safetensors_write(const char *path, const lin_tensor *tensors, int n_tensors, const lin_text *texts, int n_texts,
                                 lin_error *err);

#endif
