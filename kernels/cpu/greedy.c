// Greedy CTC decoding of many streams, as decoder/greedy.h defines it: one work item per stream.
#include <math.h>

#include "kernels/cpu/cpu.h"

enum { SMALL = 16384 }; // below this many values, starting a second thread costs more time than it saves

typedef struct greedy_job {
    lin_phone *phones;
    int *n_phones;
    const float *logp;
    const int *offsets, *slots;
    lin_run *runs;
    int V;
} greedy_job;

// The run as a phone; returns 0 if the run is blank or was already returned.
static int end_run(const lin_run *run, lin_phone *phone)
{
    if (run->label <= 0 || run->emitted) return 0;
    double mean = run->sum_logp / (double)(run->frame - run->start);
    float confidence = (float)exp(mean < 0 ? mean : 0);
    *phone = (lin_phone){.label = run->label, .confidence = confidence, .start = run->start, .end = run->frame};
    return 1;
}

// Index of the largest of V values, the first of equals; -1 if one is NaN or the largest is infinite.
static int best_of(const float *row, int V)
{
    int best = 0, ordered = row[0] == row[0];
    for (int v = 1; v < V; v++) {
        ordered &= row[v] == row[v];
        if (row[v] > row[best]) best = v;
    }
    return ordered && isfinite(row[best]) ? best : -1;
}

static void stream_piece(void *context, int b, int thread)
{
    const greedy_job *job = context;
    (void)thread;
    job->n_phones[b] = 0;
    if (job->slots[b] < 0) return;
    lin_run run = job->runs[job->slots[b]];
    int n = 0;
    for (int r = job->offsets[b]; r < job->offsets[b + 1]; r++) {
        const float *row = job->logp + (size_t)r * (size_t)job->V;
        int label = best_of(row, job->V);
        if (label < 0) {
            job->n_phones[b] = -1;
            return;
        }
        if (label != run.label) {
            n += end_run(&run, &job->phones[job->offsets[b] + n]);
            run = (lin_run){.label = label, .start = run.frame, .frame = run.frame};
        }
        run.sum_logp += (double)row[label];
        run.frame++;
    }
    job->runs[job->slots[b]] = run;
    job->n_phones[b] = n;
}

void lin_cpu_greedy(lin_exec *exec, lin_phone *phones, int *n_phones, const float *logp, const lin_segments *segments, int V,
                    lin_run *runs, const int *slots)
{
    greedy_job job = {phones, n_phones, logp, segments->offsets, slots, runs, V};
    int small = (size_t)segments->rows * (size_t)V < SMALL;
    lin_pool_run(small ? NULL : exec->pool, segments->B, stream_piece, &job);
}
