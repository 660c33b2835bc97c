/*
 * voice.h - a vector that tells voices apart, for a piece of speech.
 *
 * Pipeline: frontend/fbank -> [this] -> linnet/diarizer. The network is a bidirectional recogniser's up to its last norm, then
 * the mean and deviation over time of each channel, and a linear layer (x-vectors: Snyder et al. 2018). It is trained to tell
 * the voices of a corpus apart by the angles between vectors (config.h, voice; train/train.h), so two pieces are of one voice
 * if their cosine, the product of the vectors, is high.
 *
 *   lin_voice *voice;  lin_voice_open("voice.safetensors", &voice, &err);
 *   float *vector = ... lin_voice_size(voice) floats ...
 *   lin_voice_vector(voice, frames, n_frames, vector, &err);
 *   lin_voice_destroy(voice);
 *
 * An open network is immutable and may be shared: any number of threads may ask for vectors at once.
 */
#ifndef LIN_MODEL_VOICE_H
#define LIN_MODEL_VOICE_H

#include "model/config.h"

typedef struct lin_voice lin_voice;

enum { LIN_VOICE_MOST = 6000 }; /* frames of a piece at most: a minute */

/* What lin_model_load returns; LIN_UNSUPPORTED if the model is not one of voices. On failure *voice is NULL. */
lin_status lin_voice_open(const char *path, lin_voice **voice, lin_error *err);
/* Accepts NULL. */
void lin_voice_destroy(lin_voice *voice);

/* D, the elements of a vector; the feature parameters and bins that its frames must have. */
int lin_voice_size(const lin_voice *voice);
const lin_features *lin_voice_features(const lin_voice *voice);
int lin_voice_bins(const lin_voice *voice);

/*
 * The vector of a piece.
 *   frames  [n_frames, bins] log-mel energies of one voice, not normalised, 1 <= n_frames <= LIN_VOICE_MOST; the network is
 *           trained on 1 to 3 s (100 to 300)
 *   vector  [D], of Euclidean length 1
 * Allocates what the pass needs, about 15 kB per step of the network (3 frames), and frees it. LIN_INVALID for another n_frames;
 * LIN_NO_MEMORY.
 */
lin_status lin_voice_vector(const lin_voice *voice, const float *frames, int n_frames, float *vector, lin_error *err);

#endif
