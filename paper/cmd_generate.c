// cmd_generate.c - linnet generate: sequences from an autoregressive network, as text or as a picture.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/common.h"
#include "app/inputs.h"
#include "app/shared_options.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "model/model.h"
#include "paper/images.h"
#include "train/dataset.h"
#include "train/generate.h"

typedef struct generate_values {
    lin_model_values model; // device and precision
    const char *output, *data, *image;
    int count, length, seed, threads, batch, quiet;
} generate_values;

#define AT(field) offsetof(generate_values, field)
static const lin_option options[] = {
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .at = AT(output),
     .help = "File for the sequences, a PNG file for images; if not given, standard output"},
    {.name = "count", .letter = 'n', .type = LIN_OPTION_INT, .at = AT(count), .text = "16", .min = 1, .max = 1000000,
     .help = "Number of sequences"},
    {.name = "length", .type = LIN_OPTION_INT, .at = AT(length), .text = "128", .min = 2, .max = 1048576,
     .help = "Tokens of a sequence; an image has all its values"},
    {.name = "image", .type = LIN_OPTION_STRING, .at = AT(image), .value = "WIDTHxHEIGHT[x3]",
     .help = "Write images of this size, grey or with three values a pixel (28x28, 32x32x3)"},
    {.name = "data", .type = LIN_OPTION_FILE, .at = AT(data),
     .help = "A set of sequences (linnet paper) whose first tokens are kept and completed; the picture shows the given part, the "
             "completion and the original beside each other"},
    LIN_SEED_ROW(AT(seed), "The same seed gives the same sequences, for any --batch and --threads"),
    {.name = "batch", .type = LIN_OPTION_INT, .at = AT(batch), .text = "0", .max = 1000000,
     .help = "Sequences at once; 0: all, or what 1 GB holds"},
    LIN_THREADS_ROW(AT(threads)),
    LIN_NETWORK_ROWS(generate_values, model),
    LIN_QUIET_ROW(AT(quiet), "Print nothing but errors"),
    {.type = LIN_OPTION_END},
};
#undef AT

// The options, and values derived from them.
typedef struct work {
    const generate_values *v;
    lin_model *model;
    lin_encoder *encoder;
    int width, height, channels; // of an image; 0: text
    int length, given;
    lin_dataset *data;
    int *tokens, *originals; // [count, length]; originals: NULL without --data
    lin_progress progress;
    int done; // sequences of earlier batches
} work;

/* ---- input ----------------------------------------------------------------------------------------------------------------- */

static lin_status read_image(work *w, lin_error *err)
{
    char end;
    const char *text = w->v->image;
    if (!text) return LIN_OK;
    w->channels = 1;
    const int n = sscanf(text, "%5dx%5dx%5d%c", &w->width, &w->height, &w->channels, &end);
    if ((n != 2 && n != 3) || w->width < 1 || w->height < 1 || (w->channels != 1 && w->channels != 3) ||
        (long)w->width * w->height > 1 << 20)
        return lin_fail(err, LIN_INVALID, "--image %.40s: must be WIDTHxHEIGHT or WIDTHxHEIGHTx3, as 28x28 or 32x32x3", text);
    w->length = w->width * w->height * w->channels;
    return LIN_OK;
}

// The tokens of sequence i of the set: those of its rows, and the target of the last row.
static lin_status read_sequence(const work *w, int i, int *to, lin_error *err)
{
    const int T = w->data->utterances[i].frames, D = w->data->D, *targets = w->data->utterances[i].labels;
    if (T + 1 < w->length)
        return lin_fail(err, LIN_INVALID, "%s: sequence %s has %d tokens, not %d", w->v->data, w->data->utterances[i].id, T + 1,
                        w->length);
    float *x = lin_alloc((size_t)T * (size_t)D, sizeof *x);
    if (!x) return lin_no_memory(err, "a sequence", (size_t)T * (size_t)D * sizeof *x);
    lin_dataset_features(w->data, i, x);
    for (int t = 0; t < w->length; t++) {
        to[t] = t < T ? 0 : targets[T - 1];
        for (int d = 0; d < D && t < T; d++) to[t] += (int)x[t * D + d];
    }
    lin_free(x);
    return LIN_OK;
}

static lin_status make_prompts(work *w, lin_error *err)
{
    const generate_values *v = w->v;
    const size_t count = (size_t)v->count, length = (size_t)w->length;
    w->tokens = lin_calloc(count * length, sizeof *w->tokens);
    w->originals = v->data ? lin_calloc(count * length, sizeof *w->originals) : NULL;
    if (!w->tokens || (v->data && !w->originals)) return lin_no_memory(err, "sequences", count * length * sizeof *w->tokens);
    w->given = v->data ? w->length / 2 : 1;
    if (!v->data) return LIN_OK;
    LIN_TRY(lin_dataset_open(v->data, &w->data, err));
    if (w->data->tokens != w->model->config.tokens)
        return lin_fail(err, LIN_MISMATCH, "%s does not hold tokens of this model", v->data);
    if (w->data->count < v->count)
        return lin_fail(err, LIN_INVALID, "%s has %d sequences; --count asks for %d", v->data, w->data->count, v->count);
    for (size_t i = 0; i < count; i++) LIN_TRY(read_sequence(w, (int)i, w->originals + i * length, err));
    memcpy(w->tokens, w->originals, count * length * sizeof *w->tokens);
    return LIN_OK;
}

/* ---- drawing --------------------------------------------------------------------------------------------------------------- */

static int stop(void *context, int done)
{
    work *w = context;
    const double all = (double)w->v->count * w->length, part = w->v->batch;
    lin_progress_of(&w->progress, (w->done * (double)w->length + done * part) / all, "%d tokens", done);
    return lin_interrupted != 0;
}

static int batch_of(const generate_values *v, const work *w)
{
    const lin_config *c = &w->model->config;
    const double each = 4.0 * ((double)lin_config_state_count(c) + (double)lin_config_cache_count(c) * w->length +
                               (lin_config_why_not_stream(c) ? 16.0 * lin_config_width(c) * w->length : 0)) + 1;
    const double most = 1e9 / each;
    return v->batch ? v->batch : most < 1 ? 1 : most < v->count ? (int)most : v->count;
}

static lin_status draw_all(work *w, int batch, lin_error *err)
{
    const generate_values *v = w->v;
    lin_status status = LIN_OK;
    for (w->done = 0; w->done < v->count && status == LIN_OK; w->done += batch) {
        const lin_generate_options o = {.seed = (uint64_t)v->seed, .first = (uint64_t)w->done, .threads = v->threads,
                                        .stop = stop, .context = w};
        const int n = batch < v->count - w->done ? batch : v->count - w->done;
        lin_generator *g;
        status = lin_generator_create(w->encoder, &o, n, w->length, &g, err);
        if (status != LIN_OK) return status;
        status = lin_generator_run(g, w->tokens + (size_t)w->done * (size_t)w->length, w->given, w->length, err);
        lin_generator_destroy(g);
    }
    return status;
}

/* ---- output ---------------------------------------------------------------------------------------------------------------- */

static lin_status write_text(const work *w, lin_error *err)
{
    lin_buffer out = {0};
    const int symbols = lin_config_symbols(&w->model->config);
    for (int i = 0; i < w->v->count; i++)
        for (int t = 0; t < w->length; t++) {
            const int token = w->tokens[(size_t)i * (size_t)w->length + (size_t)t];
            if (token < symbols) lin_buffer_text(&out, lin_symbols_text(&w->model->phone, token));
            else lin_buffer_format(&out, "<%d>", token);
            lin_buffer_text(&out, t + 1 < w->length ? " " : "\n");
        }
    lin_status status = lin_buffer_status(&out, err);
    if (status == LIN_OK) status = lin_output_write(w->v->output, 0, &out, err);
    lin_buffer_free(&out);
    return status;
}

// Pastes an image at column x, row y of the picture. Values from `known` on are grey.
static void paste(const work *w, unsigned char *pixels, size_t stride, size_t x, size_t y, const int *image, int known)
{
    const size_t row = (size_t)(w->width * w->channels);
    for (int i = 0; i < w->length; i++)
        pixels[(y + (size_t)i / row) * stride + x * (size_t)w->channels + (size_t)i % row] =
            (unsigned char)(i < known ? image[i] : 128);
}

static lin_status write_picture(const work *w, lin_error *err)
{
    enum { GAP = 2 };
    const int count = w->v->count, parts = w->originals ? 3 : 1, across = (int)ceil(sqrt((double)count / parts)),
              down = (count + across - 1) / across;
    const size_t width = (size_t)(across * (parts * (w->width + GAP)) + GAP), height = (size_t)(down * (w->height + GAP) + GAP),
                 stride = width * (size_t)w->channels;
    unsigned char *pixels = lin_alloc(stride * height, 1);
    if (!pixels) return lin_no_memory(err, "a picture", stride * height);
    memset(pixels, 255, stride * height);
    for (int i = 0; i < count; i++) {
        const int *image = w->tokens + (size_t)i * (size_t)w->length;
        const size_t y = (size_t)(i / across * (w->height + GAP) + GAP);
        for (int p = 0; p < parts; p++) {
            const size_t x = (size_t)((i % across * parts + p) * (w->width + GAP) + GAP);
            const int occluded = parts == 3 && p == 0;
            paste(w, pixels, stride, x, y, p == 2 ? w->originals + (size_t)i * (size_t)w->length : image,
                  occluded ? w->given : w->length);
        }
    }
    const lin_status status = lin_png_write(w->v->output, pixels, (int)width, (int)height, w->channels, err);
    lin_free(pixels);
    return status;
}

static lin_status generate(work *w, generate_values *v, const char *path, lin_error *err)
{
    const lin_ops *ops;
    if (v->output) LIN_TRY(lin_guard_writes(v->output, err));
    LIN_TRY(lin_model_load(path, &w->model, err));
    // Those of linnet paper are 0, 1, ...; of a network of words <s>, _, ...
    if (v->image && (lin_config_symbols(&w->model->config) > 256 || strcmp(lin_symbols_text(&w->model->phone, 0), "0") != 0))
        return lin_fail(err, LIN_INVALID, "%s has tokens that are not the values of pixels", path);
    LIN_TRY(make_prompts(w, err));
    LIN_TRY(lin_backend_open(v->model.device, lin_model_precision(&v->model), &ops, err));
    LIN_TRY(lin_encoder_create(w->model, ops, &w->encoder, err));
    v->batch = batch_of(v, w);
    lin_progress_begin(&w->progress, v->quiet);
    const lin_status status = draw_all(w, v->batch, err);
    lin_progress_end(&w->progress);
    LIN_TRY(status);
    return v->image ? write_picture(w, err) : write_text(w, err);
}

static int run(lin_parsed *parsed)
{
    generate_values *v = parsed->values;
    work w = {.v = v, .length = v->length};
    lin_error err = {0};
    if (read_image(&w, &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    if (v->image && !v->output) return lin_misuse(parsed, "--image makes a picture: give its file with --output");
    const lin_status status = generate(&w, v, parsed->operands.items[0], &err);
    lin_encoder_destroy(w.encoder);
    lin_model_destroy(w.model);
    lin_dataset_close(w.data);
    lin_free(w.tokens);
    lin_free(w.originals);
    return status == LIN_OK ? LIN_EXIT_OK : status == LIN_STOPPED ? LIN_EXIT_INTERRUPTED : lin_give_up(&err);
}

const lin_command lin_command_generate = {
    .name = "generate",
    .operands = "MODEL",
    .summary = "draw sequences or images from an autoregressive network",
    .description = "MODEL is a causal network of tokens (linnet train on a set of linnet paper). Each next token is drawn from "
                   "what the network predicts after those before it. With linear attention a sequence has a state of constant "
                   "size, so a token costs the same at any place, and thousands of sequences are drawn at once.",
    .examples = "  linnet generate mnist.safetensors --image 28x28 -n 64 -o samples.png\n"
                "  linnet generate mnist.safetensors --image 28x28 -n 16 --data test.lfc -o completions.png",
    .options = options,
    .values_size = sizeof(generate_values),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
