// batches.c - utterances of similar length together, in a seeded order; see batches.h.

#include "train/batches.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

enum { BUCKET = 32 }; // batches

// Purposes of the random numbers of an epoch.
enum { SHUFFLE_UTTERANCES, SHUFFLE_BATCHES };

typedef struct entry {
    int item, frames, place; // place: index before sorting, so that the order of equal lengths is defined
} entry;

static int by_length(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->frames != y->frames) return x->frames > y->frames ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

// Fisher-Yates; the random numbers depend only on the key.
static void shuffle(entry *entries, int n, uint64_t key)
{
    for (int i = n; i-- > 1;) {
        const int j = (int)lin_random_below(key, (uint64_t)i, (uint32_t)i + 1);
        const entry moved = entries[i];
        entries[i] = entries[j];
        entries[j] = moved;
    }
}

// Sorts each run of utterances that fills about BUCKET batches; if `one`, the whole list is one bucket. Sets ends[i] to 1 if a
// bucket ends at i, because no batch crosses the end of a bucket.
static void sort_buckets(entry *entries, int n, int max_frames, int one, unsigned char *ends)
{
    int begin = 0;
    int64_t total = 0;
    for (int i = 0; i < n; i++) {
        entries[i].place = i;
        total += entries[i].frames;
        ends[i] = i == n - 1 || (!one && total >= (int64_t)BUCKET * max_frames);
        if (!ends[i]) continue;
        qsort(entries + begin, (size_t)(i + 1 - begin), sizeof *entries, by_length);
        begin = i + 1;
        total = 0;
    }
}

// The batches of the utterances: item the first of each, frames how many. Returns their number.
static int cut(const entry *entries, int n, int max_frames, int max_items, const unsigned char *ends, entry *batches)
{
    int n_batches = 0, first = 0;
    int64_t total = 0;
    for (int i = 0; i < n; i++) {
        total += entries[i].frames;
        if (!ends[i] && i + 1 - first != max_items && total + entries[i + 1].frames <= max_frames) continue;
        batches[n_batches++] = (entry){.item = first, .frames = i + 1 - first};
        first = i + 1;
        total = 0;
    }
    return n_batches;
}

static void fill(const entry *entries, const entry *batches, lin_batches *plan)
{
    int at = 0;
    for (int b = 0; b < plan->n_batches; b++) {
        for (int j = 0; j < batches[b].frames; j++) plan->items[at++] = entries[batches[b].item + j].item;
        plan->offsets[b + 1] = at;
    }
}

lin_status lin_batches_plan(const int *frames, int n, int max_frames, int max_items, uint64_t seed, int epoch, lin_batches *plan,
                            lin_error *err)
{
    *plan = (lin_batches){0};
    if (n < 1) return lin_fail(err, LIN_INVALID, "no utterances to divide into batches");
    if (max_frames < 1) return lin_fail(err, LIN_INVALID, "batches of at most %d frames; must be at least 1", max_frames);
    for (int i = 0; i < n; i++)
        if (frames[i] < 1) return lin_fail(err, LIN_INVALID, "utterance %d has %d frames; must have at least 1", i, frames[i]);
    const size_t count = (size_t)n;
    entry *entries = lin_alloc(2 * count, sizeof *entries);
    unsigned char *ends = lin_alloc(count, 1);
    plan->items = lin_alloc(count, sizeof *plan->items);
    plan->offsets = lin_calloc(count + 1, sizeof *plan->offsets);
    lin_status status = LIN_OK;
    if (!entries || !ends || !plan->items || !plan->offsets) {
        lin_batches_free(plan);
        status = lin_no_memory(err, "the plan of an epoch", 2 * count * sizeof *entries);
    } else {
        const uint64_t key = lin_random_key(seed, (uint64_t)(int64_t)epoch);
        entry *batches = entries + count;
        for (int i = 0; i < n; i++) entries[i] = (entry){.item = i, .frames = frames[i]};
        if (epoch >= 0) shuffle(entries, n, lin_random_key(key, SHUFFLE_UTTERANCES));
        if (epoch < 0 || !max_items) sort_buckets(entries, n, max_frames, epoch < 0, ends);
        else for (int i = 0; i < n; i++) ends[i] = i == n - 1;
        plan->n_batches = cut(entries, n, max_frames, max_items, ends, batches);
        if (epoch >= 0) shuffle(batches, plan->n_batches, lin_random_key(key, SHUFFLE_BATCHES));
        fill(entries, batches, plan);
    }
    lin_free(entries);
    lin_free(ends);
    return status;
}

lin_status lin_batches_keep(lin_batches *plan, int k, int parts, lin_error *err)
{
    if (parts > plan->n_batches)
        return lin_fail(err, LIN_INVALID, "%d parts of %d batches; fewer parts, or smaller batches", parts, plan->n_batches);
    const int from = (int)((int64_t)plan->n_batches * k / parts), to = (int)((int64_t)plan->n_batches * (k + 1) / parts),
              first = plan->offsets[from];
    memmove(plan->items, plan->items + first, (size_t)(plan->offsets[to] - first) * sizeof *plan->items);
    for (int b = from; b <= to; b++) plan->offsets[b - from] = plan->offsets[b] - first;
    plan->n_batches = to - from;
    return LIN_OK;
}

void lin_batches_free(lin_batches *plan)
{
    lin_free(plan->offsets);
    lin_free(plan->items);
    *plan = (lin_batches){0};
}

int lin_ctc_frames_needed(const int *labels, int U)
{
    int needed = U;
    for (int u = 1; u < U; u++) needed += labels[u] == labels[u - 1];
    return needed;
}
