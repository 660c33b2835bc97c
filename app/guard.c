// guard.c - no output is an input; see guard.h.

#include "app/guard.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/common.h"
#include "base/hash.h"
#include "base/memory.h"
#include "linnet/datadir.h"

typedef struct identity {
    dev_t device;
    ino_t number;
    int used;
} identity;

// Open addressing; the capacity is a power of two and at most half of it is used.
static identity *known;
static size_t n_known, capacity;

static identity *place(identity *table, size_t room, const struct stat *st)
{
    size_t at = (size_t)lin_mix64((uint64_t)st->st_ino ^ (uint64_t)st->st_dev << 40) & (room - 1);
    while (table[at].used && (table[at].number != st->st_ino || table[at].device != st->st_dev)) at = (at + 1) & (room - 1);
    return &table[at];
}

static lin_status grow(lin_error *err)
{
    const size_t room = capacity ? 2 * capacity : 64;
    identity *table = lin_calloc(room, sizeof *table);
    if (!table) return lin_no_memory(err, "the list of inputs", room * sizeof *table);
    for (size_t i = 0; i < capacity; i++) {
        if (known[i].used) *place(table, room, &(struct stat){.st_dev = known[i].device, .st_ino = known[i].number}) = known[i];
    }
    lin_free(known);
    known = table;
    capacity = room;
    return LIN_OK;
}

static int is_file(const char *path, struct stat *st)
{
    return path && strcmp(path, "-") != 0 && stat(path, st) == 0 && S_ISREG(st->st_mode);
}

lin_status lin_guard_reads(const char *path, lin_error *err)
{
    struct stat st;
    char part[PATH_MAX];
    if (!path || strcmp(path, "-") == 0 || stat(path, &st) != 0) return LIN_OK;
    lin_status status = LIN_OK;
    for (int i = 0; S_ISDIR(st.st_mode) && i < LIN_DATADIR_FILES && status == LIN_OK; i++) {
        struct stat list;
        snprintf(part, sizeof part, "%s/%s", path, lin_datadir_names[i]);
        if (is_file(part, &list)) status = lin_guard_reads(part, err);
    }
    if (!S_ISREG(st.st_mode)) return status;
    if (2 * (n_known + 1) > capacity) status = grow(err);
    if (status != LIN_OK) return status;
    identity *entry = place(known, capacity, &st);
    if (!entry->used) n_known++;
    *entry = (identity){st.st_dev, st.st_ino, 1};
    return LIN_OK;
}

lin_status lin_guard_writes(const char *path, lin_error *err)
{
    struct stat st;
    if (!capacity || !is_file(path, &st) || !place(known, capacity, &st)->used) return LIN_OK;
    return lin_fail(err, LIN_INVALID, "%s is an input and would be overwritten; name another output", path);
}

void lin_guard_free(void)
{
    lin_free(known);
    known = NULL;
    n_known = capacity = 0;
}

/* ---- options --------------------------------------------------------------------------------------------------------------- */

static const char *text_of(const lin_parsed *parsed, const lin_option *o)
{
    return *(const char *const *)(const void *)((const char *)parsed->values + o->at);
}

static const char *named(const lin_parsed *parsed, const char *name)
{
    const int row = lin_options_find(parsed->command, name);
    const lin_option *o = row < 0 ? NULL : &parsed->command->options[row];
    return o && (o->type == LIN_OPTION_FILE || o->type == LIN_OPTION_STRING) ? text_of(parsed, o) : NULL;
}

static int is_set(const lin_parsed *parsed, const char *name)
{
    const int row = lin_options_find(parsed->command, name);
    return row >= 0 && *(const int *)(const void *)((const char *)parsed->values + parsed->command->options[row].at);
}

// Inputs that are read by default.
static lin_status add_defaults(const lin_parsed *parsed, lin_error *err)
{
    static const char *const models[2][2] = {{"phones.lm", NULL}, {"words.lm", NULL}};
    char path[PATH_MAX];
    lin_status status = LIN_OK;
    if (lin_options_find(parsed->command, "model") >= 0 &&
        lin_find_model(is_set(parsed, "offline") ? "offline" : named(parsed, "model"), path, sizeof path, NULL) == LIN_OK)
        status = lin_guard_reads(path, err);
    if (status == LIN_OK && lin_options_find(parsed->command, "lexicon") >= 0 &&
        lin_find_lexicon(NULL, named(parsed, "lexicon"), path, sizeof path, NULL) == LIN_OK)
        status = lin_guard_reads(path, err);
    lin_find_added(NULL, named(parsed, "lexicon"), path, sizeof path);
    if (status == LIN_OK && *path) status = lin_guard_reads(path, err);
    if (status == LIN_OK && lin_options_find(parsed->command, "lexicon") >= 0 &&
        lin_find_rules(NULL, named(parsed, "g2p"), path, sizeof path, NULL) == LIN_OK)
        status = lin_guard_reads(path, err);
    for (int i = 0; i < 2 && status == LIN_OK && lin_options_find(parsed->command, "lm") >= 0; i++) {
        if (lin_find_named(NULL, named(parsed, "lm"), "LINNET_LM", models[i], path, sizeof path, NULL) == LIN_OK)
            status = lin_guard_reads(path, err);
    }
    const char *rescore = named(parsed, "rescore");
    if (status == LIN_OK && rescore && lin_find_word_network(NULL, rescore, path, sizeof path, NULL) == LIN_OK)
        status = lin_guard_reads(path, err);
    return status;
}

static lin_status add_inputs(const lin_parsed *parsed, lin_error *err)
{
    lin_status status = add_defaults(parsed, err);
    for (const lin_option *o = parsed->command->options; o->type != LIN_OPTION_END && status == LIN_OK; o++) {
        if (o->writes) continue;
        if (o->type == LIN_OPTION_FILE || o->type == LIN_OPTION_FOLDER) status = lin_guard_reads(text_of(parsed, o), err);
        if (o->type != LIN_OPTION_FILES) continue;
        const lin_list *list = (const void *)((const char *)parsed->values + o->at);
        for (int i = 0; i < list->count && status == LIN_OK; i++) status = lin_guard_reads(list->items[i], err);
    }
    for (int i = parsed->command->verb_operand; i < parsed->operands.count && status == LIN_OK; i++) {
        status = lin_guard_reads(parsed->operands.items[i], err);
    }
    return status;
}

int lin_guard_is_same(const char *a, const char *b)
{
    struct stat x, y;
    char folder[2][PATH_MAX], part[PATH_MAX];
    const int there_a = stat(a, &x) == 0, there_b = stat(b, &y) == 0;
    if (there_a != there_b) return 0;
    if (there_a) return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    if (strcmp(lin_base_name(a), lin_base_name(b)) != 0) return 0;
    const char *paths[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        snprintf(part, sizeof part, "%.*s", (int)(lin_base_name(paths[i]) - paths[i]), paths[i]);
        if (!realpath(*part ? part : ".", folder[i])) return 0;
    }
    return strcmp(folder[0], folder[1]) == 0;
}

static lin_status check_outputs(const lin_parsed *parsed, lin_error *err)
{
    const lin_option *options = parsed->command->options;
    for (const lin_option *o = options; o->type != LIN_OPTION_END; o++) {
        const char *path = o->writes && o->type == LIN_OPTION_FILE ? text_of(parsed, o) : NULL;
        if (!path || strcmp(path, "-") == 0) continue;
        const char *before = o->updates ? named(parsed, o->updates) : NULL;
        lin_status status = before && lin_guard_is_same(path, before) ? LIN_OK : lin_guard_writes(path, err);
        if (status != LIN_OK) return lin_fail(err, status, "--%s %s", o->name, err ? err->message : "");
        for (const lin_option *other = options; other < o; other++) {
            const char *another = other->writes && other->type == LIN_OPTION_FILE ? text_of(parsed, other) : NULL;
            if (another && strcmp(another, "-") != 0 && lin_guard_is_same(path, another))
                return lin_fail(err, LIN_INVALID, "--%s and --%s are both %s: name two files", other->name, o->name, path);
        }
    }
    return LIN_OK;
}

lin_status lin_guard_command(const lin_parsed *parsed, lin_error *err)
{
    int writes = 0;
    if (!parsed->command->options) return LIN_OK;
    for (const lin_option *o = parsed->command->options; o->type != LIN_OPTION_END; o++) {
        const int has_text = o->type == LIN_OPTION_FILE || o->type == LIN_OPTION_FOLDER || o->type == LIN_OPTION_STRING;
        writes |= o->writes && has_text && text_of(parsed, o) != NULL;
    }
    if (!writes) return LIN_OK;
    lin_status status = add_inputs(parsed, err);
    return status == LIN_OK ? check_outputs(parsed, err) : status;
}
