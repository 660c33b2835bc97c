/*
 * model_file.h - models on disk: one safetensors file, readable by every tool that knows the format.
 *
 *   tensors    those of lin_params (config.h), F32 or F16 each, or, of the matrices with eight_bits, I8 with another tensor
 *              NAME.scale [n] F32: whole numbers -127..127 times the scale of each row, as base/number.h makes them;
 *              features.mean [D], features.istd [D] F32;
 *              train.*: data to resume training (moments of the optimiser, counters), ignored by other readers
 *   metadata   format "linnet", format_version "2" ("3": there are tensors of I8), config (JSON), features
 *              (JSON), phones, name, license, provenance (JSON),
 *              fingerprint (16 hex digits, over everything that changes the network's results), emission_delay_ms,
 *              checksum (16 hex digits, of all tensors and texts: lin_safetensors_checksum), train.*
 *
 * Loading verifies fingerprint and checksum. Files of format version 1 have no checksum: a change to their name, licence,
 * provenance or train.* is not detected.
 *
 *   lin_model_load(path, &model, &err);            maps the file, checks everything, copies the weights
 *   lin_model_save(model, path, LIN_F16, &err);
 *
 * A damaged or foreign file is refused with a message that names the file, the tensor and the fault. Saving writes to a temporary
 * name beside the file, syncs and renames: if the disk is full or the process is killed, the old file is unchanged.
 */
#ifndef LIN_MODEL_MODEL_FILE_H
#define LIN_MODEL_MODEL_FILE_H

#include <stddef.h>

#include "base/status.h"
#include "model/model.h"
#include "model/safetensors.h"

/*
 * Data stored in the file beside the model, to resume a training run: tensors (any dtype, saved and loaded bit for bit) and
 * texts. Names and keys begin with "train.".
 */
typedef struct lin_extras {
    int n_tensors;
    lin_tensor *tensors;
    int n_texts;
    lin_text *texts;
    void *owned; /* of loaded extras; NULL if the caller filled in the struct */
} lin_extras;

/* LIN_IO, LIN_FORMAT, LIN_UNSUPPORTED (an unknown format_version), LIN_NUMERIC (a NaN or infinite weight), LIN_NO_MEMORY.
 * On failure *model is NULL. */
lin_status lin_model_load(const char *path, lin_model **model, lin_error *err);

/*
 * The same for use by an encoder alone, whose backend packs halves (kernels/ops.h): matrices in half precision stay in the file,
 * which the model keeps mapped, and are in model->stored instead of model->values; with keep_whole, for products of eight bits,
 * those in eight bits too. Takes two thirds of the time, and no memory for the floats. Not to be saved, copied or trained.
 */
lin_status lin_model_open(const char *path, int keep_whole, lin_model **model, lin_error *err);

/* As lin_model_load, from memory; name replaces the path in messages. The bytes may be freed afterwards. */
lin_status lin_model_load_memory(const void *bytes, size_t n_bytes, const char *name, lin_model **model, lin_error *err);

/* Also loads the extras; release them with lin_extras_free. On failure *extras is empty. */
lin_status lin_model_load_extras(const char *path, lin_model **model, lin_extras *extras, lin_error *err);

/* dtype LIN_F32, LIN_F16 (rounded to nearest even; a weight above 65,504 is refused with LIN_NUMERIC, as is NaN or infinity) or
 * LIN_I8: matrices with eight_bits in eight bits, the other tensors without a loss, in half precision where that is possible. So
 * products of eight bits give the same bits as with the model that was saved. LIN_UNSUPPORTED if no matrix has eight_bits. */
lin_status lin_model_save(const lin_model *model, const char *path, lin_dtype dtype, lin_error *err);

/* The same with extras; extras may be NULL. */
lin_status lin_model_save_extras(const lin_model *model, const char *path, lin_dtype dtype, const lin_extras *extras,
                                 lin_error *err);

/* NULL if there is no text with that key. */
const char *lin_extras_text(const lin_extras *extras, const char *key);

/* Whether there is a tensor with that name. */
int lin_extras_has(const lin_extras *extras, const char *name);

/* Copies a tensor of exactly this dtype and count to `to`; LIN_FORMAT, naming the tensor, if it is missing or different. */
lin_status lin_extras_read(const lin_extras *extras, const char *name, lin_dtype dtype, size_t count, void *to, lin_error *err);

void lin_extras_free(lin_extras *extras);

#endif
