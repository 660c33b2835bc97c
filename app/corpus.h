/*
 * corpus.h - sounds with texts beside them: folders in the layout of the Montreal Forced Aligner, and single files.
 *
 * Pipeline: operands of linnet align -> [this] -> app/inputs (the sounds) and a text file for each of them.
 *
 *   corpus/anna/one.wav   corpus/anna/one.lab         a sound and what is said in it: the same name with .lab, .txt or .TextGrid,
 *   corpus/ben/two.flac   corpus/ben/two.TextGrid     the first of these in the same folder
 *
 *   lin_corpus corpus = {0};
 *   lin_corpus_gather(&corpus, &inputs, &parsed->operands, "aligned", &err);
 *   ... corpus.texts[i] is the text of inputs.items[i]; lin_corpus_report(&corpus) ...
 *   lin_corpus_free(&corpus);
 *
 * One thread makes it; then it is constant.
 */
#ifndef LIN_APP_CORPUS_H
#define LIN_APP_CORPUS_H

#include "app/inputs.h"
#include "base/buffer.h"

typedef struct lin_corpus {
    char **texts; /* [n], in the order of the inputs */
    int n, capacity;
    int without_text, without_sound;
    lin_buffer no_text, no_sound; /* paths, each with its NUL */
} lin_corpus;

/*
 * Adds to `inputs` all sounds that have a text. A folder is read with all folders below it, in the order of names; names that
 * begin with a dot are skipped, and so is `leave_out` (NULL: nothing), the folder of the results. An utterance of a folder is
 * named after its path below that folder; its speaker is its folder, unknown directly in the operand. A text that is an operand
 * and is beside its sound is not an input of its own. LIN_IO for a folder that cannot be read,
 * LIN_INVALID where folders are nested too deeply.
 */
lin_status lin_corpus_gather(lin_corpus *corpus, lin_inputs *inputs, const lin_list *operands, const char *leave_out,
                             lin_error *err);

/* Reports which sounds have no text, and how many texts have no sound. */
void lin_corpus_report(const lin_corpus *corpus);

void lin_corpus_free(lin_corpus *corpus);

/* By the end of the name, whatever its case: is this a sound, or a text (.lab, .txt, .TextGrid)? */
int lin_corpus_is_sound(const char *path);
int lin_corpus_is_text(const char *path);
int lin_corpus_is_textgrid(const char *path);

/* One more text, for an input that was added by other means. */
lin_status lin_corpus_add_text(lin_corpus *corpus, const char *path, lin_error *err);

int lin_is_folder(const char *path);

#endif
