// cmd_bench.c - linnet bench: measurements of this machine, and the experiments of the paper; one file bench_<name>.c each.

#include <string.h>

#include "app/common.h"
#include "app/shared_options.h"
#include "train/lab/cmd_bench.h"

#define AT(field) offsetof(lin_bench_values, field)
static const lin_option options[] = {
    LIN_THREADS_ROW(AT(threads)),
    LIN_MODEL_ROWS(lin_bench_values, model),
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .at = AT(output),
     .help = "File for the table (cells separated by tabs, for linnet plot); if not given, standard output"},
    {.name = "set", .type = LIN_OPTION_SETTINGS, .help = "Parameters of an experiment"},
    {.name = "quick", .type = LIN_OPTION_FLAG, .at = AT(quick),
     .help = "Run a small form of the experiment, which takes seconds"},

    {.type = LIN_OPTION_HEADING, .help = "Live streams (streams)"},
    {.name = "streams", .letter = 'n', .type = LIN_OPTION_INT, .at = AT(streams), .text = "400", .max = 1000000,
     .help = "Number of live streams; 0 finds the largest number that the machine sustains, to 3 %"},
    {.name = "seconds", .letter = 's', .type = LIN_OPTION_DOUBLE, .at = AT(seconds), .text = "10", .min = 0.2, .max = 864000,
     .help = "Length of every trial, after one second that is not counted"},
    {.name = "paper", .type = LIN_OPTION_FLAG, .at = AT(paper),
     .help = "Use the network of the paper (every frame) with random weights instead of a model"},
    LIN_JSON_ROW(AT(json), "Write one JSON object"),

    {.type = LIN_OPTION_HEADING, .help = "Experiments of the paper (attention, generate, latency)"},
    {.name = "variants", .type = LIN_OPTION_STRING, .at = AT(variants), .value = "LIST",
     .help = "Comma-separated: linear, softmax, softmax-naive, lsh-N (rounds), poly2, random-N (features), lstm"},
    {.name = "causal", .type = LIN_OPTION_FLAG, .at = AT(causal),
     .help = "attention: each frame sees only itself and earlier ones"},
    {.name = "lengths", .under = "set", .type = LIN_OPTION_NUMBERS, .at = AT(lengths), .min = 1, .max = 1048576,
     .value = "N,N,...",
     .help = "attention: lengths of the sequences in frames; if not given, 512, 1024, ... 65536. generate: values of an image; "
             "784,3072"},
    {.name = "rows", .under = "set", .type = LIN_OPTION_INT, .at = AT(rows), .text = "0", .max = 16777216,
     .help = "attention: frames of all sequences together; 0: 16384 on a CPU, 65536 on a GPU"},
    {.name = "heads", .under = "set", .type = LIN_OPTION_INT, .at = AT(heads), .text = "0", .max = 64, .help = "Heads; 0: 8"},
    {.name = "head-width", .under = "set", .type = LIN_OPTION_INT, .at = AT(head_width), .text = "32", .min = 1, .max = 256,
     .help = "Width of a head"},
    {.name = "limit-seconds", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(limit_s), .text = "60", .min = 0.01,
     .max = 86400, .help = "attention: leave out points for which one forward and backward pass would take longer"},
    {.name = "limit-gb", .under = "set", .type = LIN_OPTION_DOUBLE, .at = AT(limit_gb), .text = "0", .max = 1e6,
     .help = "Leave out points that need more memory; 0: half of what is free on a CPU, nine tenths on a GPU"},
    {.name = "batch", .under = "set", .type = LIN_OPTION_INT, .at = AT(batch), .text = "0", .max = 4096,
     .help = "latency: streams at once; 0: 1. "
             "generate: images at once; 0: 64 on a CPU, 10,000 on a GPU, or what fits"},
    {.name = "layers", .under = "set", .type = LIN_OPTION_INT, .at = AT(layers), .text = "0", .max = 64,
     .help = "generate: layers; 0: 8, and 16 from 3,072 values on"},
    {.name = "at", .under = "set", .type = LIN_OPTION_NUMBERS, .at = AT(times), .min = 0, .max = 1e7, .value = "SECONDS",
     .help = "latency: lengths of the sound so far; if not given, 1,10,60,600,3600,36000"},
    {.name = "stack", .under = "set", .type = LIN_OPTION_INT, .at = AT(stack), .text = "1", .min = 1, .max = 16,
     .help = "latency: frames of 10 ms per row of the network"},
    {.name = "chunk", .under = "set", .type = LIN_OPTION_INT, .at = AT(chunk), .text = "4", .min = 1, .max = 1024,
     .help = "latency: rows of a chunk"},
    {.type = LIN_OPTION_END},
};
#undef AT

#ifdef LIN_NO_PAPER
#define PAPER(run) NULL
#else
#define PAPER(run) run
#endif

// options: those that apply, each followed by a blank. run: NULL if this program was built without it.
static const struct verb {
    const char *name, *options;
    int max_operands;
    int (*run)(const lin_parsed *parsed);
} verbs[] = {
    {"streams", "threads model device precision streams seconds paper json ", 1,
     lin_bench_streams},
    {"attention", "threads device precision output quick variants causal lengths rows heads head-width limit-seconds limit-gb ",
     0, PAPER(lin_bench_attention)},
    {"generate", "threads device precision output quick variants lengths batch layers heads head-width limit-gb ", 0,
     PAPER(lin_bench_generate)},
    {"latency", "threads device precision output quick variants at stack chunk batch limit-gb ", 0, PAPER(lin_bench_latency)},
};

static int run(lin_parsed *parsed)
{
    const char *const *operands = parsed->operands.items;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(operands[0], verbs[i].name) != 0) continue;
        if (!verbs[i].run) return lin_misuse(parsed, "there is no benchmark '%s': %s", verbs[i].name, LIN_WITHOUT_PAPER);
        const int status = lin_verb_options(parsed, verbs[i].name, verbs[i].options);
        if (status != LIN_EXIT_OK) return status;
        if (parsed->operands.count > 1 + verbs[i].max_operands)
            return lin_misuse(parsed, "unexpected argument '%.200s'", operands[1 + verbs[i].max_operands]);
        return verbs[i].run(parsed);
    }
    return lin_misuse(parsed, "there is no benchmark '%.60s'; use streams, attention, generate or latency", operands[0]);
}

const lin_command lin_command_bench = {
    .name = "bench",
    .operands = "streams|attention|generate|latency [FILE]",
    .summary = "measure this machine, and run the paper's experiments",
    .description =
        "streams [FILE] finds how many live streams this machine sustains. It simulates them in real time: each sends "
        "chunks of sound at regular times with its own offset, and all are recognised at once. The sound is noise, or that "
        "of FILE, with another starting point for each stream. The lag is the time from the arrival of the sound that "
        "completes a row of the network to the delivery of that row's results. The machine sustains a number of streams if "
        "99 % of the lags, plus the delay of the simulated speakers, are no longer than a chunk and no sound is lost.\n\n"
        "attention measures time and memory of attention, forward and backward, against the length of the sequence, for "
        "every variant that the paper compares (figure 1). Points that would take too long or need too much memory are left "
        "out and named.\n\n"
        "generate measures how many images each network generates in a second at the paper's sizes (tables 1 and 2), with a "
        "state and with everything computed again for each value.\n\n"
        "latency measures what one more chunk of a live stream costs after a second, a minute, ten hours, for linear "
        "attention, softmax attention that keeps keys and values, and an LSTM, on one thread unless --threads says "
        "otherwise.",
    .examples = "  linnet bench streams --streams 400 --paper\n"
                "  linnet bench streams --streams 0 --seconds 30 speech.flac\n"
                "  linnet bench attention --variants linear,softmax -o attention.tsv",
    .options = options,
    .values_size = sizeof(lin_bench_values),
    .min_operands = 1,
    .max_operands = 2,
    .verb_operand = 1,
    .run = run,
};
