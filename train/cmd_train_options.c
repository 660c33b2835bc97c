// cmd_train_options.c - the options of linnet train, and the network that follows from them; see cmd_train_options.h.

#include "train/cmd_train_options.h"

#include <stdio.h>
#include <string.h>

#include "model/model.h"

#define AT(field) offsetof(lin_train_values, field)
const lin_option lin_train_rows[] = {
    {.type = LIN_OPTION_HEADING, .help = "Data"},
    {.name = "train", .type = LIN_OPTION_FILES, .required = 1, .at = AT(train),
     .help = "Feature cache to train on; may be repeated"},
    {.name = "dev", .type = LIN_OPTION_FILES, .at = AT(dev),
     .help = "Feature cache to evaluate on after each epoch; may be repeated"},
    {.name = "folder", .letter = 'o', .type = LIN_OPTION_FOLDER, .writes = 1, .required = 1, .at = AT(learning.folder),
     .help = "Folder of the run: log.tsv, curves.svg, checkpoint and best model; created if missing"},
    {.name = "resume", .type = LIN_OPTION_FLAG, .at = AT(learning.resume),
     .help = "Resume from the folder's checkpoint, with the same bits as an uninterrupted run"},
    {.name = "new-data", .type = LIN_OPTION_FLAG, .at = AT(learning.new_data),
     .help = "With --resume, --train may name other caches than before: the epoch that the run was in starts again"},
    {.name = "init", .type = LIN_OPTION_FILE, .at = AT(init),
     .help = "Start with the weights, normalisation and emission delay of this model; network options that are not given are "
             "the model's. Given ones may differ in direction, taps of the convolutions, decays, conditions, and wider heads and "
             "feed-forward. The dev caches are first scored with it: epoch 0 in log.tsv"},
    {.name = "name", .type = LIN_OPTION_STRING, .at = AT(name), .help = "Name of the model, stored in its file"},
    {.name = "license", .type = LIN_OPTION_STRING, .at = AT(license), .help = "Licence of the model, stored in its file"},
    {.name = "half", .type = LIN_OPTION_FLAG, .at = AT(learning.half),
     .help = "Store the best model in half precision: half the size"},
    {.name = "keep", .type = LIN_OPTION_INT, .at = AT(learning.keep), .text = "0", .min = 0, .max = 100000,
     .help = "Also keep the models of so many last epochs, as epoch-N.safetensors, for linnet average"},
    {.name = "sweep", .type = LIN_OPTION_FILE, .at = AT(sweep),
     .help = "A run for each line of this file, a name and options (ema --ema 0.999), in folder/NAME.SEED; results.tsv in the "
             "folder, also printed, compares them (PER in per cent). The same command again goes on where it stopped"},
    {.name = "sweep-seeds", .type = LIN_OPTION_NUMBERS, .at = AT(sweep_seeds), .min = 0, .max = 2147483647, .value = "N,N,...",
     .help = "Seeds of each run of a sweep, in place of the one of --seed (1,2,3)"},
    {.name = "set", .type = LIN_OPTION_SETTINGS,
     .help = "Values that few runs change; in a configuration file each has a line of its own"},
    {.name = "quiet", .letter = 'q', .type = LIN_OPTION_FLAG, .at = AT(quiet), .help = "Print nothing but errors"},

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
    {.name = "features", .under = "set", .type = LIN_OPTION_INT, .at = AT(network.features), .text = "128", .min = 1, .max = 1024,
     .help = "Number of random features of each head, for feature-map = random"},
    {.name = "decay", .type = LIN_OPTION_CHOICE, .at = AT(network.decay), .text = "none", .choices = "none|fixed|gated",
     .help = "Forgetting in causal linear attention (elu): at each step the sums of a head are multiplied by a decay, a constant "
             "or a function of the input"},
    {.name = "decay-half-life-s", .under = "set", .type = LIN_OPTION_NUMBERS, .at = AT(decay_half_life_s), .text = "0.5,60",
     .min = 0.01, .max = 1e6, .value = "LOW,HIGH",
     .help = "Seconds in which the sums of the first and the last head of a layer halve, when training begins"},
    {.name = "lsh-rounds", .under = "set", .type = LIN_OPTION_INT, .at = AT(network.lsh_rounds), .text = "4", .min = 1, .max = 16,
     .help = "Rounds of hashing, for attention = lsh"},
    {.name = "lsh-chunk", .under = "set", .type = LIN_OPTION_INT, .at = AT(network.lsh_chunk), .text = "32", .min = 1,
     .max = 1024, .help = "Frames of a chunk, for attention = lsh"},
    {.name = "width", .under = "set", .type = LIN_OPTION_INT, .at = AT(network.width), .text = "320", .min = 1, .max = 1024,
     .help = "Units of an LSTM in each direction"},
    {.name = "layers", .type = LIN_OPTION_INT, .at = AT(network.layers), .text = "9", .min = 1, .max = 64,
     .help = "Layers; if not given, an LSTM has 3"},
    {.name = "heads", .under = "set", .type = LIN_OPTION_INT, .at = AT(network.heads), .text = "6", .min = 1, .max = 64,
     .help = "Attention heads"},
    {.name = "head-width", .under = "set", .type = LIN_OPTION_INT, .at = AT(network.head_width), .text = "32", .min = 1,
     .max = 256, .help = "Width of a head"},
    {.name = "feedforward", .under = "set", .type = LIN_OPTION_INT, .at = AT(network.feedforward), .text = "768", .min = 1,
     .max = 65536, .help = "Width of the feed-forward blocks"},
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
     .help = "How the network represents the order of frames; centred-conv cannot stream"},
    {.name = "conv-kernel", .under = "set", .type = LIN_OPTION_INT, .at = AT(network.conv_kernel), .text = "0", .min = 0,
     .max = 63, .help = "Taps of the convolution, for positions = conv; of centred-conv half of them reach later frames"},
    {.name = "conv-layers", .under = "set", .type = LIN_OPTION_INT, .at = AT(network.conv_layers), .text = "0", .min = 0,
     .max = 64, .help = "Number of layers, from the first, that begin with a convolution"},
    {.name = "mixture", .under = "set", .type = LIN_OPTION_INT, .at = AT(network.mixture), .text = "0", .min = 0, .max = 64,
     .help = "Of a set of tokens with 256 values: predict a mixture of so many logistics (10 in the paper); 0: a softmax"},
    {.name = "normalize", .under = "set", .type = LIN_OPTION_CHOICE, .at = AT(learning.speaker_norm), .text = "global",
     .choices = "global|speaker",
     .help = "Mean and deviation of the training set, or of each speaker, as in Kaldi's recipes; speaker cannot stream"},
    {.name = "dropout", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(network.dropout), .text = "0.1", .min = 0, .max = 0.9,
     .help = "Share of values dropped in training"},

    {.name = "layer-drop", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.layer_drop), .text = "0", .min = 0,
     .max = 0.9, .help = "Share of the layers of a transformer left out in each step of training (0.1)"},
    {.name = "join-part", .type = LIN_OPTION_DOUBLE, .at = AT(learning.join_part), .text = "0", .min = 0, .max = 1,
     .help = "Share of the utterances that continue the one before in the batch, as in one stream (0.75); for causal networks"},
    {.name = "condition-every", .under = "set", .type = LIN_OPTION_INT, .at = AT(network.condition_every), .text = "0",
     .min = 0, .max = 63,
     .help = "After every N layers of a transformer but the last, add a projection of its own prediction there to its sum "
             "(self-conditioning); if inter-ctc-layers is not given, these layers have CTC losses (3)"},
    {.name = "inter-ctc-layers", .under = "set", .type = LIN_OPTION_NUMBERS, .at = AT(inter_ctc_layers), .min = 1, .max = 63,
     .value = "N,N,...", .help = "Also train the outputs of the first N layers of a transformer with CTC losses (3,6)"},
    {.name = "inter-ctc-weight", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.inner_weight), .text = "0.3",
     .min = 0, .max = 0.99, .help = "Share of the mean of these losses in the whole loss"},
    {.name = "label-smoothing", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.label_smoothing), .text = "0",
     .min = 0, .max = 0.99, .help = "Share of the divergence of each frame's prediction from a uniform one in the loss (0.05)"},
    {.name = "search", .under = "set", .type = LIN_OPTION_INT, .at = AT(network.search), .text = "0", .min = 0, .max = 1,
     .help = "1: a second output, which searches with a language model read; mmi is of it, and phones alone stay those of CTC"},
    {.name = "mmi", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.mmi), .text = "0", .min = 0, .max = 1,
     .help = "Weight of the sum over all phone sequences in the loss (maximum mutual information, 0.9): for the last epochs"},
    {.name = "mmi-lm", .under = "set", .type = LIN_OPTION_FILE, .at = AT(learning.mmi_lm),
     .help = "The language model of phones that mmi needs; its trigrams are used"},

    {.type = LIN_OPTION_HEADING, .help = "Learning"},
    {.name = "epochs", .type = LIN_OPTION_INT, .at = AT(learning.epochs), .text = "40", .min = 1, .max = 100000,
     .help = "Passes over the data"},
    {.name = "batch-frames", .type = LIN_OPTION_INT, .at = AT(learning.batch_frames), .text = "16000", .min = 1, .max = 10000000,
     .help = "Maximum frames in a batch"},
    {.name = "batch-sequences", .under = "set", .type = LIN_OPTION_INT, .at = AT(learning.batch_sequences), .text = "0",
     .max = 1000000,
     .help = "Maximum utterances in a batch, of any length as they come; 0: no limit, and those of similar length together"},
    {.name = "epoch-parts", .under = "set", .type = LIN_OPTION_INT, .at = AT(learning.epoch_parts), .text = "1", .min = 1,
     .max = 100000, .help = "Epochs in which the data are seen once: more lines in the log of large data"},
    {.name = "accumulate", .under = "set", .type = LIN_OPTION_INT, .at = AT(learning.accumulate), .text = "1", .min = 1,
     .max = 4096, .help = "Batches of a step, as one batch that needs the memory of one of them"},
    {.name = "max-frames", .under = "set", .type = LIN_OPTION_INT, .at = AT(learning.max_frames), .text = "2400", .min = 1,
     .max = 1000000, .help = "Longer utterances are left out"},
    {.name = "optimizer", .under = "set", .type = LIN_OPTION_CHOICE, .at = AT(learning.optimizer.kind), .text = "radam",
     .choices = "adam|radam", .help = "The optimiser; RAdam is the paper's"},
    {.name = "lr", .type = LIN_OPTION_DOUBLE, .at = AT(learning.lr), .text = "1e-4", .min = 0, .max = 1, .help = "Learning rate"},
    {.name = "warmup-steps", .under = "set", .type = LIN_OPTION_INT, .at = AT(learning.warmup_steps), .text = "0", .min = 0,
     .max = 10000000, .help = "Steps over which the learning rate rises"},
    {.name = "drop-step", .under = "set", .type = LIN_OPTION_INT, .at = AT(learning.drop_step), .text = "0", .max = 10000000,
     .help = "Steps after which the learning rate is a tenth of what it would be; 0: never"},
    {.name = "schedule", .type = LIN_OPTION_CHOICE, .at = AT(learning.schedule), .text = "plateau",
     .choices = "plateau|cosine|constant",
     .help = "plateau: halved when dev PER stops falling (the paper); cosine: falls to 0 at the last epoch"},
    {.name = "patience", .under = "set", .type = LIN_OPTION_INT, .at = AT(learning.patience), .text = "2", .min = 1, .max = 1000,
     .help = "Epochs without a better dev PER before the rate is halved; five times as many while it is 95 % or more"},
    {.name = "min-lr", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.min_lr), .text = "1e-6", .min = 0, .max = 1,
     .help = "The plateau schedule stops below this rate"},
    {.name = "beta1", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.optimizer.beta1), .text = "0.9", .min = 0,
     .max = 0.9999, .help = "Decay of the first moment"},
    {.name = "beta2", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.optimizer.beta2), .text = "0.999", .min = 0,
     .max = 0.999999, .help = "Decay of the second moment"},
    {.name = "eps", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.optimizer.eps), .text = "1e-8", .min = 0,
     .max = 1, .help = "Added to the root of the second moment"},
    {.name = "weight-decay", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.optimizer.weight_decay),
     .text = "0.01", .min = 0, .max = 1, .help = "Decoupled weight decay, of matrices, with decay-all of everything"},
    {.name = "decay-all", .under = "set", .type = LIN_OPTION_FLAG, .at = AT(learning.optimizer.decay_vectors),
     .help = "Apply weight decay to biases and norms too; if not given, with optimizer = radam, as its published code does"},
    {.name = "clip-norm", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.optimizer.clip_norm), .text = "1",
     .min = 0, .max = 1e9, .help = "Scale gradients down to this norm; 0: never"},
    {.name = "clip", .under = "set", .type = LIN_OPTION_CHOICE, .at = AT(learning.optimizer.clip), .text = "tensor",
     .choices = "global|tensor", .help = "Norm of all gradients together, or of each tensor (the paper's library)"},
    {.name = "ema", .type = LIN_OPTION_DOUBLE, .at = AT(learning.optimizer.average), .text = "0", .min = 0, .max = 0.999999,
     .help = "Measure and save an exponential moving average of the weights that keeps this share of itself at each step "
             "(0.999); 0: none"},
    {.name = "seed", .type = LIN_OPTION_INT, .at = AT(seed), .text = "1", .min = 0, .max = 2147483647,
     .help = "The same seed gives the same model"},
    {.name = "threads", .type = LIN_OPTION_INT, .at = AT(learning.threads), .text = "0", .min = 0, .max = 1024,
     .help = "Threads of each process, 0: one per core; they do not change the result"},
    {.name = "device", .type = LIN_OPTION_STRING, .at = AT(learning.device), .text = "auto", .value = "auto|cpu|cuda[:N]",
     .help = "Device for the network"},
    {.name = "precision", .type = LIN_OPTION_CHOICE, .at = AT(learning.precision), .text = "tf32", .choices = "fp32|tf32|bf16",
     .help = "Precision of matrix products (sums are always fp32); on a CPU tf32 is fp32, bf16 needs AVX512-BF16 or arm64 with "
             "BF16"},
    {.name = "patience-minutes", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(patience_minutes), .text = "10", .min = 0,
     .max = 1e6,
     .help = "With several processes (mpirun, srun): end the run if nothing comes from another one for so long; 0: never"},
    {.name = "checkpoint-minutes", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(checkpoint_minutes), .text = "5",
     .min = 0, .max = 1e6, .help = "Minutes between checkpoints; each epoch also ends with one"},

    {.type = LIN_OPTION_HEADING, .help = "Augmentation: acoustics (docs/training.md)"},
    {.name = "gain-db", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.augment.gain_db), .text = "0", .min = 0,
     .max = 60, .help = "The level of each utterance changes by up to this, up or down"},
    {.name = "tilt-db", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.augment.tilt_db), .text = "0", .min = 0,
     .max = 60, .help = "The highest bin changes by up to this against the lowest, those between in proportion"},
    {.name = "warp", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.augment.warp), .text = "0", .min = 0,
     .max = 0.5, .help = "Frequencies are scaled by 1 - X to 1 + X, as by another length of the vocal tract"},
    {.name = "tempo", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.augment.tempo), .text = "0", .min = 0,
     .max = 0.5, .help = "The speaking rate is scaled by 1 - X to 1 + X: no caches of other speeds are needed"},
    {.name = "noise-part", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.augment.noise_part), .text = "0",
     .min = 0, .max = 1, .help = "Part of the utterances with noise: of a random colour, hum, chords, bursts"},
    {.name = "babble-part", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.augment.babble_part), .text = "0",
     .min = 0, .max = 1, .help = "Part with three to six other utterances behind"},
    {.name = "snr-low-db", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.augment.snr_low_db), .text = "5",
     .min = -30, .max = 100, .help = "Lowest ratio of speech to noise or babble"},
    {.name = "snr-high-db", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.augment.snr_high_db), .text = "30",
     .min = -30, .max = 100, .help = "Highest ratio"},
    {.name = "room-part", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.augment.room_part), .text = "0",
     .min = 0, .max = 1, .help = "Part with reverberation, of 0.15 to 0.9 s"},
    {.name = "band-part", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.augment.band_part), .text = "0",
     .min = 0, .max = 1, .help = "Part with a limited band, as of a telephone"},
    {.name = "silence-part", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.augment.silence_part), .text = "0",
     .min = 0, .max = 1, .help = "Part replaced by noise alone, in which nothing is to be recognised"},

    {.type = LIN_OPTION_HEADING, .help = "Augmentation: masks (SpecAugment)"},
    {.name = "freq-masks", .under = "set", .type = LIN_OPTION_INT, .at = AT(learning.augment.freq_masks), .text = "0", .min = 0,
     .max = 100, .help = "Frequency bands masked in each utterance"},
    {.name = "freq-width", .under = "set", .type = LIN_OPTION_INT, .at = AT(learning.augment.freq_width), .text = "8", .min = 0,
     .max = 512, .help = "Maximum bins of a band"},
    {.name = "time-masks", .under = "set", .type = LIN_OPTION_INT, .at = AT(learning.augment.time_masks), .text = "0", .min = 0,
     .max = 100, .help = "Time segments masked in each utterance"},
    {.name = "time-width", .under = "set", .type = LIN_OPTION_INT, .at = AT(learning.augment.time_width), .text = "30",
     .min = 0, .max = 100000, .help = "Maximum frames of a segment"},
    {.name = "time-part", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(learning.augment.time_part), .text = "0.1",
     .min = 0, .max = 1, .help = "Maximum part of the utterance that a segment covers"},
    {.type = LIN_OPTION_END},
};
#undef AT

/* ---- options of the network ------------------------------------------------------------------------------------------------ */

// Whether an option is a number or a choice of the network, which belongs to the model rather than to its training.
static int of_network(const lin_option *o)
{
    return (o->type == LIN_OPTION_INT || o->type == LIN_OPTION_CHOICE) && o->at >= offsetof(lin_train_values, network) &&
           o->at < offsetof(lin_train_values, network) + sizeof(lin_config);
}

static int field_of(const lin_config *c, const lin_option *o)
{
    int value;
    memcpy(&value, (const char *)c + (o->at - offsetof(lin_train_values, network)), sizeof value);
    return value;
}

// The kind of network that an option belongs to and that this one is not; NULL if it has the option.
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

lin_status lin_train_check_network(lin_parsed *parsed, lin_error *err)
{
    lin_train_values *v = parsed->values, defaults;
    lin_parsed unset;
    lin_status status = lin_options_begin(parsed->command, &defaults, &unset, err);
    for (const lin_option *o = lin_train_rows; o->type != LIN_OPTION_END && status == LIN_OK; o++) {
        const char *kind = of_network(o) ? lacks(&v->network, o) : NULL;
        if (kind && field_of(&v->network, o) != field_of(&defaults.network, o))
            status = lin_fail(err, LIN_INVALID, "%s belongs to %s, which this network has not; leave it out", o->name, kind);
    }
    lin_options_free(&unset);
    if (v->network.network == LIN_NETWORK_LSTM && parsed->from[lin_options_find(parsed->command, "layers")] == LIN_FROM_DEFAULT)
        v->network.layers = 3;
    return status;
}

lin_config lin_train_network(const lin_train_values *v, const lin_dataset *set)
{
    lin_config config = v->network;
    for (const lin_option *o = lin_train_rows; o->type != LIN_OPTION_END; o++)
        if (of_network(o) && lacks(&v->network, o))
            memset((char *)&config + (o->at - offsetof(lin_train_values, network)), 0, sizeof(int));
    config.mel_bins = set->D;
    config.tokens = set->tokens;
    if (!config.tokens) config.mixture = 0;
    config.outputs = config.mixture ? 3 * config.mixture : set->V;
    return config;
}

static void adopt(lin_parsed *parsed, const char *name, int value)
{
    const int row = lin_options_find(parsed->command, name);
    if (parsed->from[row] != LIN_FROM_DEFAULT) return;
    memcpy((char *)parsed->values + parsed->command->options[row].at, &value, sizeof value);
    parsed->from[row] = LIN_FROM_FILE;
}

lin_status lin_train_complete(lin_parsed *parsed, lin_error *err)
{
    const lin_train_values *v = parsed->values;
    char path[4096];
    lin_model *from = NULL;
    adopt(parsed, "decay-all", v->learning.optimizer.kind == LIN_RADAM);
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", v->learning.folder);
    if (v->learning.resume && lin_model_load(path, &from, &(lin_error){0}) != LIN_OK) from = NULL;
    if (!from && v->init) {
        const lin_status status = lin_model_load(v->init, &from, err);
        if (status != LIN_OK) return status;
    }
    if (!from) return LIN_OK;
    adopt(parsed, "network", (int)from->config.network);
    // another kind has other options; it is refused when its weights are to be copied
    const int same = v->network.network == from->config.network;
    if (same) adopt(parsed, "direction", from->config.causal);
    for (const lin_option *o = lin_train_rows; o->type != LIN_OPTION_END && same; o++) {
        if (!of_network(o) || (field_of(&from->config, o) == 0 && o->min > 0)) continue; // it belongs to another variant
        // nothing is forgotten in both directions
        if (o->at == offsetof(lin_train_values, network.decay) && !v->network.causal) continue;
        adopt(parsed, o->name, field_of(&from->config, o));
    }
    adopt(parsed, "normalize", from->speaker_norm);
    lin_model_destroy(from);
    return LIN_OK;
}

void lin_train_put_value(lin_buffer *out, const lin_option *o, int value)
{
    const char *word = o->type == LIN_OPTION_CHOICE ? o->choices : NULL;
    for (int k = value; k > 0 && word; k--) word = strchr(word, '|') + 1;
    if (word) lin_buffer_format(out, "%.*s", (int)strcspn(word, "|"), word);
    else lin_buffer_format(out, "%d", value);
}

char *lin_train_differences(const lin_config *own, const lin_config *models)
{
    lin_buffer out = {0};
    for (const lin_option *o = lin_train_rows; o->type != LIN_OPTION_END; o++) {
        if (!of_network(o) || field_of(own, o) == field_of(models, o)) continue;
        lin_buffer_format(&out, "%s%s ", out.n ? ", " : "", o->name);
        lin_train_put_value(&out, o, field_of(own, o));
        lin_buffer_text(&out, " (the model: ");
        lin_train_put_value(&out, o, field_of(models, o));
        lin_buffer_text(&out, ")");
        if (own->network != models->network) break; // its other options are others
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

lin_status lin_train_inner_layers(const lin_train_values *v, lin_train_options *o, lin_error *err)
{
    const lin_numbers *layers = &v->inter_ctc_layers;
    const int every = v->network.condition_every;
    if (layers->count > LIN_TRAIN_INNER)
        return lin_fail(err, LIN_INVALID, "--set inter-ctc-layers has %d layers; at most %d are possible", layers->count,
                        LIN_TRAIN_INNER);
    for (int i = 0; i < layers->count; i++) {
        o->inner_layers[i] = (int)layers->items[i];
        if (o->inner_layers[i] != layers->items[i])
            return lin_fail(err, LIN_INVALID, "--set inter-ctc-layers has %g, which is not a number of layers", layers->items[i]);
    }
    o->n_inner = layers->count;
    for (int l = every; layers->count == 0 && every && l < v->network.layers && o->n_inner < LIN_TRAIN_INNER; l += every)
        o->inner_layers[o->n_inner++] = l;
    return LIN_OK;
}
