/*
 * options.h - one table per command drives parsing, --help, the manual page, shell completion and the configuration file.
 *
 * A command owns a plain struct of values; each row of its table names an option, its type, its default and range, and where in
 * that struct the value goes. A configuration file holds lines `name = value` with the same names; the command line overrides it.
 *
 *   struct values { int jobs; const char *output; };
 *   static const lin_option options[] = {
 *       {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .at = offsetof(struct values, output), .help = "..."},
 *       {.name = "jobs", .type = LIN_OPTION_INT, .at = offsetof(struct values, jobs), .text = "0", .max = 64, .help = "..."},
 *       {.name = NULL}};
 *   lin_parsed parsed;
 *   lin_options_begin(&command, &values, &parsed, &err);                       // defaults
 *   lin_options_command_line(&parsed, argc, argv, &err);
 *   lin_options_conf_file(&parsed, "train.conf", &err);                        // does not touch what the command line set
 *   lin_options_finish(&parsed, &err);                                         // checks the required ones
 *   lin_options_free(&parsed);                                                 // releases the strings and lists in values
 *
 * One thread.
 */
#ifndef LIN_APP_OPTIONS_H
#define LIN_APP_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/status.h"

typedef enum lin_option_type {
    LIN_OPTION_END,     /* an all-zero row ends a table */
    LIN_OPTION_HEADING, /* not an option: `help` is a title in --help and the manual page */
    LIN_OPTION_FLAG,    /* int, 0 or 1: --name, --no-name; in a file name = yes | no */
    LIN_OPTION_INT,     /* int within min..max */
    LIN_OPTION_DOUBLE,  /* double within min..max */
    LIN_OPTION_STRING,  /* const char * */
    LIN_OPTION_CHOICE,  /* int, the index of a word in `choices` */
    LIN_OPTION_FILE,    /* const char *, completed as a file name */
    LIN_OPTION_FOLDER,  /* const char *, completed as a folder */
    LIN_OPTION_FILES,   /* lin_list: the option may be repeated */
    LIN_OPTION_NUMBERS, /* lin_numbers: comma-separated doubles, each within min..max; whole ones if `value` is "N,N,..." */
    LIN_OPTION_SETTINGS /* no value of its own: name=value,... of the rows that are `under` it; a flag's name alone is yes */
} lin_option_type;

typedef struct lin_numbers {
    double *items;
    int count;
} lin_numbers;

typedef struct lin_option {
    const char *name;    /* long name without dashes, words joined by '-' */
    lin_option_type type;
    char letter;         /* short form, or 0 */
    unsigned char required;
    unsigned char expert; /* in --help of a command that is brief, only --help-all shows it */
    unsigned char writes; /* FILE, FOLDER: what is written; all others are read (app/inputs.h). */
    size_t at;           /* offset of the value in the command's struct */
    const char *text;    /* the default, as it would be typed; NULL: 0, or none */
    double min, max;     /* INT, DOUBLE, NUMBERS */
    const char *choices; /* CHOICE: "text|json|ctm"; STRING, FILE: words that the shell completes, too */
    const char *value;   /* the value's name in --help: "HZ"; NULL: by type */
    const char *help;    /* one or two sentences, no full stop at the end */
    const char *updates; /* of a FILE that is written: the option whose file it may be, read before; or NULL */
    const char *bare;    /* INT: the value of --name alone; another one only as --name=N. NULL: a value is required */
    const char *under;   /* the SETTINGS option that sets this row, "tune"; NULL: an option of its own. In configuration files
                          * both are names of their own */
} lin_option;

/* Rows of many commands. at_value: the offset of the value. */
#define LIN_QUIET_ROW(at_value, what)                                                                                            \
    {.name = "quiet", .letter = 'q', .type = LIN_OPTION_FLAG, .at = at_value, .help = what}
#define LIN_JSON_ROW(at_value, what)                                                                                             \
    {.name = "json", .type = LIN_OPTION_FLAG, .at = at_value, .help = what}
#define LIN_JOBS_ROW(at_value)                                                                                                   \
    {.name = "jobs", .letter = 'j', .type = LIN_OPTION_INT, .at = at_value, .text = "0", .max = 1024,                            \
     .help = "Threads; 0: one per core"}
#define LIN_THREADS_ROW(at_value)                                                                                                \
    {.name = "threads", .letter = 't', .type = LIN_OPTION_INT, .at = at_value, .text = "0", .max = 1024,                         \
     .help = "CPU threads; 0: one per core"}
#define LIN_SEED_ROW(at_value, what)                                                                                             \
    {.name = "seed", .type = LIN_OPTION_INT, .at = at_value, .text = "1", .max = 2147483647, .help = what}

/* A number, INT or DOUBLE, that the SETTINGS option `of` sets. otherwise: its text, NULL for none; unit: NULL by type. */
#define LIN_SETTING_ROW(of, row, type_of, at_value, otherwise, least, most, unit, what)                                          \
    {.name = row, .under = of, .type = LIN_OPTION_##type_of, .at = at_value, .text = otherwise, .min = least, .max = most,       \
     .value = unit, .help = what}

struct lin_parsed;

typedef struct lin_command {
    const char *name;
    const char *operands;    /* "FILE...", for the usage line; "" for none */
    const char *summary;     /* one line, lower case, no full stop */
    const char *description; /* paragraphs separated by one empty line; may be NULL */
    const char *examples;    /* lines of shell, each with two spaces before it; may be NULL */
    const lin_option *options;
    size_t values_size;
    int min_operands, max_operands; /* -1: any number */
    int conf_operand;               /* the first operand is a configuration file for this table */
    int verb_operand;               /* the first operand is a word, all others are files */
    int brief;                      /* --help leaves out the options of experts */
    int hidden;                     /* not in the list of commands */
    int (*run)(struct lin_parsed *parsed); /* the program's exit status */
} lin_command;

/* The source of a value, the lowest precedence first. */
enum { LIN_FROM_DEFAULT, LIN_FROM_FILE, LIN_FROM_COMMAND_LINE };

#define LIN_MAX_OPTIONS 96

typedef struct lin_parsed {
    const lin_command *command;
    void *values;
    lin_list operands;
    int help;             /* 0, or LIN_HELP_TEXT, ...: it was given, nothing else was checked */
    const char *settings; /* LIN_HELP_SETTINGS: of this option */
    unsigned char from[LIN_MAX_OPTIONS]; /* by row of the table */
    int line;                            /* of the configuration file being read, from 1 */
    int lines[LIN_MAX_OPTIONS];          /* by row: its line in that file; 0: none */
    void **owned;
    int n_owned, owned_capacity;
} lin_parsed;

enum { LIN_HELP_NONE, LIN_HELP_TEXT, LIN_HELP_ALL, LIN_HELP_SETTINGS };

/* Sets every value to its default. values points to command->values_size bytes. lin_options_free is allowed after a failure. */
lin_status lin_options_begin(const lin_command *command, void *values, lin_parsed *parsed, lin_error *err);

/* argv[0] is the first word after the command's name. LIN_INVALID: what is wrong with which option,
 * with the nearest known name. */
lin_status lin_options_command_line(lin_parsed *parsed, int argc, char **argv, lin_error *err);

/* Reads a configuration from memory (any bytes); `name` is used in messages: "train.conf:7: ...". LIN_FORMAT for a line that is
 * not `name = value`, LIN_INVALID for a bad name or value, or a name given twice, unless it is that of a list. */
lin_status lin_options_conf(lin_parsed *parsed, const char *text, size_t size, const char *name, lin_error *err);
lin_status lin_options_conf_file(lin_parsed *parsed, const char *path, lin_error *err);

/* Sets one option as the command line does; an option of this name must exist. */
lin_status lin_options_set(lin_parsed *parsed, const char *name, const char *text, lin_error *err);

/* Checks required options and the number of operands. */
lin_status lin_options_finish(lin_parsed *parsed, lin_error *err);

/* The values with at least this source as a configuration file that reads back to the same values; LIN_FROM_DEFAULT: all. The
 * text is released with lin_free. */
lin_status lin_options_text(const lin_parsed *parsed, int source, char **text, lin_error *err);

/* The row's number, or -1. */
int lin_options_find(const lin_command *command, const char *name);

/* Whether the command line or a file gave this option; 0 if the command has none of this name. */
int lin_options_given(const lin_parsed *parsed, const char *name);

void lin_options_free(lin_parsed *parsed);

/* The option of the table nearest to a mistyped name, or NULL if none is near. */
const char *lin_nearest_option(const lin_command *command, const char *name);
int lin_edit_cost(const char *a, const char *b); /* Levenshtein, of words shorter than 64 bytes */

/* The row after `row` that is under this SETTINGS option, NULL after the last; row NULL: the first. */
const lin_option *lin_options_under(const lin_command *command, const char *settings, const lin_option *row);

/* ---- output (help.c) ------------------------------------------------------------------------------------------------------- */

/* The name of a value in help texts: "FILE", "N", "text|json". */
const char *lin_option_value_name(const lin_option *option);

/* The folder of the documentation, which replaces "docs" in "docs/x.md" in all output: share/doc/linnet/docs of an installed
 * program, "docs" in the source tree. */
const char *lin_doc_folder(void);
/* A text with `folder` in place of "docs" in every "docs/x"; released with lin_free, NULL if memory is short. */
char *lin_help_with_docs(const char *text, const char *folder);

/* all: with the options of experts, last; else only their number. */
void lin_help_command(FILE *out, const lin_command *command, int all);
void lin_help_settings(FILE *out, const lin_command *command, const char *settings);
void lin_help_program(FILE *out, const lin_command *const *commands);
/* The manual page of a command, in roff (man macros); docs: the folder of the documentation. */
void lin_man_command(FILE *out, const lin_command *command, const char *docs);
/* shell: "bash", "zsh" or "fish"; LIN_INVALID for another. */
lin_status lin_completion(FILE *out, const char *shell, lin_error *err);

#endif
