/*
 * front.h - the bridge between frontend/ and model/, which do not include each other: both describe the same filterbank. Frames
 * of whole files.
 */
#ifndef LIN_LINNET_FRONT_H
#define LIN_LINNET_FRONT_H

#include "frontend/source.h"
#include "model/model.h"

/* A part of a sound, in seconds: 0 and infinity are all of it. */
typedef struct lin_part {
    double start_s, end_s;
} lin_part;

/* A piece of sound, as lists of recordings name it. */
typedef struct lin_cut {
    const char *path;
    int is_command; /* path is a command of the shell that writes the sound (lin_audio_open_command) */
    int channel;    /* of a sound with several, counted from 1; 0: as the caller likes */
    lin_part part;  /* end_s 0: to its end */
} lin_cut;

static inline int lin_cut_is_part(const lin_cut *cut) { return cut->part.start_s > 0 || cut->part.end_s > 0; }

/* Converts one description into the other. */
lin_fbank_config lin_fbank_from_model(const lin_features *features, int mel_bins);
lin_features lin_fbank_to_model(const lin_fbank_config *config);

/* ---- whole files in memory ------------------------------------------------------------------------------------------------- */

typedef struct lin_matrix {
    float *data; /* [rows, columns] */
    int rows, columns, capacity;
} lin_matrix;

/* All frames of a cut, one lane; room is reused and grows. The cut's channel replaces that of the options.
 * format (may be NULL) receives the source's, with its warning. */
lin_status lin_front_read_all(const lin_cut *cut, const lin_pcm_format *raw, const lin_feature_options *options,
                              lin_matrix *frames, lin_audio_format *format, lin_error *err);
/* Room for that many rows; existing rows are kept. */
lin_status lin_matrix_reserve(lin_matrix *matrix, int rows, int columns, lin_error *err);
void lin_matrix_free(lin_matrix *matrix);

/*
 * Divides a long sound for a model that needs whole utterances: the number of frames of the next one, from frames [n, D],
 * log-mel, one every hop_ms. All n if they last at most 36 s, the longest utterance that models are trained on; else the sound is
 * cut at the first pause after 4 s, else at the quietest place up to 36 s, at a multiple of `stack` frames. A pause: 0.5 s whose
 * mean is in the lowest fifth between the quietest and the loudest 0.5 s; it is cut in the middle of its quietest 0.5 s.
 */
int lin_front_next_utterance(const float *frames, int n, int D, double hop_ms, int stack);

#endif
