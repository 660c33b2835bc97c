// cmd_train.c - linnet train: a model from feature caches.

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/common.h"
#include "app/shared_options.h"
#include "app/inputs.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/system.h"
#include "linnet/linnet.h"
#include "model/model.h"
#include "train/cmd_train_sweep.h"
#include "train/inherit.h"
#include "train/train.h"
#include "train/voices.h"

/* ---- options --------------------------------------------------------------------------------------------------------------- */

// Options that are fields of the library's structs point directly into these.
typedef struct train_values {
    lin_list train, dev;
    const char *init, *name, *license, *sweep;
    int quiet, seed;
    lin_numbers sweep_seeds, decay_half_life_s, inter_ctc_layers;
    double checkpoint_minutes, patience_minutes;
    lin_config network; // fields that this kind of network lacks have their defaults
    lin_train_options learning;
} train_values;


#define AT(field) offsetof(train_values, field)
#define SET_ROW(row, type_of, field, otherwise, least, most, what)                                                               \
    LIN_SETTING_ROW("set", row, type_of, AT(field), otherwise, least, most, NULL, what)

static const lin_option options[] = {
    {.type = LIN_OPTION_HEADING, .help = "Data"},
    {.name = "train", .type = LIN_OPTION_FILES, .required = 1, .at = AT(train),
     .help = "Feature cache to train on; may be repeated"},
    {.name = "dev", .type = LIN_OPTION_FILES, .at = AT(dev),
     .help = "Feature cache to evaluate on after each epoch; may be repeated"},
    {.name = "folder", .letter = 'o', .type = LIN_OPTION_FOLDER, .writes = 1, .required = 1, .at = AT(learning.folder),
     .help = "Folder of the run: log.tsv, curves.svg, checkpoint and best model; created if missing"},
    {.name = "resume", .type = LIN_OPTION_FLAG, .at = AT(learning.resume),
     .help = "Continue from the checkpoint in the folder; the result has the bits of a run that was not interrupted"},
    {.name = "init", .type = LIN_OPTION_FILE, .at = AT(init),
     .help = "Start with the weights, normalisation, emission delay and network of this model, a file or the name of an "
             "installed one. Options may change the direction, the taps of the convolutions, decays and conditions, and widen "
             "heads and feed-forward layers. The dev caches are first scored with the model: epoch 0 in log.tsv"},
    {.name = "name", .type = LIN_OPTION_STRING, .at = AT(name), .help = "Name of the model, stored in its file"},
    {.name = "license", .type = LIN_OPTION_STRING, .at = AT(license), .help = "Licence of the model, stored in its file"},
    {.name = "half", .type = LIN_OPTION_FLAG, .at = AT(learning.half),
     .help = "Store the best model in half precision: half the size"},
    {.name = "keep", .type = LIN_OPTION_INT, .at = AT(learning.keep), .text = "0", .min = 0, .max = 100000,
     .help = "Also keep the models of the last N epochs, as epoch-N.safetensors, for linnet average"},
    {.name = "sweep", .type = LIN_OPTION_FILE, .at = AT(sweep),
     .help = "Train a run in folder/NAME.SEED for each line of this file, which has a name and options (ema --ema 0.999). "
             "results.tsv in the folder compares their PER in per cent, and is printed. Repeat the command to resume a sweep "
             "that was stopped"},
    {.name = "sweep-seeds", .type = LIN_OPTION_NUMBERS, .at = AT(sweep_seeds), .min = 0, .max = 2147483647, .value = "N,N,...",
     .help = "Seeds of each run of a sweep, in place of the one of --seed (1,2,3)"},
    {.name = "set", .type = LIN_OPTION_SETTINGS,
     .help = "Values that few runs change; in a configuration file each is a line"},
    LIN_QUIET_ROW(AT(quiet), "Print nothing but errors"),

    {.type = LIN_OPTION_HEADING, .help = "Network (the defaults are the paper's)"},
    {.name = "network", .type = LIN_OPTION_CHOICE, .at = AT(network.network), .text = "transformer",
     .choices = "transformer|lstm", .help = "A transformer, or an LSTM, in both directions if bidirectional"},
    {.name = "attention", .type = LIN_OPTION_CHOICE, .at = AT(network.attention), .text = "linear",
     .choices = "linear|softmax|softmax-naive|lsh",
     .help = "Attention of a transformer: linear; softmax, in tiles or with all scores in memory as the paper timed it; lsh is "
             "the Reformer's"},
    {.name = "feature-map", .under = "set", .type = LIN_OPTION_CHOICE, .at = AT(network.feature_map), .text = "elu",
     .choices = "elu|poly2|random",
     .help = "Feature map of linear attention: elu + 1, all products of degree 2, or random features of the softmax kernel"},
    SET_ROW("features", INT, network.features, "128", 1, 1024,
            "Number of random features of each head, for feature-map = random"),
    {.name = "decay", .type = LIN_OPTION_CHOICE, .at = AT(network.decay), .text = "none", .choices = "none|fixed|gated",
     .help = "Forgetting in causal linear attention (elu): at each step the sums of a head are multiplied by a decay, a constant "
             "or a function of the input"},
    {.name = "decay-half-life-s", .under = "set", .type = LIN_OPTION_NUMBERS, .at = AT(decay_half_life_s), .text = "0.5,60",
     .min = 0.01, .max = 1e6, .value = "LOW,HIGH",
     .help = "Seconds in which the sums of the first and the last head of a layer halve, when training begins"},
    SET_ROW("lsh-rounds", INT, network.lsh_rounds, "4", 1, 16, "Rounds of hashing, for attention = lsh"),
    SET_ROW("lsh-chunk", INT, network.lsh_chunk, "32", 1, 1024, "Frames of a chunk, for attention = lsh"),
    SET_ROW("width", INT, network.width, "320", 1, 1024, "Units of an LSTM in each direction"),
    {.name = "layers", .type = LIN_OPTION_INT, .at = AT(network.layers), .text = "9", .min = 1, .max = 64,
     .help = "Layers; if not given, an LSTM has 3"},
    SET_ROW("heads", INT, network.heads, "6", 1, 64, "Attention heads"),
    SET_ROW("head-width", INT, network.head_width, "32", 1, 256, "Width of a head"),
    SET_ROW("feedforward", INT, network.feedforward, "768", 1, 65536, "Width of the feed-forward blocks"),
    {.name = "stack", .type = LIN_OPTION_INT, .at = AT(network.stack), .text = "1", .min = 1, .max = 16,
     .help = "Frames per step of the network"},
    {.name = "ahead", .type = LIN_OPTION_INT, .at = AT(network.ahead), .text = "0", .min = 0, .max = 64,
     .help = "Frames of look-ahead of each step; each adds one hop of latency"},
    {.name = "direction", .type = LIN_OPTION_CHOICE, .at = AT(network.causal), .text = "causal",
     .choices = "bidirectional|causal", .help = "A causal model can stream"},
    {.name = "norm", .under = "set", .type = LIN_OPTION_CHOICE, .at = AT(network.norm), .text = "post", .choices = "post|pre",
     .help = "Layer norm after (the paper) or before each block"},
    {.name = "positions", .type = LIN_OPTION_CHOICE, .at = AT(network.positions), .text = "none",
     .choices = "none|sinusoid|conv|centred-conv",
     .help = "How the network knows the order of frames; centred-conv cannot stream"},
    SET_ROW("conv-kernel", INT, network.conv_kernel, "0", 0, 63,
            "Taps of the convolution, for positions = conv; of centred-conv half of them reach later frames"),
    SET_ROW("conv-layers", INT, network.conv_layers, "0", 0, 64,
            "Number of layers, from the first, that begin with a convolution"),
    SET_ROW("mixture", INT, network.mixture, "0", 0, 64,
            "For tokens of 256 values: predict a mixture of N logistics (10 in the paper); 0: a softmax"),
    {.name = "normalize", .under = "set", .type = LIN_OPTION_CHOICE, .at = AT(learning.speaker_norm), .text = "global",
     .choices = "global|speaker",
     .help = "Mean and deviation of the training set, or of each speaker, as in Kaldi's recipes (cannot stream)"},
    SET_ROW("dropout", DOUBLE, network.dropout, "0.1", 0, 0.9, "Share of values dropped in training"),
    {.name = "join-part", .type = LIN_OPTION_DOUBLE, .at = AT(learning.join_part), .text = "0", .min = 0, .max = 1,
     .help = "Share of the utterances, such as 0.75, that continue the previous one of their batch as one stream does; for "
             "causal networks"},
    SET_ROW("condition-every", INT, network.condition_every, "0", 0, 63,
            "Self-conditioning: after every N layers of a transformer but the last, add a projection of the network's prediction "
            "there; if inter-ctc-layers is not given, these layers have CTC losses (3)"),
    {.name = "inter-ctc-layers", .under = "set", .type = LIN_OPTION_NUMBERS, .at = AT(inter_ctc_layers), .min = 1, .max = 63,
     .value = "N,N,...", .help = "Also train the outputs of the first N layers of a transformer with CTC losses (3,6)"},
    SET_ROW("inter-ctc-weight", DOUBLE, learning.inner_weight, "0.3", 0, 0.99,
            "Weight of the mean of these losses in the whole loss"),
    SET_ROW("search", INT, network.search, "0", 0, 1,
            "1: a second output for searches with a language model, trained with mmi; the first output has CTC alone"),
    SET_ROW("voice", INT, network.voice, "0", 0, 1024,
            "Train a network of voices, with vectors of N elements, to tell the speakers of the caches apart (128); 0: a "
            "recogniser"),
    SET_ROW("mmi", DOUBLE, learning.mmi, "0", 0, 1,
            "Weight of the sum over all phone sequences in the loss (maximum mutual information, 0.9): for the last epochs"),
    {.name = "mmi-lm", .under = "set", .type = LIN_OPTION_FILE, .at = AT(learning.mmi_lm),
     .help = "The language model of phones that mmi needs; its trigrams are used"},

    {.type = LIN_OPTION_HEADING, .help = "Learning"},
    {.name = "epochs", .type = LIN_OPTION_INT, .at = AT(learning.epochs), .text = "40", .min = 1, .max = 100000,
     .help = "Passes over the data"},
    {.name = "batch-frames", .type = LIN_OPTION_INT, .at = AT(learning.batch_frames), .text = "16000", .min = 1, .max = 10000000,
     .help = "Maximum frames in a batch"},
    SET_ROW("batch-sequences", INT, learning.batch_sequences, "0", 0, 1000000,
            "Maximum utterances in a batch, in their order; 0: no limit, and utterances of similar length together"),
    SET_ROW("epoch-parts", INT, learning.epoch_parts, "1", 1, 100000,
            "Epochs in which the data are seen once: more lines in the log of large data"),
    SET_ROW("accumulate", INT, learning.accumulate, "1", 1, 4096,
            "Batches of a step: the result of one large batch in the memory of a small one"),
    SET_ROW("max-frames", INT, learning.max_frames, "2400", 1, 1000000, "Longer utterances are left out"),
    {.name = "optimizer", .under = "set", .type = LIN_OPTION_CHOICE, .at = AT(learning.optimizer.kind), .text = "radam",
     .choices = "adam|radam", .help = "The optimiser; RAdam is the paper's"},
    {.name = "lr", .type = LIN_OPTION_DOUBLE, .at = AT(learning.lr), .text = "1e-4", .min = 0, .max = 1, .help = "Learning rate"},
    SET_ROW("warmup-steps", INT, learning.warmup_steps, "0", 0, 10000000, "Steps over which the learning rate rises"),
    SET_ROW("drop-step", INT, learning.drop_step, "0", 0, 10000000,
            "Steps after which the learning rate is divided by ten; 0: never"),
    {.name = "schedule", .type = LIN_OPTION_CHOICE, .at = AT(learning.schedule), .text = "plateau",
     .choices = "plateau|cosine|constant",
     .help = "plateau: halved when dev PER stops falling (the paper); cosine: falls to 0 at the last epoch"},
    SET_ROW("patience", INT, learning.patience, "2", 1, 1000,
            "Epochs without a better dev PER before the rate is halved; five times as many while it is 95 % or more"),
    SET_ROW("min-lr", DOUBLE, learning.min_lr, "1e-6", 0, 1, "The plateau schedule stops below this rate"),
    SET_ROW("beta1", DOUBLE, learning.optimizer.beta1, "0.9", 0, 0.9999, "Decay of the first moment"),
    SET_ROW("beta2", DOUBLE, learning.optimizer.beta2, "0.999", 0, 0.999999, "Decay of the second moment"),
    SET_ROW("eps", DOUBLE, learning.optimizer.eps, "1e-8", 1e-30, 1, "Added to the root of the second moment"),
    SET_ROW("weight-decay", DOUBLE, learning.optimizer.weight_decay, "0.01", 0, 1,
            "Decoupled weight decay, of matrices, with decay-all of everything"),
    {.name = "decay-all", .under = "set", .type = LIN_OPTION_FLAG, .at = AT(learning.optimizer.decay_vectors),
     .help = "Apply weight decay to biases and norms too; if not given, with optimizer = radam, as its published code does"},
    SET_ROW("clip-norm", DOUBLE, learning.optimizer.clip_norm, "1", 0, 1e9, "Scale gradients down to this norm; 0: never"),
    {.name = "clip", .under = "set", .type = LIN_OPTION_CHOICE, .at = AT(learning.optimizer.clip), .text = "tensor",
     .choices = "global|tensor", .help = "Norm of all gradients together, or of each tensor (the paper's library)"},
    {.name = "ema", .type = LIN_OPTION_DOUBLE, .at = AT(learning.optimizer.average), .text = "0", .min = 0, .max = 0.999999,
     .help = "Measure and save an exponential moving average of the weights, which keeps this share of itself at each step, such "
             "as 0.999; 0: the weights themselves"},
    LIN_SEED_ROW(AT(seed), "Equal seeds give equal models"),
    {.name = "threads", .type = LIN_OPTION_INT, .at = AT(learning.threads), .text = "0", .min = 0, .max = 1024,
     .help = "Threads of each process, 0: one per core; they do not change the result"},
    LIN_DEVICE_ROW(AT(learning.device)),
    {.name = "precision", .type = LIN_OPTION_CHOICE, .at = AT(learning.precision), .text = "tf32", .choices = "fp32|tf32|bf16",
     .help = "Precision of matrix products (sums are always fp32); on a CPU tf32 is fp32, bf16 needs AVX512-BF16 or arm64 with "
             "BF16"},
    SET_ROW("patience-minutes", DOUBLE, patience_minutes, "10", 0, 1e6,
            "With several processes (mpirun, srun): end the run if nothing comes from another one for so long; 0: never"),
    SET_ROW("checkpoint-minutes", DOUBLE, checkpoint_minutes, "5", 0, 1e6,
            "Minutes between checkpoints; each epoch also ends with one"),

    {.type = LIN_OPTION_HEADING, .help = "Augmentation: acoustics (docs/training.md)"},
    SET_ROW("gain-db", DOUBLE, learning.augment.gain_db, "0", 0, 60,
            "The level of each utterance changes by up to this, up or down"),
    SET_ROW("tilt-db", DOUBLE, learning.augment.tilt_db, "0", 0, 60,
            "The highest bin changes by up to this against the lowest, bins between them in proportion"),
    SET_ROW("warp", DOUBLE, learning.augment.warp, "0", 0, 0.5,
            "Frequencies are scaled by 1 - X to 1 + X, as by another length of the vocal tract"),
    SET_ROW("tempo", DOUBLE, learning.augment.tempo, "0", 0, 0.5,
            "The speaking rate is scaled by 1 - X to 1 + X: no caches of other speeds are needed"),
    SET_ROW("noise-part", DOUBLE, learning.augment.noise_part, "0", 0, 1,
            "Part of the utterances with noise: of a random colour, hum, chords, bursts"),
    SET_ROW("babble-part", DOUBLE, learning.augment.babble_part, "0", 0, 1, "Part with three to six other utterances behind"),
    SET_ROW("snr-low-db", DOUBLE, learning.augment.snr_low_db, "5", -30, 100, "Lowest ratio of speech to noise or babble"),
    SET_ROW("snr-high-db", DOUBLE, learning.augment.snr_high_db, "30", -30, 100, "Highest ratio"),
    SET_ROW("room-part", DOUBLE, learning.augment.room_part, "0", 0, 1, "Part with reverberation, of 0.1 to 1 s"),
    SET_ROW("band-part", DOUBLE, learning.augment.band_part, "0", 0, 1, "Part with a limited band, as of a telephone"),
    SET_ROW("silence-part", DOUBLE, learning.augment.silence_part, "0", 0, 1,
            "Part replaced by noise alone, in which nothing is to be recognised"),

    {.type = LIN_OPTION_HEADING, .help = "Augmentation: masks (SpecAugment)"},
    SET_ROW("freq-masks", INT, learning.augment.freq_masks, "0", 0, LIN_AUGMENT_MOST, "Frequency bands masked in each utterance"),
    SET_ROW("freq-width", INT, learning.augment.freq_width, "8", 0, 512, "Maximum bins of a band"),
    SET_ROW("time-masks", INT, learning.augment.time_masks, "0", 0, LIN_AUGMENT_MOST, "Time segments masked in each utterance"),
    SET_ROW("time-width", INT, learning.augment.time_width, "30", 0, 100000, "Maximum frames of a segment"),
    SET_ROW("time-part", DOUBLE, learning.augment.time_part, "0.1", 0, 1, "Maximum part of the utterance that a segment covers"),
    {.type = LIN_OPTION_END},
};
#undef SET_ROW
#undef AT

/* ---- options of the network ------------------------------------------------------------------------------------------------ */

// Whether an option is a number or a choice of the network, which belongs to the model rather than to its training.
static int of_network(const lin_option *o)
{
    return (o->type == LIN_OPTION_INT || o->type == LIN_OPTION_CHOICE) && o->at >= offsetof(train_values, network) &&
           o->at < offsetof(train_values, network) + sizeof(lin_config);
}

static int field_of(const lin_config *c, const lin_option *o)
{
    int value;
    memcpy(&value, (const char *)c + (o->at - offsetof(train_values, network)), sizeof value);
    return value;
}

// The kind of network that an option belongs to, if this one lacks it; else NULL.
static const char *lacks(const lin_config *c, const lin_option *o)
{
    const int transformer = c->network == LIN_NETWORK_TRANSFORMER, lsh = transformer && c->attention == LIN_ATTENTION_LSH,
              linear = transformer && c->attention == LIN_ATTENTION_LINEAR, elu = linear && c->feature_map == LIN_MAP_ELU;
    const struct {
        const char *names, *kind;
        int applies;
    } kinds[] = {{" attention heads head-width feedforward condition-every search norm positions conv-kernel conv-layers ",
                  "network = transformer", transformer},
                 {" feature-map ", "attention = linear", linear},
                 {" features ", "feature-map = random", linear && c->feature_map == LIN_MAP_RANDOM},
                 {" decay ", "causal linear attention with feature-map = elu", elu && c->causal},
                 {" lsh-rounds lsh-chunk ", "attention = lsh", lsh},
                 {" width ", "network = lstm", !transformer}};
    char name[32];
    snprintf(name, sizeof name, " %s ", o->name);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!kinds[i].applies && strstr(kinds[i].names, name)) return kinds[i].kind;
    return NULL;
}

// Refuses options that this network does not have, unless they have their default values, as in the train.conf of a run.
static lin_status check_network(lin_parsed *parsed, lin_error *err)
{
    train_values *v = parsed->values, defaults;
    lin_parsed unset;
    lin_status status = lin_options_begin(parsed->command, &defaults, &unset, err);
    for (const lin_option *o = options; o->type != LIN_OPTION_END && status == LIN_OK; o++) {
        const char *kind = of_network(o) ? lacks(&v->network, o) : NULL;
        if (kind && field_of(&v->network, o) != field_of(&defaults.network, o))
            status = lin_fail(err, LIN_INVALID, "%s belongs to %s, which this network lacks; leave it out", o->name, kind);
    }
    lin_options_free(&unset);
    const lin_numbers *half_lives = &v->decay_half_life_s; // checked without decay too, for which they say nothing
    if (status == LIN_OK && (half_lives->count != 2 || half_lives->items[0] > half_lives->items[1]))
        status = lin_fail(err, LIN_INVALID, "--set decay-half-life-s must be two numbers, the lower one first (0.5,60)");
    if (v->network.network == LIN_NETWORK_LSTM && !lin_options_given(parsed, "layers"))
        v->network.layers = 3;
    return status;
}

// The network of the options on these features and labels, with 0 in the fields that it does not have.
static lin_config network_of(const train_values *v, const lin_dataset *set, int voices)
{
    lin_config config = v->network;
    for (const lin_option *o = options; o->type != LIN_OPTION_END; o++)
        if (of_network(o) && lacks(&v->network, o))
            memset((char *)&config + (o->at - offsetof(train_values, network)), 0, sizeof(int));
    config.mel_bins = set->D;
    config.tokens = set->tokens;
    if (!config.tokens) config.mixture = 0;
    config.outputs = config.voice ? voices : config.mixture ? 3 * config.mixture : set->V;
    return config;
}

static void adopt(lin_parsed *parsed, const char *name, int value)
{
    const int row = lin_options_find(parsed->command, name);
    if (parsed->from[row] != LIN_FROM_DEFAULT) return;
    memcpy((char *)parsed->values + parsed->command->options[row].at, &value, sizeof value);
    parsed->from[row] = LIN_FROM_FILE;
}

// Fills in options that were not given. Weight decay is that of the optimiser's published code. The network is that of the model
// that the run begins with, which the caller releases: the checkpoint's if it is resumed, else that of --init; *begins: NULL if
// there is none. A checkpoint that cannot be read is not reported here: lin_train does it.
static lin_status complete(lin_parsed *parsed, lin_model **begins, lin_error *err)
{
    const train_values *v = parsed->values;
    char path[4096];
    *begins = NULL;
    adopt(parsed, "decay-all", v->learning.optimizer.kind == LIN_RADAM);
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", v->learning.folder);
    if (v->learning.resume && lin_model_load(path, begins, &(lin_error){0}) != LIN_OK) *begins = NULL;
    if (!*begins && v->init) {
        LIN_TRY(lin_find_model(v->init, path, sizeof path, err));
        LIN_TRY(lin_model_load(path, begins, err));
    }
    const lin_model *from = *begins;
    if (!from) return LIN_OK;
    adopt(parsed, "network", (int)from->config.network);
    // a network of another kind has other options; it is refused when its weights are copied
    const int same = v->network.network == from->config.network;
    if (same) adopt(parsed, "direction", from->config.causal);
    for (const lin_option *o = options; o->type != LIN_OPTION_END && same; o++) {
        if (!of_network(o) || (field_of(&from->config, o) == 0 && o->min > 0)) continue; // it belongs to another variant
        // a bidirectional network has no decay
        if (o->at == offsetof(train_values, network.decay) && !v->network.causal) continue;
        adopt(parsed, o->name, field_of(&from->config, o));
    }
    adopt(parsed, "normalize", from->speaker_norm);
    return LIN_OK;
}

static void put_value(lin_buffer *out, const lin_option *o, int value)
{
    const char *word = o->type == LIN_OPTION_CHOICE ? o->choices : NULL;
    for (int k = value; k > 0 && word; k--) word = strchr(word, '|') + 1;
    if (word) lin_buffer_format(out, "%.*s", (int)strcspn(word, "|"), word);
    else lin_buffer_format(out, "%d", value);
}

// "stack 1 (the model: 3), ahead 0 (the model: 12)"; NULL if nothing differs, or memory is short. Released with lin_free.
static char *differences(const lin_config *own, const lin_config *models)
{
    lin_buffer out = {0};
    for (const lin_option *o = options; o->type != LIN_OPTION_END; o++) {
        if (!of_network(o) || field_of(own, o) == field_of(models, o)) continue;
        lin_buffer_format(&out, "%s%s ", out.n ? ", " : "", o->name);
        put_value(&out, o, field_of(own, o));
        lin_buffer_text(&out, " (the model: ");
        put_value(&out, o, field_of(models, o));
        lin_buffer_text(&out, ")");
        if (own->network != models->network) break; // networks of different kinds have different options
    }
    if (own->mel_bins != models->mel_bins)
        lin_buffer_format(&out, "%s%d mel bins in the caches (the model: %d)", out.n ? ", " : "", own->mel_bins,
                          models->mel_bins);
    if (own->tokens != models->tokens)
        lin_buffer_format(&out, "%s%d different tokens in the caches (the model: %d; 0: features)", out.n ? ", " : "",
                          own->tokens, models->tokens);
    if (lin_buffer_status(&out, NULL) != LIN_OK) lin_buffer_free(&out);
    return out.data;
}

// The layers with intermediate losses: those given, else those with conditions.
static lin_status find_inner_layers(const train_values *v, lin_train_options *o, lin_error *err)
{
    const lin_numbers *layers = &v->inter_ctc_layers;
    const int every = v->network.condition_every;
    if (layers->count > LIN_TRAIN_INNER)
        return lin_fail(err, LIN_INVALID, "--set inter-ctc-layers has %d layers; at most %d are possible", layers->count,
                        LIN_TRAIN_INNER);
    for (int i = 0; i < layers->count; i++) {
        o->inner_layers[i] = (int)layers->items[i];
        for (int k = 0; k < i; k++)
            if (o->inner_layers[k] == o->inner_layers[i])
                return lin_fail(err, LIN_INVALID, "--set inter-ctc-layers has %d twice", o->inner_layers[i]);
    }
    o->n_inner = layers->count;
    for (int l = every; layers->count == 0 && every && l < v->network.layers && o->n_inner < LIN_TRAIN_INNER; l += every)
        o->inner_layers[o->n_inner++] = l;
    return LIN_OK;
}

/* ---- hooks ----------------------------------------------------------------------------------------------------------------- */

typedef struct watcher {
    const train_values *v;
    lin_progress progress;
    double printed; // seconds of the run at the last line, if standard error is not a terminal
    int tokens;     // losses are compared, not error rates
    const char *rate;
} watcher;

enum { LINE_EVERY_S = 60 };

static void print_time(char *text, size_t size, double seconds)
{
    const int s = (int)seconds;
    if (s >= 3600) snprintf(text, size, "%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
    else snprintf(text, size, "%d:%02d", s / 60, s % 60);
}

static void progress(void *context, const lin_train_progress *p)
{
    watcher *w = context;
    char left[32];
    print_time(left, sizeof left, p->seconds_left);
    if (p->epoch < 0) {
        if (!w->v->quiet)
            fprintf(stderr, "before training  dev loss %.4f  dev %s %.2f %%\n", p->dev_loss, w->rate, 100 * p->dev_per);
        return;
    }
    if (p->batch < p->n_batches) {
        char line[256], best[64];
        if (w->tokens) snprintf(best, sizeof best, "loss %.4f", p->best_per < 0 ? NAN : p->best_per);
        else snprintf(best, sizeof best, "%s %.2f %%", w->rate, p->best_per < 0 ? 100.0 : 100 * p->best_per);
        snprintf(line, sizeof line, "epoch %d/%d  %3d %%  loss %.3f  %.0f %s/s  lr %.2g  best dev %s  %s left", p->epoch + 1,
                 p->epochs, 100 * p->batch / p->n_batches, p->loss, p->frames_per_s, w->tokens ? "tokens" : "frames", p->lr, best,
                 left);
        lin_progress_of(&w->progress, -1, "%s", line);
        if (!w->progress.shown && !w->v->quiet && p->seconds - w->printed > LINE_EVERY_S) {
            fprintf(stderr, "%s\n", line);
            w->printed = p->seconds;
        }
        return;
    }
    lin_progress_end(&w->progress);
    if (w->v->quiet) return;
    fprintf(stderr, "epoch %d/%d  loss %.4f  ", p->epoch + 1, p->epochs, p->loss);
    if (w->tokens && p->dev_loss >= 0)
        fprintf(stderr, "dev loss %.4f, %.4f bits%s  ", p->dev_loss, p->dev_loss / log(2), p->is_best ? " (best)" : "");
    else if (p->dev_per >= 0 && p->dev_loss >= 0) fprintf(stderr, "dev loss %.4f  ", p->dev_loss);
    if (!w->tokens && p->dev_per >= 0)
        fprintf(stderr, "dev %s %.2f %%%s  ", w->rate, 100 * p->dev_per, p->is_best ? " (best)" : "");
    fprintf(stderr, "lr %.2g  %.0f %s/s", p->lr, p->frames_per_s, w->tokens ? "tokens" : "frames");
    if (!w->tokens) fprintf(stderr, " (%.0f x real time)", p->frames_per_s / 100);
    fprintf(stderr, "  %s left\n", left);
}

static void note(void *context, const char *text)
{
    const watcher *w = context;
    if (!w->v->quiet) lin_complain("%s", text);
}

static int asked_to_stop(void) { return lin_interrupted != 0; }

static int stop(void *context)
{
    (void)context;
    return asked_to_stop();
}

/* ---- the command ----------------------------------------------------------------------------------------------------------- */

typedef struct sets {
    lin_dataset **items;
    int n;
} sets;

typedef struct train_run {
    lin_comm *comm;
    sets train, dev;
    lin_model *from; // what the run begins with: the checkpoint, or the model of --init; NULL: neither
    lin_model *model;
    lin_train_options learning;
    int lock;
    char device[32];
} train_run;

static lin_status open_sets(const lin_list *paths, sets *s, lin_error *err)
{
    s->items = lin_calloc((size_t)paths->count, sizeof *s->items);
    if (!s->items) return lin_no_memory(err, "the list of caches", (size_t)paths->count * sizeof *s->items);
    for (; s->n < paths->count; s->n++) LIN_TRY(lin_dataset_open(paths->items[s->n], &s->items[s->n], err));
    return LIN_OK;
}

static void close_sets(sets *s)
{
    for (int i = 0; i < s->n; i++) lin_dataset_close(s->items[i]);
    lin_free(s->items);
}

// The provenance of the model as JSON for its file: the caches, those of the model that it began with, and every option that
// differs from its default.
static lin_status label(train_run *r, const lin_parsed *parsed, lin_error *err)
{
    const train_values *v = parsed->values;
    const sets *train = &r->train;
    cJSON *root = cJSON_CreateObject(), *data = cJSON_AddArrayToObject(root, "trained_on");
    int good = data != NULL;
    for (int i = 0; i < train->n; i++) {
        cJSON *set = cJSON_CreateObject();
        good = good && cJSON_AddStringToObject(set, "set", lin_base_name(train->items[i]->source)) &&
               cJSON_AddNumberToObject(set, "utterances", train->items[i]->count) &&
               cJSON_AddNumberToObject(set, "frames", (double)train->items[i]->total_frames);
        if (!cJSON_AddItemToArray(data, set)) cJSON_Delete(set);
    }
    cJSON *settings = cJSON_AddObjectToObject(root, "options");
    for (const lin_option *o = options; o->type != LIN_OPTION_END; o++) {
        const void *at = (const char *)parsed->values + o->at;
        if (o->type == LIN_OPTION_INT) good = good && cJSON_AddNumberToObject(settings, o->name, *(const int *)at);
        if (o->type == LIN_OPTION_DOUBLE) good = good && cJSON_AddNumberToObject(settings, o->name, *(const double *)at);
        if (o->type == LIN_OPTION_NUMBERS) {
            const lin_numbers *numbers = at;
            if (numbers->count == 0) continue;
            cJSON *array = cJSON_CreateDoubleArray(numbers->items, numbers->count);
            if (!cJSON_AddItemToObject(settings, o->name, array)) cJSON_Delete(array), good = 0;
        }
        if (o->type == LIN_OPTION_CHOICE) {
            lin_buffer word = {0};
            put_value(&word, o, *(const int *)at);
            good = good && word.data && cJSON_AddStringToObject(settings, o->name, word.data);
            lin_buffer_free(&word);
        }
    }
    good = good && lin_inherit_provenance(root, r->from ? r->from->provenance : "");
    char *json = good ? cJSON_PrintUnformatted(root) : NULL;
    cJSON_Delete(root);
    if (!json) return lin_no_memory(err, "the model's provenance", 1);
    const lin_status status = lin_model_label(r->model, v->name, v->license, json, err);
    cJSON_free(json);
    return status;
}

// Half-lives in seconds, as steps of the network.
static void init_decay(const train_values *v, lin_model *model)
{
    const double *range = v->decay_half_life_s.items, step_s = model->config.stack * model->features.hop_ms / 1000;
    lin_params_init_decay(&model->params, model->values, range[0] / step_s, range[1] / step_s);
}

// Copies what --init gives: the weights, with notes on what differs, the emission delay and the normalisation.
static lin_status take_over(train_run *r, const train_values *v, lin_error *err)
{
    const lin_model *from = r->from;
    lin_model *model = r->model;
    lin_error why;
    const int tells = !v->quiet && lin_comm_first(r->comm);
    const size_t D = (size_t)model->config.mel_bins * sizeof *from->mean;
    char *differ = differences(&model->config, &from->config);
    const lin_status status = lin_inherit_weights(model, from, &why);
    if (status != LIN_OK)
        lin_fail(err, status, "--init %s cannot be used: %s%s%s", v->init, why.message, differ ? ": " : "", differ ? differ : "");
    else if (differ && tells)
        lin_complain("this network differs from that of %s: %s; what that model lacks begins with its initial values", v->init,
                     differ);
    lin_free(differ);
    LIN_TRY(status);
    if (!lin_features_equal(&from->features, &model->features) && tells)
        lin_complain("%s has another filterbank than %s: prepare the caches with the model's (linnet info names it)", v->init,
                     r->train.items[0]->path);
    model->delay_ms = from->delay_ms;
    model->features.level_db = from->features.level_db;
    r->learning.keeps_norm = !from->speaker_norm;
    if (from->speaker_norm) return LIN_OK;
    memcpy(model->mean, from->mean, D);
    memcpy(model->istd, from->istd, D);
    return LIN_OK;
}

static lin_status make_model(train_run *r, const train_values *v, lin_error *err)
{
    const lin_dataset *first = r->train.items[0];
    int *numbers = NULL, voices = 0;
    if (v->network.voice)
        LIN_TRY(lin_voices_number((const lin_dataset *const *)r->train.items, r->train.n, &numbers, &voices, err));
    lin_free(numbers);
    const lin_config config = network_of(v, first, voices);
    if (v->network.mixture && (!config.tokens || first->V != LIN_LEVELS))
        return lin_fail(err, LIN_INVALID, "a mixture predicts tokens of %d values, and %s has others; leave out mixture",
                        LIN_LEVELS, first->path);
    const lin_status status =
        lin_model_create(&config, &first->features, config.voice ? NULL : first->phones, (uint64_t)v->seed, &r->model, err);
    if (status == LIN_INVALID && r->from && !v->learning.resume)
        lin_fail_at(err, status, "what no option gives is taken from %s", v->init);
    LIN_TRY(status);
    if (config.decay) init_decay(v, r->model);
    return r->from && !v->learning.resume ? take_over(r, v, err) : LIN_OK;
}

// Refuses a folder that already contains a run: its checkpoint may be days of work.
static lin_status check_folder(const train_values *v, lin_error *err)
{
    char path[4096];
    static const char *const written[] = {"train.conf", "best.safetensors", "log.tsv", "curves.svg"};
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", v->learning.folder);
    if (v->learning.resume) return LIN_OK;
    if (access(path, F_OK) == 0)
        return lin_fail(err, LIN_INVALID, "%s already contains a run; resume it with --resume, or name another --folder",
                        v->learning.folder);
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        snprintf(path, sizeof path, "%s/%s", v->learning.folder, written[i]);
        LIN_TRY(lin_guard_writes(path, err));
    }
    return LIN_OK;
}

// Writes the options to the folder, in the form that `linnet train` reads: for another run too, so without --resume.
static lin_status keep_options(const lin_parsed *parsed, lin_error *err)
{
    train_values *v = parsed->values;
    const int resumes = v->learning.resume;
    char path[4096], *text;
    snprintf(path, sizeof path, "%s/train.conf", v->learning.folder);
    v->learning.resume = 0;
    lin_status status = lin_options_text(parsed, LIN_FROM_DEFAULT, &text, err);
    v->learning.resume = resumes;
    LIN_TRY(status);
    status = lin_file_write_all(path, text, strlen(text), err);
    lin_free(text);
    return status;
}

static void report_threads(const lin_comm *comm, int threads)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    fprintf(stderr, "%d processes, %d on this machine, %d %s each%s\n", comm->size, comm->local_size, threads,
            threads == 1 ? "thread" : "threads",
            lin_cores() < cores && (long)threads * comm->local_size < cores
                ? "; the launcher has bound each to a part of the cores: mpirun --bind-to none, or srun -c, gives them more"
                : "");
}

// Connects to the processes that mpirun or srun started with this one; NULL if there are none.
static lin_status join(const train_values *v, lin_comm **comm, lin_error *err)
{
    const lin_status status = lin_comm_open(LINNET_VERSION, comm, err);
    if (!*comm) return status;
    (*comm)->patience_s = 60 * v->patience_minutes;
    (*comm)->interrupted = asked_to_stop;
    return status;
}

// The options of this process. Of several, each gets its share of the cores, or its own GPU, whose name is written to `device`.
static lin_status learning_of(const train_values *v, lin_comm *comm, char device[32], lin_train_options *o, lin_error *err)
{
    *o = v->learning;
    o->comm = comm;
    o->seed = (unsigned long long)v->seed;
    o->checkpoint_s = 60 * v->checkpoint_minutes;
    o->measures_first = v->init != NULL;
    if (comm && !o->threads) o->threads = lin_comm_threads(comm);
    if (comm && (strcmp(o->device, "cuda") == 0 || (strcmp(o->device, "auto") == 0 && !*lin_device_why_none(NULL, NULL)))) {
        lin_device gpu;
        int n = 0;
        while (lin_device_get(n, &gpu)) n++;
        snprintf(device, 32, "cuda:%d", n ? comm->local_rank % n : 0);
        o->device = device;
    }
    if (comm && lin_comm_first(comm) && !v->quiet && strncmp(o->device, "cuda", 4) != 0) report_threads(comm, o->threads);
    return find_inner_layers(v, o, err);
}

// The folder, locked; its options are written down.
static lin_status open_folder(const lin_parsed *parsed, int *lock, lin_error *err)
{
    const train_values *v = parsed->values;
    const char *folder = v->learning.folder;
    LIN_TRY(lin_make_folders(folder, strlen(folder), err));
    LIN_TRY(lin_train_lock(folder, lock, err));
    LIN_TRY(check_folder(v, err)); // again, now that the lock is held
    return keep_options(parsed, err);
}

static lin_status begin(lin_parsed *parsed, train_run *r, lin_error *err)
{
    const train_values *v = parsed->values;
    const int first = lin_comm_first(r->comm);
    LIN_TRY(complete(parsed, &r->from, err));
    LIN_TRY(check_network(parsed, err));
    LIN_TRY(learning_of(v, r->comm, r->device, &r->learning, err));
    if (first) LIN_TRY(check_folder(v, err));
    if (r->learning.resume && v->init && !v->quiet && first)
        lin_complain("--init is ignored: --resume uses the weights of the checkpoint");
    LIN_TRY(open_sets(&v->train, &r->train, err));
    LIN_TRY(open_sets(&v->dev, &r->dev, err));
    LIN_TRY(make_model(r, v, err));
    LIN_TRY(label(r, parsed, err));
    return first ? open_folder(parsed, &r->lock, err) : LIN_OK;
}

static int run_one(lin_parsed *parsed)
{
    const train_values *v = parsed->values;
    lin_error err = {0};
    watcher w = {.v = v};
    train_run r = {.lock = -1};
    lin_status status = join(v, &r.comm, &err);
    if (status == LIN_OK) status = begin(parsed, &r, &err);
    lin_model_destroy(r.from);
    status = lin_comm_agree(r.comm, status, &err);
    if (status == LIN_OK) {
        const lin_train_hooks hooks = {&w, progress, note, stop};
        w.tokens = r.model->config.tokens > 0;
        w.rate = w.tokens ? "errors" : r.model->config.voice ? "EER" : "PER";
        lin_progress_begin(&w.progress, v->quiet || !lin_comm_first(r.comm));
        status = lin_train(&r.learning, r.model, (const lin_dataset *const *)r.train.items, r.train.n,
                           (const lin_dataset *const *)r.dev.items, r.dev.n, &hooks, &err);
        lin_progress_end(&w.progress);
    }
    const int known = r.comm && (r.comm->agreed || r.comm->lost); // all processes have the error: one prints it
    int exit_status = status == LIN_STOPPED ? LIN_EXIT_INTERRUPTED : status == LIN_OK ? LIN_EXIT_OK : LIN_EXIT_FAILED;
    if (status != LIN_OK && (!known || lin_comm_speaks(r.comm))) exit_status = lin_give_up(&err);
    lin_train_unlock(r.lock);
    lin_model_destroy(r.model);
    close_sets(&r.train);
    close_sets(&r.dev);
    lin_comm_close(r.comm, status != LIN_OK);
    return exit_status;
}

static int run(lin_parsed *parsed)
{
    train_values *v = parsed->values;
    lin_error err = {0};
    if (!v->sweep && v->sweep_seeds.count) return lin_misuse(parsed, "--sweep-seeds belongs to --sweep");
    if (!v->sweep) return run_one(parsed);
    lin_comm *comm;
    if (lin_comm_open(LINNET_VERSION, &comm, &err) != LIN_OK) return lin_give_up(&err);
    if (comm) {
        const int first = lin_comm_first(comm);
        lin_comm_close(comm, 0);
        if (first) lin_complain("a sweep is run by one process, not by mpirun or srun");
        return LIN_EXIT_FAILED;
    }
    const char *table = v->sweep;
    const lin_numbers seeds = v->sweep_seeds;
    v->sweep = NULL;
    v->sweep_seeds = (lin_numbers){NULL, 0};
    return lin_train_sweep(parsed, table, &seeds, v->learning.folder, complete, run_one);
}

const lin_command lin_command_train = {
    .name = "train",
    .operands = "[CONF]",
    .summary = "train a model from feature caches",
    .description =
        "CONF is a file of lines 'name = value' with the names of the options below; the command line overrides it. linnet "
        "prepare makes the caches. An interrupted run (Ctrl-C, kill) keeps its last checkpoint; resume it with --resume. Started "
        "by mpirun "
        "or srun, several processes train one model: each computes its part of every batch.",
    .examples = "  linnet train recipes/open/stream.conf --train train.lfc --dev dev.lfc --folder exp/stream\n"
                "  linnet train recipes/open/stream.conf --train train.lfc --dev dev.lfc --folder exp/stream --resume\n"
                "  linnet train recipes/open/stream.conf --train train.lfc --dev dev.lfc --folder exp/sweep --sweep table.txt\n"
                "  mpirun -np 4 linnet train recipes/open/stream.conf --train train.lfc --dev dev.lfc --folder exp/stream",
    .options = options,
    .values_size = sizeof(train_values),
    .min_operands = 0,
    .max_operands = 1,
    .conf_operand = 1,
    .run = run,
};
