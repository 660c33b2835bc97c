/*
 * cmd_train_options.h - the options of linnet train, and what follows from them: the network, its differences from another one.
 *
 *   lin_train_complete(parsed, &err);              // what was not given is that of the model to begin with
 *   lin_train_check_network(parsed, &err);
 *   config = lin_train_network(values, set);
 */
#ifndef LIN_TRAIN_CMD_TRAIN_OPTIONS_H
#define LIN_TRAIN_CMD_TRAIN_OPTIONS_H

#include "app/options.h"
#include "base/buffer.h"
#include "train/train.h"

/* Rows of the table point into the structs of the library wherever an option is one of their fields. */
typedef struct lin_train_values {
    lin_list train, dev;
    const char *init, *name, *license, *sweep;
    int quiet, seed;
    lin_numbers sweep_seeds, decay_half_life_s, inter_ctc_layers;
    double checkpoint_minutes, patience_minutes;
    lin_config network; /* the usual values in fields that this network does not have */
    lin_train_options learning;
} lin_train_values;

extern const lin_option lin_train_rows[];

/* Fills in options that were not given. Weight decay is that of the optimiser's published code. The network is that of the model
 * that the run begins with: the checkpoint's if it is resumed, else that of --init. A checkpoint that cannot be read is not
 * reported here: lin_train does it. */
lin_status lin_train_complete(lin_parsed *parsed, lin_error *err);

/* Refuses options that this network does not have, unless they have their default values, as in the train.conf of a run. */
lin_status lin_train_check_network(lin_parsed *parsed, lin_error *err);

/* The network of the options on these features and labels, with 0 in the fields that it does not have. */
lin_config lin_train_network(const lin_train_values *values, const lin_dataset *set);

/* "stack 1 (the model: 3), ahead 0 (the model: 12)"; NULL if nothing differs, or memory is short. Released with lin_free. */
char *lin_train_differences(const lin_config *own, const lin_config *models);

/* The layers with losses of their own: those given, else those with conditions. */
lin_status lin_train_inner_layers(const lin_train_values *values, lin_train_options *options, lin_error *err);

/* Appends the value of a number or a choice. */
void lin_train_put_value(lin_buffer *out, const lin_option *option, int value);

#endif
