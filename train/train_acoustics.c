// The acoustics of a batch: what train/augment.h draws, and the voices, which are other utterances. See kernels/acoustics.h.
#include <math.h>

#include "base/memory.h"
#include "base/rng.h"
#include "kernels/acoustics.h"
#include "train/train_internal.h"

typedef struct powers_job {
    const lin_train_list *list;
    const float *steps;
    int D;
} powers_job;

static void power_of_utterance(void *context, int i, int thread)
{
    const powers_job *job = context;
    const lin_train_item *it = &job->list->items[i];
    const int D = job->D;
    const unsigned char *codes = lin_dataset_codes(it->set, it->index);
    const float *steps = job->steps + (size_t)i * 2 * (size_t)D;
    double sum = 0;
    (void)thread;
    for (int t = 0; t < it->frames; t++, codes += D)
        for (int d = 0; d < D; d++) {
            const float feature = steps[d] + steps[D + d] * (float)codes[d];
            sum += (double)expf(feature < LIN_ACOUSTICS_MOST ? feature : LIN_ACOUSTICS_MOST);
        }
    job->list->powers[i] = (float)(sum / it->frames);
}

lin_status lin_train_find_powers(lin_trainer *t, lin_train_list *list, const float *steps, lin_error *err)
{
    if (!t->acoustics) return LIN_OK;
    list->powers = lin_calloc((size_t)list->n, sizeof *list->powers);
    if (!list->powers) return lin_no_memory(err, "the power of each utterance", (size_t)list->n * sizeof *list->powers);
    powers_job job = {list, steps, t->model->config.mel_bins};
    lin_pool_run(t->pool, list->n, power_of_utterance, &job);
    return LIN_OK;
}

static uint64_t key_of(const lin_trainer *t, int item)
{
    const uint64_t key = lin_random_key(lin_random_key(t->options->seed, LIN_TRAIN_KEY_ACOUSTICS), (uint64_t)t->counters.epoch);
    return lin_random_key(key, (uint64_t)item);
}

int lin_train_labels(const lin_trainer *t, int item)
{
    return t->acoustics && lin_acoustics_silent(t->acoustics, key_of(t, item)) ? 0 : t->train.items[item].n_labels;
}

// Another utterance in each voice, from a random frame on.
static void choose_voices(const lin_trainer *t, lin_acoustics *a, int item, uint64_t key)
{
    const lin_train_list *list = &t->train;
    for (int v = 0; v < a->n_voices; v++) {
        int other = item;
        if (list->n > 1) other = (int)lin_random_below(key, 2 * (uint64_t)v, (uint32_t)list->n - 1);
        other += list->n > 1 && other >= item;
        const lin_train_item *it = &list->items[other];
        a->voices[v] = (lin_voice){.codes = it->gather.codes,
                                   .steps = it->gather.steps,
                                   .frames = it->frames,
                                   .first = (int)lin_random_below(key, 2 * (uint64_t)v + 1, (uint32_t)it->frames),
                                   .scale = a->voices[v].scale / fmaxf(list->powers[other], LIN_ACOUSTICS_FLOOR)};
    }
}

void lin_train_draw_acoustics(lin_trainer *t, lin_train_block *host, int b, int item)
{
    if (!t->acoustics) return;
    const size_t row = (size_t)b * LIN_ACOUSTICS_ROWS * (size_t)t->model->config.mel_bins;
    const uint64_t key = key_of(t, item);
    lin_acoustics *a = &host->acoustics[b];
    if (!lin_acoustics_draw(t->acoustics, t->train.items[item].frames, t->train.powers[item], key, a, host->bins + row)) return;
    choose_voices(t, a, item, lin_random_key(key, LIN_TRAIN_KEY_ACOUSTICS));
    a->bins = t->device.bins + row;
    host->items[b].acoustics = t->device.acoustics + b;
}
