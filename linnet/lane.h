/*
 * lane.h - one lane of sound through the network: frames in, rows of log-probabilities out as they become certain, and a network
 * that is reset where the utterances of these rows say so.
 *
 * Pipeline: frontend/source -> [this: model/stream or model/streams, frontend/loudness] -> linnet/utterances.
 *
 *   lin_lane_create(&recognizer, &lane, &err);
 *   lin_lane_begin(lane);
 *   while (sound comes) lin_lane_feed(lane, worker, frames, n, utterances, &err);     // rows go to the utterances
 *   lin_lane_finish(lane, worker, utterances, &err);
 *   lin_lane_destroy(lane);
 *
 * The network of such a lane is a stream of its own. That of a lane of an engine is a slot of model/streams, which the engine
 * moves on together with others:
 *
 *   lin_lane_create_apart(&recognizer, units, 0, &lane, &err);
 *   to = lin_lane_room(lane, &room); ... lin_lane_add(lane, n);                       // n frames were written to `to`
 *   frames = lin_lane_next(lane, most, &n);                                           // what the network is given next
 *   lin_lane_take(lane, utterances, logp, rows, &taken, &reset, &err);                // the rows that came of it
 *
 * A reset clears the past but loses no sound: frames that the network had as look-ahead are given to it again, as the beginning
 * of what follows, and so are those of rows that were computed in vain. Any split of the same frames into calls gives the same
 * rows, on a CPU to the bit. Nothing is allocated between creation and destruction but by lin_lane_reserve. Threads: one at a
 * time per lane. The recogniser must outlive it.
 */
#ifndef LIN_LINNET_LANE_H
#define LIN_LINNET_LANE_H

#include "linnet/state.h"
#include "linnet/utterances.h"
#include "model/stream.h"

typedef struct lin_lane lin_lane;
struct lin_recognizer; /* linnet/recognizer.h */

/* LIN_UNSUPPORTED for a model that needs whole utterances. On failure *lane is NULL. */
lin_status lin_lane_create(const struct lin_recognizer *recognizer, lin_lane **lane, lin_error *err);
void lin_lane_destroy(lin_lane *lane);

/* A new stream. */
void lin_lane_begin(lin_lane *lane);

/* frames [n, D] of unnormalised log-mel features. */
lin_status lin_lane_feed(lin_lane *lane, lin_worker *worker, const float *frames, int n, lin_utterances *utterances,
                         lin_error *err);

/* The last frames, before lin_lane_finish: they may go through the network with the rows that wait for look-ahead. */
lin_status lin_lane_feed_last(lin_lane *lane, lin_worker *worker, const float *frames, int n, lin_utterances *utterances,
                              lin_error *err);

/* The sound has ended: the rows that waited for look-ahead. Only begin or destroy may follow. */
lin_status lin_lane_finish(lin_lane *lane, lin_worker *worker, lin_utterances *utterances, lin_error *err);

/* The network forgets what lies before the next row; advance gives it what it had as look-ahead. */
void lin_lane_forget(lin_lane *lane);

/* Gives the network, one of the lane's own, what was added (lin_lane_room) and not given to it. */
lin_status lin_lane_advance(lin_lane *lane, lin_worker *worker, lin_utterances *utterances, lin_error *err);

/* ---- units: frames, or samples of a network that takes sound --------------------------------------------------------------- */

/* A lane whose network is elsewhere. hop: samples from one frame to the next, where the network takes sound; 0: it takes frames.
 * Room for so many units, those of rows that are not taken among them. */
lin_status lin_lane_create_apart(const struct lin_recognizer *recognizer, int units, int hop, lin_lane **lane, lin_error *err);
lin_status lin_lane_reserve(lin_lane *lane, int units, lin_error *err);
size_t lin_lane_bytes(const lin_lane *lane);

/* Where the next units are to be written, and how many there is room for; then how many were. */
float *lin_lane_room(lin_lane *lane, int *units);
void lin_lane_add(lin_lane *lane, int n);

/* Units that the network has not been given, and where they are; and those of rows that have not been taken, these among them. */
int lin_lane_unfed(const lin_lane *lane);
const float *lin_lane_waiting(const lin_lane *lane);
int lin_lane_kept(const lin_lane *lane);

/* Up to `most` units that the network is given next: they count as given. Valid until the lane is used again. */
const float *lin_lane_next(lin_lane *lane, int most, int *n);

/* Rows that came out, to the utterances: `taken` of them count. reset: the network is to be reset before it is given what
 * lin_lane_next then begins with. */
lin_status lin_lane_take(lin_lane *lane, lin_utterances *utterances, const float *logp, int rows, int *taken, int *reset,
                         lin_error *err);

/* The same of rows that were decoded where the network is. */
void lin_lane_pass(lin_lane *lane, int rows);

/* ---- saved streams --------------------------------------------------------------------------------------------------------- */

/* Frames taken in and rows given since the stream began, resets or not. */
int64_t lin_lane_frames(const lin_lane *lane);
int64_t lin_lane_rows(const lin_lane *lane);

/* The network's stream between two calls, to be saved. */
lin_stream *lin_lane_stream(const lin_lane *lane);

/* A lane whose network is elsewhere is saved from, and loaded into, a stream that it is lent: NULL takes it back. */
void lin_lane_lend(lin_lane *lane, lin_stream *stream);

/*
 * Lane number i of a saved stream, network and decoding: into a state that lin_state_begin made, and from one. ends: when the
 * loaded stream has endpoints, which the state must agree with; NULL: its endpoint is left as it is. Errors of lin_stream_load,
 * lin_state_get_decoder and lin_state_get_endpoint; LIN_FORMAT where the parts contradict each other.
 */
size_t lin_lane_frames_bytes(const lin_lane *lane, const lin_utterances *utterances); /* of lin_state_sizes */
lin_status lin_lane_save(const lin_lane *lane, lin_utterances *utterances, lin_state *state, int i, lin_error *err);
lin_status lin_lane_load(lin_lane *lane, lin_utterances *utterances, const lin_state *state, int i, const lin_reset_options *ends,
                         lin_error *err);

#endif
