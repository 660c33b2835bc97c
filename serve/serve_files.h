/*
 * serve_files.h - uploads: their bodies, the queue of the workers, what a worker does with one, and their answers.
 *
 * A job is the server's thread's until its body is complete, then a worker's until `done`, then the server's thread's again. In
 * between, pieces of an answer that is sent as it comes are added by the worker and taken by the server's thread, under the lock
 * of lin_files.
 */
#ifndef LIN_SERVE_SERVE_FILES_H
#define LIN_SERVE_SERVE_FILES_H

#include <stdatomic.h>

#include "align/aligner.h"
#include "serve/http.h"
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

/* The worker has more of an answer that is sent as it comes. Empties the buffer. LIN_NO_MEMORY: the piece is missing, and the
 * answer must not go on without it; those before are kept. */
lin_status lin_job_put(lin_job *job, lin_buffer *piece, lin_error *err);

lin_status lin_files_create(lin_serve *serve, lin_error *err);
void lin_files_destroy(lin_serve *serve);
int lin_files_left(lin_serve *serve); /* uploads and jobs that are not answered */
/* The job of a POST, or NULL: refused and answered. */
lin_job *lin_files_begin(lin_client *client, const lin_web_request *request, const lin_call *call);
void lin_files_data(lin_client *client, const char *bytes, size_t n);
void lin_files_complete(lin_client *client);
void lin_files_expect(lin_client *client, double now); /* once a second: a body that does not come in time is given up */
void lin_files_drain(lin_client *client); /* the time to drain is over: a body that still comes is given up */
void lin_files_go_on(lin_client *client); /* answers if the job is done, or has begun an answer that goes on */
int lin_files_next(lin_client *client, lin_web_message *message); /* more of such an answer; as lin_web_handlers.next */
void lin_files_leave(lin_client *client); /* the client is gone */

#endif
