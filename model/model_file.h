/*
 * model_file.h - models on disk: one safetensors file, readable by every tool that knows the format.
 *
 *   tensors    those of lin_params (config.h), F32 or F16 each; features.mean [D], features.istd [D] F32;
 *              train.*: whatever the trainer keeps to continue (moments of the optimiser, counters), ignored by other readers
 *   metadata   format "linnet", format_version "2", config (JSON), features (JSON), phones, name, license, provenance (JSON),
 *              fingerprint (16 hex digits, of what changes the network's results), checksum (16 hex digits, of all tensors and
 *              texts: lin_safetensors_checksum), train.*
 *
 * Fingerprint and checksum are verified when a file is loaded. Files of format version 1 have no checksum: a change to their name,
 * licence, provenance or train.* is not found.
 *
 *   lin_model_load(path, &model, &err);            maps the file, checks everything, copies the weights
 *   lin_model_save(model, path, LIN_F16, &err);
 *
 * A damaged or foreign file is refused with a sentence that names the file, the tensor and what is wrong with it. Saving writes to
 * a temporary name beside the file, syncs and renames: a full disk or a kill leaves the old file untouched.
 */
#ifndef LIN_MODEL_MODEL_FILE_H
#define LIN_MODEL_MODEL_FILE_H

#include <stddef.h>

#include "base/status.h"
#include "model/model.h"
#include "model/safetensors.h"

/*
 * Things kept in the file beside the model, in order to resume a training: tensors (any dtype, saved and loaded bit for bit) and
 * texts. Names and keys begin with "train.".
 */
typedef struct lin_extras {
    int n_tensors;
    lin_tensor *tensors;
    int n_texts;
    lin_text *texts;
    void *owned; /* of loaded ones; NULL where the caller filled in the struct */
} lin_extras;

/* LIN_IO, LIN_FORMAT, LIN_UNSUPPORTED (an unknown format_version), LIN_NUMERIC (a NaN or infinite weight), LIN_NO_MEMORY.
 * On failure *model is NULL. */
lin_status lin_model_load(const char *path, lin_model **model, lin_error *err);

/* The same from memory; name stands for the path in messages. The bytes may be freed afterwards. */
lin_status lin_model_load_memory(const void *bytes, size_t n_bytes, const char *name, lin_model **model, lin_error *err);

/* Also gives what lies beside the model; release with lin_extras_free. On failure *extras is empty. */
lin_status lin_model_load_extras(const char *path, lin_model **model, lin_extras *extras, lin_error *err);

/* dtype LIN_F32 or LIN_F16 (rounded to nearest even; a weight above 65,504 is refused with LIN_NUMERIC, as is NaN or infinity). */
lin_status lin_model_save(const lin_model *model, const char *path, lin_dtype dtype, lin_error *err);

/* The same with extras beside the model; extras may be NULL. */
lin_status lin_model_save_extras(const lin_model *model, const char *path, lin_dtype dtype, const lin_extras *extras,
                                 lin_error *err);

/* NULL if there is none of that name. */
const lin_tensor *lin_extras_tensor(const lin_extras *extras, const char *name);
const char *lin_extras_text(const lin_extras *extras, const char *key);

/* Copies a tensor of exactly this dtype and count to `to`; LIN_FORMAT naming the tensor where it is missing or different. */
lin_status lin_extras_read(const lin_extras *extras, const char *name, lin_dtype dtype, size_t count, void *to, lin_error *err);

void lin_extras_free(lin_extras *extras);

#endif
