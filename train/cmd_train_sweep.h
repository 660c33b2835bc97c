/*
 * cmd_train_sweep.h - linnet train --sweep: runs over a table of options, one after the other, and one table of their results.
 *
 * Each line of the table is a name and the options of that run, as on the command line; '#' begins a comment:
 *
 *   base
 *   ema       --ema 0.999
 *   ema-drop  --ema 0.999 --set dropout=0.2        # a comment
 *
 * The run of a name and a seed is the folder FOLDER/NAME.SEED, with a file `finished` when it is. FOLDER/results.tsv has a line
 * for each finished run in the order of the table: name, seed, epochs, best dev PER in per cent, its epoch, dev and training loss
 * there, seconds, options. A stopped sweep continues where it was: finished runs stay, the interrupted one is resumed.
 */
#ifndef LIN_TRAIN_CMD_TRAIN_SWEEP_H
#define LIN_TRAIN_CMD_TRAIN_SWEEP_H

#include "app/options.h"
#include "model/model.h"

/* A line of the table: its words, of which the first is the name and the others are options,
 * as a command line that ends with NULL. */
enum { LIN_SWEEP_WORDS = 64 };
typedef struct lin_sweep_line {
    char *words[LIN_SWEEP_WORDS + 1];
    int n, number; // of the words, 1 at least; of the line in the file
} lin_sweep_line;

/* The lines of a table that are not empty. text [n], with a NUL behind it, is cut into their words and outlives them; `file`
 * names it in messages. LIN_INVALID (a bad name, one name twice, too many words, no line at all), LIN_NO_MEMORY. The caller
 * releases *lines [*count] with lin_free in any case. */
lin_status lin_sweep_parse(const char *file, char *text, size_t n, lin_sweep_line **lines, int *count, lin_error *err);

/* Sets options of a run that follow from others. *begins: the model that it begins with, released by the caller; NULL: none. */
typedef lin_status lin_train_complete(lin_parsed *parsed, lin_model **begins, lin_error *err);

/* Calls `run`, which returns the program's exit status, for each line of the file `table` and each seed, with the options of the
 * line and, where it has none, of `all`; all->values has the folder of the sweep and no table. No seeds: the seed of `all`. Also
 * prints the results. Reports errors and returns the program's exit status: nothing runs if a line of the table is wrong, and a
 * run that fails ends the sweep. */
int lin_train_sweep(const lin_parsed *all, const char *table, const lin_numbers *seeds, const char *folder,
                    lin_train_complete *complete, int (*run)(lin_parsed *parsed));

#endif
