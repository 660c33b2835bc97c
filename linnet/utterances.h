/*
 * utterances.h - from rows of log-probabilities to results: the only place that does it. Endpoints divide the rows of one lane
 * into utterances; each is decoded; what is settled goes into a result and never changes, what is provisional may.
 *
 * Pipeline: model/streams -> rows [n, V] -> [this: decoder/endpoint, linnet/decoding] -> results.
 * Every stream pushes its rows here and resets its network where `reset` of lin_utterances_push is 1.
 *
 *   lin_utterances_options o = {.decoding = &decoding, .ends = {.endpoints = 1, .rules = rules, .resets = 1}};
 *   lin_utterances_open(&u, &recognizer, &o, &sink, &err);
 *   lin_utterances_push(&u, logp, n, loudness_db, &taken, &reset, &err);   // reset: the network begins anew behind row `taken`
 *   lin_utterances_show(&u, &err);                                          // the sink gets a view if something has changed
 *   lin_utterances_finish(&u, &err);
 *   lin_utterances_close(&u);
 *
 * A result holds one utterance, or the whole sound, its utterances joined (lin_utterances_begin). Scores of a whole are the sums
 * of its utterances' scores, since each is decoded without regard to the others. For the same reason its n best alternatives are
 * exactly the n best choices of one alternative from every utterance's list.
 *
 * A second pass decodes an utterance that has ended once more: its frames through a second model, which may read the whole
 * utterance or have more look-ahead, and its rows through the search of whole utterances (lin_decoding.whole). Both models have
 * the same features, phones and frames of a step, so that the lexicon, language model and phrases of the stream serve both. Their
 * hops may differ: frames between those of the stream are interpolated. With the same hop the result is that of files with the
 * second model on these frames, whatever came before them; but files compare hypotheses by piece (lin_next_utterance) with
 * a rescorer or combiner, which this does by utterance.
 *
 * Any split of the same rows into pushes gives the same utterances, results and scores to the bit. Memory grows with the longest
 * result only, and not at all where a sink takes what is settled. Threads: one at a time.
 */
#ifndef LIN_LINNET_UTTERANCES_H
#define LIN_LINNET_UTTERANCES_H

#include "decoder/endpoint.h"
#include "decoder/result.h"
#include "linnet/decoding.h"
#include "linnet/diarizer.h"
#include "linnet/recognizer.h"

/* ---- the rows of one stream ------------------------------------------------------------------------------------------------ */

/*
 *   lin_row_decoder_create(&decoder, &decoding, &err);
 *   lin_row_decoder_reset(&decoder, 0);
 *   while (rows come) lin_row_decoder_push(&decoder, logp, n, &err);
 *   lin_row_decoder_take(&decoder, &result, &err);        // what is settled now; at any time
 *   lin_row_decoder_finish(&decoder, &result, &err);      // the rest, and the alternatives
 *   lin_row_decoder_free(&decoder);
 */
typedef struct lin_row_decoder {
    const lin_decoding *decoding;
    void *state;         /* of the search, lin_search_bytes; can be saved and loaded */
    lin_path path;       /* settled and not yet taken */
    lin_path tail;       /* room for the provisional part */
    lin_judged *list;    /* hypotheses that are judged again */
    size_t room_list;
    lin_combiner *combiner; /* of an utterance's hypotheses by another network; NULL: none */
    int early;           /* the first phone of the sound is settled, and is early */
} lin_row_decoder;

/* decoder must be zeroed before. On failure lin_row_decoder_free is allowed. */
lin_status lin_row_decoder_create(lin_row_decoder *decoder, const lin_decoding *decoding, lin_error *err);
void lin_row_decoder_free(lin_row_decoder *decoder);

void lin_row_decoder_reset(lin_row_decoder *decoder, int64_t first_frame);

/* Rows [n, V]. Errors of lin_search_push. */
lin_status lin_row_decoder_push(lin_row_decoder *decoder, const float *logp, int n, lin_error *err);

/* Moves the settled part to the end of a result. */
lin_status lin_row_decoder_take(lin_row_decoder *decoder, lin_result *result, lin_error *err);

/* For decoders of utterances that are heard whole, whose frames are those of the recogniser `first`: decoding->combined, if there
 * is one, judges their hypotheses too, with so many threads. Then decoder->combiner must have each utterance's frames before its
 * end (lin_combiner_push). Errors as lin_combiner_create. */
lin_status lin_row_decoder_combine(lin_row_decoder *decoder, const lin_recognizer *first, int n_threads, lin_error *err);

/* 1: the hypotheses of each utterance are judged again when it ends (linnet/judges.h). */
int lin_row_decoder_judges(const lin_row_decoder *decoder);

/* Ends the segment and takes the rest: of the best hypothesis, after it was judged again. With n_best over 1 the result gets its
 * alternatives; nothing may have been taken before. */
lin_status lin_row_decoder_finish(lin_row_decoder *decoder, lin_result *result, lin_error *err);

/* ---- utterances ------------------------------------------------------------------------------------------------------------ */

/* The present state of an utterance. Valid during the call that it is passed to. */
typedef struct lin_session_view {
    int utterance;                 /* 1, 2, ... One that ends without phones and keywords leaves its number to the next */
    int revision;                  /* 1, 2, ... of this utterance; the final one is the last */
    const lin_result *settled;     /* phones and words, times from the beginning of the sound; it has no id */
    const lin_result *provisional; /* the best hypothesis of what follows them. Empty in the final view */
    int incomplete;                /* the last provisional word goes on: only its first phones are known */
    int old_phones, old_words, old_keywords; /* settled ones that the view before had */
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
    int resets;                 /* 1: the network is reset at endpoints; 0: it is not, and a phone cut by one stays one */
    double from_s;              /* endpoints before this time are ignored */
} lin_reset_options;

/* A second pass: any number of streams may share one, one after the other. Memory grows with the longest utterance. */
typedef struct lin_second_pass lin_second_pass;

/*
 * first: the recogniser of the streams; second must outlive the object. decoding: that of the streams, NULL for greedy; its
 * searches must outlive the object. n_threads work together; 0: one per core. LIN_MISMATCH if the models differ in features other
 * than the hop, phones or frames of a step; LIN_UNSUPPORTED for a second model that is normalised by speaker. On failure *pass
 * is NULL.
 */
lin_status lin_second_pass_create(const lin_recognizer *first, const lin_recognizer *second, const lin_decoding *decoding,
                                  int n_threads, lin_second_pass **pass, lin_error *err);
/* NULL is allowed. */
void lin_second_pass_destroy(lin_second_pass *pass);

typedef struct lin_utterances_options {
    /* Must outlive it; NULL: greedy. With lin_decoding.voice, where results are shown, the phones of each utterance get their
     * speakers when it ends, by its frames; lin_decoding.speakers are then the most there can be. */
    const lin_decoding *decoding;
    lin_reset_options ends;
    /* Where results are shown, the final one of each utterance in which something was found is that of this second pass over its
     * frames (lin_utterances_give_frames). Must outlive it; other streams of the thread may share it. NULL: none. */
    lin_second_pass *second;
} lin_utterances_options;

/* Callbacks; every function may be NULL. If one does not return LIN_OK the call that led to it ends with its status. */
typedef struct lin_utterances_sink {
    void *context;
    /* By lin_utterances_show, and when an utterance ends, if there is a change. Not for whole sounds. */
    lin_status (*show)(void *context, const lin_session_view *view, lin_error *err);
    /* After every push: what has settled since the last call, maybe nothing; the result is cleared afterwards. Not with
     * alternatives, nor together with show. */
    lin_status (*settled)(void *context, lin_result *result, lin_error *err);
    /* Before a second pass or the search for speakers (begins = 1) and after it (0): whoever locks the stream may unlock it
     * meanwhile, but not use it. */
    void (*aside)(void *context, int begins);
    /* Rows [n, V] as they come, which are then not decoded: nothing else is called. */
    lin_status (*rows)(void *context, const float *logp, int n, lin_error *err);
} lin_utterances_sink;

/* One alternative for each utterance so far: `alternative` of the last, and choice number `before` for those before it. */
typedef struct lin_joined_choice {
    double score;
    int before, alternative;
} lin_joined_choice;

/* What a fork copies. */
typedef struct lin_utterances_position {
    lin_endpoint endpoint;
    int64_t row; /* the next, since the beginning */
    int utterance, revision;
    int found;                     /* lin_utterances_found before the stream was saved and loaded */
    int incomplete;                /* the last provisional word */
    int decoded;                   /* rows since `provisional` was made */
    int shown_phones, shown_words, shown_keywords; /* settled ones in the last view */
    uint64_t shown_provisional;    /* its hash in the last view */
    double shown_start_s;
} lin_utterances_position;

/* Its owner reads options, decoder and `at`, and changes nothing. */
typedef struct lin_utterances {
    lin_utterances_options options;
    lin_utterances_sink sink;
    lin_decoding greedy; /* where no decoding is given */
    lin_row_decoder decoder;
    lin_utterances_position at;
    lin_result settled, provisional;

    lin_result *whole; /* NULL: a result for each utterance */
    double score, acoustic, language;    /* of its utterances that have ended */
    lin_result *segments;                /* [n_segments] these with their alternatives, where there are alternatives */
    int n_segments, segments_capacity;
    lin_joined_choice *choices;          /* [n_segments, n_best], the best first */
    int *n_choices;                      /* [n_segments] */
    int choices_capacity, n_choices_capacity;

    lin_diarizer who; /* closed: speakers are not told apart */

    /* for a second pass, or to tell speakers apart */
    int per_row;
    const float *next; /* [n_next, D] frames of the rows that are pushed */
    int n_next;
    lin_matrix frames; /* of the utterance, the first of row `first_row` */
    int64_t first_row;
    int lacks_frames;  /* its beginning is not known: it was saved and loaded */
    int replaced;
} lin_utterances;

/* May not be moved afterwards. LIN_INVALID for rules that lin_endpoint_check refuses. On failure it is closed. sink: NULL for
 * none. */
lin_status lin_utterances_open(lin_utterances *u, const lin_recognizer *recognizer, const lin_utterances_options *options,
                               const lin_utterances_sink *sink, lin_error *err);
/* A zeroed one is allowed. */
void lin_utterances_close(lin_utterances *u);

/* Reserves memory, so that nothing is allocated while at most this many rows are pushed at once and a sink takes what is settled
 * (greedy). */
lin_status lin_utterances_reserve(lin_utterances *u, int rows, lin_error *err);

/* Bytes of memory of one before there are results, without the struct. */
size_t lin_utterances_bytes(const lin_utterances *u);

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

/* For a second pass, or to tell speakers apart, before each push: frames [n, D], those of the rows that are pushed next and maybe
 * more. Valid until it returns. Frames are kept until their utterance has ended: 16 KB for each second of it. */
void lin_utterances_give_frames(lin_utterances *u, const float *frames, int n);

/* Phones [n] that a device decoded greedily from `rows` more rows. For greedy decoding without endpoints. */
lin_status lin_utterances_add(lin_utterances *u, const lin_phone *phones, int n, int rows, lin_error *err);

/* The sink gets a view, if there is something new. */
lin_status lin_utterances_show(lin_utterances *u, lin_error *err);

/* The utterance ends behind the last row. With options.resets the network must be reset there. */
lin_status lin_utterances_end(lin_utterances *u, lin_error *err);

/* The sound has ended: the last utterance, or the whole result. Only begin and close may follow. */
lin_status lin_utterances_finish(lin_utterances *u, lin_error *err);

/* 1 if one of the next `rows` rows may be an endpoint that resets the network. */
int lin_utterances_may_reset(const lin_utterances *u, int rows);

/* 1 if a phone of the utterance has settled. */
int lin_utterances_found(const lin_utterances *u);

/* For a second pass and to tell speakers apart: 1 if u->frames are those of the utterance. */
int lin_utterances_has_frames(const lin_utterances *u);

/*
 * Continues a saved stream at a row, when the search's state (decoder.state) has been loaded. early: decoder.early; found:
 * lin_utterances_found. frames [bytes]: those of the utterance, of the rows from `first` on; first -1: they are not known, and an
 * utterance that had begun has neither a second pass nor speakers. LIN_FORMAT for frames of other rows; LIN_NO_MEMORY.
 */
lin_status lin_utterances_go_on(lin_utterances *u, int64_t row, int early, int found, const lin_endpoint *endpoint,
                                const float *frames, size_t bytes, int64_t first, lin_error *err);

/* Copies everything of another one with the same options, also what was shown, except the frames. LIN_NO_MEMORY. Not for whole
 * sounds. */
lin_status lin_utterances_copy(lin_utterances *u, const lin_utterances *from, lin_error *err);

#endif
