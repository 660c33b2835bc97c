// holdout.c - see holdout.h.

#include "train/holdout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/symbols.h"

// A speaker, or an utterance, in the order in which they are taken.
typedef struct choice {
    uint64_t key;
    const char *name; // for equal keys
    int index;
} choice;

static int by_key(const void *a, const void *b)
{
    const choice *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : strcmp(x->name, y->name);
}

static choice choice_of(const char *name, int index, uint64_t seed)
{
    return (choice){lin_hash(name, strlen(name), seed), name, index};
}

// Whole speakers; 0 if none can be taken.
static int take_speakers(const lin_datadir *dir, const int *speaker_of, const int *counts, choice *speakers, int n_speakers,
                         int want, int most, unsigned char *held, lin_holdout *out)
{
    const int n = lin_datadir_count(dir);
    if (n_speakers < 3) return 0;
    qsort(speakers, (size_t)n_speakers, sizeof *speakers, by_key);
    for (int i = 0; i < n_speakers && out->held < want; i++) {
        const int s = speakers[i].index, after = out->held + counts[s];
        if (after > most || after > (n + 2) / 3) continue;
        for (int u = 0; u < n; u++) held[u] |= speaker_of[u] == s;
        out->held = after;
        out->held_speakers++;
    }
    return out->held_speakers;
}

static void take_utterances(choice *utterances, int n, int want, unsigned char *held, lin_holdout *out)
{
    qsort(utterances, (size_t)n, sizeof *utterances, by_key);
    for (int i = 0; i < want; i++) held[utterances[i].index] = 1;
    out->held = want;
}

static lin_status choose(const lin_datadir *dir, const lin_holdout_options *o, unsigned char *held, lin_symbols *names,
                         int *speaker_of, int *counts, choice *choices, lin_holdout *out, lin_error *err)
{
    const int n = lin_datadir_count(dir);
    for (int i = 0; i < n; i++) {
        const char *speaker = lin_datadir_at(dir, i)->speaker;
        LIN_TRY(lin_symbols_add(names, speaker, strlen(speaker), &speaker_of[i], err));
        counts[speaker_of[i]]++;
    }
    out->speakers = names->n;
    int want = (int)lround(o->part * n);
    if (want > o->most) want = o->most;
    if (want < 1) want = 1;
    for (int i = 0; i < names->n; i++) choices[i] = choice_of(lin_symbols_text(names, i), i, o->seed);
    if (take_speakers(dir, speaker_of, counts, choices, names->n, want, o->most, held, out)) return LIN_OK;
    for (int i = 0; i < n; i++) choices[i] = choice_of(lin_datadir_at(dir, i)->id, i, o->seed);
    take_utterances(choices, n, want, held, out);
    return LIN_OK;
}

lin_status lin_holdout_choose(const lin_datadir *dir, const lin_holdout_options *o, unsigned char *held, lin_holdout *holdout,
                              lin_error *err)
{
    const int n = lin_datadir_count(dir);
    *holdout = (lin_holdout){.n = n};
    if (!(o->part > 0 && o->part <= 0.5) || o->most < 1)
        return lin_fail(err, LIN_INVALID, "a part of %g and at most %d utterances to hold out", o->part, o->most);
    if (n < 2) return lin_fail(err, LIN_INVALID, "%d utterances: at least 2 are needed, one of them to be held out", n);
    lin_symbols names = {0};
    int *speaker_of = lin_alloc((size_t)n, sizeof *speaker_of), *counts = lin_calloc((size_t)n, sizeof *counts);
    choice *choices = lin_alloc((size_t)n, sizeof *choices);
    lin_status status = speaker_of && counts && choices
                            ? choose(dir, o, held, &names, speaker_of, counts, choices, holdout, err)
                            : lin_no_memory(err, "the list of speakers", (size_t)n * sizeof *choices);
    lin_symbols_free(&names);
    lin_free(speaker_of);
    lin_free(counts);
    lin_free(choices);
    return status;
}
