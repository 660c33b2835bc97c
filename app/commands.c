// commands.c - the table of commands.

#include "app/commands.h"

#include "app/common.h"
#include "frontend/audio.h"

const lin_command *const lin_commands[] = {
    &lin_command_transcribe,
    &lin_command_listen,
    &lin_command_serve,
    &lin_command_align,
    &lin_command_decode,
    &lin_command_train,
    &lin_command_adapt,
    &lin_command_average,
    &lin_command_quantise,
    &lin_command_score,
    &lin_command_features,
    &lin_command_posteriors,
    &lin_command_validate,
    &lin_command_prepare,
    &lin_command_phonemize,
    &lin_command_g2p,
    &lin_command_lexicon,
    &lin_command_ngram,
    &lin_command_lm,
    &lin_command_readable,
    &lin_command_info,
    &lin_command_bench,
#ifndef LIN_NO_PAPER
    &lin_command_generate,
    &lin_command_paper,
#endif
    &lin_command_plot,
    &lin_command_devices,
    &lin_command_completion,
    &lin_command_man,
    NULL,
};

void lin_commands_begin(void)
{
    lin_audio_stop_on(&lin_interrupted);
}
