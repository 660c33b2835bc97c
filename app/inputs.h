/*
 * inputs.h - what a command reads: the list of its input files, from operands, a list file, a data directory, or folders with
 * texts beside the sounds; the names of their results; that no output is an input; files that change.
 *
 *   lin_inputs_add_paths(&inputs, &parsed->operands, &err);
 *   lin_inputs_name_results(&inputs, NULL, &err);    // fills lin_input.name, e.g. "x/my talk"
 *   lin_inputs_check_names(&inputs, &err);           // refuses two results with one name
 *   lin_inputs_free(&inputs);
 *
 * One thread makes the list; then it is constant. The others belong to one thread.
 */
#ifndef LIN_APP_INPUTS_H
#define LIN_APP_INPUTS_H

#include <stddef.h>
#include <stdint.h>

#include "app/options.h"
#include "base/buffer.h"
#include "base/status.h"
#include "linnet/datadir.h"
#include "linnet/files.h"
#include "linnet/find.h"

/* ---- a list of recordings as an option ------------------------------------------------------------------------------------- */

typedef struct lin_data_values {
    const char *data, *audio_root;
    int allow_commands;
} lin_data_values;

#define LIN_AUDIO_ROOT_ROW(at_value)                                                                                             \
    {.name = "audio-root", .expert = 1, .type = LIN_OPTION_FOLDER, .at = at_value,                                               \
     .help = "Folder that the paths in wav.scp are relative to; if not given, the parent of DIR, or the folder of a list"}

#define LIN_ALLOW_COMMANDS_ROW(owner, field)                                                                                     \
    {.name = "allow-commands", .expert = 1, .type = LIN_OPTION_FLAG, .at = offsetof(owner, field),                               \
     .help = "Run the commands that wav.scp names in place of sound files (\"sph2pipe ... |\"), with sh"}

#define LIN_DATA_ROWS(owner, field, what)                                                                                        \
    {.name = "data", .expert = 1, .type = LIN_OPTION_FOLDER, .at = offsetof(owner, field.data), .help = what},                   \
    {.name = "audio-root", .expert = 1, .type = LIN_OPTION_FOLDER, .at = offsetof(owner, field.audio_root),                      \
     .help = "Folder that the paths in it are relative to; if not given, the parent of a data directory, or the folder of a "    \
             "list"},                                                                                                            \
    LIN_ALLOW_COMMANDS_ROW(owner, field.allow_commands)

typedef struct lin_input {
    const char *path;
    lin_cut cut;       /* the same path, and its part and channel; whether it is a command */
    const char *id;      /* of the utterance: from the data directory, else the file's name without folder and extension */
    const char *speaker; /* "" if unknown */
    const char *name;    /* of its results below --output-dir, without extension: "x/my talk"; NULL until they are named */
    const char *record, *said; /* its line in a manifest and its text, from a list; or NULL */
    const char *text;    /* the file with its text, which --skip-done checks too; or NULL */
    int done;            /* its results exist, and --skip-done skips it */
} lin_input;

typedef struct lin_inputs {
    lin_input *items;
    int n, capacity;
    int n_done; /* items that are done */
    char **owned;
    int n_owned, owned_capacity;
    lin_datadir *dir;
    int first_of_data, end_of_data; /* the items that are utterances of dir */
} lin_inputs;

/* Each adds to the list; it must be zeroed before. All is released by lin_inputs_free, also after a failure. */
lin_status lin_inputs_add_paths(lin_inputs *inputs, const lin_list *paths, lin_error *err);
/* One path per line; empty lines and lines that begin with '#' are skipped. "-": standard input. */
lin_status lin_inputs_add_list(lin_inputs *inputs, const char *list_path, lin_error *err);
/* The values of LIN_DATA_ROWS. LIN_INVALID if it has parts and --start or --end are given (part), or channels and --channel. */
lin_status lin_inputs_add_data(lin_inputs *inputs, const lin_data_values *data, const lin_part *part, int channel,
                               lin_error *err);
/* Takes ownership of a string from lin_alloc until the list is freed. NULL: text was NULL, or memory is short. */
char *lin_inputs_own(lin_inputs *inputs, char *text);
void lin_inputs_free(lin_inputs *inputs);

/* The sound of an input, for a session. channel and part: of the options, for inputs that have none of their own. */
lin_sound lin_input_sound(const lin_input *input, const lin_pcm_format *raw, int channel, lin_part part);
/* Complains about an input by its path, or by its id if it is a part. */
void lin_complain_of_input(const lin_input *input, const char *message);

/* Whether there are inputs, and all of them are done. */
int lin_inputs_all_done(const lin_inputs *inputs);

/* lin_speakers_measure over all inputs; the names stay those of the inputs. */
lin_status lin_inputs_measure(const lin_inputs *inputs, const lin_recognizer *recognizer, int jobs, lin_speakers *speakers,
                              lin_error *err);

/* Blanks and parentheses, which TRN and CTM cannot hold, become '_'. */
void lin_make_id(char *id);

/* ---- sounds with texts beside them ----------------------------------------------------------------------------------------- */

/*
 * Folders in the layout of the Montreal Forced Aligner, and single files: the text of a sound is the file with the same name and
 * .lab, .txt or .TextGrid, the first of these in the same folder.
 *
 *   corpus/anna/one.wav   corpus/anna/one.lab
 *   corpus/ben/two.flac   corpus/ben/two.TextGrid
 */
typedef struct lin_corpus { /* sounds without a text and texts without a sound; zeroed before */
    int without_text, without_sound;
    lin_buffer no_text, no_sound; /* paths, each with its NUL */
} lin_corpus;

/*
 * Adds to `inputs` all sounds that have a text, which is lin_input.text. A folder is read with all folders below it, in the order
 * of names; names that begin with a dot are skipped, and so is `leave_out` (NULL: nothing), the folder of the results. An
 * utterance of a folder is named after its path below that folder; its speaker is its folder, unknown directly in the operand. A
 * text that is an operand and is beside its sound is not an input of its own. LIN_IO for a folder that cannot be read,
 * LIN_INVALID where folders are nested too deeply.
 */
lin_status lin_corpus_gather(lin_corpus *corpus, lin_inputs *inputs, const lin_list *operands, const char *leave_out,
                             lin_error *err);

/* Reports which sounds have no text, and how many texts have no sound. */
void lin_corpus_report(const lin_corpus *corpus);

void lin_corpus_free(lin_corpus *corpus);

/* By the extension, in any case: is this a sound, or a text (.lab, .txt, .TextGrid)? */
int lin_corpus_is_sound(const char *path);
int lin_corpus_is_text(const char *path);
int lin_corpus_is_textgrid(const char *path);

/* ---- names of results ------------------------------------------------------------------------------------------------------ */

/*
 * Names every input that has no name yet: its path without extension, relative to root or, if that is NULL, to the deepest folder
 * that contains all inputs. So x/a.wav and y/a.wav give "x/a" and "y/a", and x/a.wav and x/b.wav give "a" and "b"; with a root,
 * parts of a list give the names of the whole. Symlinks are not resolved and ".." is removed by its text: a name never leaves the
 * output folder. Utterances of a data directory are named by their ids, which may contain folders; ids that are absolute paths or
 * contain ".." are treated like paths. Standard input is "stdin".
 * LIN_INVALID if an input is outside the root; LIN_NO_MEMORY.
 */
lin_status lin_inputs_name_results(lin_inputs *inputs, const char *root, lin_error *err);

/* LIN_INVALID if two inputs have the same name: the message names both and a remedy. LIN_NO_MEMORY. */
lin_status lin_inputs_check_names(const lin_inputs *inputs, lin_error *err);

/* ---- no output is an input, or written twice ------------------------------------------------------------------------------- */

/*
 * The set of files that a command reads, by device and inode, so that symlinks and hard links are the same file. lin_run_command
 * compares the options and operands of every command before it runs. A command that finds more inputs (lists, data directories)
 * adds them, and each result that it writes (app/results.c), so that no other input overwrites it. The set lives until
 * lin_guard_free.
 *
 *   lin_guard_reads("talk.flac", &err);
 *   lin_guard_writes("talk.srt", &err);       // LIN_INVALID: it is one of them
 */

/* Compares the options marked `writes` with each other and with all files named by other options, by operands, or by default
 * (model, lexicon, letter-to-sound rules, language model). LIN_INVALID: a message with the file and what to do. */
lin_status lin_guard_command(const lin_parsed *parsed, lin_error *err);

/* A file, or the lists in a data directory. NULL and "-" are allowed. LIN_NO_MEMORY. */
lin_status lin_guard_reads(const char *path, lin_error *err);
lin_status lin_guard_writes(const char *path, lin_error *err);
/* A result: it is in the set until another program replaces it. */
lin_status lin_guard_wrote(const char *path, lin_error *err);
/* An installed file, which no option names as it is: adds it, and checks that it is not the output. */
lin_status lin_guard_found(const char *path, const char *output, lin_error *err);

void lin_guard_free(void);

/* ---- files that change ----------------------------------------------------------------------------------------------------- */

/*
 * Whether any of a set of files has been written since it was read, for a program that polls.
 *
 *   lin_watch watch = {0};
 *   lin_watch_add(&watch, "phrases", &err);                      // before it is read for the first time
 *   if (lin_watch_changed(&watch, lin_now())) ... read it again ...
 *   lin_watch_free(&watch);
 *
 * It checks at most twice a second, and reports a change when two checks find the same new file: by then most programs have
 * written all of it. A missing file is not reported: it may be about to be replaced. A file that is not regular (a pipe) never
 * changes.
 */

typedef struct lin_watch_look {
    int64_t file, bytes, seconds, nanoseconds; /* inode, size, time of the last write; all 0: it does not exist */
} lin_watch_look;

typedef struct lin_watched {
    char *path;
    lin_watch_look told, seen;
} lin_watched;

typedef struct lin_watch {
    lin_watched *files;
    int n, capacity;
    double looked_at;
} lin_watch;

/* A file that is watched already stays as it is. LIN_NO_MEMORY. */
lin_status lin_watch_add(lin_watch *watch, const char *path, lin_error *err);

/* now: lin_now(). 1 once for each change. */
int lin_watch_changed(lin_watch *watch, double now);
void lin_watch_free(lin_watch *watch);

#endif
