// phones.c - names, CMUdict's names and IPA; see phones.h.

#include "lexicon/phones.h"

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/symbols.h"
#include "base/textfile.h"
#include "base/unicode.h"

enum { MAX_PHONES = 65536 };

// The phones of English, the language of a set that names none. The Makefile compiles share/linnet/en/phones.txt in, because a
// program may have only a model.
#define ENGLISH "lexicon/english_phones.inc"
#define OTHER(symbol, name)
#define PHONE(name, ipa) " " name
const char lin_phones_default[] = LIN_PHONES_BLANK
#include ENGLISH
    ;
#undef PHONE
#define PHONE(name, ipa) {name, ipa},
static const struct {
    char name[3];
    const char *ipa;
} ipa_table[] = {
#include ENGLISH
};
#undef PHONE
#undef OTHER

// Other symbols for the same phones, after marks such as tie bars and length are removed.
#define PHONE(name, ipa)
#define OTHER(symbol, name) {symbol, name},
static const struct {
    const char *ipa;
    char name[3];
} ipa_variants[] = {
#include ENGLISH
};

enum { CMU_PHONES = LIN_PHONES_DEFAULT_COUNT - 1, STRESSES = 4 };
_Static_assert(sizeof ipa_table / sizeof *ipa_table == CMU_PHONES, "as many phones as phones.h says");

struct lin_phones {
    lin_symbols names;
    char *list;
    char *split;      // the list, each name with what follows it ended by a NUL
    const char **ipa; // [names.n] within split; NULL: none
    int is_own;
    const char *language;             // within split, or a constant
    int by_cmu[CMU_PHONES][STRESSES]; // the first name of each of CMUdict's phones, by 1 + stress, 0 without; 0: there is none
};

static const char silence[] = "(silence)", noise[] = "(noise)", own_set[] = "own";

static int is_word(const char *word, const char *text, size_t n) { return n == strlen(word) && memcmp(word, text, n) == 0; }

// A name with what follows it after a tab.
static lin_status add_name(lin_phones *p, const char *name, size_t n_all, lin_error *err)
{
    char shown[LIN_QUOTE];
    int index, at = p->names.n;
    const char *tab = memchr(name, '\t', n_all);
    const size_t n = tab ? (size_t)(tab - name) : n_all, n_ipa = tab ? n_all - n - 1 : 0;
    if (!n) return lin_fail(err, LIN_INVALID, "phone set: name %d is empty; names are separated by single spaces", at);
    if (n > LIN_PHONE_NAME_MAX || lin_text_find_control(name, n) < n)
        return lin_fail(err, LIN_INVALID, "phone set: name %d, '%s', is too long or has control characters", at,
                        lin_quote(shown, name, n));
    if (at == 0 && (n != strlen(LIN_PHONES_BLANK) || memcmp(name, LIN_PHONES_BLANK, n)))
        return lin_fail(err, LIN_INVALID, "phone set: the first name is '%s', it must be %s", lin_quote(shown, name, n),
                        LIN_PHONES_BLANK);
    if (tab && (n_ipa < 1 || n_ipa > LIN_PHONE_IPA_MAX || lin_utf8_prefix(tab + 1, n_ipa, "") < n_ipa))
        return lin_fail(err, LIN_INVALID, "phone set: the IPA of name %d, '%s', is empty, too long, or not text", at,
                        lin_quote(shown, name, n));
    if (tab && at == 0 && strcmp(own_set, tab + 1) != 0 && !lin_phones_is_language(tab + 1))
        return lin_fail(err, LIN_INVALID, "phone set: '%s' after %s; only '%s' or the code of a language may be there",
                        lin_quote(shown, tab + 1, n_ipa), LIN_PHONES_BLANK, own_set);
    if (at == MAX_PHONES) return lin_fail(err, LIN_INVALID, "phone set: there are more than %d names", MAX_PHONES);
    LIN_TRY(lin_symbols_add(&p->names, name, n, &index, err));
    if (index != at)
        return lin_fail(err, LIN_INVALID, "phone set: '%s' appears twice, as names %d and %d", lin_quote(shown, name, n), index,
                        at);
    if (at == 0) p->is_own = tab != NULL, p->language = !tab ? "en" : strcmp(own_set, tab + 1) != 0 ? tab + 1 : "";
    else p->ipa[at] = tab ? tab + 1 : NULL;
    return LIN_OK;
}

// Index in the table of a name with or without a stress digit; *stress is the digit, or -1. Returns -1 if CMUdict has no such
// name.
static int cmu_of_name(const char *name, size_t n, int *stress)
{
    *stress = n > 1 && name[n - 1] >= '0' && name[n - 1] <= '2' ? name[n - 1] - '0' : -1;
    n -= *stress >= 0;
    for (int i = 0; i < CMU_PHONES; i++) {
        if (strlen(ipa_table[i].name) == n && !memcmp(ipa_table[i].name, name, n)) return i;
    }
    return -1;
}

/* ---- the IPA --------------------------------------------------------------------------------------------------------------- */

enum { LONGEST_FIELD = 512, SYLLABIC = 0x329 };

// Characters that do not change the phone: combining marks except the syllabic one, length, aspiration, and other modifiers.
static int is_passed_over(unsigned code)
{
    return (code >= 0x300 && code <= 0x36F && code != SYLLABIC) || (code >= 0x2B0 && code <= 0x2B8) ||
           (code >= 0x2D0 && code <= 0x2D1) || code == 0x2E0 || (code >= 0x1D2C && code <= 0x1D6A) || code == 0x207F ||
           code == 0x203F || code == '.';
}

static int mark_of(unsigned code) { return code == 0x2C8 || code == '\'' ? 1 : code == 0x2CC ? 2 : 0; }

// The longest symbol at the beginning of the text: its bytes, and the number of its phone.
static size_t longest_symbol(const char *text, size_t n, int *cmu)
{
    size_t longest = 0;
    for (int i = 0; i < CMU_PHONES; i++) {
        const size_t k = strlen(ipa_table[i].ipa);
        if (k > longest && k <= n && !memcmp(text, ipa_table[i].ipa, k)) longest = k, *cmu = i;
    }
    for (size_t i = 0; i < sizeof ipa_variants / sizeof *ipa_variants; i++) {
        const size_t k = strlen(ipa_variants[i].ipa);
        int stress;
        if (k > longest && k <= n && !memcmp(text, ipa_variants[i].ipa, k))
            longest = k, *cmu = cmu_of_name(ipa_variants[i].name, strlen(ipa_variants[i].name), &stress);
    }
    return longest;
}

// Copies the field without the characters that are ignored. Returns its bytes, 0 if it is not UTF-8 or too long.
static size_t clean(char out[LONGEST_FIELD], const char *text, size_t n)
{
    size_t used = 0, step;
    if (n > LONGEST_FIELD) return 0;
    for (size_t at = 0; at < n; at += step) {
        unsigned code;
        step = lin_utf8_decode(text + at, n - at, &code);
        if (!step) return 0;
        if (is_passed_over(code)) continue;
        int cmu;
        unsigned mark, letter = longest_symbol(text + at, n - at, &cmu) >= step ? 0 : lin_unicode_split(code, &mark);
        for (unsigned next = letter; next; next = lin_unicode_split(letter, &mark)) letter = next; // "ã" is a with a mark
        memcpy(out + used, text + at, step);
        used += letter ? lin_utf8_encode(letter, out + used) : step;
    }
    return used;
}

typedef struct cmu_read {
    int cmu, stress;
} cmu_read;

// By the letter that the symbol begins with, without its marks.
static int is_vowel_symbol(const char *ipa)
{
    static const char vowels[] = "aeiouyɑæɐəɚɛɜɝɞɨɪɔɵœɶøɒʉʊʌʏɯɤɘɿʅ";
    char first[8] = "";
    unsigned code, mark;
    if (!lin_utf8_decode(ipa, strlen(ipa), &code)) return 0;
    for (unsigned letter; (letter = lin_unicode_split(code, &mark)); code = letter) {
    }
    lin_utf8_encode(code, first);
    return strstr(vowels, first) != NULL;
}

static int is_vowel(int cmu) { return cmu >= 0 && is_vowel_symbol(ipa_table[cmu].ipa); }

// Only these, if syllabic, are read as a vowel and the consonant: ɹ̩ is a vowel itself.
static int can_be_syllabic(int cmu) { return strchr("lmn", *ipa_table[cmu].ipa) || !strcmp(ipa_table[cmu].ipa, "ŋ"); }

// A sequence of symbols. 0 if one is unknown or there are too many.
static int read_ipa(const char *field, size_t n_field, cmu_read *out, int capacity, int *mark)
{
    char text[LONGEST_FIELD];
    const size_t n = clean(text, field, n_field);
    int found = 0;
    for (size_t at = 0; at < n;) {
        unsigned code;
        int cmu = 0;
        const size_t step = lin_utf8_decode(text + at, n - at, &code), symbol = longest_symbol(text + at, n - at, &cmu);
        if (!symbol && code == SYLLABIC && found) {
            cmu_read *last = &out[found - 1];
            int vowel = 0;
            at += step;
            if (!can_be_syllabic(last->cmu)) continue;
            if (found == capacity) return 0;
            longest_symbol("ə", strlen("ə"), &vowel);
            out[found++] = *last;
            *last = (cmu_read){vowel, *mark ? *mark : -1};
            *mark = 0;
        } else if (!symbol) {
            if (!mark_of(code)) return 0;
            *mark = mark_of(code);
            at += step;
        } else {
            if (found == capacity) return 0;
            out[found++] = (cmu_read){cmu, is_vowel(cmu) && *mark ? *mark : -1};
            if (is_vowel(cmu)) *mark = 0;
            at += symbol;
        }
    }
    return found;
}

/* ---- sets ------------------------------------------------------------------------------------------------------------------ */

// Index in the table of a phone of a set, under any of its names; -1: none.
static int cmu_of_phone(const char *name, size_t n, int *stress)
{
    cmu_read one[2];
    int mark = 0, cmu = cmu_of_name(name, n, stress);
    if (cmu >= 0 || read_ipa(name, n, one, 2, &mark) != 1) return cmu;
    *stress = one[0].stress;
    return one[0].cmu;
}

static void index_by_cmu(lin_phones *p)
{
    for (int i = 1; i < p->names.n; i++) {
        int stress, cmu = cmu_of_phone(lin_symbols_text(&p->names, i), p->names.items[i].n, &stress);
        if (cmu >= 0 && !p->by_cmu[cmu][stress + 1]) p->by_cmu[cmu][stress + 1] = i;
    }
}

int lin_phones_is_language(const char *code)
{
    const size_t n = strspn(code, "abcdefghijklmnopqrstuvwxyz");
    if (n < 2 || n > 3 || strlen(code) > LIN_LANGUAGE_MAX || !strcmp(code, own_set)) return 0;
    for (const char *at = code + n; *at; at++) {
        const char letter = *at == '-' ? at[1] : *at;
        if (!lin_is_digit(letter) && !(lin_lower(letter) >= 'a' && lin_lower(letter) <= 'z')) return 0;
    }
    return !code[n] || code[n] == '-';
}

lin_status lin_phones_create(const char *list, lin_phones **phones, lin_error *err)
{
    *phones = NULL;
    if (!list) list = lin_phones_default;
    lin_phones *p = lin_calloc(1, sizeof *p);
    if (!p) return lin_no_memory(err, "a phone set", sizeof *p);
    lin_status status = LIN_OK;
    size_t n_names = 1;
    for (const char *at = list; *at; at++) n_names += *at == ' ';
    p->list = lin_strdup(list);
    p->split = lin_strdup(list);
    p->ipa = lin_calloc(n_names, sizeof *p->ipa);
    if (!p->list || !p->split || !p->ipa) status = lin_no_memory(err, "a phone set", strlen(list) + 1);
    for (char *at = p->split; status == LIN_OK; at++) {
        const size_t n = strcspn(at, " ");
        const int is_last = !at[n];
        at[n] = '\0';
        status = add_name(p, at, n, err);
        at += n;
        if (is_last) break;
    }
    if (status == LIN_OK && p->names.n < 2) status = lin_fail(err, LIN_INVALID, "phone set: there is no phone besides the blank");
    if (status != LIN_OK) {
        lin_phones_destroy(p);
        return status;
    }
    if (!p->is_own) index_by_cmu(p);
    *phones = p;
    return LIN_OK;
}

/* ---- from a file ----------------------------------------------------------------------------------------------------------- */

lin_phone_kind lin_phones_usual_kind(const char *name, size_t n)
{
    static const char *const silences[] = {"sil", "sp", "<sil>", "<eps>"}, *const noises[] = {"spn", "nsn", "<noise>", "<spn>"};
    char lower[16];
    if (n > sizeof lower) return LIN_PHONE_SOUND;
    for (size_t i = 0; i < n; i++) lower[i] = lin_lower(name[i]);
    for (size_t i = 0; i < sizeof silences / sizeof *silences; i++) {
        if (is_word(silences[i], lower, n)) return LIN_PHONE_SILENCE;
        if (is_word(noises[i], lower, n)) return LIN_PHONE_NOISE;
    }
    return LIN_PHONE_SOUND;
}

// Appends a line of a file to the text of the list; without the blank where it is the first.
static void add_line(lin_buffer *list, const char *at, const char *end, int *n_names, int *has_blank)
{
    const char *name, *ipa;
    size_t n, n_ipa;
    if (!lin_field_next(&at, end, &name, &n) || is_word("#", name, n)) return;
    if (is_word(LIN_PHONES_BLANK, name, n) && *n_names == 0 && !*has_blank) {
        *has_blank = 1;
        return;
    }
    ++*n_names;
    lin_buffer_char(list, ' ');
    lin_buffer_bytes(list, name, n);
    if (!lin_field_next(&at, end, &ipa, &n_ipa) || *ipa == '#') return;
    double number;
    if (lin_text_number(ipa, n_ipa, &number)) return;
    lin_buffer_char(list, '\t');
    if (is_word("silence", ipa, n_ipa)) lin_buffer_text(list, silence);
    else if (is_word("noise", ipa, n_ipa)) lin_buffer_text(list, noise);
    else lin_buffer_bytes(list, ipa, n_ipa);
}

// Whether all of CMUdict's phones are in it by their names.
static int has_cmu_names(const lin_phones *p)
{
    for (int i = 0; i < CMU_PHONES; i++) {
        const char *name = ipa_table[i].name;
        const int *by_stress = p->by_cmu[i], label = by_stress[0] ? by_stress[0] : by_stress[1];
        if (!label || memcmp(lin_symbols_text(&p->names, label), name, strlen(name)) != 0) return 0;
    }
    return 1;
}

// Whether it is the default set, and any IPA that is written behind its names is that of the table.
static int is_default(const lin_phones *p)
{
    for (int i = 1; i < p->names.n && i <= CMU_PHONES; i++) {
        if (strcmp(lin_symbols_text(&p->names, i), ipa_table[i - 1].name) != 0) return 0;
        if (p->ipa[i] && strcmp(p->ipa[i], ipa_table[i - 1].ipa) != 0) return 0;
    }
    return p->names.n == LIN_PHONES_DEFAULT_COUNT;
}

lin_status lin_phones_parse(const char *text, size_t n, const char *name, int own, lin_phones **phones, lin_error *err)
{
    static const char first[] = LIN_PHONES_BLANK, first_own[] = LIN_PHONES_BLANK "\town";
    lin_lines lines;
    lin_buffer list = {0};
    char *clean;
    int n_names = 0, has_blank = 0;
    *phones = NULL;
    LIN_TRY(lin_unicode_clean(text, n, name, LIN_UNICODE_ONLY, &clean, &text, &n, err));
    lin_lines_begin(&lines, text, n);
    while (lin_lines_next(&lines)) add_line(&list, lines.text, lines.text + lines.n, &n_names, &has_blank);
    lin_free(clean);
    lin_buffer_char(&list, '\0');
    lin_status status = lin_buffer_status(&list, err);
    if (status == LIN_OK && own && n_names > LIN_PHONES_OWN_MAX)
        status = lin_fail(err, LIN_INVALID, "the set has %d phones; at most %d are possible", n_names, (int)LIN_PHONES_OWN_MAX);
    for (int is_own = 0; is_own <= own && status == LIN_OK; is_own++) {
        lin_buffer whole = {0};
        lin_phones_destroy(*phones);
        *phones = NULL;
        const int without = !own && !has_blank; // the rows of a matrix begin with it: it is not taken for granted
        lin_buffer_format(&whole, "%s%s", without ? "" : is_own ? first_own : first, list.data + (without && *list.data));
        status = lin_buffer_status(&whole, err);
        if (status == LIN_OK) status = lin_phones_create(whole.data, phones, err);
        lin_buffer_free(&whole);
        if (status == LIN_OK && has_cmu_names(*phones)) break;
    }
    lin_buffer_free(&list);
    if (status == LIN_OK && own && is_default(*phones)) { // written as in models
        lin_phones_destroy(*phones);
        return lin_phones_create(NULL, phones, err);
    }
    return status == LIN_OK ? LIN_OK : lin_fail_at(err, status, "%s", name);
}

lin_status lin_phones_load(const char *path, int own, lin_phones **phones, lin_error *err)
{
    char *text;
    size_t n;
    *phones = NULL;
    LIN_TRY(lin_text_read(path, &text, &n, err));
    lin_status status = lin_phones_parse(text, n, path, own, phones, err);
    lin_free(text);
    return status;
}

/* ---- asking a set ---------------------------------------------------------------------------------------------------------- */

void lin_phones_destroy(lin_phones *phones)
{
    if (!phones) return;
    lin_symbols_free(&phones->names);
    lin_free((void *)phones->ipa);
    lin_free(phones->split);
    lin_free(phones->list);
    lin_free(phones);
}

int lin_phones_count(const lin_phones *phones) { return phones->names.n; }

const char *lin_phones_name(const lin_phones *phones, int index)
{
    return index >= 0 && index < phones->names.n ? lin_symbols_text(&phones->names, index) : NULL;
}

int lin_phones_is_own(const lin_phones *phones) { return phones->is_own; }

const char *lin_phones_language(const lin_phones *phones) { return phones->language; }

lin_status lin_phones_set_language(lin_phones *phones, const char *code, lin_error *err)
{
    if (!lin_phones_is_language(code)) return lin_fail(err, LIN_INVALID, "'%.100s' is not the code of a language", code);
    if (!phones->is_own) return LIN_OK;
    lin_buffer list = {0};
    lin_phones *made = NULL;
    lin_buffer_format(&list, "%s\t%s%s", LIN_PHONES_BLANK, code, phones->list + strcspn(phones->list, " "));
    lin_status status = lin_buffer_status(&list, err);
    if (status == LIN_OK) status = lin_phones_create(list.data, &made, err);
    lin_buffer_free(&list);
    if (status != LIN_OK) return status;
    const lin_phones before = *phones;
    *phones = *made;
    *made = before;
    lin_phones_destroy(made);
    return LIN_OK;
}

lin_phone_kind lin_phones_kind(const lin_phones *phones, int index)
{
    const char *ipa = index > 0 && index < phones->names.n ? phones->ipa[index] : NULL;
    if (!ipa) return LIN_PHONE_SOUND;
    return !strcmp(ipa, silence) ? LIN_PHONE_SILENCE : !strcmp(ipa, noise) ? LIN_PHONE_NOISE : LIN_PHONE_SOUND;
}

// The IPA that the set itself gives, or in a set of its own the name. NULL for what is no phone.
static const char *own_ipa(const lin_phones *p, int index)
{
    if (index < 1 || index >= p->names.n || lin_phones_kind(p, index) != LIN_PHONE_SOUND) return NULL;
    return p->ipa[index] ? p->ipa[index] : p->is_own ? lin_symbols_text(&p->names, index) : NULL;
}

int lin_phones_find(const lin_phones *phones, const char *name, size_t n) { return lin_symbols_find(&phones->names, name, n); }

int lin_phones_find_unstressed(const lin_phones *phones, const char *name, size_t n)
{
    int index = lin_phones_find(phones, name, n);
    if (index < 0 && n > 1 && name[n - 1] >= '0' && name[n - 1] <= '2') index = lin_phones_find(phones, name, n - 1);
    return index;
}

// The phone of the set for one of CMUdict's: with this stress, or else without stress; if no stress is given, the one with stress
// 0.
static int label_of(const lin_phones *phones, int cmu, int stress)
{
    const int *by_stress = phones->by_cmu[cmu];
    return by_stress[stress + 1] ? by_stress[stress + 1] : by_stress[0] || stress >= 0 ? by_stress[0] : by_stress[1];
}

static int read_name(const lin_phones *phones, const char *name, size_t n, lin_phone_read *out)
{
    int stress, label = lin_phones_find(phones, name, n), cmu;
    *out = (lin_phone_read){label, -1};
    if (label >= 0) return label > 0;
    label = lin_phones_find_unstressed(phones, name, n);
    *out = (lin_phone_read){label, label > 0 ? name[n - 1] - '0' : -1};
    if (label >= 0) return label > 0;
    cmu = cmu_of_name(name, n, &stress);
    if (cmu < 0) return 0;
    *out = (lin_phone_read){label_of(phones, cmu, stress), stress};
    return out->label > 0;
}

static int is_ascii(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && (unsigned char)text[i] < 0x80) i++;
    return i == n;
}

// The longest name or IPA of a set of its own at the beginning of the text: its bytes, and its label.
static size_t longest_own(const lin_phones *p, const char *text, size_t n, int *label)
{
    size_t longest = 0;
    for (int i = 1; i < p->names.n; i++) {
        const char *spellings[] = {lin_symbols_text(&p->names, i), own_ipa(p, i)};
        for (int k = 0; k < 2 && spellings[k]; k++) {
            const size_t length = strlen(spellings[k]);
            if (length > longest && length <= n && !memcmp(text, spellings[k], length)) longest = length, *label = i;
        }
    }
    return longest;
}

// In a set of its own.
static int read_own(const lin_phones *p, const char *text, size_t n, lin_phone_read *out, int capacity, int *stress)
{
    int found = 0, label = lin_phones_find(p, text, n);
    if (label == 0 || (label < 0 && n > LONGEST_FIELD)) return 0;
    for (size_t at = 0, step; at < n; at += step) {
        unsigned code = 0;
        step = label > 0 ? n : longest_own(p, text + at, n - at, &label);
        if (!step) {
            step = lin_utf8_decode(text + at, n - at, &code);
            if (!step) return 0;
            if (code == 0x2C8 || code == 0x2CC) *stress = mark_of(code);
            else if (code != '.' && code != 0x203F) return 0;
            continue;
        }
        if (found == capacity) return 0;
        const int has_mark = *stress && lin_phones_is_vowel(p, label);
        out[found++] = (lin_phone_read){label, has_mark ? *stress : -1};
        if (has_mark) *stress = 0;
        label = 0;
    }
    return found > 1 && is_ascii(text, n) ? 0 : found;
}

int lin_phones_read(const lin_phones *phones, const char *text, size_t n, lin_phone_read *out, int capacity, int *stress)
{
    char capitals[LIN_PHONE_NAME_MAX];
    cmu_read symbols[LIN_PHONES_READ_MAX];
    if (capacity < 1) return 0;
    if (phones->is_own) return read_own(phones, text, n, out, capacity, stress);
    if (read_name(phones, text, n, out)) return 1;
    for (size_t i = 0; n <= sizeof capitals && i < n; i++) capitals[i] = lin_upper(text[i]);
    if (n <= sizeof capitals && read_name(phones, capitals, n, out)) return 1;
    const int found = read_ipa(text, n, symbols, capacity < LIN_PHONES_READ_MAX ? capacity : LIN_PHONES_READ_MAX, stress);
    if (found > 1 && is_ascii(text, n)) return 0; // a word in letters
    for (int i = 0; i < found; i++) {
        out[i] = (lin_phone_read){label_of(phones, symbols[i].cmu, symbols[i].stress), symbols[i].stress};
        if (out[i].label == 0) return 0;
    }
    return found;
}

static int cmu_at(const lin_phones *phones, int index)
{
    const char *name = index > 0 && !phones->is_own ? lin_phones_name(phones, index) : NULL;
    int stress;
    return name ? cmu_of_phone(name, strlen(name), &stress) : -1;
}

const char *lin_phones_cmu(const lin_phones *phones, int index)
{
    const int cmu = cmu_at(phones, index);
    return cmu >= 0 ? ipa_table[cmu].name : NULL;
}

const char *lin_phones_similar(const lin_phones *phones, int index)
{
    enum { SYMBOLS = 3 }; // of an affricate with a mark, or a diphthong
    const char *ipa = own_ipa(phones, index), *known = lin_phones_cmu(phones, index);
    cmu_read symbols[SYMBOLS];
    int stress = 0;
    if (known || !ipa) return known;
    const int cmu = cmu_of_name(ipa, strlen(ipa), &stress);
    if (cmu >= 0) return ipa_table[cmu].name;
    stress = 0;
    return read_ipa(ipa, strlen(ipa), symbols, SYMBOLS, &stress) ? ipa_table[symbols[0].cmu].name : NULL;
}

int lin_phones_is_vowel(const lin_phones *phones, int index)
{
    if (!phones->is_own) return is_vowel(cmu_at(phones, index));
    const char *ipa = own_ipa(phones, index);
    return ipa && is_vowel_symbol(ipa);
}

const char *lin_phones_list(const lin_phones *phones) { return phones->list; }

const char *lin_phones_ipa(const lin_phones *phones, int index)
{
    const char *name = lin_phones_name(phones, index), *ipa = own_ipa(phones, index);
    int stress;
    if (ipa) return ipa;
    const int cmu = name && !phones->is_own ? cmu_of_name(name, strlen(name), &stress) : -1;
    return cmu >= 0 ? ipa_table[cmu].ipa : name;
}
