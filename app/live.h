/*
 * live.h - the growing result of sound without an end: utterance after utterance, phones that settle one by one.
 *
 * Pipeline: frontend/source (lin_extractor) -> [this: model/stream -> decoder/greedy and endpoint] -> whoever shows results.
 * A phone is settled when its run of rows has ended: it never changes after that. The open run, if it is a phone, is what may still
 * change. An endpoint ends the utterance; the network then begins anew (resets = 1), or goes on with all it has heard.
 *
 *   lin_live_options o = lin_live_options_default();
 *   lin_live_create(&recognizer, &o, &(lin_live_sink){self, show}, &live, &err);
 *   while (sound comes) lin_live_feed(live, frames, n, &err);              // show() is called when something has changed
 *   lin_live_finish(live, &err);                                           // the last utterance
 *   lin_live_destroy(live);
 *
 * What a reset forgets is the past, never the sound: frames that the network had been given as look-ahead are given to it again, as
 * the beginning of the next utterance. Any split of the same frames into calls gives the same utterances, to the bit on a CPU, and
 * without resets all utterances together are what linnet transcribe writes. Memory grows with the longest utterance alone.
 * Threads: one at a time. The recogniser must outlive it.
 */
#ifndef LIN_APP_LIVE_H
#define LIN_APP_LIVE_H

#include "app/recognize.h"
#include "decoder/endpoint.h"
#include "decoder/result.h"

/* Why an utterance ended. */
typedef enum lin_live_end {
    LIN_LIVE_GROWS,  /* it has not */
    LIN_LIVE_BEFORE, /* the rules of decoder/endpoint.h */
    LIN_LIVE_AFTER,
    LIN_LIVE_LONGEST,
    LIN_LIVE_ASKED,  /* lin_live_end_utterance */
    LIN_LIVE_STOPPED /* the sound has ended */
} lin_live_end;

/* "", "before", "after", "longest", "asked", "stopped". */
const char *lin_live_end_name(lin_live_end end);

typedef struct lin_live_options {
    int resets;                 /* the network forgets at endpoints */
    lin_endpoint_options rules; /* all three 0: one utterance without end */
} lin_live_options;

lin_live_options lin_live_options_default(void);

/* An utterance as it stands. Valid during the call that is given it. */
typedef struct lin_live_view {
    int utterance;            /* 1, 2, ...: those in which there is a phone */
    int revision;             /* 1, 2, ... of this utterance; the final one is the last */
    const lin_result *result; /* settled phones, times from the beginning of the sound; its id means nothing */
    int has_open;
    lin_result_phone open; /* what may still change */
    double start_s, end_s; /* of its first and last phone, the open one included */
    double heard_s;        /* sound up to here has been judged; what is behind waits for look-ahead */
    lin_live_end end;      /* LIN_LIVE_GROWS, or this is its final form */
} lin_live_view;

/* Called after every feed that changed something, and for every utterance that ends. Not LIN_OK: the feed ends with it. Utterances
 * without a phone are not told. */
typedef struct lin_live_sink {
    void *context;
    lin_status (*show)(void *context, const lin_live_view *view, lin_error *err);
} lin_live_sink;

typedef struct lin_live lin_live;

/* LIN_UNSUPPORTED for a model that needs whole utterances. On failure *live is NULL. */
lin_status lin_live_create(const lin_recognizer *recognizer, const lin_live_options *options, const lin_live_sink *sink,
                           lin_live **live, lin_error *err);
void lin_live_destroy(lin_live *live);

/* frames [n, D] of unnormalised log-mel features. Allocates nothing but the room of an utterance longer than all before. */
lin_status lin_live_feed(lin_live *live, const float *frames, int n, lin_error *err);

/* The utterance is over, whatever the rules say. */
lin_status lin_live_end_utterance(lin_live *live, lin_error *err);

/* The sound is over: what waits for look-ahead is judged without it, and the utterance ends. Only destroy may follow. */
lin_status lin_live_finish(lin_live *live, lin_error *err);

/* What the model makes a phone wait for by its construction, in seconds from the end of the phone until it is settled: the frames
 * of one step, look-ahead, and what a window reaches beyond its hop. */
typedef struct lin_live_delay {
    double step_s, ahead_s, window_s, total_s;
} lin_live_delay;

lin_live_delay lin_live_construction(const lin_recognizer *recognizer);

#endif
