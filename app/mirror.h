/*
 * mirror.h - names of the results below --output-dir: the folders of the inputs are kept.
 *
 *   lin_mirror_names(&inputs, NULL, &err);  // fills lin_input.name, e.g. "x/my talk"
 *   lin_mirror_check(&inputs, &err);        // refuses two results with one name
 *   lin_mirror_folder("out/x/my talk.srt", &err);
 *
 * Paths are relative to the deepest folder that contains all of them, so x/a.wav and y/a.wav give "x/a" and "y/a", and x/a.wav
 * and x/b.wav give "a" and "b"; or to a root that is given, so that parts of a list give the names of the whole. Symlinks are not
 * resolved and ".." is removed by its text: a name never leaves the output folder.
 * Utterances of a data directory are named by their ids, which may contain folders; ids that are absolute paths or contain ".."
 * are treated like paths. Standard input is "stdin".
 *
 * Threads: no shared state.
 */
#ifndef LIN_APP_MIRROR_H
#define LIN_APP_MIRROR_H

#include "app/inputs.h"

/*
 * Names every input that has no name yet. root: the folder that names are relative to; NULL: the deepest one that contains all
 * inputs. LIN_INVALID if an input is outside the root; LIN_NO_MEMORY.
 */
lin_status lin_mirror_names(lin_inputs *inputs, const char *root, lin_error *err);

/* LIN_INVALID if two inputs have the same name: the message names both and says what to do. LIN_NO_MEMORY. */
lin_status lin_mirror_check(const lin_inputs *inputs, lin_error *err);

/* Makes the folders that lead to a file, as mkdir -p does. LIN_IO: the message names the folder. */
lin_status lin_mirror_folder(const char *file, lin_error *err);

#endif
