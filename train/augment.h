/*
 * augment.h - draws the augmentation of an utterance: its speaking rate, its acoustics (level, tilt, vocal tract, room, noise,
 * background voices, limited band), and its masks.
 *
 * Pipeline: [this] -> train/train_data -> the operation gather, which applies them (kernels/acoustics.h has the equations).
 * Pure functions of the options, the length and power of the utterance, and the key. The trainer's key is that of (seed, epoch,
 * utterance), so draws are the same after a resume, with any number of threads and on any device.
 *
 *   lin_acoustics_table *table;
 *   lin_acoustics_create(&options, &fbank_config, &table, &err);
 *   if (lin_acoustics_draw(table, T, power, key, &a, bins)) apply a; else leave it as recorded
 *   lin_acoustics_destroy(table);
 *
 * Another speaking rate (tempo) interpolates frames in time: speed perturbation (Ko et al. 2015), but pitch and formants stay.
 *
 * Speakers differ in the length of their vocal tract, which scales the frequencies of all formants (vocal tract length
 * perturbation, Jaitly and Hinton 2013): frequencies below four fifths of the highest one are multiplied by `factor`; those above
 * are mapped linearly, so that the highest one stays.
 *
 * Noise is one of: a power law between white and brown, the long-term spectrum of speech, mains hum at 50 or 60 Hz with
 * harmonics, chords that change and fade, bursts that fade. Its level drifts; in each bin its power varies from frame to frame as
 * that of noise does in this filterbank (frames are independent, which those of real noise nearly are).
 *
 * Masks are SpecAugment (Park et al. 2019, section 2): bands of bins and stretches of frames, without time warping, which the
 * paper found least useful.
 */
#ifndef LIN_TRAIN_AUGMENT_H
#define LIN_TRAIN_AUGMENT_H

#include "frontend/fbank.h"
#include "kernels/ops.h"

enum { LIN_AUGMENT_MOST = 100 }; /* masks of a kind */

/* The options of linnet train have the ranges. */
typedef struct lin_augment_options {
    double gain_db;      /* the level changes by up to this, up or down, uniformly; 0: none */
    double tilt_db;      /* the highest bin changes by up to this relative to the lowest one, those between in proportion */
    double warp;         /* frequencies are scaled by a factor that is uniform in 1 - warp to 1 + warp */
    double tempo;        /* the speaking rate is scaled by a factor that is uniform in 1 - tempo to 1 + tempo */
    double noise_part;   /* probability of noise in an utterance; likewise for the parts below */
    double babble_part;  /* of other voices: three to six utterances of the training set at once */
    double snr_low_db;   /* of noise and of voices, uniform between the two */
    double snr_high_db;
    double band_part;    /* nothing above 3.4, 4, 5.5 or 7 kHz, as far as the filterbank reaches; in half: nothing below 300 Hz */
    double room_part;    /* reverberation of 0.1 to 1 s, 6 dB above to 15 dB below the direct sound */
    double silence_part; /* noise alone, 0 to 60 dB below the utterance, which is replaced */
    int freq_masks;      /* m_F, number of masked bands */
    int freq_width;      /* F: a band has 0..F bins, uniformly */
    int time_masks;      /* m_T */
    int time_width;      /* T: a stretch has 0..T frames, uniformly */
    double time_part;    /* p: a stretch is at most this part of the utterance's frames */
} lin_augment_options;

typedef struct lin_acoustics_table lin_acoustics_table;

/* The speaking rate of the utterance with this key: 1.2 is a fifth faster. Exactly within 1 - tempo and 1 + tempo. */
double lin_augment_rate(const lin_augment_options *options, uint64_t key);

/* Whether the acoustics of any utterance are changed. */
int lin_acoustics_any(const lin_augment_options *options);

/* Errors of lin_fbank_check, or LIN_NO_MEMORY. */
lin_status lin_acoustics_create(const lin_augment_options *options, const lin_fbank_config *config, lin_acoustics_table **table,
                                lin_error *err);
void lin_acoustics_destroy(lin_acoustics_table *table);

/*
 * Draws the acoustics of an utterance of T >= 1 frames with the mean power `power` (the sum over the bins). Returns 0 if it stays
 * as recorded. Otherwise fills bins [LIN_ACOUSTICS_ROWS, D] and *a, in which the caller sets a->bins (to them) and the utterances
 * of the background voices, whose `scale` is the mean power that each must get.
 */
int lin_acoustics_draw(const lin_acoustics_table *table, int T, float power, uint64_t key, lin_acoustics *a, float *bins);

/* Whether lin_acoustics_draw with this key gives noise alone. */
int lin_acoustics_silent(const lin_acoustics_table *table, uint64_t key);

/* Chooses the masked parts of an utterance [T, D]: freq_masks + time_masks of them, some empty. Returns their number. */
int lin_augment_masks(int T, int D, const lin_augment_options *options, uint64_t key, lin_mask *masks);

#endif
