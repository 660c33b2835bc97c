// commands.c - the table of commands.

#include "app/commands.h"

#include "app/common.h"
#include "frontend/audio.h"

// LIN_TRAINER: only what works on feature caches and results (make trainer), for machines without the libraries for sound.
const lin_command *const lin_commands[] = {
#ifndef LIN_TRAINER
    &lin_command_transcribe,
    &lin_command_listen,
    &lin_command_align,
    &lin_command_decode,
#endif
    &lin_command_train,
    &lin_command_score,
#ifndef LIN_TRAINER
    &lin_command_features,
    &lin_command_posteriors,
    &lin_command_prepare,
    &lin_command_phonemize,
    &lin_command_g2p,
    &lin_command_ngram,
    &lin_command_info,
    &lin_command_bench,
    &lin_command_devices,
#endif
    &lin_command_completion,
    &lin_command_man,
    NULL,
};

void lin_commands_begin(void)
{
#ifndef LIN_TRAINER
    lin_audio_stop_on(&lin_interrupted);
#endif
}
