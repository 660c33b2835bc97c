/*
 * files.h - sound files and pipes, one after the other, a lane for each chosen channel: results, or rows of
 * log-probabilities, as they become certain.
 *
 * Pipeline: frontend/source -> [this: linnet/stream, or the whole utterance for a bidirectional model] -> results, or a sink.
 *
 *   lin_utterances_options how = {.decoding = &decoding};
 *   lin_file_worker_create(&recognizer, 1, &how, &worker, &err);          // one per thread; NULL for how: rows only
 *   lin_result results[LIN_AUDIO_MAX_CHANNELS] = {0};
 *   lin_sound sound = {.path = "x.flac", .channel = LIN_CHANNEL_MIX, .results = results};
 *   lin_file_worker_run(worker, &sound, &sink, &report, &err);            // as often as there are files
 *   lin_file_worker_destroy(worker);
 *
 * Memory does not grow with the length of the sound where the model is causal.
 *
 * A stream can be saved at the end of a sound (leave_open), and resumed (from) where it was, with the
 * same bits as if it had never stopped: linnet/stream.h. LIN_UNSUPPORTED for a model that needs whole utterances.
 *
 * A network that does not forget adapts badly to new sound after a long past, so it can be reset at endpoints: each lane by
 * endpoints of its own, which depend on the sound up to there only.
 * Files, pipes and resumed streams are reset at the same places.
 */
#ifndef LIN_LINNET_FILES_H
#define LIN_LINNET_FILES_H

#include "linnet/stream.h"

/* Resets by default: at endpoints, from the first one after a minute of sound on; before, the past helps more than it harms.
 * With a model that forgets, only the search begins anew there. A model that needs whole utterances is never reset;
 * with a grammar its search begins anew at endpoints too. */
lin_reset_options lin_reset_auto(const lin_recognizer *recognizer, const lin_endpoint_options *rules);

/* One file to process. */
typedef struct lin_sound {
    int is_command;            /* path is a command of the shell that writes the sound (lin_audio_open_command) */
    const char *path;          /* NULL: the next ones, or where a stream is resumed: nothing more comes, only its end */
    const lin_pcm_format *raw; /* headerless samples, as for lin_audio_open */
    const float *samples;      /* path NULL: a sound in memory, [n_samples, channels] */
    int64_t n_samples;
    int rate_hz, channels;     /* of it */
    int channel, or_only;      /* as in lin_feature_options */
    lin_part part;             /* of the sound; end_s = 0: to its end. Rows count from its start, times of results are the
                                  sound's */
    lin_result *results;       /* of each lane, where rows are decoded: the caller's, begun in lin_file_sink.begin or before */
    const float *mean, *istd;  /* [D], of the speaker, for a model that is normalised by speaker; NULL: of this sound's own
                                  frames */
    const lin_state *from;     /* resume this stream: this sound is what comes next; NULL: a new one */
    const char *from_name;     /* of it, for messages */
    int leave_open;            /* the stream goes on after this sound: what is not certain is not written, saved is called
                                  instead */
} lin_sound;

/* Callbacks during the run; every function may be NULL. If one does not return LIN_OK the run ends with its status. */
typedef struct lin_file_sink {
    void *context;
    /* How many lanes there will be. */
    lin_status (*begin)(void *context, int lanes, lin_error *err);
    /* More results of a lane are settled, maybe none; the result is cleared afterwards. NULL: results are kept. With it there are
     * no alternatives. */
    lin_status (*settled)(void *context, int lane, lin_result *result, lin_error *err);
    /* Rows [n, V] of a lane, in order, where they are not decoded. */
    lin_status (*rows)(void *context, int lane, const float *logp, int n, lin_error *err);
    /* The sound [n, format->channels] that frames are made of, from at_s seconds on; it may be called from another thread. */
    lin_status (*sound)(void *context, const lin_audio_format *format, double at_s, const float *sound, int n, lin_error *err);
    /* Frames [n, D] of a lane, as the front end makes them, not normalised, before the rows that they give. */
    lin_status (*frames)(void *context, int lane, const float *fbank, int n, lin_error *err);
    /* The stream at the end of a sound that is left open, valid until the next run. */
    void (*saved)(void *context, lin_state *state);
    /* Now and then, with the seconds processed so far and in all (-1 if unknown). Not 0: the run ends with LIN_STOPPED. */
    int (*progress)(void *context, double seconds, double duration);
} lin_file_sink;

typedef struct lin_file_report {
    double seconds;    /* of sound since the stream began; of a part: its end, by the file's clock */
    int lanes, channels; /* channels: of the sound */
    int has_results;   /* the results are whole as far as the sound was processed: also after LIN_STOPPED, not after other
                          failures */
    char warning[256]; /* what was wrong with the sound but did not prevent processing it */
    int incomplete;    /* some of the sound is missing: `warning` names it */
} lin_file_report;

typedef struct lin_file_worker lin_file_worker;

/* n_threads work together inside; 0: one per core. decode: how rows are decoded, copied; NULL: not at all. LIN_INVALID for rules
 * that lin_endpoint_check refuses, LIN_UNSUPPORTED for resets of a model that needs whole utterances. On failure *worker is
 * NULL. */
lin_status lin_file_worker_create(const lin_recognizer *recognizer, int n_threads, const lin_utterances_options *decode,
                                  lin_file_worker **worker, lin_error *err);
/* Makes rows that are not decoded those of lin_worker.search. */
void lin_file_worker_search(lin_file_worker *worker);
void lin_file_worker_destroy(lin_file_worker *worker);

/* Warns how a pipe that is not a sound file is read. After an interrupt a file ends with LIN_STOPPED; live sound is finished as
 * far as it has come, with LIN_OK. */
lin_status lin_file_worker_run(lin_file_worker *worker, const lin_sound *sound, const lin_file_sink *sink,
                               lin_file_report *report, lin_error *err);

/* ---- speakers -------------------------------------------------------------------------------------------------------------- */

/*
 * Mean and deviation of each speaker's features, for models that are normalised by speaker.
 *
 *   lin_speakers speakers = {0};
 *   lin_speakers_measure(&speakers, &recognizer, cuts, names, n, jobs, &err);   // reads all the sound once
 *   const lin_speaker *s = lin_speakers_find(&speakers, "anna");                 // NULL: unknown; use the file's own
 *   ... lin_sound.mean = s->mean, lin_sound.istd = s->istd ...
 *   lin_speakers_free(&speakers);
 *
 * Threads: lin_speakers_measure starts its own; then it is constant.
 */
typedef struct lin_speaker {
    const char *name;   /* owned by the caller of lin_speakers_measure */
    float *mean, *istd; /* [D]; NULL if none of the speaker's sound could be read */
} lin_speaker;

typedef struct lin_speakers {
    lin_speaker *items;
    int n;
} lin_speakers;

/*
 * The speakers of cuts [n], named by names [n], "" where unknown; the names must outlive the speakers. jobs: files read at
 * once, 0: one per core. A file that cannot be read is left out: recognising it will report it. LIN_STOPPED when the recogniser
 * was stopped, LIN_NO_MEMORY. Release it also after a failure.
 */
lin_status lin_speakers_measure(lin_speakers *speakers, const lin_recognizer *recognizer, const lin_cut *cuts,
                                const char *const *names, int n, int jobs, lin_error *err);
const lin_speaker *lin_speakers_find(const lin_speakers *speakers, const char *name);
void lin_speakers_free(lin_speakers *speakers);

#endif
