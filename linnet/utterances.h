/*
 * utterances.h - from rows of log-probabilities to results: the only place that does it. Endpoints divide the rows of one lane
 * into utterances; each is decoded; what is settled goes into a result and never changes, what is provisional may.
 *
 * Pipeline: model/stream or model/streams -> rows [n, V] -> [this: decoder/endpoint, linnet/decoding, linnet/joined] -> results.
 * Used by linnet/session (files, microphones) and linnet/engine (many streams): both push rows and reset their network where this
 * says so.
 *
 *   lin_utterances_options o = {.decoding = &decoding, .ends = {.endpoints = 1, .rules = rules, .resets = 1}};
 *   lin_utterances_create(&recognizer, &o, &sink, &u, &err);
 *   lin_utterances_push(u, logp, n, loudness_db, &taken, &reset, &err);   // reset: the network begins anew behind row `taken`
 *   lin_utterances_show(u, &err);                                          // the sink gets a view if something has changed
 *   lin_utterances_finish(u, &err);
 *   lin_utterances_destroy(u);
 *
 * A result holds one utterance, or the whole sound, its utterances joined (lin_utterances_begin).
 * Any split of the same rows into pushes gives the same utterances, results and scores to the bit. Memory grows with the longest
 * result only, and not at all where a sink takes what is settled. Threads: one at a time.
 */
#ifndef LIN_LINNET_UTTERANCES_H
#define LIN_LINNET_UTTERANCES_H

#include "decoder/endpoint.h"
#include "decoder/result.h"
#include "linnet/second_pass.h"

/* An utterance as it stands. Valid during the call that is given it. */
typedef struct lin_session_view {
    int utterance;                 /* 1, 2, ...: those with something to show */
    int revision;                  /* 1, 2, ... of this utterance; the final one is the last */
    const lin_result *settled;     /* phones and words, times from the beginning of the sound; its id means nothing */
    const lin_result *provisional; /* the best hypothesis of what follows them. Empty in the final view */
    int incomplete;                /* the last provisional word goes on: only its first phones are known */
    int old_phones, old_words;     /* settled ones that the view before had */
    double start_s, end_s;         /* of the first and the last phone, provisional ones included */
    double processed_s;            /* sound up to here is decoded; the rest waits for look-ahead */
    linnet_end end;           /* LINNET_GROWS, or this is the final view of the utterance */
    int replaced;                  /* of the final view: `settled` is that of a second pass and may differ from what was settled
                                      in the views before */
} lin_session_view;

/* When utterances end, and what is reset there. */
typedef struct lin_reset_options {
    int endpoints;              /* 0: one utterance without end; nothing below counts */
    lin_endpoint_options rules;
    int resets;                 /* 1: the network is reset at endpoints; 0: it is not, and a phone that one cuts stays one */
    double from_s;              /* endpoints before this time are ignored */
} lin_reset_options;

typedef struct lin_utterances_options {
    const lin_decoding *decoding; /* must outlive it; NULL: greedy */
    lin_reset_options ends;
    /* Where results are shown, the final one of each utterance in which something was found is that of this second pass over its
     * frames (lin_utterances_give_frames). Must outlive it; other streams of the thread may share it. NULL: none. */
    lin_second_pass *second;
} lin_utterances_options;

/* Who is told; every function may be NULL. If one does not return LIN_OK the call that led to it ends with its status. */
typedef struct lin_utterances_sink {
    void *context;
    /* By lin_utterances_show, and when an utterance ends, if there is a change. Not for whole sounds. */
    lin_status (*show)(void *context, const lin_session_view *view, lin_error *err);
    /* After every push: what has settled since the last call, maybe nothing; the result is cleared afterwards. Not with
     * alternatives, nor together with show. */
    lin_status (*settled)(void *context, lin_result *result, lin_error *err);
    /* Before a second pass (begins = 1) and behind it (0): what locks the stream may let it go meanwhile, but not use it. */
    void (*aside)(void *context, int begins);
    /* Rows [n, V] as they come, which are then not decoded: nothing else is called. */
    lin_status (*rows)(void *context, const float *logp, int n, lin_error *err);
} lin_utterances_sink;

typedef struct lin_utterances lin_utterances;

/* LIN_INVALID for rules that lin_endpoint_check refuses. On failure *u is NULL. sink: NULL for none. */
lin_status lin_utterances_create(const lin_recognizer *recognizer, const lin_utterances_options *options,
                                 const lin_utterances_sink *sink, lin_utterances **u, lin_error *err);
void lin_utterances_destroy(lin_utterances *u);

/* Room, so that nothing is allocated while at most so many rows are pushed at once and a sink takes what is settled (greedy). */
lin_status lin_utterances_reserve(lin_utterances *u, int rows, lin_error *err);

/* Memory of one, as far as it is known before there are results. */
size_t lin_utterances_bytes(const lin_utterances *u);

/* The hypotheses of each utterance by the sound of another network too, which must have heard it when the utterance ends; must
 * outlive it. NULL: none. */
void lin_utterances_combine(lin_utterances *u, struct lin_combiner *combiner);

/* Another sink, before begin; NULL: none. */
void lin_utterances_set_sink(lin_utterances *u, const lin_utterances_sink *sink);

/* A new sound. whole: the caller's result, to which all utterances are appended, scores added, alternatives combined; it must
 * live until finish. NULL: a result for each utterance. */
void lin_utterances_begin(lin_utterances *u, lin_result *whole);

/*
 * Rows [n, V] in order, and the loudness of each in decibels on any scale, NAN where it is not known (NULL: of none). *taken <= n
 * of them are decoded: those behind an endpoint that resets the network are not, as the network has to compute them again.
 * *reset = 1: the network must be reset behind row *taken; push what follows it. LIN_NUMERIC for rows that are not numbers.
 */
lin_status lin_utterances_push(lin_utterances *u, const float *logp, int n, const double *loudness_db, int *taken, int *reset,
                               lin_error *err);

/* For a second pass, before each push: frames [n, D], those of the rows that are pushed next and maybe more. Valid until it
 * returns. Frames are kept until their utterance has ended: 16 KB for each second of it. */
void lin_utterances_give_frames(lin_utterances *u, const float *frames, int n);

/* Phones [n] that a device decoded greedily from `rows` more rows. For greedy decoding without endpoints. */
lin_status lin_utterances_add(lin_utterances *u, const lin_path_phone *phones, int n, int rows, lin_error *err);

/* The sink gets a view, if there is something new. */
lin_status lin_utterances_show(lin_utterances *u, lin_error *err);

/* The utterance ends behind the last row. With options.resets the network must be reset there. */
lin_status lin_utterances_end(lin_utterances *u, lin_error *err);

/* The sound has ended: the last utterance, or the whole result. Only begin and destroy may follow. */
lin_status lin_utterances_finish(lin_utterances *u, lin_error *err);

const lin_reset_options *lin_utterances_ends(const lin_utterances *u);
/* 1 if one of the next `rows` rows may be an endpoint that resets the network. */
int lin_utterances_may_reset(const lin_utterances *u, int rows);

/* The parts of a saved stream: the search's state (lin_search_bytes), which may be overwritten, the endpoint, and whether the
 * first phone of the sound is early (lin_decoding). After that lin_utterances_go_on continues at a row; endpoint NULL: as it is.
 * An utterance that had begun there has a second pass only if lin_utterances_set_frames follows. */
const lin_search *lin_utterances_search(const lin_utterances *u);
void *lin_utterances_decoder(lin_utterances *u);
const lin_endpoint *lin_utterances_endpoint(const lin_utterances *u);
int lin_utterances_early(const lin_utterances *u);
void lin_utterances_go_on(lin_utterances *u, int64_t row, int early, const lin_endpoint *endpoint);

/* For a second pass: the frames [*n, D] of the utterance up to the last row, from row *first on. 0: there is no second pass, or
 * the utterance's beginning is not known. Setting: LIN_FORMAT for others than those of these rows; LIN_NO_MEMORY. */
int lin_utterances_frames(const lin_utterances *u, const float **frames, int *n, int64_t *first);
lin_status lin_utterances_set_frames(lin_utterances *u, const float *frames, int64_t n, int64_t first, lin_error *err);

/* Another copy of the same decoding from now on, with the same search; it must outlive this, and its context may differ. */
void lin_utterances_decode_by(lin_utterances *u, const lin_decoding *decoding);

/* Everything of another one with the same options, what was shown too, but for the frames. LIN_NO_MEMORY. Not for whole
 * sounds. */
lin_status lin_utterances_copy(lin_utterances *u, const lin_utterances *from, lin_error *err);

#endif
