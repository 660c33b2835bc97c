/*
 * files_internal.h - an upload, between serve/serve_files.c (the server's thread, the queue) and serve/serve_work.c (a worker).
 *
 * A job is the server's thread's until its body is complete, then a worker's until `done`, then the server's thread's again. In
 * between, pieces of an answer that is sent as it comes are added by the worker and taken by the server's thread, under the lock
 * of lin_files.
 */
#ifndef LIN_SERVE_FILES_INTERNAL_H
#define LIN_SERVE_FILES_INTERNAL_H

#include <stdatomic.h>

#include "align/aligner.h"
#include "serve/chunked.h"
#include "serve/serve.h"
#include "serve/serve_calls.h"

struct lin_job {
    lin_job *next;
    lin_serve *serve;
    const lin_call *call;
    lin_client *client; // NULL: gone; the server's thread
    atomic_int gone;
    int posted;
    char type[512]; // of the body
    lin_buffer body;
    int is_chunked, too_large;
    lin_chunked chunks;
    double body_until; // it must be complete
    int sound;       // a file without a name; -1: none
    char path[32];   // by which it can be opened again
    // the answer
    int status, done;
    char cause[128]; // of a status other than 200
    const char *answer_type;
    lin_buffer answer, ignored, warning; // ignored: fields without effect; warning: sound that is missing or damaged
    double seconds;
    double until; // it may be worked on
    // an answer that is sent as it comes: pieces wait, `sending` is given to the network
    lin_buffer pieces, sending;
    int n_pieces, begun;
};

typedef struct lin_files {
    lin_serve *serve;
    pthread_mutex_t lock; // of the queue, of lin_job.done and lin_job.pieces, and of the lexicon
    pthread_cond_t work;
    lin_job *first, **last;
    pthread_t *threads;
    int n_threads, stop, left; // left: jobs that are not freed; the server's thread
    lin_spoken_lexicon lexicon;
    int has_lexicon;
    char program[4096]; // this one
} lin_files;

/* What one worker keeps for all its jobs. */
typedef struct lin_work lin_work;

lin_work *lin_work_create(lin_serve *serve); /* NULL: out of memory */
void lin_work_destroy(lin_work *work);       /* NULL is allowed */
/* Fills status and answer. */
void lin_work_do(lin_work *work, lin_job *job);

/* The worker has more of an answer that is sent as it comes. Empties the buffer. LIN_NO_MEMORY: the piece is missing, and the
 * answer must not go on without it; those before are kept. */
lin_status lin_job_put(lin_job *job, lin_buffer *piece, lin_error *err);

#endif
