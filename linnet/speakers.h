/*
 * speakers.h - mean and deviation of each speaker's features, for models that are normalised by speaker.
 *
 *   lin_speakers speakers = {0};
 *   lin_speakers_measure(&speakers, &recognizer, cuts, names, n, jobs, &err);   // reads all the sound once
 *   const lin_speaker *s = lin_speakers_find(&speakers, "anna");                 // NULL: unknown; use the file's own
 *   ... lin_sound.mean = s->mean, lin_sound.istd = s->istd ...
 *   lin_speakers_free(&speakers);
 *
 * Threads: lin_speakers_measure starts its own; then it is constant.
 */
#ifndef LIN_LINNET_SPEAKERS_H
#define LIN_LINNET_SPEAKERS_H

#include "linnet/recognizer.h"

typedef struct lin_speaker {
    const char *name;   /* owned by the caller of lin_speakers_measure */
    float *mean, *istd; /* [D]; NULL if none of the speaker's sound could be read */
} lin_speaker;

typedef struct lin_speakers {
    lin_speaker *items;
    int n;
} lin_speakers;

/*
 * The speakers of cuts [n], named by names [n], "" where unknown; the names must outlive the speakers. jobs: files read at
 * once, 0: one per core. A file that cannot be read is left out: recognising it will report it. LIN_STOPPED when the recogniser
 * was stopped, LIN_NO_MEMORY. Release it also after a failure.
 */
lin_status lin_speakers_measure(lin_speakers *speakers, const lin_recognizer *recognizer, const lin_cut *cuts,
                                const char *const *names, int n, int jobs, lin_error *err);
const lin_speaker *lin_speakers_find(const lin_speakers *speakers, const char *name);
void lin_speakers_free(lin_speakers *speakers);

#endif
