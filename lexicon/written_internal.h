/* written_internal.h - rules for numbers as they are in memory, and the interpreter of their patterns: for written.c (the file,
 * and numbers to words) and numbers.c (words to numbers). */
#ifndef LIN_LEXICON_WRITTEN_INTERNAL_H
#define LIN_LEXICON_WRITTEN_INTERNAL_H

#include "base/symbols.h"
#include "lexicon/written.h"

enum {
    LIN_WRITTEN_SLOTS = 4, /* of a form */
    LIN_WRITTEN_DEEPEST = 24, /* rules within rules */
    LIN_WRITTEN_NAME = 31 /* letters of a section's name */
};
#define LIN_WRITTEN_LARGEST UINT64_C(1000000000000000)

/* A line of a set. */
typedef struct lin_written_rule {
    uint64_t base, divisor;
    char *patterns; /* separated by '|' */
    int line;
} lin_written_rule;

typedef struct lin_written_set {
    char name[LIN_WRITTEN_NAME + 1];
    int first, n; /* rules */
} lin_written_set;

/* A line of [written]; of [spoken] and [titles], where `pattern` is what is said and `readings` what is written. */
typedef struct lin_written_form {
    char *pattern, *readings;
    int line;
} lin_written_form;

typedef struct lin_written_forms {
    lin_written_form *items;
    int n, capacity;
} lin_written_forms;

struct lin_written {
    lin_written_set *sets;
    int n_sets, sets_capacity;
    lin_written_rule *rules;
    int n_rules, rules_capacity;
    lin_written_forms forms, spoken, titles;
    lin_symbols words, stems; /* of numbers: words of [spoken]; what words are made of: "twenty"; "zwei", "und", "vierzig" */
    char *onward; /* words before which no number ends, separated by '|'; NULL: none */
    unsigned char begins[256]; /* bytes with which a form of [written] may begin */
    char group[8]; /* what divides thousands; "": nothing */
    size_t n_group;
};

/* A piece of a pattern: text, or "<", ">", "=name=", "<name<", "=#=", "<#,<": a part of the number, by a set or its digits. */
typedef struct lin_written_piece {
    const char *text;
    size_t n;                   /* its bytes */
    char part;                  /* one of < > =; 0: text */
    const lin_written_set *set; /* NULL: digits, or there is no set of the name */
    int digits;                 /* 1: "#"; 2: "#,", with the sign between thousands */
} lin_written_piece;

/* Moves *p, in a pattern of a rule of the set `own`, behind the next piece; 0 at its end. has_rest: 1: what is in () is skipped;
 * 0: what is in []; -1: nothing is. */
int lin_written_next(const lin_written *written, const char **p, const char *end, const lin_written_set *own, int has_rest,
                     lin_written_piece *piece);

/* The part of a number that a piece of a rule names. */
static inline uint64_t lin_written_part(const lin_written_piece *piece, const lin_written_rule *rule, uint64_t value)
{
    return piece->part == '<' ? value / rule->divisor : piece->part == '>' ? value % rule->divisor : value;
}

/* The next of the texts that '|' separates, without the blanks around it: where it begins, and *end. NULL: no more. *next is the
 * whole text at first. */
const char *lin_written_alternative(const char **next, const char **end);

const lin_written_set *lin_written_find(const lin_written *written, const char *name, size_t n); /* NULL: there is none */

/* The rule of a set for a number; NULL: it has none. */
const lin_written_rule *lin_written_choose(const lin_written *written, const lin_written_set *set, uint64_t value);

static inline int lin_written_is_name(char c) { return (c >= 'a' && c <= 'z') || c == '-'; }

/* Checks the lines of [spoken] and fills `stems`. LIN_FORMAT with name:line, LIN_NO_MEMORY. */
lin_status lin_numbers_check(lin_written *written, const char *name, lin_error *err);

#endif
