/*
 * bulk.h - a list of inputs done by several threads, their results written in order: what transcribe, align and decode share.
 *
 * Pipeline: app/inputs -> [this, by base/ordered] -> app/results.
 *
 *   lin_bulk b = {.noun = "file", .jobs = v->jobs, .quiet = v->quiet, .context = &job, .work = work, .take = take};
 *   exit_status = lin_results_check(&b.results, parsed, &v->results);
 *   lin_inputs_add_paths(&b.inputs, operands, &err);
 *   status = lin_bulk_begin(&b, 0, &err);                         // names results; with --skip-done marks what is done
 *   if (status == LIN_OK && !lin_inputs_all_done(&b.inputs)) {
 *       lin_bulk_threads(&b, sizeof(slot), sizeof(thread), &err); // zeroed; the caller fills each
 *                                                                 // lin_bulk_thread(&b, 0 .. n_threads-1)
 *       lin_bulk_run(&b, phones, 0, &err);
 *   }
 *   exit_status = lin_bulk_end(&b, status, &err);                 // the summary, or the error
 *   ... release what slots and threads hold ...
 *   lin_bulk_free(&b);
 *
 * An input that fails is reported and counted, and the others are done.
 */
#ifndef LIN_APP_BULK_H
#define LIN_APP_BULK_H

#include "app/common.h"
#include "app/inputs.h"
#include "app/results.h"

typedef struct lin_bulk lin_bulk;
typedef struct lin_bulk_outcome lin_bulk_outcome;

struct lin_bulk {
    const char *noun; /* of an input, for messages: "file" */
    int jobs, quiet;
    int own_progress; /* 1: `take` and `work` show the progress */
    void *context;
    /* An input into a slot, on one of the threads. Not LIN_OK: it has failed. */
    lin_status (*work)(void *context, int item, int slot, int thread, lin_error *err);
    /* Afterwards, in the order of the inputs, on the caller's thread: with LIN_OK it writes the slot's results; LIN_INVALID then
     * means that they cannot be written, which is reported and counted, and any other failure ends it all. With the status of
     * a work that failed or was interrupted what it returns is ignored. It adds to seconds and n_incomplete. */
    lin_status (*take)(void *context, int item, int slot, lin_status status, lin_error *err);
    lin_inputs inputs;
    lin_results results;
    lin_progress progress;
    int n_done, n_failed, n_incomplete;
    double seconds; /* of sound, done so far */
    int n_threads, n_slots;
    int cores_each; /* that a thread may use inside: more than 1 where there are fewer inputs than cores */
    /* ---- its own ----------------------------------------------------------------------------------------------------------- */
    lin_bulk_outcome *outcomes; /* [n_slots] */
    char *slots, *threads;
    size_t slot_bytes, thread_bytes;
};

/* lin_results_fit, and the clock begins. */
lin_status lin_bulk_begin(lin_bulk *bulk, int lanes, lin_error *err);

/* Room for what each slot and each thread keeps, zeroed. */
lin_status lin_bulk_threads(lin_bulk *bulk, size_t slot_bytes, size_t thread_bytes, lin_error *err);
void *lin_bulk_slot(const lin_bulk *bulk, int slot);
void *lin_bulk_thread(const lin_bulk *bulk, int thread);

/* Does all inputs that are not done, after lin_results_open; closes the results. LIN_STOPPED after an interrupt. */
lin_status lin_bulk_run(lin_bulk *bulk, lin_error *err);

/* Complains about `status`, or writes the summary. The exit status of the command. */
int lin_bulk_end(const lin_bulk *bulk, lin_status status, const lin_error *err);

void lin_bulk_free(lin_bulk *bulk);

#endif
