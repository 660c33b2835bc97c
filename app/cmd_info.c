// cmd_info.c - linnet info: describes a model, a feature cache, a saved stream or an index, or lists the devices of networks; and
// linnet devices, which lists the microphones.

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/common.h"
#include "app/shared_options.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "frontend/microphone.h"
#include "kernels/ops.h"
#include "lexicon/readable.h"
#include "lexicon/tree.h"
#include "linnet/stream.h"
#include "model/model.h"
#include "model/streams.h"
#include "train/dataset.h"

typedef struct info_values {
    int json, devices;
    const char *language;
} info_values;

static const lin_option info_options[] = {
    LIN_JSON_ROW(offsetof(info_values, json), "Write one JSON object"),
    LIN_LANGUAGE_ROW(info_values, language),
    {.name = "devices", .type = LIN_OPTION_FLAG, .at = offsetof(info_values, devices),
     .help = "List the devices that networks can run on: the CPU and every GPU, or why there is none"},
    {.type = LIN_OPTION_END},
};

// One line of the report: in text "name:  value", in JSON a member. Numbers and truths are written as such.
typedef struct report {
    lin_buffer out;
    int json, n;
} report;

static void key(report *r, const char *json_name, const char *text_name)
{
    if (r->json) {
        lin_buffer_text(&r->out, r->n++ ? ", " : "{");
        lin_buffer_json(&r->out, json_name, strlen(json_name));
        lin_buffer_text(&r->out, ": ");
    } else {
        size_t from = r->out.n;
        lin_buffer_text(&r->out, text_name);
        lin_buffer_char(&r->out, ':');
        lin_buffer_pad(&r->out, from, 18, 0);
    }
}

// Text from a file or a driver: control characters must not reach the terminal.
static void put_safely(lin_buffer *out, const char *text)
{
    for (const char *c = text; *c; c++) lin_buffer_char(out, (unsigned char)*c < 32 || *c == 127 ? '?' : *c);
}

static void put_text(report *r, const char *json_name, const char *text_name, const char *value)
{
    key(r, json_name, text_name);
    if (r->json) {
        lin_buffer_json(&r->out, value, strlen(value));
    } else {
        put_safely(&r->out, value);
        lin_buffer_char(&r->out, '\n');
    }
}

// A line of text that JSON has in another form.
static void put_line(report *r, const char *name, const char *fmt, ...) LIN_PRINTF(3, 4);

static void put_line(report *r, const char *name, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    put_text(r, "", name, text);
}

static void put_integer(report *r, const char *json_name, const char *text_name, long long value, const char *unit)
{
    key(r, json_name, text_name);
    lin_buffer_integer(&r->out, value);
    if (!r->json) lin_buffer_format(&r->out, "%s\n", unit);
}

static void put_number(report *r, const char *json_name, const char *text_name, double value, int digits, const char *unit)
{
    key(r, json_name, text_name);
    lin_buffer_fixed(&r->out, value, digits);
    if (!r->json) lin_buffer_format(&r->out, "%s\n", unit);
}

static void put_features(report *r, const lin_features *f, int mel_bins)
{
    if (!r->json) {
        char upper[64] = "half the rate";
        if (f->high_hz > 0) snprintf(upper, sizeof upper, "%g Hz", f->high_hz);
        if (f->high_hz < 0) snprintf(upper, sizeof upper, "half the rate less %g Hz", -f->high_hz);
        put_line(r, "features", "%d log-mel bins from %g Hz to %s, %g ms windows every %g ms, pre-emphasis %g, sound at %d Hz",
                 mel_bins, f->low_hz, upper, f->window_ms, f->hop_ms, f->preemphasis, f->sample_hz);
        return;
    }
    lin_buffer_json_format(&r->out, ", 'mel_bins': %d, 'sample_hz': %d, 'window_ms': %.3f, 'hop_ms': %.3f, 'low_hz': %.3f, "
                                    "'high_hz': %.3f, 'preemphasis': %.4f",
                           mel_bins, f->sample_hz, f->window_ms, f->hop_ms, f->low_hz, f->high_hz, f->preemphasis);
}

// The code after the tab of the list's first name: none means English, "own" an unknown language.
static void put_language(report *r, const char *list)
{
    const char *mark = list + strcspn(list, "\t ");
    const size_t n = strcspn(mark, " ");
    const int is_known = !n || (n != 4 || memcmp(mark, "\town", 4) != 0);
    key(r, "language", "language");
    if (!is_known) lin_buffer_text(&r->out, r->json ? "null" : "not known");
    else if (r->json) lin_buffer_json(&r->out, n ? mark + 1 : "en", n ? n - 1 : 2);
    else lin_buffer_bytes(&r->out, n ? mark + 1 : "en", n ? n - 1 : 2);
    if (!r->json) lin_buffer_char(&r->out, '\n');
}

// The names of a list, or, for JSON, the IPA after the tab of each name, "" if it has none.
static void put_names(report *r, const char *name, const char *list, int of_ipa)
{
    key(r, name, name);
    if (r->json) lin_buffer_char(&r->out, '[');
    for (int i = 0; *list; i++) {
        const size_t n = strcspn(list, " "), n_name = strcspn(list, "\t ");
        const int has_ipa = i && n_name < n; // the first name, the blank, has the language instead
        const char *ipa = has_ipa ? list + n_name + 1 : "";
        const size_t n_ipa = has_ipa ? n - n_name - 1 : 0;
        if (i) lin_buffer_text(&r->out, r->json ? ", " : " ");
        if (r->json) lin_buffer_json(&r->out, of_ipa ? ipa : list, of_ipa ? n_ipa : n_name);
        else lin_buffer_bytes(&r->out, list, n_name);
        if (!r->json && has_ipa) lin_buffer_format(&r->out, "=%.*s", (int)n_ipa, ipa);
        list += n + (list[n] == ' ');
    }
    lin_buffer_char(&r->out, r->json ? ']' : '\n');
}

static void put_phones(report *r, const char *list, int of_tokens)
{
    if (!of_tokens) put_language(r, list);
    put_names(r, of_tokens ? "symbols" : "phones", list, 0);
    if (r->json && strchr(list, '\t')) put_names(r, "ipa", list, 1);
}

static void put_fingerprint(report *r, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)value);
    put_text(r, name, name, text);
}

// The provenance is JSON that the model's writer chose: in text, a line for each of its members.
static lin_status put_provenance(report *r, const char *path, const char *json, lin_error *err)
{
    if (!*json) return LIN_OK;
    if (r->json) {
        key(r, "provenance", "");
        lin_buffer_text(&r->out, json);
        return LIN_OK;
    }
    cJSON *root;
    lin_status status = lin_json_parse(json, strlen(json), path, 0, &root, err);
    for (const cJSON *child = root ? root->child : NULL; child && status == LIN_OK; child = child->next) {
        char *printed = cJSON_IsString(child) ? NULL : cJSON_PrintUnformatted(child);
        const char *text = cJSON_IsString(child) ? child->valuestring : printed;
        if (text) put_text(r, "", child->string ? child->string : "provenance", text);
        else status = lin_no_memory(err, "the model's provenance", strlen(json));
        cJSON_free(printed);
    }
    cJSON_Delete(root);
    return status;
}

static void put_config(report *r, const lin_model *m, const char *variant)
{
    const lin_config *c = &m->config;
    const int lstm = c->network == LIN_NETWORK_LSTM;
    if (lstm)
        put_line(r, "network", "LSTM, %d layers of %d units%s", c->layers, c->width,
                 c->causal ? ", causal" : " in each direction, bidirectional");
    else
        put_line(r, "network", "%d layers, %d heads of %d (width %d), feed-forward %d, %s-norm, %s", c->layers, c->heads,
                 c->head_width, lin_config_width(c), c->feedforward, c->norm == LIN_NORM_PRE ? "pre" : "post",
                 c->causal ? "causal" : "bidirectional");
    if (!lstm && !lin_config_is_plain(c)) put_text(r, "", "attention", variant);
    if (!lstm && c->conv_layers)
        put_line(r, "positions", "%s depthwise convolution of %d taps in %d layers",
                 c->positions == LIN_POSITIONS_CONV ? "causal" : "centred", c->conv_kernel, c->conv_layers);
    else if (!lstm) put_text(r, "", "positions", lin_position_names[c->positions]);
    if (c->condition_every)
        put_line(r, "conditioned", "on its own prediction after every %d layer%s", c->condition_every,
                 c->condition_every == 1 ? "" : "s");
    if (c->search) put_text(r, "", "outputs", "one for phones alone, one for searches with a language model");
    if (c->voice)
        put_line(r, "outputs", "a vector of %d elements for a voice; trained on %d voices", c->voice, c->outputs);
    static const char rows[] = "different, each a row of the embedding table";
    if (c->mixture)
        put_line(r, "tokens", "%d %s; a mixture of %d logistics over %d values", c->tokens, rows, c->mixture, LIN_LEVELS);
    else if (c->tokens) put_line(r, "tokens", "%d %s; a softmax over %d", c->tokens, rows, c->outputs);
    else
        put_line(r, "steps", "a step of %d frame%s (%g ms), %d frames (%g ms) of look-ahead", c->stack, c->stack == 1 ? "" : "s",
                 c->stack * m->features.hop_ms, c->ahead, c->ahead * m->features.hop_ms);
}

static void put_json_config(report *r, const lin_config *c, const char *variant)
{
    if (!lin_config_is_plain(c)) put_text(r, "variant", "", variant);
    put_integer(r, "layers", "", c->layers, "");
    if (c->network == LIN_NETWORK_LSTM) put_integer(r, "width", "", c->width, "");
    lin_buffer_json_format(&r->out, ", 'heads': %d, 'head_width': %d, 'feedforward': %d, 'norm': %s, 'positions': %s, "
                                    "'conv_kernel': %d, 'conv_layers': %d",
                           c->heads, c->head_width, c->feedforward, c->norm == LIN_NORM_PRE ? "pre" : "post",
                           lin_position_names[c->positions], c->conv_kernel, c->conv_layers);
    if (c->condition_every) put_integer(r, "condition_every", "", c->condition_every, "");
    if (c->search) put_integer(r, "search", "", c->search, "");
    if (c->voice) put_integer(r, "voice", "", c->voice, "");
    lin_buffer_json_format(&r->out, c->causal ? ", 'stack': %d, 'ahead': %d, 'causal': true, 'outputs': %d"
                                              : ", 'stack': %d, 'ahead': %d, 'causal': false, 'outputs': %d",
                           c->stack, c->ahead, c->outputs);
    if (c->tokens) put_integer(r, "tokens", "", c->tokens, "");
    if (c->mixture) put_integer(r, "mixture", "", c->mixture, "");
}

// Loads the model itself, not a recognizer: a network of tokens has none.
static lin_status report_model(report *r, const char *path, lin_error *err)
{
    lin_model *m;
    lin_encoder *encoder = NULL;
    lin_status status = lin_model_load(path, &m, err);
    if (status == LIN_OK) status = lin_encoder_create(m, lin_ops_cpu(), &encoder, err);
    if (status != LIN_OK) {
        lin_model_destroy(m);
        return status;
    }
    struct stat file;
    char variant[64];
    lin_config_variant(&m->config, variant, sizeof variant);
    put_text(r, "kind", "kind", "model");
    if (*m->name || r->json) put_text(r, "name", "name", m->name);
    if (r->json) put_json_config(r, &m->config, variant);
    else put_config(r, m, variant);
    put_integer(r, "parameters", "parameters", (long long)m->params.n_elements, "");
    if (stat(path, &file) == 0) put_integer(r, "file_bytes", "file", (long long)file.st_size, " bytes");
    if (!lin_config_why_not_stream(&m->config) && !m->speaker_norm) {
        put_integer(r, "attention_state_bytes", "attention state", (long long)lin_streams_attention_bytes(encoder),
                    " bytes for each stream");
        put_integer(r, "state_bytes", "stream", (long long)lin_streams_state_bytes(encoder), " bytes in all");
    }
    if (!m->config.tokens) put_features(r, &m->features, m->config.mel_bins);
    if (!m->config.tokens)
        put_text(r, "normalization", "normalised", m->speaker_norm ? "by speaker" : "by the training set's mean and deviation");
    if (m->features.level_db > 0 || (r->json && !m->config.tokens))
        put_number(r, "level_db", "level", m->features.level_db, 4, " dB: the running level to which speech is brought");
    if (m->delay_ms || r->json)
        put_integer(r, "emission_delay_ms", "times", m->delay_ms, " ms earlier than the network's output (emission delay)");
    if (!m->config.voice) put_phones(r, m->phones, m->config.tokens);
    put_text(r, "license", "licence", *m->license || r->json ? m->license : "not stated");
    put_fingerprint(r, "fingerprint", m->fingerprint);
    if (m->eight_bits) put_text(r, "weights", "weights", "in eight bits, for --precision int8");
    status = put_provenance(r, path, m->provenance, err);
    lin_encoder_destroy(encoder);
    lin_model_destroy(m);
    return status;
}

static void report_tokens(report *r, const lin_dataset *set)
{
    long long targets = 0;
    for (int i = 0; i < set->count; i++)
        for (int t = 0; t < set->utterances[i].frames; t++) targets += set->utterances[i].labels[t] >= 0;
    put_text(r, "kind", "kind", "set of tokens");
    put_text(r, "source", "source", set->source);
    put_integer(r, "sequences", "sequences", set->count, "");
    put_integer(r, "tokens", "tokens", set->total_frames, "");
    put_integer(r, "different_tokens", "different tokens", set->tokens, "");
    put_integer(r, "targets", "targets", targets, "");
    put_integer(r, "symbols", "symbols", set->V, "");
}

static lin_status report_cache(report *r, const char *path, lin_error *err)
{
    lin_dataset *set;
    lin_status status = lin_dataset_open(path, &set, err);
    if (status == LIN_OK && set->tokens) report_tokens(r, set);
    else if (status == LIN_OK) {
        const lin_features *f = &set->features;
        put_text(r, "kind", "kind", "feature cache");
        put_text(r, "source", "source", set->source);
        put_integer(r, "utterances", "utterances", set->count, "");
        put_number(r, "hours", "hours", (double)set->total_frames * f->hop_ms / 3.6e6, 3, "");
        put_integer(r, "frames", "frames", set->total_frames, "");
        put_integer(r, "labels", "labels", set->total_labels, "");
        put_integer(r, "speakers", "speakers", set->n_speakers, "");
        put_features(r, f, set->D);
        put_phones(r, set->phones, 0);
    }
    lin_dataset_close(set);
    return status;
}

// 13000 -> "13.0"
static const char *cuda_version(int version, char *text, size_t capacity)
{
    snprintf(text, capacity, "%d.%d", version / 1000, version % 1000 / 10);
    return text;
}

static void put_device(report *r, int i, const lin_device *d)
{
    char name[32], text[1024];
    if (!r->json) {
        snprintf(name, sizeof name, "cuda:%d", i);
        int n = snprintf(text, sizeof text, "%s", d->name);
        if (d->major) n += snprintf(text + n, sizeof text - (size_t)n, ", compute capability %d.%d", d->major, d->minor);
        if (d->multiprocessors) n += snprintf(text + n, sizeof text - (size_t)n, ", %d multiprocessors", d->multiprocessors);
        if (d->memory_bytes) n += snprintf(text + n, sizeof text - (size_t)n, ", %.1f GB", (double)d->memory_bytes * 1e-9);
        if (d->free_bytes) n += snprintf(text + n, sizeof text - (size_t)n, " (%.1f free)", (double)d->free_bytes * 1e-9);
        if (*d->why_not) snprintf(text + n, sizeof text - (size_t)n, "; %s", d->why_not);
        put_text(r, "", name, text);
        return;
    }
    lin_buffer_text(&r->out, i ? ", " : "");
    snprintf(text, sizeof text, "%d.%d", d->major, d->minor);
    lin_buffer_json_format(&r->out, "{'name': %s, 'capability': %s, 'multiprocessors': %d, 'memory_bytes': %lld, "
                                    "'free_bytes': %lld, 'why_not': %s}", d->name, text, d->multiprocessors,
                           (long long)d->memory_bytes, (long long)d->free_bytes, d->why_not);
}

static void report_devices(report *r)
{
    int built_for, driver;
    char text[64];
    lin_device device;
    const char *why = lin_device_why_none(&built_for, &driver);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (r->json) {
        put_text(r, "cpu_instructions", "", lin_cpu_isa());
        put_integer(r, "cpu_cores", "", cores, "");
    } else {
        put_line(r, "cpu", "%s instructions, %ld core%s", lin_cpu_isa(), cores, cores == 1 ? "" : "s");
    }
    put_text(r, "cuda_built_for", "built for CUDA", cuda_version(built_for, text, sizeof text));
    if (driver) put_text(r, "cuda_driver", "driver's CUDA", cuda_version(driver, text, sizeof text));
    if (r->json) {
        put_text(r, "why_no_gpu", "", why);
        key(r, "gpus", "");
        lin_buffer_char(&r->out, '[');
    } else if (*why) {
        put_text(r, "", "no GPU", why);
    }
    for (int i = 0; lin_device_get(i, &device); i++) put_device(r, i, &device);
    if (r->json) lin_buffer_char(&r->out, ']');
}

static void put_state(report *r, const lin_state_about *a)
{
    char which[64] = "";
    put_fingerprint(r, "model", a->model);
    put_number(r, "seconds", "heard", (double)a->samples / a->rate_hz, 3, " s");
    put_number(r, "decoded_seconds", "decoded", (double)a->rows * a->row_seconds, 3, " s");
    put_text(r, "search", "by", lin_search_name((lin_search_kind)a->kind));
    if (r->json) {
        lin_buffer_json_format(&r->out, ", 'samples': %lld, 'rate_hz': %d, 'channels': %d, 'lanes': %d", (long long)a->samples,
                               a->rate_hz, a->channels, a->lanes);
        return;
    }
    if (a->channel >= 0) snprintf(which, sizeof which, ", of which channel %d is used", a->channel + 1);
    else if (a->channels > 1) snprintf(which, sizeof which, ", %s", a->channel == LIN_CHANNEL_MIX ? "mixed" : "each on its own");
    put_line(r, "sound", "%d Hz, %d channel%s%s", a->rate_hz, a->channels, a->channels == 1 ? "" : "s", which);
}

static lin_status report_state(report *r, const char *path, lin_error *err)
{
    lin_state state = {0};
    lin_status status = lin_state_read(path, &state, err);
    if (status == LIN_OK) {
        put_text(r, "kind", "kind", "a saved stream");
        put_integer(r, "file_bytes", "file", (long long)state.n, " bytes");
        put_state(r, &state.about);
    }
    lin_state_free(&state);
    return status;
}

// The kind of a file by its first bytes; an unknown one may be a model.
static lin_status report_file(report *r, const char *path, lin_error *err)
{
    char magic[8] = "";
    FILE *file;
    LIN_TRY(lin_file_open_stream(path, &file, err));
    const size_t n = fread(magic, 1, sizeof magic, file);
    fclose(file);
    if (n == sizeof magic && memcmp(magic, "LINNETDS", sizeof magic) == 0) return report_cache(r, path, err);
    if (lin_state_is(magic, n)) return report_state(r, path, err);
    static const struct {
        char magic[sizeof magic + 1];
        const char *what;
    } others[] = {{"linngram", "a language model; use 'linnet ngram info'"},
                  {LIN_TREE_MAGIC, "a packed lexicon, which is read with the lexicon that it was made from"},
                  {LIN_PUNCTUATION_MAGIC, "a model of punctuation; use 'linnet readable'"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (n == sizeof magic && memcmp(magic, others[i].magic, sizeof magic) == 0)
            return lin_fail(err, LIN_UNSUPPORTED, "%s is %s", path, others[i].what);
    return report_model(r, path, err);
}

static int run_info(lin_parsed *parsed)
{
    const info_values *v = parsed->values;
    static const char *const no_names[] = {NULL};
    char model[4096], path[4096];
    report r = {.json = v->json};
    lin_error err = {0};
    if (v->devices && parsed->operands.count) return lin_misuse(parsed, "--devices is about this machine and takes no FILE");
    lin_status status = LIN_OK;
    if (v->devices) {
        report_devices(&r);
    } else {
        status = lin_find_model(parsed->operands.count ? parsed->operands.items[0] : NULL, model, sizeof model, &err);
        if (status == LIN_OK) status = lin_find_named(NULL, model, NULL, no_names, path, sizeof path, &err);
        if (status == LIN_OK) status = report_file(&r, path, &err);
    }
    if (r.json) lin_buffer_text(&r.out, "}\n");
    if (status == LIN_OK) status = lin_buffer_write(&r.out, stdout, "standard output", &err);
    lin_buffer_free(&r.out);
    return status == LIN_OK ? LIN_EXIT_OK : lin_give_up(&err);
}

const lin_command lin_command_info = {
    .name = "info",
    .operands = "[FILE]",
    .summary = "describe a model or another file of linnet; list devices",
    .description = "Describes a model (shape of the network, parameters and their size, state of a stream, features, phones, "
                   "licence, training), a feature cache made by linnet prepare, or a saved stream (model, sound, position). "
                   "Without FILE it describes the installed model, whose card is docs/models.md. With --devices it lists the "
                   "devices that networks can run on.",
    .examples = "  linnet info\n  linnet info --json exp/best.safetensors\n  linnet info train.lfc\n"
                "  linnet info --devices",
    .options = info_options,
    .values_size = sizeof(info_values),
    .max_operands = 1,
    .run = run_info,
};

/* ---- linnet devices -------------------------------------------------------------------------------------------------------- */

typedef struct devices_values {
    int json;
} devices_values;

static const lin_option devices_options[] = {
    LIN_JSON_ROW(offsetof(devices_values, json), "Write one JSON object"),
    {.type = LIN_OPTION_END},
};

static void put_microphones(lin_buffer *out, const lin_microphone_info *list, int n)
{
    size_t widest = 0;
    for (int i = 0; i < n; i++) widest = strlen(list[i].name) > widest ? strlen(list[i].name) : widest;
    for (int i = 0; i < n; i++) {
        const lin_microphone_info *d = &list[i];
        lin_buffer_format(out, "%s%-4d", d->is_default ? "* " : "  ", d->index);
        size_t from = out->n;
        put_safely(out, d->name);
        lin_buffer_pad(out, from, widest + 2, 0);
        lin_buffer_format(out, "%6d Hz  ", d->rate_hz);
        from = out->n;
        lin_buffer_format(out, "%d channel%s", d->channels, d->channels == 1 ? "" : "s");
        lin_buffer_pad(out, from, 14, 0);
        put_safely(out, d->system);
        lin_buffer_char(out, '\n');
    }
}

static void put_microphones_json(lin_buffer *out, const lin_microphone_info *list, int n, const char *why)
{
    lin_buffer_json_format(out, "{'devices': [");
    for (int i = 0; i < n; i++) {
        const lin_microphone_info *d = &list[i];
        lin_buffer_json_format(out, i ? ", {'index': %d, 'name': %s, 'system': %s" : "{'index': %d, 'name': %s, 'system': %s",
                               d->index, d->name, d->system);
        lin_buffer_format(out, ", \"rate_hz\": %d, \"channels\": %d, \"default\": %s}", d->rate_hz, d->channels,
                          d->is_default ? "true" : "false");
    }
    lin_buffer_json_format(out, "], 'why_none': %s}\n", why);
}

static int run_devices(lin_parsed *parsed)
{
    const devices_values *v = parsed->values;
    lin_microphone_info *list;
    lin_buffer out = {0};
    lin_error err = {0}, unwritten = {0};
    char why[sizeof err.message];
    int n;
    lin_status status = lin_microphone_list(&list, &n, why, sizeof why, &err);
    if (status == LIN_OK && n == 0) status = lin_fail(&err, LIN_IO, "%s", why);
    if (v->json) put_microphones_json(&out, list, n, err.message);
    else put_microphones(&out, list, n);
    const lin_status written = lin_buffer_write(&out, stdout, "standard output", &unwritten);
    lin_buffer_free(&out);
    lin_free(list);
    if (status != LIN_OK) return lin_give_up(&err);
    return written == LIN_OK ? LIN_EXIT_OK : lin_give_up(&unwritten);
}

const lin_command lin_command_devices = {
    .name = "devices",
    .operands = "",
    .summary = "list the microphones",
    .description =
        "Lists the devices that can record, with the number and the name for linnet listen --microphone, the sample rate, the "
        "maximum number of channels, and the sound system. The sources of PulseAudio or PipeWire follow, if one of them runs "
        "and ALSA's plugin for it is installed. The default device is marked with *. If there is none, the exit status is 1 and "
        "a message says what to do. For CPUs and GPUs see linnet info --devices.",
    .examples = "  linnet devices\n  linnet devices --json",
    .options = devices_options,
    .values_size = sizeof(devices_values),
    .run = run_devices,
};
