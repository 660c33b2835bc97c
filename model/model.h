/*
 * model.h - a trained network and everything needed to use it: configuration, weights, feature parameters, normalisation, phones.
 *
 *   lin_model *model;
 *   lin_model_load("x.safetensors", &model, &err);                     (model_file.h)
 *   or lin_model_create(&config, &features, phones, seed, &model, &err);
 *   ... model->values + model->params.table[i].offset ...
 *   lin_model_destroy(model);
 *
 * A model is immutable once loaded and may be shared by threads. During training only its trainer may use it; the trainer calls
 * lin_model_seal after changing the weights, before other code uses them.
 */
#ifndef LIN_MODEL_MODEL_H
#define LIN_MODEL_MODEL_H

#include <stdint.h>

#include "base/file.h"
#include "base/status.h"
#include "model/config.h"

/*
 * The parameters for computing the D numbers per frame that this model was trained on: Kaldi's log-mel filterbank (povey window,
 * DC removal, no dither, snip_edges, natural logarithm with the float epsilon as floor). Plain numbers, because model/ does not
 * include frontend/.
 */
typedef struct lin_features {
    int sample_hz;      /* 4000..192000 */
    double window_ms;   /* above 0, at most 1000 */
    double hop_ms;      /* above 0, at most window_ms */
    double low_hz;      /* lower edge of the lowest mel filter, 0..sample_hz/2 */
    double high_hz;     /* upper edge of the highest: above low_hz up to sample_hz/2; 0 or below: sample_hz/2 + high_hz (Kaldi) */
    double preemphasis; /* 0..1 */
    double level_db;    /* running level of speech (frontend/fbank.h), 1 to 150; 0: none. Caches of features have none */
} lin_features;

/* Kaldi's defaults: 16 kHz, 25 ms, 10 ms, 20 Hz, 0 (the Nyquist frequency), 0.97. */
lin_features lin_features_default(void);

/* LIN_INVALID, with the name and range of the wrong parameter. */
lin_status lin_features_check(const lin_features *features, lin_error *err);

/* 1 if all parameters but level_db are equal: a cache can be used. */
int lin_features_equal(const lin_features *a, const lin_features *b);
/* Those of a that b has otherwise, as "hop-ms 9, not 10; ..."; written to text, "" if there are none. */
const char *lin_features_difference(const lin_features *a, const lin_features *b, char *text, size_t size);

typedef struct lin_model {
    lin_config config;
    lin_features features;
    lin_params params;
    float *values;         /* [params.n_elements], 64-byte aligned; without the tensors in stored */
    lin_stored *stored;    /* NULL but after lin_model_open: [params.n_tensors], the tensors that stay in `file` */
    lin_file_map file;
    float *mean, *istd;    /* [D], of the features: the network's input is (x - mean) istd */
    int speaker_norm;      /* 1: before that, features are normalised with the speaker's own mean and deviation; cannot stream */
    int delay_ms;          /* emission delay, 0..1000: rows tell of phonemes so much after their sound, on average, so results
                              give times that much earlier; 0 if unknown. Not in the fingerprint: rows do not depend on it */
    char *phones;          /* the V names separated by single spaces, blank first */
    char **phone;          /* [V], the same names one by one */
    char *name;            /* "" if unknown, like the next two */
    char *license;
    char *provenance;      /* JSON text: how it was trained */
    int eight_bits;        /* of a loaded model: 1 if its file has weights in eight bits */
    int checksummed;       /* of a loaded model: 1 if a checksum covers the whole file, 0 if only the fingerprint was checked */
    uint64_t fingerprint;  /* of everything that changes the network's results; see lin_model_seal */
} lin_model;

/*
 * A model with the random weights of lin_params_init(seed), mean 0 and istd 1, no name, licence or provenance.
 *   phones  V names separated by spaces, blank first, each at most 63 bytes, all different; NULL: "<blank> 1 2 ...". Of a network
 *           of tokens those of lin_config_symbols, none of them a blank; NULL: "0 1 2 ..."
 * LIN_INVALID for a bad configuration, feature parameter or phone list; LIN_NO_MEMORY. On failure *model is NULL.
 */
lin_status lin_model_create(const lin_config *config, const lin_features *features, const char *phones, uint64_t seed,
                            lin_model **model, lin_error *err);

/* LIN_UNSUPPORTED for a network of tokens, which takes no sound: speech has no use for it. `name`: the file's. */
lin_status lin_model_check_sound(const lin_model *model, const char *name, lin_error *err);
/* The same with uninitialised weights and no fingerprint, for loaders, which fill in the weights and call lin_model_seal.
 * with_stored: 1 if most tensors will be in `stored`, all NULL here. */
lin_status lin_model_create_raw(const lin_config *config, const lin_features *features, const char *phones, int with_stored,
                                lin_model **model, lin_error *err);
/* Accepts NULL. */
void lin_model_destroy(lin_model *model);

/*
 * Copies the weights of `from`, and seals `to`. Both have the same parameters; they may differ in direction and in the taps of
 * their convolutions: a tap keeps its distance in time from the frame, and the taps that only `to` has become 0. `from` may have
 * no decays where `to` has some, or fixed ones where `to` has gated ones: the tensors that it lacks keep their values. Its
 * feed-forward may be narrower: the units that it lacks keep the values of their inputs, and their outputs become 0, so that they
 * change nothing. So may its heads, in a pre-norm network of linear attention (elu + 1) without sinusoids: new channels begin as
 * 0, the norms' weights make up for their number, and new elements of keys begin near 0, so that the function is nearly the same
 * (the mean over the channels counts less). LIN_MISMATCH, with nothing changed, if the networks differ otherwise, `from` has taps
 * that `to` has not, or the phones differ.
 */
lin_status lin_model_copy_weights(lin_model *to, const lin_model *from, lin_error *err);

/* Replaces the texts that are not NULL (the model keeps copies); provenance must be JSON or "". On failure nothing changes. */
lin_status lin_model_label(lin_model *model, const char *name, const char *license, const char *provenance, lin_error *err);

/* Recomputes model->fingerprint: 64 bits over configuration (without dropout), feature parameters, phones, mean, istd and
 * weights, the same on every machine. A stream's saved state contains it, so that another model refuses the state. */
void lin_model_seal(lin_model *model);

/* The fingerprint with other weights in place of model->values; without tensors in `stored`. */
uint64_t lin_model_fingerprint(const lin_model *model, const float *values);

#endif
