// find.c - files that are installed with the library; see find.h.

#include "linnet/find.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system.h"

#ifndef LIN_DATA_DIR
#define LIN_DATA_DIR "/usr/local/share/linnet"
#endif

static char first_folder[PATH_MAX];    // "": none
static char chosen_language[PATH_MAX]; // a code, or the path of a folder; "": none

static int exists(const char *path) { return access(path, F_OK) == 0; }

int lin_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- places ---------------------------------------------------------------------------------------------------------------- */

lin_status lin_find_in(const char *folder, lin_error *err)
{
    const size_t n = folder ? strlen(folder) : 0;
    if (n >= sizeof first_folder) return lin_fail(err, LIN_INVALID, "the folder's path is longer than %d bytes", PATH_MAX - 1);
    memcpy(first_folder, n ? folder : "", n + 1);
    return LIN_OK;
}

enum { PLACES = 7 };

// The i-th place in the order of find.h: a folder that may not exist. 0: there is no such place here.
static int place_at(int i, char *path, size_t capacity)
{
    static const char *const beside[] = {"/../share/linnet", "/../../share/linnet", "/../../../share/linnet"}; // installed, built
    char file[PATH_MAX], program[PATH_MAX];
    if (i == 0) return snprintf(path, capacity, "%s", first_folder) > 0;
    if (i == PLACES - 2) return snprintf(path, capacity, "%s", LIN_DATA_DIR) > 0;
    if (i == PLACES - 1) return snprintf(path, capacity, "share/linnet") > 0;
    const int in_lib = i >= 3, is_built = (i - 1) % 2;
    if (in_lib ? !lin_system_library(file, sizeof file) : !lin_system_program(file, sizeof file)) return 0;
    if (in_lib && lin_system_program(program, sizeof program) && strcmp(program, file) == 0) return 0; // the library is in it
    char *slash = strrchr(file, '/');
    if (slash) *slash = 0;
    return snprintf(path, capacity, "%s%s", file, beside[is_built ? is_built + in_lib : 0]) < (int)capacity;
}

int lin_find_file(const char *name, char *path, size_t capacity)
{
    char place[PATH_MAX];
    for (int i = 0; i < PLACES; i++) {
        if (place_at(i, place, sizeof place) && snprintf(path, capacity, "%s/%s", place, name) < (int)capacity && exists(path))
            return 1;
    }
    *path = 0;
    return 0;
}

/* ---- languages ------------------------------------------------------------------------------------------------------------- */

// A file of the folder of an installed language.
static int find_in_language(const char *code, const char *name, char *path, size_t capacity)
{
    char within[PATH_MAX];
    *path = 0;
    return snprintf(within, sizeof within, "%s/%s", code, name) < (int)sizeof within && lin_find_file(within, path, capacity);
}

static int is_path(const char *language) { return strchr(language, '/') != NULL; }

// A file of the language that was chosen.
static int find_chosen(const char *name, char *path, size_t capacity)
{
    if (*chosen_language && !is_path(chosen_language)) return find_in_language(chosen_language, name, path, capacity);
    if (*chosen_language && snprintf(path, capacity, "%s/%s", chosen_language, name) < (int)capacity && exists(path)) return 1;
    *path = 0;
    return 0;
}

// The first of the files that the chosen language has; if none was chosen, or a folder lacks them, that of the phones has, NULL:
// English.
static int find_of(const lin_phones *phones, const char *const *names, char *path, size_t capacity)
{
    const char *code = phones ? lin_phones_language(phones) : "en";
    for (int i = 0; *chosen_language && names[i]; i++) {
        if (find_chosen(names[i], path, capacity)) return 1;
    }
    for (int i = 0; (!*chosen_language || is_path(chosen_language)) && *code && names[i]; i++) {
        if (find_in_language(code, names[i], path, capacity)) return 1;
    }
    *path = 0;
    return 0;
}

// Its folder has one of these files; that of the server's page has none.
static int is_installed(const char *code)
{
    static const char *const files[] = {"numbers.txt", "words.dict.gz", "words.dict", "default.safetensors"};
    char path[PATH_MAX];
    if (!lin_phones_is_language(code)) return 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (find_in_language(code, files[i], path, sizeof path)) return 1;
    }
    return 0;
}

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

// ": installed are de, en and es", or "".
static void list_languages(char *text, size_t size)
{
    enum { MOST = 64 };
    char codes[MOST][LIN_LANGUAGE_MAX + 1], place[PATH_MAX];
    int n = 0;
    for (int i = 0; i < PLACES; i++) {
        DIR *folder = place_at(i, place, sizeof place) ? opendir(place) : NULL;
        for (const struct dirent *e; folder && (e = readdir(folder)) != NULL && n < MOST;) {
            int known = !is_installed(e->d_name);
            for (int k = 0; k < n; k++) known |= strcmp(codes[k], e->d_name) == 0;
            if (!known) memcpy(codes[n++], e->d_name, strlen(e->d_name) + 1);
        }
        if (folder) closedir(folder);
    }
    qsort(codes, (size_t)n, sizeof *codes, by_name);
    *text = 0;
    for (int i = 0, used = 0; i < n && used < (int)size; i++) {
        const char *before = !i ? ": installed are " : i + 1 < n ? ", " : " and ";
        used += snprintf(text + used, size - (size_t)used, "%s%s", before, codes[i]);
    }
}

lin_status lin_find_language(const char *given, lin_error *err)
{
    char list[512];
    const size_t n = given ? strlen(given) : 0;
    if (!given) {
        *chosen_language = 0;
        return LIN_OK;
    }
    if (!is_installed(given) && !lin_is_folder(given)) {
        list_languages(list, sizeof list);
        return lin_fail(err, LIN_INVALID, "there is no language '%.100s'%s; name %sa folder with the files of one", given, list,
                        *list ? "one of these, or " : "");
    }
    if (n + 3 > sizeof chosen_language) return lin_fail(err, LIN_INVALID, "a path of over %d bytes", PATH_MAX - 3);
    snprintf(chosen_language, sizeof chosen_language, "%s%s", is_installed(given) || *given == '/' ? "" : "./", given);
    for (size_t end = strlen(chosen_language); end > 1 && chosen_language[end - 1] == '/'; end--) chosen_language[end - 1] = 0;
    return LIN_OK;
}

const char *lin_find_chosen(void)
{
    const char *slash = strrchr(chosen_language, '/'), *code = slash ? slash + 1 : chosen_language;
    return lin_phones_is_language(code) ? code : "";
}

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

static int find_installed_model(const char *name, char *path, size_t capacity)
{
    char file[128];
    snprintf(file, sizeof file, "%.64s.safetensors", name);
    return *chosen_language ? find_chosen(file, path, capacity) : find_in_language("en", file, path, capacity);
}

int lin_find_phones(char *path, size_t capacity)
{
    return find_chosen("phones.txt", path, capacity);
}

lin_status lin_find_model(const char *given, char *path, size_t capacity, lin_error *err)
{
    if (!given) given = getenv("LINNET_MODEL");
    if (given && *given) {
        if (strlen(given) >= capacity)
            return lin_fail(err, LIN_INVALID, "the model's path is longer than %zu bytes", capacity - 1);
        const int is_name = !strchr(given, '/') && strlen(given) < 32 && !exists(given);
        if (!is_name || !find_installed_model(given, path, capacity)) memcpy(path, given, strlen(given) + 1);
        return LIN_OK;
    }
    if (find_installed_model("default", path, capacity)) return LIN_OK;
    if (*chosen_language)
        return lin_fail(err, LIN_IO,
                        "there is no model of the language '%.200s'; name a model file, as with --model or LINNET_MODEL",
                        chosen_language);
    return lin_fail(err, LIN_IO, "no model is installed in %s; name a model file, as with --model or LINNET_MODEL", LIN_DATA_DIR);
}

lin_status lin_find_named(const lin_phones *phones, const char *given, const char *variable, const char *const *names, char *path,
                          size_t capacity, lin_error *err)
{
    if (!given && variable) given = getenv(variable);
    if (given && *given) {
        if (strlen(given) >= capacity) return lin_fail(err, LIN_INVALID, "a file name of over %zu bytes", capacity - 1);
        const char *const one[] = {given, NULL};
        const int is_here = strchr(given, '/') || exists(given);
        if (is_here || !find_of(phones, one, path, capacity)) memcpy(path, given, strlen(given) + 1);
        return LIN_OK;
    }
    find_of(phones, names, path, capacity);
    return LIN_OK;
}

lin_status lin_find_lexicon(const lin_phones *phones, const char *given, char *path, size_t capacity, lin_error *err)
{
    static const char *const names[] = {"words.dict.gz", "words.dict", NULL};
    static const char debian[] = "/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict"; // of the package pocketsphinx-en-us
    LIN_TRY(lin_find_named(phones, given, "LINNET_LEXICON", names, path, capacity, err));
    const char *code = *chosen_language ? chosen_language : phones ? lin_phones_language(phones) : "en";
    if (!*path && strcmp(code, "en") == 0 && access(debian, R_OK) == 0) snprintf(path, capacity, "%s", debian);
    return LIN_OK;
}

void lin_find_added(const lin_phones *phones, const char *lexicon, char *path, size_t capacity)
{
    static const char *const names[] = {"added.dict", NULL};
    if (!lexicon) lexicon = getenv("LINNET_LEXICON");
    *path = 0;
    if (!lexicon || !*lexicon) find_of(phones, names, path, capacity);
}

lin_status lin_find_lm(const lin_phones *phones, const char *given, char *path, size_t capacity, lin_error *err)
{
    static const char *const names[] = {"words.lm", "words.arpa.gz", NULL};
    return lin_find_named(phones, given, "LINNET_LM", names, path, capacity, err);
}

lin_status lin_find_word_network(const lin_phones *phones, const char *given, char *path, size_t capacity, lin_error *err)
{
    char name[64], installed[PATH_MAX];
    const char *const names[] = {name, NULL};
    LIN_TRY(lin_find_named(phones, given, NULL, names, path, capacity, err));
    if (strchr(path, '/') || exists(path)) return LIN_OK;
    const int n = snprintf(name, sizeof name, "%s.safetensors", given);
    if (n < (int)sizeof name && find_of(phones, names, installed, sizeof installed)) snprintf(path, capacity, "%s", installed);
    return LIN_OK;
}

lin_status lin_find_rules(const lin_phones *phones, const char *given, char *path, size_t capacity, lin_error *err)
{
    static const char *const names[] = {"words.g2p", NULL};
    return lin_find_named(phones, given, "LINNET_G2P", names, path, capacity, err);
}

lin_status lin_find_open_rules(const lin_phones *phones, const char *given, lin_g2p_rules **rules, lin_error *err)
{
    char path[PATH_MAX];
    *rules = NULL;
    LIN_TRY(lin_find_rules(phones, given, path, sizeof path, err));
    return *path ? lin_g2p_rules_open(path, phones, rules, err) : LIN_OK;
}

lin_status lin_find_speller(const lin_phones *phones, lin_g2p_rules **rules, lin_error *err)
{
    const lin_status status = lin_find_open_rules(phones, NULL, rules, err);
    return status == LIN_NO_MEMORY ? status : LIN_OK;
}

// Whether a lexicon has a word that the rules say for a digit. LIN_NO_MEMORY.
static lin_status says_digits(const lin_written *written, const lin_dictionary *dictionary, int *found, lin_error *err)
{
    lin_readings readings = {0};
    lin_status status = LIN_OK;
    size_t end;
    for (char digit = '0'; digit <= '9' && !*found && status == LIN_OK; digit++) {
        status = lin_written_match(written, &digit, 1, 0, &end, &readings, err);
        for (int i = 0; status == LIN_OK && end && i < readings.n; i++)
            *found |= lin_dictionary_find(dictionary, readings.items[i], strlen(readings.items[i]), 0, NULL) > 0;
    }
    lin_readings_free(&readings);
    return status;
}

lin_status lin_find_numbers(const lin_phones *phones, const char *given, char *path, size_t capacity, lin_error *err)
{
    static const char *const names[] = {"numbers.txt", NULL};
    *path = 0;
    if (!given) given = getenv("LINNET_NUMBERS");
    if (given && strcmp(given, "none") == 0) return LIN_OK;
    if (given && lin_phones_is_language(given) && find_in_language(given, *names, path, capacity)) return LIN_OK;
    return lin_find_named(phones, given, NULL, names, path, capacity, err);
}

lin_status lin_find_open_numbers(const lin_phones *phones, const char *given, const lin_dictionary *dictionary,
                                 lin_written **written, lin_error *err)
{
    char path[PATH_MAX];
    const int by_variable = !given && getenv("LINNET_NUMBERS");
    *written = NULL;
    LIN_TRY(lin_find_numbers(phones, given, path, sizeof path, err));
    lin_status status = *path ? lin_written_load(path, written, err) : LIN_OK;
    if (status != LIN_OK && by_variable) lin_fail_at(err, status, "LINNET_NUMBERS, a language, a file or none");
    int suits = given || by_variable || !dictionary || !*written;
    if (!suits) status = says_digits(*written, dictionary, &suits, err);
    if (suits) return status;
    lin_written_destroy(*written); // of another language
    *written = NULL;
    return status;
}

lin_status lin_find_punctuation(const lin_phones *phones, const char *given, char *path, size_t capacity, lin_error *err)
{
    static const char *const names[] = {"words.punctuation", NULL};
    return lin_find_named(phones, given, "LINNET_PUNCTUATION", names, path, capacity, err);
}

lin_status lin_find_open_punctuation(const lin_phones *phones, lin_punctuation **punctuation, lin_error *err)
{
    char path[PATH_MAX] = "";
    *punctuation = NULL;
    LIN_TRY(lin_find_punctuation(phones, NULL, path, sizeof path, err));
    if (!*path) return LIN_OK;
    LIN_TRY(lin_punctuation_open(path, punctuation, err));
    const lin_status status = lin_find_open_numbers(phones, NULL, NULL, &(*punctuation)->numbers, err);
    if (status == LIN_OK) return LIN_OK;
    lin_punctuation_destroy(*punctuation);
    *punctuation = NULL;
    return status;
}
