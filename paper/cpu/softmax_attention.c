// Softmax attention: work items and caches; softmax_attention.h has the method.
#include "paper/cpu/softmax_attention.h"

#include <string.h>

enum { SMALL = 1 << 18 }; // multiply-adds of one product; with fewer, starting a second thread costs more time than it saves

typedef struct softmax_job {
    const lin_exec *exec;
    float *y, *lse_out, *dqkv, *p;
    const float *qkv, *dy, *y_in, *lse;
    const int *offsets;
    int H, E, causal, layer;
    const lin_cache *caches;
    int chunks; // work items of a head
} softmax_job;

static int rows_of(const softmax_job *job, int b) { return job->offsets[b + 1] - job->offsets[b]; }

static const lin_cache *cache_of(const softmax_job *job, int b)
{
    return job->causal && job->caches && job->caches[b].kv ? &job->caches[b] : NULL;
}

// Head h of utterance b.
static lin_softmax_head head_of(const softmax_job *job, int b, int h)
{
    size_t C = (size_t)job->H * (size_t)job->E, row = (size_t)job->offsets[b], column = (size_t)h * (size_t)job->E;
    size_t wide = row * 3 * C + column, narrow = row * C + column, one = row * (size_t)job->H + (size_t)h;
    lin_softmax_head x = {.T = rows_of(job, b), .E = job->E, .causal = job->causal};
    x.stride = x.stride_k = 3 * C;
    x.width = C;
    x.H = (size_t)job->H;
    x.q = job->qkv + wide;
    x.k = x.q + C;
    x.v = x.k + C;
    if (job->y) x.y_out = job->y + narrow;
    if (job->lse_out) x.lse_out = job->lse_out + one;
    if (job->y_in) x.y = job->y_in + narrow;
    if (job->dy) x.dy = job->dy + narrow;
    if (job->lse) x.lse = job->lse + one;
    if (job->dqkv) {
        x.dq = job->dqkv + wide;
        x.dk = x.dq + C;
        x.dv = x.dk + C;
    }
    const lin_cache *cache = cache_of(job, b);
    if (cache) {
        x.past = cache->n;
        x.stride_k = 2 * C;
        x.k = (const float *)cache->kv + (size_t)job->layer * (size_t)cache->capacity * 2 * C + column;
        x.v = x.k + C;
    }
    return x;
}

// Appends the keys and values of utterance b's rows to its cache.
static void append(const softmax_job *job, int b)
{
    const lin_cache *cache = cache_of(job, b);
    size_t C = (size_t)job->H * (size_t)job->E;
    if (!cache) return;
    float *to = (float *)cache->kv + ((size_t)job->layer * (size_t)cache->capacity + (size_t)cache->n) * 2 * C;
    for (int t = job->offsets[b]; t < job->offsets[b + 1]; t++, to += 2 * C)
        memcpy(to, job->qkv + ((size_t)t * 3 + 1) * C, 2 * C * sizeof *to);
}

static lin_pool *pool_for(const lin_exec *exec, const softmax_job *job, int B)
{
    size_t products = 0;
    for (int b = 0; b < B; b++) {
        const lin_cache *cache = cache_of(job, b);
        size_t T = (size_t)rows_of(job, b);
        products += T * (T + (cache ? (size_t)cache->n : 0)) * (size_t)(job->H * job->E);
    }
    return products < SMALL ? NULL : exec->pool;
}

// Chunk, head and utterance of a work item. The last chunks are first: causal ones have the most keys.
static int chunk_of(const softmax_job *job, int piece, int *b, int *h)
{
    *h = piece / job->chunks % job->H;
    *b = piece / job->chunks / job->H;
    return job->chunks - 1 - piece % job->chunks;
}

static int chunks_in(int rows) { return (rows + LIN_SOFTMAX_CHUNK - 1) / LIN_SOFTMAX_CHUNK; }

static int least(int a, int b) { return a < b ? a : b; }

static void forward_piece(void *context, int piece, int thread)
{
    const softmax_job *job = context;
    int b, h, first = chunk_of(job, piece, &b, &h) * LIN_SOFTMAX_CHUNK, T = rows_of(job, b);
    if (first >= T) return;
    const lin_softmax_head head = head_of(job, b, h);
    LIN_DISPATCH(lin_softmax_rows_forward)(&head, first, least(T, first + LIN_SOFTMAX_CHUNK), lin_scratch(job->exec, thread));
}

void lin_cpu_softmax_forward(lin_exec *exec, float *y, float *lse, const float *qkv, const lin_segments *segments, int H, int E,
                             int causal, const lin_cache *caches, int layer)
{
    softmax_job job = {.exec = exec, .y = y, .lse_out = lse, .qkv = qkv, .offsets = segments->offsets, .H = H, .E = E};
    job.causal = causal;
    job.caches = caches;
    job.layer = layer;
    job.chunks = chunks_in(segments->longest);
    for (int b = 0; b < segments->B; b++) append(&job, b);
    lin_pool_run(pool_for(exec, &job, segments->B), segments->B * H * job.chunks, forward_piece, &job);
}

static void backward_piece(void *context, int piece, int thread)
{
    const softmax_job *job = context;
    int b, h, chunk = chunk_of(job, piece, &b, &h), chunks = job->chunks / 2, T = rows_of(job, b);
    const lin_softmax_head head = head_of(job, b, h);
    lin_softmax_part part = job->chunks == 1 ? LIN_SOFTMAX_ALL : chunk < chunks ? LIN_SOFTMAX_QUERIES : LIN_SOFTMAX_KEYS;
    int first = job->chunks == 1 ? 0 : chunk % chunks * LIN_SOFTMAX_CHUNK;
    int end = job->chunks == 1 ? T : least(T, first + LIN_SOFTMAX_CHUNK);
    if (first < T) LIN_DISPATCH(lin_softmax_part_backward)(&head, part, first, end, lin_scratch(job->exec, thread));
}

void lin_cpu_softmax_backward(lin_exec *exec, float *dqkv, const float *dy, const float *qkv, const float *y, const float *lse,
                              const lin_segments *segments, int H, int E, int causal)
{
    softmax_job job = {.exec = exec, .dqkv = dqkv, .qkv = qkv, .dy = dy, .y_in = y, .lse = lse, .offsets = segments->offsets};
    job.H = H;
    job.E = E;
    job.causal = causal;
    // Queries and keys apart take 7 products in place of 5: only where there are too few heads for the threads.
    lin_pool *pool = pool_for(exec, &job, segments->B);
    job.chunks = pool && segments->B * H < exec->n_threads && segments->longest > 0 ? 2 * chunks_in(segments->longest) : 1;
    lin_pool_run(pool, segments->B * H * job.chunks, backward_piece, &job);
}

size_t lin_cpu_softmax_scores(const int *offsets, int B, int H)
{
    size_t count = 0;
    for (int b = 0; b < B; b++) count += (size_t)(offsets[b + 1] - offsets[b]) * (size_t)(offsets[b + 1] - offsets[b]);
    return count * (size_t)H;
}

// The probabilities of head h of utterance b.
static float *scores_of(const softmax_job *job, int b, int h)
{
    size_t T = (size_t)rows_of(job, b);
    return job->p + lin_cpu_softmax_scores(job->offsets, b, job->H) + (size_t)h * T * T;
}

static void naive_forward_piece(void *context, int piece, int thread)
{
    const softmax_job *job = context;
    int b = piece / job->H, h = piece % job->H;
    const lin_softmax_head head = head_of(job, b, h);
    LIN_DISPATCH(lin_softmax_naive_head_forward)(&head, scores_of(job, b, h), lin_scratch(job->exec, thread));
}

void lin_cpu_softmax_naive_forward(lin_exec *exec, float *y, float *p, const float *qkv, const lin_segments *segments, int H,
                                   int E, int causal)
{
    softmax_job job = {.exec = exec, .y = y, .p = p, .qkv = qkv, .offsets = segments->offsets, .H = H, .E = E, .causal = causal};
    lin_pool_run(pool_for(exec, &job, segments->B), segments->B * H, naive_forward_piece, &job);
}

static void naive_backward_piece(void *context, int piece, int thread)
{
    const softmax_job *job = context;
    int b = piece / job->H, h = piece % job->H;
    const lin_softmax_head head = head_of(job, b, h);
    LIN_DISPATCH(lin_softmax_naive_head_backward)(&head, scores_of(job, b, h), lin_scratch(job->exec, thread));
}

void lin_cpu_softmax_naive_backward(lin_exec *exec, float *dqkv, float *p, const float *dy, const float *qkv, const float *y,
                                    const lin_segments *segments, int H, int E, int causal)
{
    softmax_job job = {.exec = exec, .dqkv = dqkv, .p = p, .qkv = qkv, .dy = dy, .y_in = y, .offsets = segments->offsets, .H = H};
    job.E = E;
    job.causal = causal;
    lin_pool_run(pool_for(exec, &job, segments->B), segments->B * H, naive_backward_piece, &job);
}
