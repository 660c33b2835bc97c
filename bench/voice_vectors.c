// voice_vectors.c - the vectors of the pieces of a feature cache, for bench/voices.py:
//
//   voice_vectors MODEL CACHE FRAMES    for each piece of FRAMES frames, consecutive in each utterance, a line: utterance,
//                                       speaker, first frame, vector; on standard error the time for a second of sound
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/system.h"
#include "model/voice.h"
#include "train/dataset.h"

static int give_up(const lin_error *err)
{
    fprintf(stderr, "voice_vectors: %s\n", err->message);
    return 1;
}

int main(int argc, char **argv)
{
    lin_voice *voice;
    lin_dataset *set;
    lin_error err = {0};
    const int n = argc == 4 ? atoi(argv[3]) : 0;
    if (n < 1) return fprintf(stderr, "usage: voice_vectors MODEL CACHE FRAMES\n"), 1;
    if (lin_voice_open(argv[1], &voice, &err) != LIN_OK) return give_up(&err);
    if (lin_dataset_open(argv[2], &set, &err) != LIN_OK) return give_up(&err);
    if (set->D != lin_voice_bins(voice) || !lin_features_equal(&set->features, lin_voice_features(voice)))
        return fprintf(stderr, "voice_vectors: %s has another filterbank than %s\n", argv[2], argv[1]), 1;
    const int D = lin_voice_size(voice);
    float *vector = lin_alloc((size_t)D, sizeof *vector);
    double seconds = 0, sound = 0;
    for (int i = 0; i < set->count && vector; i++) {
        const lin_dataset_utterance *u = &set->utterances[i];
        float *x = lin_alloc((size_t)u->frames * (size_t)set->D, sizeof *x);
        if (!x) return 1;
        lin_dataset_features(set, i, x);
        for (int at = 0; at + n <= u->frames; at += n) {
            const double begin = lin_now();
            if (lin_voice_vector(voice, x + (size_t)at * (size_t)set->D, n, vector, &err) != LIN_OK) return give_up(&err);
            seconds += lin_now() - begin;
            sound += n * set->features.hop_ms / 1000;
            printf("%s\t%s\t%d\t", u->id, lin_dataset_speaker_name(set, u->speaker), at);
            for (int d = 0; d < D; d++) printf("%s%.6f", d ? " " : "", (double)vector[d]);
            printf("\n");
        }
        lin_free(x);
    }
    fprintf(stderr, "%.3f ms for a second of sound\n", 1000 * seconds / sound);
    lin_free(vector);
    lin_dataset_close(set);
    lin_voice_destroy(voice);
    return 0;
}
