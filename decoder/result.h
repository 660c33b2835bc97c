/*
 * result.h - what was recognised in one utterance: who, how long, which phones, when and how surely.
 *
 * Pipeline: decoder/greedy -> [this] -> decoder/writers.
 *
 *   lin_result result = {0};                                     // an empty result needs no creation
 *   lin_result_begin(&result, "utt-1", NULL, 1, &err);
 *   lin_result_add(&result, phones, n, 0.01, &err);              // as often as phones come
 *   result.seconds = 2.5;
 *   ... writers ...
 *   lin_result_free(&result);
 *
 * Threads: one at a time per result.
 */
#ifndef LIN_DECODER_RESULT_H
#define LIN_DECODER_RESULT_H

#include <stddef.h>

#include "decoder/greedy.h"
#include "kernels/status.h"

typedef struct lin_result_phone {
    int label; /* index into the phone set */
    float confidence;
    double start_s, end_s; /* seconds from the beginning of the audio */
} lin_result_phone;

typedef struct lin_result {
    char *id;       /* of the utterance; any bytes but NUL */
    char *speaker;  /* "" when unknown */
    int channel;    /* counted from 1 */
    double seconds; /* of audio */
    lin_result_phone *phones;
    int n_phones, capacity;
} lin_result;

/* Empties the result and names it; keeps its memory for the next utterance. speaker may be NULL. On failure the result is empty. */
lin_status lin_result_begin(lin_result *result, const char *id, const char *speaker, int channel, lin_error *err);

/* Appends n phones whose frames are seconds_per_frame apart (10 ms times the frame stacking). On failure nothing is appended. */
lin_status lin_result_add(lin_result *result, const lin_greedy_phone *phones, int n, double seconds_per_frame, lin_error *err);

/* Releases everything; the result is empty again. */
void lin_result_free(lin_result *result);

#endif
