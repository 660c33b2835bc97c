// dataset.c - opening and reading a feature cache; see dataset.h.

#include "train/dataset.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/unicode.h"
#include "model/model.h"
#include "train/dataset_format.h"

typedef struct utterance {
    size_t body, first_label; // offset of its bytes in the body, and of its labels in `labels`
    int frames, labels, speaker;
    uint32_t name;
} utterance;

struct lin_dataset {
    lin_file_map map; // size 0 if the caller owns the bytes
    char *path;
    lin_features features;
    int D, V, tokens, count, n_speakers;
    uint64_t frames, n_labels;
    const unsigned char *body, *steps, *label_bytes, *sums, *speakers; // in the file
    uint64_t body_hash;
    const char *names;
    size_t n_names; // bytes
    utterance *utterances;
    int *labels;
};

/* ---- opening --------------------------------------------------------------------------------------------------------------- */

static lin_status damaged(const lin_dataset *set, const char *what, lin_error *err)
{
    return lin_fail(err, LIN_FORMAT, "%s: %s; the feature cache is damaged; make it again with linnet prepare", set->path, what);
}

static lin_status read_header(lin_dataset *set, const unsigned char *bytes, size_t n, lin_error *err)
{
    if (n < LIN_DATASET_HEADER || memcmp(bytes, LIN_DATASET_MAGIC, 8) != 0)
        return lin_fail(err, LIN_FORMAT, "%s: not a feature cache", set->path);
    const uint32_t version = lin_get_u32(bytes + LIN_AT_VERSION);
    if (version != LIN_DATASET_VERSION)
        return lin_fail(err, LIN_UNSUPPORTED, "%s: feature cache version %u; this program reads version %d", set->path,
                        (unsigned)version, (int)LIN_DATASET_VERSION);
    if (lin_hash(bytes, LIN_AT_HEADER_HASH, 0) != lin_get_u64(bytes + LIN_AT_HEADER_HASH))
        return damaged(set, "the checksum of its header is wrong", err);
    const uint32_t D = lin_get_u32(bytes + LIN_AT_D), V = lin_get_u32(bytes + LIN_AT_V),
                   hz = lin_get_u32(bytes + LIN_AT_SAMPLE_HZ);
    const unsigned char *f = bytes + LIN_AT_FEATURES;
    if (D < 1 || D > 512 || V < 2 || V > 65536) return damaged(set, "the numbers of mel bins and phones are out of range", err);
    set->D = (int)D;
    set->V = (int)V;
    const uint32_t tokens = lin_get_u32(bytes + LIN_AT_TOKENS);
    if (tokens > 65536 || (tokens && (D != (tokens > 256 ? 2 : 1) || V > 65535)))
        return damaged(set, "its number of tokens is out of range", err);
    set->tokens = (int)tokens;
    set->features = (lin_features){hz > INT_MAX ? 0 : (int)hz, lin_get_f64(f),      lin_get_f64(f + 8),
                                   lin_get_f64(f + 16),        lin_get_f64(f + 24), lin_get_f64(f + 32), 0};
    lin_error inner = {0};
    if (lin_features_check(&set->features, &inner) != LIN_OK) return damaged(set, inner.message, err);
    const uint64_t count = lin_get_u64(bytes + LIN_AT_COUNT);
    const uint32_t n_speakers = lin_get_u32(bytes + LIN_AT_SPEAKERS);
    set->frames = lin_get_u64(bytes + LIN_AT_FRAMES);
    set->n_labels = lin_get_u64(bytes + LIN_AT_LABELS);
    // counts above the number of bytes are impossible, and with smaller ones no product here can overflow
    if (count > INT_MAX / 4 || n_speakers > count || count > n || set->frames > n || set->n_labels > n)
        return damaged(set, "its header gives larger counts than the file can hold", err);
    set->count = (int)count;
    set->n_speakers = (int)n_speakers;
    return LIN_OK;
}

// Computes the position of every part from the counts alone: the file must have exactly the length that follows from them.
static lin_status read_layout(lin_dataset *set, const unsigned char *bytes, size_t n, const unsigned char **index, lin_error *err)
{
    const uint64_t at = lin_get_u64(bytes + LIN_AT_TAIL), size = lin_get_u64(bytes + LIN_AT_TAIL_BYTES);
    const size_t D = (size_t)set->D, count = (size_t)set->count;
    if (at != LIN_DATASET_HEADER + set->frames * D || at > n || size != n - at)
        return lin_fail(err, LIN_FORMAT,
                        "%s: its size of %zu bytes differs from its header; the feature cache is truncated or damaged; make it "
                        "again with linnet prepare",
                        set->path, n);
    const size_t parts[] = {8,
                            count * LIN_DATASET_ENTRY,
                            count * 4 * D,
                            (size_t)set->n_labels * lin_dataset_label_bytes(set->V, set->tokens),
                            16 * D,
                            (size_t)set->n_speakers * lin_dataset_speaker_bytes(set->D)};
    size_t fixed = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) fixed += parts[i];
    if (fixed + 2 > size) return damaged(set, "its index is shorter than its header gives", err);
    const unsigned char *tail = bytes + at;
    if (lin_hash(tail, (size_t)size, 0) != lin_get_u64(bytes + LIN_AT_TAIL_HASH))
        return damaged(set, "the checksum of its index is wrong", err);
    set->body = bytes + LIN_DATASET_HEADER;
    set->body_hash = lin_get_u64(tail);
    *index = tail + parts[0];
    set->steps = *index + parts[1];
    set->label_bytes = set->steps + parts[2];
    set->sums = set->label_bytes + parts[3];
    set->speakers = set->sums + parts[4];
    set->names = (const char *)set->speakers + parts[5];
    set->n_names = (size_t)size - fixed;
    return LIN_OK;
}

// A name begins directly after the NUL of another, and is not empty.
static int is_name(const lin_dataset *set, uint32_t at)
{
    return at > 0 && at < set->n_names && set->names[at - 1] == '\0' && set->names[at] != '\0';
}

static lin_status check_names(const lin_dataset *set, lin_error *err)
{
    if (set->names[set->n_names - 1] != '\0') return damaged(set, "its last name is not terminated", err);
    int strings = 0;
    for (size_t at = 0; at < set->n_names; strings++) {
        const size_t n = strlen(set->names + at);
        if (lin_utf8_prefix(set->names + at, n, at ? "" : "\t") < n) return damaged(set, "its names are not UTF-8 text", err);
        at += n + 1;
    }
    if (strings < 2) return damaged(set, "the names of its phones are missing", err);
    int V;
    char **phones;
    lin_error inner = {0};
    lin_status status = lin_phones_split(set->names, &V, &phones, &inner);
    lin_free(phones);
    if (status == LIN_NO_MEMORY) return lin_fail_as(err, &inner);
    if (status != LIN_OK) return damaged(set, inner.message, err);
    return V == set->V ? LIN_OK : damaged(set, "the number of its phones differs from its header", err);
}

// The writer accepts features up to 60,000, so the sums have a bound too, and their quotients fit a float. False for NaN.
static lin_status check_sums(const lin_dataset *set, const unsigned char *sums, uint64_t frames, lin_error *err)
{
    const size_t D = (size_t)set->D;
    const double most = 1e5 * (double)frames;
    for (size_t d = 0; d < D; d++) {
        const double sum = lin_get_f64(sums + 8 * d), squares = lin_get_f64(sums + 8 * (D + d));
        if (!(fabs(sum) <= most && squares >= 0 && squares <= 1e5 * most)) return damaged(set, "its sums are out of range", err);
    }
    return LIN_OK;
}

static lin_status read_index(lin_dataset *set, const unsigned char *index, lin_error *err)
{
    set->utterances = lin_alloc((size_t)set->count, sizeof *set->utterances);
    set->labels = lin_alloc((size_t)set->n_labels, sizeof *set->labels);
    if (!set->utterances || !set->labels)
        return lin_no_memory(err, "the index of a data set", (size_t)set->n_labels * sizeof(int));
    uint64_t frames = 0, labels = 0;
    for (int i = 0; i < set->count; i++, index += LIN_DATASET_ENTRY) {
        const uint32_t T = lin_get_u32(index), U = lin_get_u32(index + 4), s = lin_get_u32(index + 8),
                       name = lin_get_u32(index + 12);
        if (T < 1 || T > INT_MAX || U > INT_MAX || s >= (uint32_t)set->n_speakers || !is_name(set, name))
            return damaged(set, "an entry of its index is out of range", err);
        if (set->tokens && U != T) return damaged(set, "a sequence has another number of targets than of tokens", err);
        set->utterances[i] = (utterance){(size_t)frames * (size_t)set->D, (size_t)labels, (int)T, (int)U, (int)s, name};
        frames += T;
        labels += U;
    }
    if (frames != set->frames || labels != set->n_labels)
        return damaged(set, "the totals of its index differ from its header", err);
    const size_t size = lin_dataset_label_bytes(set->V, set->tokens);
    for (size_t i = 0; i < (size_t)set->n_labels; i++) {
        const unsigned char *p = set->label_bytes + i * size;
        set->labels[i] = (size == 1 ? p[0] : p[0] | p[1] << 8) - (set->tokens > 0);
        if (set->labels[i] < (set->tokens ? -1 : 1) || set->labels[i] >= set->V)
            return damaged(set, "a label is out of range", err);
    }
    const size_t D = (size_t)set->D;
    for (size_t i = 0; i < (size_t)set->count * 2 * D; i++) {
        const unsigned high = set->steps[2 * i + 1];
        if ((high & 0x7C) == 0x7C || (i / D % 2 == 1 && (high & 0x80)))
            return damaged(set, "a step is not a number above 0", err);
    }
    return LIN_OK;
}

static lin_status check_speakers(const lin_dataset *set, lin_error *err)
{
    lin_status status = check_sums(set, set->sums, set->frames, err);
    uint64_t frames = 0;
    for (int s = 0; s < set->n_speakers && status == LIN_OK; s++) {
        const unsigned char *p = set->speakers + (size_t)s * lin_dataset_speaker_bytes(set->D);
        const uint64_t n = lin_get_u64(p + 8);
        if (!is_name(set, lin_get_u32(p)) || n < 1 || n > set->frames) return damaged(set, "a speaker is out of range", err);
        frames += n;
        status = check_sums(set, p + 16, n, err);
    }
    if (status == LIN_OK && frames != set->frames) return damaged(set, "the totals of its speakers differ from its header", err);
    return status;
}

lin_status lin_dataset_open_memory(const void *bytes, size_t n_bytes, const char *name, lin_dataset **out, lin_error *err)
{
    *out = NULL;
    lin_dataset *set = lin_calloc(1, sizeof *set);
    if (set) set->path = lin_strdup(name);
    if (!set || !set->path) {
        lin_free(set);
        return lin_no_memory(err, "a data set", sizeof *set);
    }
    const unsigned char *index = NULL;
    lin_status status = read_header(set, bytes, n_bytes, err);
    if (status == LIN_OK) status = read_layout(set, bytes, n_bytes, &index, err);
    if (status == LIN_OK) status = check_names(set, err);
    if (status == LIN_OK) status = read_index(set, index, err);
    if (status == LIN_OK) status = check_speakers(set, err);
    if (status == LIN_OK) status = lin_dataset_verify(set, err);
    if (status == LIN_OK) *out = set;
    else lin_dataset_close(set);
    return status;
}

lin_status lin_dataset_open(const char *path, lin_dataset **set, lin_error *err)
{
    *set = NULL;
    lin_file_map map;
    lin_status status = lin_file_map_open(path, &map, err);
    if (status != LIN_OK) return status;
    status = lin_dataset_open_memory(map.bytes, map.size, path, set, err);
    if (status == LIN_OK) (*set)->map = map;
    else lin_file_map_close(&map);
    return status;
}

void lin_dataset_close(lin_dataset *set)
{
    if (!set) return;
    lin_file_map_close(&set->map);
    lin_free(set->path);
    lin_free(set->utterances);
    lin_free(set->labels);
    lin_free(set);
}

lin_status lin_dataset_verify(const lin_dataset *set, lin_error *err)
{
    uint64_t hash = 0;
    for (int i = 0; i < set->count; i++)
        hash = lin_hash(set->body + set->utterances[i].body, (size_t)set->utterances[i].frames * (size_t)set->D, hash);
    return hash == set->body_hash ? LIN_OK : damaged(set, "the checksum of its features is wrong", err);
}

uint64_t lin_dataset_fingerprint(const lin_dataset *set)
{
    const uint64_t hash = lin_hash(set->steps, (size_t)set->count * 4 * (size_t)set->D, set->body_hash);
    return lin_hash(set->label_bytes, (size_t)set->n_labels * lin_dataset_label_bytes(set->V, set->tokens), hash);
}

/* ---- queries --------------------------------------------------------------------------------------------------------------- */

const char *lin_dataset_path(const lin_dataset *set) { return set->path; }

const char *lin_dataset_source(const lin_dataset *set) { return set->names + strlen(set->names) + 1; }

int lin_dataset_mel_bins(const lin_dataset *set) { return set->D; }

int lin_dataset_outputs(const lin_dataset *set) { return set->V; }

int lin_dataset_tokens(const lin_dataset *set) { return set->tokens; }

const char *lin_dataset_phones(const lin_dataset *set) { return set->names; }

const lin_features *lin_dataset_feature_parameters(const lin_dataset *set) { return &set->features; }

int lin_dataset_count(const lin_dataset *set) { return set->count; }

int64_t lin_dataset_total_frames(const lin_dataset *set) { return (int64_t)set->frames; }

int64_t lin_dataset_total_labels(const lin_dataset *set) { return (int64_t)set->n_labels; }

const char *lin_dataset_id(const lin_dataset *set, int i) { return set->names + set->utterances[i].name; }

int lin_dataset_frames(const lin_dataset *set, int i) { return set->utterances[i].frames; }

const int *lin_dataset_labels(const lin_dataset *set, int i, int *U)
{
    *U = set->utterances[i].labels;
    return set->labels + set->utterances[i].first_label;
}

int lin_dataset_speaker(const lin_dataset *set, int i) { return set->utterances[i].speaker; }

const unsigned char *lin_dataset_codes(const lin_dataset *set, int i) { return set->body + set->utterances[i].body; }

const unsigned char *lin_dataset_body(const lin_dataset *set, size_t *bytes)
{
    *bytes = (size_t)set->frames * (size_t)set->D;
    return set->body;
}

void lin_dataset_steps(const lin_dataset *set, int i, float *steps)
{
    lin_half_widen(set->steps + (size_t)i * 4 * (size_t)set->D, 2 * (size_t)set->D, steps);
}

void lin_dataset_features(const lin_dataset *set, int i, float *out)
{
    const size_t D = (size_t)set->D;
    const unsigned char *codes = lin_dataset_codes(set, i);
    float steps[2 * 512];
    lin_dataset_steps(set, i, steps);
    for (int t = 0; t < set->utterances[i].frames; t++, codes += D, out += D)
        for (size_t d = 0; d < D; d++) out[d] = steps[d] + steps[D + d] * (float)codes[d];
}

int lin_dataset_n_speakers(const lin_dataset *set) { return set->n_speakers; }

static const unsigned char *speaker_at(const lin_dataset *set, int s)
{
    return set->speakers + (size_t)s * lin_dataset_speaker_bytes(set->D);
}

const char *lin_dataset_speaker_name(const lin_dataset *set, int s) { return set->names + lin_get_u32(speaker_at(set, s)); }

// As in frontend/fbank.h: digital silence would give infinities.
static const double SMALLEST_STD = 1e-2;

static void norm_of(double sum, double squares, double n, float *mean, float *istd)
{
    const double m = sum / n, variance = squares / n - m * m;
    *mean = (float)m;
    *istd = (float)(1 / fmax(sqrt(variance), SMALLEST_STD));
}

void lin_dataset_speaker_norm(const lin_dataset *set, int s, float *mean, float *istd)
{
    const unsigned char *p = speaker_at(set, s);
    const size_t D = (size_t)set->D;
    for (size_t d = 0; d < D; d++)
        norm_of(lin_get_f64(p + 16 + 8 * d), lin_get_f64(p + 16 + 8 * (D + d)), (double)lin_get_u64(p + 8), &mean[d], &istd[d]);
}

lin_status lin_dataset_norm(const lin_dataset *const *sets, int n_sets, float *mean, float *istd, lin_error *err)
{
    uint64_t frames = 0;
    for (int i = 0; i < n_sets; i++) {
        const char *different = sets[i]->D != sets[0]->D                                             ? "numbers of mel bins"
                                : !lin_features_equal(&sets[i]->features, &sets[0]->features) ? "feature parameters"
                                : strcmp(sets[i]->names, sets[0]->names) != 0                        ? "phones"
                                                                                                     : NULL;
        char how[128] = "";
        if (different && !strcmp(different, "phones")) lin_phones_difference(sets[0]->names, sets[i]->names, how, sizeof how);
        if (different)
            return lin_fail(err, LIN_MISMATCH, "%s and %s have different %s%s%s", sets[0]->path, sets[i]->path, different,
                            *how ? ": " : "", how);
        frames += sets[i]->frames;
    }
    if (frames == 0)
        return lin_fail(err, LIN_INVALID, "%s: no frames to normalise by", n_sets > 0 ? sets[0]->path : "no data set");
    const size_t D = (size_t)sets[0]->D;
    for (size_t d = 0; d < D; d++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < n_sets; i++) {
            sum += lin_get_f64(sets[i]->sums + 8 * d);
            squares += lin_get_f64(sets[i]->sums + 8 * (D + d));
        }
        norm_of(sum, squares, (double)frames, &mean[d], &istd[d]);
    }
    return LIN_OK;
}
