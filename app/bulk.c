// bulk.c - a list of inputs done by several threads, their results written in order; see bulk.h.

#include "app/bulk.h"

#include "base/memory.h"
#include "base/pool.h"

struct lin_bulk_outcome {
    lin_status status;
    lin_error error;
};

lin_status lin_bulk_begin(lin_bulk *b, int lanes, lin_error *err)
{
    lin_progress_begin(&b->progress, 1);
    return lin_results_fit(&b->results, &b->inputs, lanes, err);
}

// More inputs than threads: a thread for each input. Fewer: several threads share the work inside an input.
lin_status lin_bulk_threads(lin_bulk *b, size_t slot_bytes, size_t thread_bytes, lin_error *err)
{
    const int cores = lin_ordered_threads(b->jobs, 1024), n = lin_ordered_threads(b->jobs, b->inputs.n);
    b->n_slots = lin_ordered_slots(n);
    b->cores_each = cores / n > 1 ? cores / n : 1;
    b->slot_bytes = slot_bytes;
    b->thread_bytes = thread_bytes;
    b->slots = lin_calloc((size_t)b->n_slots, slot_bytes);
    b->threads = lin_calloc((size_t)n, thread_bytes);
    b->outcomes = lin_calloc((size_t)b->n_slots, sizeof *b->outcomes);
    if (!b->slots) b->n_slots = 0;
    if (b->threads) b->n_threads = n;
    if (!b->slots || !b->threads || !b->outcomes) return lin_no_memory(err, "threads", (size_t)n * thread_bytes);
    return LIN_OK;
}

void *lin_bulk_slot(const lin_bulk *b, int slot) { return b->slots + (size_t)slot * b->slot_bytes; }

void *lin_bulk_thread(const lin_bulk *b, int thread) { return b->threads + (size_t)thread * b->thread_bytes; }

static void work(void *context, int item, int slot, int thread)
{
    const lin_bulk *b = context;
    lin_bulk_outcome *o = &b->outcomes[slot];
    o->error = (lin_error){0};
    if (b->inputs.items[item].done) return;
    o->status = b->work(b->context, item, slot, thread, &o->error);
}

static lin_status is_bad(lin_bulk *b, int item, const lin_error *error)
{
    lin_complain_of_input(&b->inputs.items[item], error->message);
    b->n_failed++;
    return LIN_OK;
}

static lin_status take(void *context, int item, int slot, lin_error *err)
{
    lin_bulk *b = context;
    const lin_bulk_outcome *o = &b->outcomes[slot];
    const int n = b->inputs.n;
    if (b->inputs.items[item].done) return LIN_OK;
    lin_status status = b->take(b->context, item, slot, o->status, err);
    if (o->status == LIN_STOPPED) return lin_fail(err, LIN_STOPPED, "interrupted after %d of %d %ss", b->n_done, n, b->noun);
    if (o->status != LIN_OK) return is_bad(b, item, &o->error);
    if (status == LIN_INVALID) return is_bad(b, item, err);
    if (status != LIN_OK) return status;
    b->n_done++;
    if (!b->own_progress)
        lin_progress_of(&b->progress, (item + 1.0) / n, "%.0f x real time, %d of %d %ss",
                        b->seconds / (lin_now() - b->progress.begun + 1e-9), item + 1, n, b->noun);
    return LIN_OK;
}

lin_status lin_bulk_run(lin_bulk *b, lin_error *err)
{
    lin_progress_begin(&b->progress, b->quiet);
    lin_status status = lin_ordered_run(&(lin_ordered){b->inputs.n, b->n_threads, b, work, take}, err);
    lin_progress_end(&b->progress);
    return lin_results_close(&b->results, status, b->n_failed, err);
}

int lin_bulk_end(const lin_bulk *b, lin_status status, const lin_error *err)
{
    const double wall = lin_now() - b->progress.begun;
    char note[128];
    if (status != LIN_OK) return lin_give_up(err);
    lin_inputs_note(&b->inputs, b->n_failed, b->n_incomplete, note, sizeof note);
    if (!b->quiet) {
        lin_complain("%d %s%s%s, %.1f s of sound in %.2f s: real-time factor %.4f, %.0f x real time", b->n_done, b->noun,
                     b->n_done == 1 ? "" : "s", note, b->seconds, wall, b->seconds > 0 ? wall / b->seconds : 0,
                     wall > 0 ? b->seconds / wall : 0);
    }
    return lin_interrupted ? LIN_EXIT_INTERRUPTED : b->n_failed + b->n_incomplete > 0 ? LIN_EXIT_FAILED : LIN_EXIT_OK;
}

void lin_bulk_free(lin_bulk *b)
{
    lin_free(b->outcomes);
    lin_free(b->slots);
    lin_free(b->threads);
    lin_results_free(&b->results);
    lin_inputs_free(&b->inputs);
}
