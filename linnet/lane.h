/*
 * lane.h - one lane of sound through the network: rows of log-probabilities as they become certain, endpoints between them, and a
 * network that begins anew at endpoints.
 *
 * Pipeline: frontend/source -> [this: model/stream and decoder/endpoint] -> whoever decodes: linnet/recognize, app/live.
 *
 *   lin_lane_create(&recognizer, &lane, &err);
 *   lin_lane_begin(lane, &options);
 *   while (sound comes) lin_lane_feed(lane, worker, frames, n, &sink, &err);     // rows and endpoints go to the sink
 *   lin_lane_finish(lane, worker, &sink, &err);
 *   lin_lane_destroy(lane);
 *
 * What a reset forgets is the past, never the sound: frames that the network had been given as look-ahead are given to it again,
 * as the beginning of what follows. Any split of the same frames into calls gives the same rows and endpoints, on a CPU to the bit.
 * Nothing is allocated between creation and destruction. Threads: one at a time per lane. The recogniser must outlive it.
 */
#ifndef LIN_LINNET_LANE_H
#define LIN_LINNET_LANE_H

#include "decoder/endpoint.h"
#include "model/stream.h"

typedef struct lin_lane_options {
    int endpoints;              /* 0: rows only; nothing below counts */
    lin_endpoint_options rules;
    int resets;                 /* 1: the network begins anew at endpoints */
    double from_s;              /* endpoints earlier in the stream than this many seconds are passed over */
} lin_lane_options;

/* Receives rows [n, V], and after them the endpoint behind the last row, if there is one; row: the number of the next row since
 * the stream began. Not LIN_OK: the call ends with it. endpoint is not called where endpoints = 0. */
typedef struct lin_lane_sink {
    void *context;
    lin_status (*rows)(void *context, const float *logp, int n, lin_error *err);
    lin_status (*endpoint)(void *context, lin_endpoint_rule rule, int64_t row, lin_error *err);
} lin_lane_sink;

typedef struct lin_lane lin_lane;
struct lin_recognizer; /* linnet/recognize.h */

/* LIN_UNSUPPORTED for a model that needs whole utterances. On failure *lane is NULL. */
lin_status lin_lane_create(const struct lin_recognizer *recognizer, lin_lane **lane, lin_error *err);
void lin_lane_destroy(lin_lane *lane);

/* A new stream. LIN_INVALID for rules that lin_endpoint_check refuses. */
lin_status lin_lane_begin(lin_lane *lane, const lin_lane_options *options, lin_error *err);

/* frames [n, D] of unnormalised log-mel features. */
lin_status lin_lane_feed(lin_lane *lane, lin_worker *worker, const float *frames, int n, const lin_lane_sink *sink, lin_error *err);

/* The sound is over: the rows that waited for look-ahead. Only begin or destroy may follow. */
lin_status lin_lane_finish(lin_lane *lane, lin_worker *worker, const lin_lane_sink *sink, lin_error *err);

/* An endpoint that no rule found: with resets the network begins anew, and is given what it had as look-ahead. */
lin_status lin_lane_end_utterance(lin_lane *lane, lin_worker *worker, const lin_lane_sink *sink, lin_error *err);

/* Frames taken in and rows given since the stream began, resets or not. */
int64_t lin_lane_frames(const lin_lane *lane);
int64_t lin_lane_rows(const lin_lane *lane);

/* The stream and the endpoint rules as they stand between two calls, to be put away. After loading the stream,
 * lin_lane_go_on makes the lane go on with it: rows given before, and the endpoint as it was (NULL: without endpoints). LIN_FORMAT:
 * these contradict each other. */
lin_stream *lin_lane_stream(const lin_lane *lane);
const lin_endpoint *lin_lane_endpoint(const lin_lane *lane);
lin_status lin_lane_go_on(lin_lane *lane, int64_t frames, int64_t rows, const lin_endpoint *endpoint, lin_error *err);

#endif
