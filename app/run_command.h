/*
 * run_command.h - a command of the program from its words: options, checks, work. Main runs one; a command that is made of others
 * (train/cmd_adapt.c) runs several.
 *
 *   char *words[] = {"dev", "-q", "-o", "dev.lfc"};
 *   exit_status = lin_run_command(&lin_command_prepare, 4, words);
 *
 * One thread.
 */
#ifndef LIN_APP_RUN_COMMAND_H
#define LIN_APP_RUN_COMMAND_H

#include "app/options.h"

/* The command's exit status; what is wrong is on standard error. words[0] is the first word after the command's name. */
int lin_run_command(const lin_command *command, int n, char **words);

#endif
