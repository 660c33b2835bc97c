// find.c - files that are installed with the library; see find.h.

#include "linnet/find.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/system.h"

#ifndef LIN_DATA_DIR
#define LIN_DATA_DIR "/usr/local/share/linnet"
#endif

static char first_folder[PATH_MAX]; // "": none

static int exists(const char *path)
{
    return access(path, F_OK) == 0;
}

// In ../share/linnet beside the folder of a file, if it is installed; or in share/linnet of the source tree it was built in.
static int find_beside(char *file, int in_lib, const char *name, char *path, size_t capacity)
{
    char *slash = strrchr(file, '/');
    if (slash) *slash = 0;
    snprintf(path, capacity, "%s/../share/linnet/%s", file, name);
    if (exists(path)) return 1;
    snprintf(path, capacity, "%s/%s../../share/linnet/%s", file, in_lib ? "../" : "", name);
    return exists(path);
}

static int is_program(const char *file)
{
    char program[PATH_MAX];
    return lin_system_program(program, sizeof program) && strcmp(program, file) == 0;
}

lin_status lin_find_in(const char *folder, lin_error *err)
{
    const size_t n = folder ? strlen(folder) : 0;
    if (n >= sizeof first_folder) return lin_fail(err, LIN_INVALID, "the folder's path is longer than %d bytes", PATH_MAX - 1);
    memcpy(first_folder, n ? folder : "", n + 1);
    return LIN_OK;
}

int lin_find_file(const char *name, char *path, size_t capacity)
{
    char file[PATH_MAX];
    if (*first_folder) {
        snprintf(path, capacity, "%s/%s", first_folder, name);
        if (exists(path)) return 1;
    }
    if (lin_system_program(file, sizeof file) && find_beside(file, 0, name, path, capacity)) return 1;
    if (lin_system_library(file, sizeof file) && !is_program(file) && find_beside(file, 1, name, path, capacity)) return 1;
    snprintf(path, capacity, "%s/%s", LIN_DATA_DIR, name);
    if (exists(path)) return 1;
    snprintf(path, capacity, "share/linnet/%s", name);
    if (exists(path)) return 1;
    *path = 0;
    return 0;
}

// A file of the folder of a language.
static int find_of(const char *language, const char *name, char *path, size_t capacity)
{
    char within[PATH_MAX];
    snprintf(within, sizeof within, "%s/%s", language, name);
    return lin_find_file(within, path, capacity);
}

lin_status lin_find_model(const char *given, char *path, size_t capacity, lin_error *err)
{
    if (!given) given = getenv("LINNET_MODEL");
    if (given && *given) {
        if (strlen(given) >= capacity)
            return lin_fail(err, LIN_INVALID, "the model's path is longer than %zu bytes", capacity - 1);
        char name[64];
        const int is_name = !strchr(given, '/') && strlen(given) < 32 && !exists(given);
        snprintf(name, sizeof name, "%.32s.safetensors", given);
        if (!is_name || !find_of("en", name, path, capacity)) memcpy(path, given, strlen(given) + 1);
        return LIN_OK;
    }
    if (find_of("en", "default.safetensors", path, capacity)) return LIN_OK;
    return lin_fail(err, LIN_IO, "no model is installed in %s; name one with --model or LINNET_MODEL", LIN_DATA_DIR);
}

lin_status lin_find_named(const char *given, const char *variable, const char *const *names, char *path, size_t capacity,
                          lin_error *err)
{
    if (!given) given = getenv(variable);
    if (given && *given) {
        if (strlen(given) >= capacity) return lin_fail(err, LIN_INVALID, "a file name of over %zu bytes", capacity - 1);
        const int is_here = strchr(given, '/') || exists(given);
        if (is_here || !find_of("en", given, path, capacity)) memcpy(path, given, strlen(given) + 1);
        return LIN_OK;
    }
    for (; *names; names++) {
        if (**names != '/' && find_of("en", *names, path, capacity)) return LIN_OK;
        if (**names == '/' && access(*names, R_OK) == 0) {
            snprintf(path, capacity, "%s", *names);
            return LIN_OK;
        }
    }
    *path = 0;
    return LIN_OK;
}

lin_status lin_find_lexicon(const char *given, char *path, size_t capacity, lin_error *err)
{
    // With the program, or CMUdict as Debian's package pocketsphinx-en-us installs it.
    static const char *const names[] = {"words.dict.gz", "words.dict",
                                        "/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict", NULL};
    return lin_find_named(given, "LINNET_LEXICON", names, path, capacity, err);
}

lin_status lin_find_lexicon_of(const lin_phones *phones, const char *given, char *path, size_t capacity, lin_error *err)
{
    static const char *const none[] = {NULL};
    if (!lin_phones_is_own(phones)) return lin_find_lexicon(given, path, capacity, err);
    return lin_find_named(given, "LINNET_LEXICON", none, path, capacity, err);
}

lin_status lin_find_lm_of(const lin_phones *phones, const char *given, char *path, size_t capacity, lin_error *err)
{
    static const char *const names[] = {"words.lm", "words.arpa.gz", NULL};
    return lin_find_named(given, "LINNET_LM", names + (lin_phones_is_own(phones) ? 2 : 0), path, capacity, err);
}

lin_status lin_find_rules(const char *given, const lin_phones *phones, char *path, size_t capacity, lin_error *err)
{
    static const char *const names[] = {"words.g2p", NULL};
    return lin_find_named(given, "LINNET_G2P", names + (phones && lin_phones_is_own(phones)), path, capacity, err);
}

lin_status lin_find_open_rules(const char *given, const lin_phones *phones, lin_g2p_rules **rules, lin_error *err)
{
    char path[PATH_MAX];
    *rules = NULL;
    const lin_status status = lin_find_rules(given, phones, path, sizeof path, err);
    return status == LIN_OK && *path ? lin_g2p_rules_open(path, phones, rules, err) : status;
}

lin_status lin_find_open_numbers(const char *given, lin_written **written, lin_error *err)
{
    static const char *const names[] = {"numbers.txt", NULL};
    char path[PATH_MAX];
    *written = NULL;
    if (given && strcmp(given, "none") == 0) return LIN_OK;
    const int is_language = given && strlen(given) < 8 && !strchr(given, '.') && !strchr(given, '/'); // "de"
    if (is_language && find_of(given, "numbers.txt", path, sizeof path)) return lin_written_load(path, written, err);
    lin_status status = lin_find_named(given, "LINNET_NUMBERS", names, path, sizeof path, err);
    return status == LIN_OK && *path ? lin_written_load(path, written, err) : status;
}

lin_g2p_rules *lin_find_speller(const lin_phones *phones)
{
    lin_g2p_rules *rules;
    return lin_find_open_rules(NULL, phones, &rules, NULL) == LIN_OK ? rules : NULL;
}

lin_status lin_find_punctuation(const char *given, char *path, size_t capacity, lin_error *err)
{
    static const char *const names[] = {"words.punctuation", NULL};
    return lin_find_named(given, "LINNET_PUNCTUATION", names, path, capacity, err);
}

lin_status lin_find_open_punctuation(const lin_phones *phones, lin_punctuation **punctuation, lin_error *err)
{
    char path[PATH_MAX] = "";
    const char *named = getenv("LINNET_PUNCTUATION");
    *punctuation = NULL;
    if (lin_phones_is_own(phones) && !(named && *named)) return LIN_OK;
    const lin_status status = lin_find_punctuation(NULL, path, sizeof path, err);
    return status == LIN_OK && *path ? lin_punctuation_open(path, punctuation, err) : status;
}
