/*
 * model.h - a trained network and everything needed to use it: configuration, weights, feature parameters, normalisation, phones;
 * and its file.
 *
 *   lin_model *model;
 *   lin_model_load("x.safetensors", &model, &err);                     // maps the file, checks everything, copies the weights
 *   or lin_model_create(&config, &features, phones, seed, &model, &err);
 *   ... model->values + model->params.table[i].offset ...
 *   lin_model_save(model, path, LIN_F16, &err);
 *   lin_model_destroy(model);
 *
 * A model is immutable once loaded and may be shared by threads. During training only its trainer may use it; the trainer calls
 * lin_model_seal after changing the weights, before other code uses them.
 *
 * The file is in the safetensors format, which other tools read:
 *   tensors    those of lin_params (config.h), F32 or F16 each, or, of the matrices with eight_bits, I8 with another tensor
 *              NAME.scale [n] F32: whole numbers -127..127 times the scale of each row, as base/number.h makes them;
 *              features.mean [D], features.istd [D] F32;
 *              train.*: data to resume training (moments of the optimiser, counters), ignored by other readers
 *   metadata   format "linnet", format_version "3", config (JSON), features (JSON), phones, name, license, provenance (JSON),
 *              fingerprint (16 hex digits, over everything that changes the network's results), emission_delay_ms,
 *              checksum (16 hex digits, of all tensors and texts: lin_safetensors_checksum), train.*
 * A damaged or foreign file is refused with a message that names the file, the tensor and the fault. Saving writes to a temporary
 * name beside the file, syncs and renames: if the disk is full or the process is killed, the old file is unchanged.
 */
#ifndef LIN_MODEL_MODEL_H
#define LIN_MODEL_MODEL_H

#include <stdint.h>

#include "base/file.h"
#include "base/status.h"
#include "base/symbols.h"
#include "model/config.h"
#include "model/safetensors.h"

/* ---- the names of the outputs ---------------------------------------------------------------------------------------------- */

/* Phones are one text: names separated by single spaces, blank first. A tab and more about the phone may follow a name
 * (lexicon/phones.h); models keep it and do not read it. */
enum { LIN_PHONE_BYTES = 63 }; /* the longest name */

/*
 * Splits the text into its names, released with lin_symbols_free. LIN_INVALID if there are fewer than 2 or more than 65,536
 * names; if a name is repeated, too long, or contains control characters or bytes that are not UTF-8; or if the separators are
 * not single spaces. LIN_NO_MEMORY. On failure the table is empty.
 */
lin_status lin_phones_split(const char *phones, lin_symbols *names, lin_error *err);

/* How two such texts differ, for a message: "'ø' is only in the first". Writes to out and returns it. */
const char *lin_phones_difference(const char *first, const char *second, char *out, size_t size);

/* ---- the model ------------------------------------------------------------------------------------------------------------- */

typedef struct lin_model {
    lin_config config;
    lin_features features;
    lin_params params;
    float *values;         /* [params.n_elements], 64-byte aligned; without the tensors in stored */
    lin_stored *stored;    /* after lin_model_open [params.n_tensors], the tensors that stay in `file`; else NULL */
    lin_file_map file;
    float *mean, *istd;    /* [D], of the features: the network's input is (x - mean) istd */
    int speaker_norm;      /* 1: before that, features are normalised with the speaker's own mean and deviation; cannot stream */
    int delay_ms;          /* emission delay, 0..1000: how much later than their sound rows show phonemes, on average; results
                              subtract it from times. 0 if unknown. Not in the fingerprint: rows do not depend on it */
    char *phones;          /* the V names separated by single spaces, blank first */
    lin_symbols phone;     /* [V], the same names one by one */
    char *name;            /* "" if unknown, like the next two */
    char *license;
    char *provenance;      /* JSON text: how it was trained */
    int eight_bits;        /* of a loaded model: 1 if its file has weights in eight bits */
    uint64_t fingerprint;  /* of everything that changes the network's results; of a loaded model, that of its file */
} lin_model;

/*
 * A model with the random weights of lin_params_init(seed), mean 0 and istd 1, no name, licence or provenance.
 *   phones  V names as above, each at most 63 bytes, all different; NULL: "<blank> 1 2 ...". Of a network of tokens those of
 *           lin_config_symbols, none of them a blank; NULL: "0 1 2 ..."
 * LIN_INVALID for a bad configuration, feature parameter or phone list; LIN_NO_MEMORY. On failure *model is NULL.
 */
lin_status lin_model_create(const lin_config *config, const lin_features *features, const char *phones, uint64_t seed,
                            lin_model **model, lin_error *err);
/* Accepts NULL. */
void lin_model_destroy(lin_model *model);

/* LIN_UNSUPPORTED for a network that cannot recognise speech: of tokens, which takes no sound, or of voices. name: the file's. */
lin_status lin_model_check_sound(const lin_model *model, const char *name, lin_error *err);

/* Replaces the texts that are not NULL (the model keeps copies): name and license are one line each, else LIN_INVALID; provenance
 * must be JSON or "". On failure nothing changes. */
lin_status lin_model_label(lin_model *model, const char *name, const char *license, const char *provenance, lin_error *err);

/* Computes model->fingerprint anew: 64 bits over configuration (without dropout), feature parameters, phones, mean, istd and
 * weights, the same on every machine. A stream's saved state contains it, so that another model refuses the state. Not of an
 * opened model. */
void lin_model_seal(lin_model *model);

/* ---- the file -------------------------------------------------------------------------------------------------------------- */

/* LIN_IO, LIN_FORMAT, LIN_UNSUPPORTED (another format_version), LIN_NUMERIC (a NaN or infinite weight), LIN_NO_MEMORY.
 * On failure *model is NULL. */
lin_status lin_model_load(const char *path, lin_model **model, lin_error *err);

/*
 * Loads a model only for an encoder whose backend packs halves (kernels/ops.h): matrices in half precision stay in the file,
 * which the model keeps mapped, and are in model->stored instead of model->values; with keep_whole, for products of eight bits,
 * those in eight bits too. Takes two thirds of the time, and no memory for the floats. It must not be saved, copied or trained.
 */
lin_status lin_model_open(const char *path, int keep_whole, lin_model **model, lin_error *err);

/* As lin_model_load, from memory; name replaces the path in messages. The bytes may be freed afterwards. */
lin_status lin_model_load_memory(const void *bytes, size_t n_bytes, const char *name, lin_model **model, lin_error *err);

/* dtype LIN_F32, LIN_F16 (rounded to nearest even; a weight above 65,504 is refused with LIN_NUMERIC, as is NaN or infinity) or
 * LIN_I8: matrices with eight_bits in eight bits, the other tensors without loss, in half precision where that is exact. So
 * products of eight bits give the same bits as with the model that was saved. LIN_UNSUPPORTED if no matrix has eight_bits. */
lin_status lin_model_save(const lin_model *model, const char *path, lin_dtype dtype, lin_error *err);

/* ---- checkpoints: what is stored in the file beside the model, to resume its training -------------------------------------- */

/* Saves, as floats, the model and tensors (any dtype) and texts, whose names and keys begin with "train.". */
lin_status lin_model_save_checkpoint(const lin_model *model, const char *path, const lin_tensor *tensors, int n_tensors,
                                     const lin_text *texts, int n_texts, lin_error *err);

/* An open file. Tensors and texts are found with lin_safetensors_find and _text, bit for bit as they were saved. */
typedef struct lin_checkpoint {
    lin_file_map map;
    lin_safetensors file;
} lin_checkpoint;

/* The model and the file. On failure *model is NULL and the checkpoint closed. */
lin_status lin_model_load_checkpoint(const char *path, lin_model **model, lin_checkpoint *checkpoint, lin_error *err);
/* Copies a tensor of exactly `count` floats to `to`; LIN_FORMAT, naming the tensor, if it is missing or different. */
lin_status lin_checkpoint_read(const lin_checkpoint *checkpoint, const char *name, size_t count, float *to, lin_error *err);
void lin_checkpoint_close(lin_checkpoint *checkpoint);

#endif
