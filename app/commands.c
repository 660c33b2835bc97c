// commands.c - the table of commands.

#include "app/commands.h"

#include "app/common.h"

const lin_command *const lin_commands[] = {
    &lin_command_transcribe,
    &lin_command_train,
    &lin_command_score,
    &lin_command_features,
    &lin_command_posteriors,
    &lin_command_prepare,
    &lin_command_phonemize,
    &lin_command_info,
    &lin_command_completion,
    &lin_command_man,
    NULL,
};
