/*
 * speakers.h - mean and deviation of each speaker's features, for models that are normalised by speaker.
 *
 *   lin_speakers speakers = {0};
 *   lin_speakers_measure(&speakers, &inputs, &recognizer, jobs, &err);       // reads all the sound once
 *   const lin_speaker *s = lin_speakers_find(&speakers, input->speaker);     // NULL: unknown; a file then stands for itself
 *   lin_speakers_free(&speakers);
 */
#ifndef LIN_APP_SPEAKERS_H
#define LIN_APP_SPEAKERS_H

#include "app/inputs.h"
#include "linnet/recognize.h"

typedef struct lin_speaker {
    const char *name;   /* owned by the inputs */
    float *mean, *istd; /* [D]; NULL if none of the speaker's sound could be read */
} lin_speaker;

typedef struct lin_speakers {
    lin_speaker *items;
    int n;
} lin_speakers;

/* The speakers of all inputs that name one, several files at once. A file that cannot be read is passed over here: recognising it will
 * report it. */
lin_status lin_speakers_measure(lin_speakers *speakers, const lin_inputs *inputs, const lin_recognizer *recognizer, int jobs,
                                lin_error *err);
const lin_speaker *lin_speakers_find(const lin_speakers *speakers, const char *name);
void lin_speakers_free(lin_speakers *speakers);

#endif
