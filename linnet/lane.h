/*
 * lane.h - one lane of sound through the network: frames in, rows of log-probabilities out as they become certain, and a network
 * that is reset where the receiver of the rows says so.
 *
 * Pipeline: frontend/source -> [this: model/stream, frontend/loudness] -> linnet/utterances, or any other receiver of rows.
 *
 *   lin_lane_create(&recognizer, &lane, &err);
 *   lin_lane_begin(lane);
 *   while (sound comes) lin_lane_feed(lane, worker, frames, n, &sink, &err);     // rows go to the sink
 *   lin_lane_finish(lane, worker, &sink, &err);
 *   lin_lane_destroy(lane);
 *
 * A reset clears the past but loses no sound: frames that the network had as look-ahead are given to it again, as the beginning of
 * what follows. Any split of the same frames into calls gives the same rows, on a CPU to the bit.
 * Nothing is allocated between creation and destruction. Threads: one at a time per lane. The recogniser must outlive it.
 */
#ifndef LIN_LINNET_LANE_H
#define LIN_LINNET_LANE_H

#include "linnet/state.h"
#include "linnet/utterances.h"
#include "model/stream.h"

/* Receives rows as lin_utterances_push does. may_reset: whether one of the next `rows` rows may reset the network (NULL: none).
 * loudness: 1 if it wants to know it, else loudness_db is NULL. If rows does not return LIN_OK the call ends with its status. */
typedef struct lin_lane_sink {
    void *context;
    lin_status (*rows)(void *context, const float *logp, int n, const double *loudness_db, int *taken, int *reset, lin_error *err);
    int (*may_reset)(const void *context, int rows);
    int loudness;
} lin_lane_sink;

typedef struct lin_lane lin_lane;
struct lin_recognizer; /* linnet/recognizer.h */

/* A sink that gives all rows to these utterances. */
lin_lane_sink lin_lane_to(lin_utterances *utterances);

/* LIN_UNSUPPORTED for a model that needs whole utterances. On failure *lane is NULL. */
lin_status lin_lane_create(const struct lin_recognizer *recognizer, lin_lane **lane, lin_error *err);
void lin_lane_destroy(lin_lane *lane);

/* A new stream. */
void lin_lane_begin(lin_lane *lane);

/* frames [n, D] of unnormalised log-mel features. */
lin_status lin_lane_feed(lin_lane *lane, lin_worker *worker, const float *frames, int n, const lin_lane_sink *sink, lin_error *err);

/* The last frames, before lin_lane_finish: they may go through the network with the rows that wait for look-ahead. */
lin_status lin_lane_feed_last(lin_lane *lane, lin_worker *worker, const float *frames, int n, const lin_lane_sink *sink,
                              lin_error *err);

/* The sound has ended: the rows that waited for look-ahead. Only begin or destroy may follow. */
lin_status lin_lane_finish(lin_lane *lane, lin_worker *worker, const lin_lane_sink *sink, lin_error *err);

/* Resets the network behind the last row; it is given what it had as look-ahead. */
lin_status lin_lane_reset_network(lin_lane *lane, lin_worker *worker, const lin_lane_sink *sink, lin_error *err);

/* Frames taken in and rows given since the stream began, resets or not. */
int64_t lin_lane_frames(const lin_lane *lane);
int64_t lin_lane_rows(const lin_lane *lane);

/* The network's stream between two calls, to be saved. After it is loaded lin_lane_go_on continues with it behind so many frames
 * and rows; was_reset: 1 if the network may have been reset since the stream began. LIN_FORMAT: these contradict each other. */
lin_stream *lin_lane_stream(const lin_lane *lane);
lin_status lin_lane_go_on(lin_lane *lane, int64_t frames, int64_t rows, int was_reset, lin_error *err);

/*
 * Lane number i of a saved stream, network and decoding: into a state that lin_state_begin made, and from one. ends: when the
 * loaded stream has endpoints, which the state must agree with; NULL: its endpoint is left as it is. Errors of lin_stream_load,
 * lin_state_get_decoder, lin_state_get_endpoint and lin_lane_go_on.
 */
lin_status lin_lane_save(const lin_lane *lane, lin_utterances *utterances, lin_state *state, int i, lin_error *err);
lin_status lin_lane_load(lin_lane *lane, lin_utterances *utterances, const lin_state *state, int i, const lin_reset_options *ends,
                         lin_error *err);

#endif
