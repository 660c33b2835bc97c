// cmd_devices.c - linnet devices: lists the microphones.

#include <stdio.h>
#include <string.h>

#include "app/common.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "frontend/microphone.h"

typedef struct devices_values {
    int json;
} devices_values;

static const lin_option options[] = {
    LIN_JSON_ROW(offsetof(devices_values, json), "Write one JSON object"),
    {.type = LIN_OPTION_END},
};

// A device name comes from its driver: control characters must not reach the terminal.
static void put_name(lin_buffer *out, const char *name)
{
    for (const char *c = name; *c; c++) lin_buffer_char(out, (unsigned char)*c < 32 || *c == 127 ? '?' : *c);
}

static void put_text(lin_buffer *out, const lin_microphone_info *list, int n)
{
    size_t widest = 0;
    for (int i = 0; i < n; i++) widest = strlen(list[i].name) > widest ? strlen(list[i].name) : widest;
    for (int i = 0; i < n; i++) {
        const lin_microphone_info *d = &list[i];
        lin_buffer_format(out, "%s%-4d", d->is_default ? "* " : "  ", d->index);
        size_t from = out->n;
        put_name(out, d->name);
        lin_buffer_pad(out, from, widest + 2, 0);
        lin_buffer_format(out, "%6d Hz  ", d->rate_hz);
        from = out->n;
        lin_buffer_format(out, "%d channel%s", d->channels, d->channels == 1 ? "" : "s");
        lin_buffer_pad(out, from, 14, 0);
        put_name(out, d->system);
        lin_buffer_char(out, '\n');
    }
}

static void put_json(lin_buffer *out, const lin_microphone_info *list, int n, const char *why)
{
    lin_buffer_text(out, "{\"devices\": [");
    for (int i = 0; i < n; i++) {
        const lin_microphone_info *d = &list[i];
        lin_buffer_format(out, "%s{\"index\": %d, \"name\": ", i ? ", " : "", d->index);
        lin_buffer_json(out, d->name, strlen(d->name));
        lin_buffer_text(out, ", \"system\": ");
        lin_buffer_json(out, d->system, strlen(d->system));
        lin_buffer_format(out, ", \"rate_hz\": %d, \"channels\": %d, \"default\": %s}", d->rate_hz, d->channels,
                          d->is_default ? "true" : "false");
    }
    lin_buffer_text(out, "], \"why_none\": ");
    lin_buffer_json(out, why, strlen(why));
    lin_buffer_text(out, "}\n");
}

static int run(lin_parsed *parsed)
{
    const devices_values *v = parsed->values;
    lin_microphone_info *list;
    lin_buffer out = {0};
    lin_error err = {0}, unwritten = {0};
    char why[sizeof err.message];
    int n;
    lin_status status = lin_microphone_list(&list, &n, why, sizeof why, &err);
    if (status == LIN_OK && n == 0) status = lin_fail(&err, LIN_IO, "%s", why);
    if (v->json) put_json(&out, list, n, err.message);
    else put_text(&out, list, n);
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
    .options = options,
    .values_size = sizeof(devices_values),
    .run = run,
};
