/*
 * inputs.h - the list of a command's input files: operands, a list file, or a data directory.
 *
 * One thread makes it; then it is constant.
 */
#ifndef LIN_APP_INPUTS_H
#define LIN_APP_INPUTS_H

#include "app/options.h"
#include "linnet/datadir.h"
#include "linnet/speakers.h"

typedef struct lin_input {
    const char *path;
    const char *id;      /* of the utterance: from the data directory, else the file's name without folder and extension */
    const char *speaker; /* "" if unknown */
    const char *name;    /* of its results below --output-dir, without extension: "x/my talk"; NULL until lin_mirror_names */
    const char *text;    /* the file with its text, which --skip-done checks too; or NULL */
    int done;            /* its results exist, and --skip-done skips it (lin_results_fit) */
} lin_input;

typedef struct lin_inputs {
    lin_input *items;
    int n, capacity;
    int n_done; /* items that are done */
    char **owned;
    int n_owned, owned_capacity;
    lin_datadir *dir;
    int first_of_data, end_of_data; /* the items that are its utterances */
} lin_inputs;

/* Each adds to the list; it must be zeroed before. All is released by lin_inputs_free, also after a failure. */
lin_status lin_inputs_add_paths(lin_inputs *inputs, const lin_list *paths, lin_error *err);
/* One file whose results have a name that is given: "speaker/talk", relative and without "..". Strings are copied. */
lin_status lin_inputs_add_named(lin_inputs *inputs, const char *path, const char *name, lin_error *err);
/* One path per line; empty lines and lines that begin with '#' are skipped. "-": standard input. */
lin_status lin_inputs_add_list(lin_inputs *inputs, const char *list_path, lin_error *err);
lin_status lin_inputs_add_data(lin_inputs *inputs, const char *folder, const char *audio_root, lin_error *err);
/* Takes over a string of lin_alloc, which lives as long as the list. NULL: text was NULL, or memory is short. */
char *lin_inputs_own(lin_inputs *inputs, char *text);
void lin_inputs_free(lin_inputs *inputs);

/* Whether there are inputs, and all of them are done. */
int lin_inputs_all_done(const lin_inputs *inputs);
/* For summaries: ", 2 failed, 1 incomplete, 7 skipped (done before)", or less. */
const char *lin_inputs_note(const lin_inputs *inputs, int n_failed, int n_incomplete, char *text, size_t capacity);

/* lin_speakers_measure over all inputs; the names stay those of the inputs. */
lin_status lin_inputs_measure(const lin_inputs *inputs, const lin_recognizer *recognizer, int jobs, lin_speakers *speakers,
                              lin_error *err);

/* The first id that two inputs share, or NULL. */
const char *lin_inputs_twice(const lin_inputs *inputs);

#endif
