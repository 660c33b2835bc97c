/*
 * diarizer.h - who speaks when, in one channel: each phone of a result gets the number of its speaker.
 *
 * Pipeline: frames and a result -> [this: windows of 1.5 s, model/voice, clusters, a path] -> lin_result_phone.speaker.
 * Speech is divided at pauses and into windows, each of which has a vector of its voice. Windows are clustered by the average of
 * the cosines between their vectors. A path through the words then finds where the speaker changes, as a window may contain two.
 *
 *   lin_diarizer diarizer = {.voice = voice, .wanted = LIN_SPEAKERS_UNKNOWN, .hop_s = 0.01};
 *   lin_diarizer_mark(&diarizer, &frames, &result, start_s, &err);    // of the sound, or an utterance that has ended; times of
 *                                                                     // the result less start_s are the frames'
 *   lin_diarizer_close(&diarizer);
 *
 * Speakers of earlier calls of lin_diarizer_mark are known in later ones: of a live stream each utterance is marked when it ends,
 * and keeps its speakers; then `wanted` is unknown, as not all may have spoken. lin_diarizer_forget begins another sound.
 * Threads: one at a time; the voice may be shared.
 */
#ifndef LIN_LINNET_DIARIZER_H
#define LIN_LINNET_DIARIZER_H

#include "decoder/result.h"
#include "linnet/recognizer.h"
#include "model/voice.h"

enum { LIN_SPEAKERS_UNKNOWN = -1, LIN_SPEAKERS_MOST = 10 };

/* Vectors in groups: of each group the sum of its vectors, by which the average of the cosines between the members of two groups
 * is a product. */
typedef struct lin_voice_groups {
    float *sums;    /* [n, size] */
    float *weights; /* [n] of the vectors in it, in seconds */
    int n, capacity, size;
} lin_voice_groups;

/*
 * Adds vectors [n, size] of length 1 with their weights, except those of weight 0, and joins the two groups with the largest
 * average of cosines, again and again: down to `wanted` groups or, if it is 0, as long as that average is at least `least`. The
 * first `fixed` groups are never joined with each other, and stay the first ones. LIN_NO_MEMORY.
 */
lin_status lin_voice_groups_add(lin_voice_groups *groups, const float *vectors, const float *weights, int n, int fixed,
                                int wanted, double least, lin_error *err);

/* All zero but for the first four: a closed one. */
typedef struct lin_diarizer {
    const lin_voice *voice;
    int wanted;   /* speakers: 1 to LIN_SPEAKERS_MOST, or LIN_SPEAKERS_UNKNOWN */
    int most;     /* of speakers who are not known in number; 0: LIN_SPEAKERS_MOST */
    double hop_s; /* from one frame to the next */
    lin_voice_groups speakers; /* that are known: number 1 is the first */
} lin_diarizer;

/* The phones of the result get their speakers, and the result the vectors of all speakers so far. */
lin_status lin_diarizer_mark(lin_diarizer *diarizer, const lin_matrix *frames, lin_result *result, double start_s,
                             lin_error *err);

void lin_diarizer_forget(lin_diarizer *diarizer);

/* For saved streams: the known speakers as floats [lin_diarizer_count], and back. LIN_FORMAT for floats that are not speakers,
 * and LIN_NO_MEMORY: then none is known. */
size_t lin_diarizer_count(const lin_diarizer *diarizer);
void lin_diarizer_save(const lin_diarizer *diarizer, float *to);
lin_status lin_diarizer_load(lin_diarizer *diarizer, const float *from, size_t count, lin_error *err);

void lin_diarizer_close(lin_diarizer *diarizer);

#endif
