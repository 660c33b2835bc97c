/*
 * live.h - the growing result of sound without an end: utterance after utterance, phones and words that settle one by one.
 *
 * Pipeline: frontend/source (lin_extractor) -> [this: model/stream -> decoder/search and endpoint] -> whoever shows results.
 * What is settled never changes; the best guess at what comes behind it may. How soon something settles is the search's matter: a
 * phone of greedy decoding when its run of rows has ended, one of a beam, or a word, when all hypotheses have it. An endpoint ends
 * the utterance, and the search with it; the network then begins anew (resets = 1), or goes on with all it has heard.
 *
 *   lin_live_options o = lin_live_options_default();
 *   lin_live_create(&recognizer, &o, &(lin_live_sink){self, show}, &live, &err);
 *   while (sound comes) lin_live_feed(live, frames, n, &err);              // show() is called when something has changed
 *   lin_live_finish(live, &err);                                           // the last utterance
 *   lin_live_destroy(live);
 *
 * What a reset forgets is the past, never the sound: frames that the network had been given as look-ahead are given to it again, as
 * the beginning of the next utterance. Any split of the same frames into calls gives the same utterances, to the bit on a CPU, and
 * without resets all utterances together are what linnet transcribe writes, if decoding is greedy: other searches begin anew with
 * each utterance. Memory grows with the longest utterance alone. Threads: one at a time. The recogniser must outlive it.
 */
#ifndef LIN_LINNET_LIVE_H
#define LIN_LINNET_LIVE_H

#include "decoder/endpoint.h"
#include "decoder/result.h"
#include "linnet/decoding.h"
#include "linnet/recognize.h"

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
    /* How rows become phones or words; must outlive it. NULL: the best label of each row. Its context may be replaced between
     * calls, but not with alternatives (n_best over 1), which the final form of an utterance then has. */
    const lin_decoding *decoding;
} lin_live_options;

lin_live_options lin_live_options_default(void);

/* An utterance as it stands. Valid during the call that is given it. */
typedef struct lin_live_view {
    int utterance;             /* 1, 2, ...: those of which there was something to show */
    int revision;              /* 1, 2, ... of this utterance; the final one is the last */
    const lin_result *result;  /* settled phones and words, times from the beginning of the sound; its id means nothing */
    const lin_result *partial; /* the best guess at what follows, which may still change. In the final form empty */
    int incomplete;            /* the last word of the partial goes on: only its first phones are known */
    int old_phones, old_words; /* of the result, that were settled in the view before */
    double start_s, end_s;     /* of its first and last phone, those of the partial included */
    double heard_s;            /* sound up to here has been judged; what is behind waits for look-ahead */
    lin_live_end end;          /* LIN_LIVE_GROWS, or this is its final form */
} lin_live_view;

/* Called after every feed that changed something, and for every utterance that ends. Not LIN_OK: the feed ends with it. Utterances
 * in which there never was a phone are not told; one whose guesses have all been dropped is, and ends empty. */
typedef struct lin_live_sink {
    void *context;
    lin_status (*show)(void *context, const lin_live_view *view, lin_error *err);
} lin_live_sink;

typedef struct lin_live lin_live;

/* LIN_UNSUPPORTED for a model that needs whole utterances. On failure *live is NULL. */
lin_status lin_live_create(const lin_recognizer *recognizer, const lin_live_options *options, const lin_live_sink *sink,
                           lin_live **live, lin_error *err);
void lin_live_destroy(lin_live *live);

/* frames [n, D] of unnormalised log-mel features. Allocates nothing but the room of an utterance, or of a guess, longer than all
 * before. */
lin_status lin_live_feed(lin_live *live, const float *frames, int n, lin_error *err);

/* The utterance is over, whatever the rules say. */
lin_status lin_live_end_utterance(lin_live *live, lin_error *err);

/* The sound is over: what waits for look-ahead is judged without it, and the utterance ends. Only destroy may follow. */
lin_status lin_live_finish(lin_live *live, lin_error *err);

/* What the model makes a phone of greedy decoding wait for by its construction, in seconds from the end of the phone until it is
 * settled: the frames of one step, look-ahead, and what a window reaches beyond its hop. */
typedef struct lin_live_delay {
    double step_s, ahead_s, window_s, total_s;
} lin_live_delay;

lin_live_delay lin_live_construction(const lin_recognizer *recognizer);

#endif
