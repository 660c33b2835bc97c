/*
 * commands.h - the commands of the program, one file cmd_<name>.c each, and how one is run: options, checks, work. Main runs one;
 * a command that is made of others (train/cmd_adapt.c) runs several.
 *
 *   char *words[] = {"dev", "-q", "-o", "dev.lfc"};
 *   exit_status = lin_run_command(&lin_command_prepare, 4, words);
 *
 * One thread.
 */
#ifndef LIN_APP_COMMANDS_H
#define LIN_APP_COMMANDS_H

#include "app/options.h"

extern const lin_command lin_command_transcribe, lin_command_train, lin_command_score, lin_command_features,
    lin_command_posteriors, lin_command_prepare, lin_command_phonemize, lin_command_g2p, lin_command_info, lin_command_bench,
    lin_command_man, lin_command_completion, lin_command_devices, lin_command_ngram, lin_command_listen, lin_command_decode,
    lin_command_align, lin_command_plot, lin_command_average, lin_command_readable, lin_command_serve, lin_command_lexicon,
    lin_command_lm, lin_command_adapt, lin_command_quantise, lin_command_validate;
/* In paper/. */
extern const lin_command lin_command_generate, lin_command_paper;

/* All, ended by NULL; in the order of --help. */
extern const lin_command *const lin_commands[];

/* The command's exit status; what is wrong is on standard error. words[0] is the first word after the command's name. */
int lin_run_command(const lin_command *command, int n, char **words);

#endif
