// train_parallel.c - a training run on several processes: the sum of the gradients during the backward pass, and the checks that
// all processes train the same model. See train.h.

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "train/train_internal.h"

enum { BUCKET = 65536 }; // fewest elements of a bucket but the last: 256 KB, so that transfer time outweighs network latency

/* ---- buckets --------------------------------------------------------------------------------------------------------------- */

// Offset of a layer's gradients; those of the layers above follow.
static size_t begin_of(const lin_model *m, int layer)
{
    const lin_param_layer *p = &m->params.layers[layer];
    const int first = p->gates[0] >= 0 ? p->gates[0] : p->conv[0] >= 0 ? p->conv[0] : p->qkv[0];
    return m->params.table[first].offset;
}

// The layer after which the first bucket is complete. It contains the last norm and the output, which also get gradients from
// inner losses and conditions.
static int complete(const lin_train_options *o, const lin_config *c, int layer)
{
    const int every = c->condition_every;
    if (every && every < layer) layer = every;
    for (int i = 0; i < o->n_inner; i++)
        if (o->inner_layers[i] < layer) layer = o->inner_layers[i];
    return layer;
}

lin_status lin_parallel_create(lin_train_parallel *p, lin_exec *exec, const lin_train_options *o, const lin_model *m,
                               lin_error *err)
{
    const int layers = m->config.layers;
    if (!p->comm) return LIN_OK;
    p->exec = exec;
    p->n_gradients = m->params.n_elements;
    if (!p->ops->on_host) LIN_TRY(p->ops->staging_create(exec, p->n_gradients * sizeof *p->host, (void **)&p->host, err));
    p->buckets = lin_calloc((size_t)layers + 1, sizeof *p->buckets);
    if (!p->buckets) return lin_no_memory(err, "the sums of gradients", ((size_t)layers + 1) * sizeof *p->buckets);
    size_t end = m->params.n_elements;
    for (int l = layers - 1; l >= 0; l--) {
        const size_t begin = begin_of(m, l);
        if (end - begin < BUCKET) continue;
        p->buckets[p->n_buckets++] =
            (lin_train_bucket){.from = begin, .to = end, .layer = p->n_buckets ? l : complete(o, &m->config, l)};
        end = begin;
    }
    if (end > 0) p->buckets[p->n_buckets++] = (lin_train_bucket){.to = end, .layer = -1};
    return LIN_OK;
}

void lin_parallel_destroy(lin_train_parallel *p)
{
    if (p->host) p->ops->staging_destroy(p->exec, p->host);
    lin_free(p->losses);
    for (int i = 0; i < p->n_buckets; i++) lin_comm_sum_free(&p->buckets[i].sum);
    lin_free(p->buckets);
    *p = (lin_train_parallel){0};
}

/* ---- one step -------------------------------------------------------------------------------------------------------------- */

// Starts the sums of all buckets complete down to this layer, and advances those that run. With a GPU all start at the end.
void lin_parallel_layer(void *context, int layer)
{
    lin_train_parallel *p = context;
    float *gradients = p->host ? p->host : p->gradients;
    if (p->host && layer >= 0) return;
    while (p->status == LIN_OK && p->n_started < p->n_buckets && p->buckets[p->n_started].layer >= layer) {
        lin_train_bucket *b = &p->buckets[p->n_started];
        p->status = lin_comm_start_sum(p->comm, &b->sum, p->n_started, gradients + b->from, b->to - b->from, &p->err);
        if (p->status == LIN_OK) p->n_started++;
    }
    for (int i = 0; i < p->n_started && p->status == LIN_OK; i++)
        p->status = lin_comm_advance(p->comm, &p->buckets[i].sum, NULL, &p->err);
}

int lin_parallel_end(lin_train_parallel *p, double *losses, size_t own)
{
    const size_t bytes = p->n_gradients * sizeof *p->host, all_losses = own * (size_t)p->comm->size;
    double *block = losses;
    if (p->host) {
        if (!p->losses && !(p->losses = lin_alloc(1, all_losses))) p->status = lin_no_memory(&p->err, "losses", all_losses);
        if (p->status != LIN_OK) return 0;
        block = p->losses;
        p->ops->download(p->exec, block, losses, all_losses);
        p->ops->download(p->exec, p->host, p->gradients, bytes);
    }
    lin_parallel_layer(p, -1);
    if (p->status == LIN_OK) p->status = lin_comm_gather(p->comm, block, own, &p->err);
    for (int i = 0; i < p->n_started && p->status == LIN_OK; i++)
        p->status = lin_comm_finish(p->comm, &p->buckets[i].sum, &p->err);
    if (p->host && p->status == LIN_OK) {
        p->ops->upload(p->exec, losses, block, all_losses);
        p->ops->upload(p->exec, p->gradients, p->host, bytes);
    }
    return p->status == LIN_OK;
}

/* ---- the same on all ------------------------------------------------------------------------------------------------------- */

enum { CHECKS = 4 };

// Values that must be equal on all processes.
typedef struct lin_train_same {
    uint64_t hashes[CHECKS];
    char arithmetic[128];
} lin_train_same;

static uint64_t hash_options(const lin_train_options *o)
{
    const lin_optimizer_options *p = &o->optimizer;
    const double values[] = {
        o->epochs, o->batch_frames, o->max_frames, o->lr, o->warmup_steps, o->accumulate, o->join_part, (double)o->schedule,
        o->patience, o->min_lr, (double)o->seed, o->resume, (double)p->kind, p->beta1, p->beta2, p->eps, p->weight_decay,
        p->clip_norm, (double)p->clip, p->average, o->n_inner, o->inner_weight, p->decay_vectors, o->drop_step, o->epoch_parts,
        o->batch_sequences, o->mmi, o->speaker_norm};
    const uint64_t hash = lin_hash(&o->augment, sizeof o->augment, lin_hash(values, sizeof values, 0));
    return lin_hash(o->inner_layers, (size_t)o->n_inner * sizeof *o->inner_layers, hash);
}

static uint64_t hash_network(const lin_model *m)
{
    const lin_config *c = &m->config;
    uint64_t hash = lin_hash(c, LIN_CONFIG_SHAPE, 0);
    hash = lin_hash(&c->dropout, sizeof c->dropout, hash);
    return lin_hash(m->phones, strlen(m->phones), hash);
}

static void describe_arithmetic(const lin_ops *ops, char *text, size_t size)
{
    static const char *const precisions[] = {"fp32", "tf32", "bf16"};
    lin_device device;
    if (ops->on_host)
        snprintf(text, size, "a CPU with %s in %s", lin_cpu_isa(), ops->precision == LIN_PRECISION_BF16 ? "bf16" : "fp32");
    else if (lin_device_get(ops->device, &device))
        snprintf(text, size, "a GPU of compute capability %d.%d with %d multiprocessors in %s", device.major, device.minor,
                 device.multiprocessors, precisions[ops->precision]);
    else snprintf(text, size, "%s", ops->name);
}

lin_status lin_parallel_check(lin_train_parallel *p, const lin_train_data *data, lin_error *err)
{
    static const char *const what[CHECKS] = {"trains another network", "has other training options", "has other training data",
                                             "has another development set"};
    lin_comm *comm = p->comm;
    if (!comm) return LIN_OK;
    lin_train_same *all = lin_calloc((size_t)comm->size, sizeof *all), *own = &all[comm->rank];
    if (!all) return lin_no_memory(err, "messages", (size_t)comm->size * sizeof *all);
    own->hashes[0] = hash_network(data->model);
    own->hashes[1] = hash_options(data->options);
    own->hashes[2] = lin_mix64(data->lengths + lin_mix64(data->content));
    own->hashes[3] = data->dev_content;
    describe_arithmetic(p->ops, own->arithmetic, sizeof own->arithmetic);
    lin_status status = lin_comm_gather(comm, all, sizeof *all, err);
    for (int r = 1; r < comm->size && status == LIN_OK; r++) {
        for (int i = 0; i < CHECKS && status == LIN_OK; i++)
            if (all[r].hashes[i] != all[0].hashes[i])
                status =
                    lin_fail(err, LIN_MISMATCH,
                             "process %d, on %s, %s than process 0, on %s; start all with the same options and the same caches",
                             r, comm->peers[r].host, what[i], comm->peers[0].host);
        all[r].arithmetic[sizeof all[r].arithmetic - 1] = all[0].arithmetic[sizeof all[0].arithmetic - 1] = 0;
        if (status == LIN_OK && strcmp(all[r].arithmetic, all[0].arithmetic) != 0)
            status = lin_fail(err, LIN_MISMATCH,
                              "process %d, on %s, computes on %s, and process 0, on %s, on %s, which give other bits; use "
                              "machines of one kind%s",
                              r, comm->peers[r].host, all[r].arithmetic, comm->peers[0].host, all[0].arithmetic,
                              p->ops->on_host ? ", or set LINNET_ISA=avx2 for all" : "");
    }
    comm->agreed = status != LIN_OK && !comm->lost; // all have compared the same records
    lin_free(all);
    return status;
}

lin_status lin_parallel_share(lin_train_parallel *p, const lin_train_options *options, lin_model *m, lin_optimizer *optimizer,
                              lin_train_counters *counters, lin_error *err)
{
    lin_comm *comm = p->comm;
    const size_t n = m->params.n_elements * sizeof(float), D = (size_t)m->config.mel_bins * sizeof(float);
    if (!comm) return LIN_OK;
    LIN_TRY(lin_comm_broadcast(comm, m->values, n, err));
    LIN_TRY(lin_comm_broadcast(comm, m->mean, D, err));
    LIN_TRY(lin_comm_broadcast(comm, m->istd, D, err));
    if (!options->resume) return LIN_OK;
    LIN_TRY(lin_comm_broadcast(comm, optimizer->m, n, err));
    LIN_TRY(lin_comm_broadcast(comm, optimizer->v, n, err));
    if (optimizer->average) LIN_TRY(lin_comm_broadcast(comm, optimizer->average, n, err));
    LIN_TRY(lin_comm_broadcast(comm, counters, sizeof *counters, err));
    optimizer->step = counters->step;
    m->speaker_norm = options->speaker_norm;
    return LIN_OK;
}

lin_status lin_parallel_compare(lin_train_parallel *p, const lin_model *model, long long epoch, lin_error *err)
{
    lin_comm *comm = p->comm;
    if (!comm) return LIN_OK;
    uint64_t *all = lin_calloc((size_t)comm->size, sizeof *all);
    if (!all) return lin_no_memory(err, "messages", (size_t)comm->size * sizeof *all);
    all[comm->rank] = lin_hash(model->values, model->params.n_elements * sizeof(float), 0);
    lin_status status = lin_comm_gather(comm, all, sizeof *all, err);
    for (int r = 1; r < comm->size && status == LIN_OK; r++) {
        if (all[r] == all[0]) continue;
        status = lin_fail(err, LIN_NUMERIC,
                          "after epoch %lld the weights of process %d, on %s, are not those of process 0: a processor or GPU "
                          "computes wrongly, or the machines have other mathematical libraries; the last checkpoint is of the "
                          "epoch before",
                          epoch + 1, r, comm->peers[r].host);
        comm->agreed = 1;
    }
    lin_free(all);
    return status;
}
