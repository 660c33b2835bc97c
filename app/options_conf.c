// options_conf.c - configuration files: `name = value` lines with the names of a command's options. Reading, and writing back.
//
//   # a comment
//   layers = 6
//   train = "sets/a b.lfc"      # quotes keep spaces at the ends, and '#'

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/options.h"
#include "app/options_value.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/textfile.h"

// A value written with a backslash before each byte still fits in a line.
enum { MAX_VALUE = 4096, MAX_LINE = 4 * MAX_VALUE, MAX_FILE = 1 << 20 };

static int is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// Unquotes the value in place; NULL, or what is wrong with it.
static const char *read_value(char *v, char **out)
{
    if (*v == '"') {
        char *to = ++v;
        *out = v;
        for (; *v != '"'; v++) {
            if (*v == '\\' && (v[1] == '"' || v[1] == '\\')) v++;
            if (!*v) return "a quoted value has no closing quote";
            *to++ = *v;
        }
        for (v++; lin_is_space(*v); v++) {}
        if (*v && *v != '#') return "there is text after the closing quote";
        *to = 0;
        return NULL;
    }
    *out = v;
    char *end = v;
    for (; *v; v++) {
        if (*v == '#' && (v == *out || lin_is_space(v[-1]))) break;
        if (!lin_is_space(*v)) end = v + 1;
    }
    *end = 0;
    return **out ? NULL : "no value after '='";
}

static lin_status read_line(lin_parsed *p, char *line, const char *file, int number, lin_error *err)
{
    char *c = line, key[64];
    while (lin_is_space(*c)) c++;
    if (!*c || *c == '#') return LIN_OK;
    size_t length = 0;
    while (is_name(c[length])) length++;
    char *after = c + length;
    while (lin_is_space(*after)) after++;
    if (!length || *after != '=') {
        return lin_fail(err, LIN_FORMAT, "%s:%d: expected 'name = value', found '%.60s'", file, number, c);
    }
    if (length >= sizeof key) return lin_fail(err, LIN_INVALID, "%s:%d: unknown name '%.60s'", file, number, c);
    for (size_t i = 0; i < length; i++) key[i] = c[i] == '_' ? '-' : c[i];
    key[length] = 0;
    int row = lin_options_find(p->command, key);
    if (row < 0) {
        const char *near = lin_nearest_option(p->command, key);
        if (near) return lin_fail(err, LIN_INVALID, "%s:%d: unknown name '%s'; did you mean %s?", file, number, key, near);
        return lin_fail(err, LIN_INVALID, "%s:%d: unknown name '%s'", file, number, key);
    }
    p->old[row] |= strcmp(key, p->command->options[row].name) != 0;
    for (after++; lin_is_space(*after); after++) {}
    char *value;
    const char *wrong = read_value(after, &value);
    if (wrong) return lin_fail(err, LIN_FORMAT, "%s:%d: %s: %s", file, number, key, wrong);
    if (strlen(value) >= MAX_VALUE) {
        return lin_fail(err, LIN_FORMAT, "%s:%d: %s: a value of more than %d bytes", file, number, key, MAX_VALUE - 1);
    }
    lin_status status = lin_option_set(p, row, key, value, LIN_FROM_FILE, err);
    return status == LIN_OK || status == LIN_NO_MEMORY ? status : lin_fail_at(err, status, "%s:%d", file, number);
}

lin_status lin_options_conf(lin_parsed *parsed, const char *text, size_t size, const char *name, lin_error *err)
{
    char line[MAX_LINE];
    size_t at = lin_text_mark(text, size);
    memset(parsed->lines, 0, sizeof parsed->lines);
    for (int number = 1; at < size; number++) {
        size_t length = 0;
        while (at + length < size && text[at + length] != '\n') length++;
        size_t next = at + length + 1;
        if (length && text[at + length - 1] == '\r') length--;
        if (length >= sizeof line)
            return lin_fail(err, LIN_FORMAT, "%s:%d: a line of more than %d bytes", name, number, MAX_LINE - 1);
        for (size_t i = 0; i < length; i++) {
            unsigned char c = (unsigned char)text[at + i];
            if ((c < 32 && c != '\t') || c == 127) {
                return lin_fail(err, LIN_FORMAT,
                                "%s:%d: control character 0x%02x in column %zu; this is not a configuration file", name, number,
                                (unsigned)c, i + 1);
            }
        }
        memcpy(line, text + at, length);
        line[length] = 0;
        parsed->line = number;
        lin_status status = read_line(parsed, line, name, number, err);
        if (status != LIN_OK) return status;
        at = next;
    }
    return LIN_OK;
}

lin_status lin_options_conf_file(lin_parsed *parsed, const char *path, lin_error *err)
{
    FILE *file;
    lin_status opened = lin_file_open_stream(path, &file, err);
    if (opened != LIN_OK) return opened;
    char *text = lin_alloc(MAX_FILE + 1, 1);
    if (!text) {
        fclose(file);
        return lin_no_memory(err, "a configuration file", MAX_FILE + 1);
    }
    errno = 0;
    size_t size = fread(text, 1, MAX_FILE + 1, file);
    lin_status status;
    if (ferror(file)) {
        status = lin_fail(err, LIN_IO, "cannot read %s: %s", path, strerror(errno));
    } else if (size > MAX_FILE) {
        status = lin_fail(err, LIN_FORMAT, "%s is larger than %d bytes; this is not a configuration file", path, MAX_FILE);
    } else {
        status = lin_options_conf(parsed, text, size, path, err);
    }
    fclose(file);
    lin_free(text);
    return status;
}

/* ---- writing --------------------------------------------------------------------------------------------------------------- */

static void add_text(lin_buffer *b, const char *name, const char *text)
{
    lin_buffer_format(b, "%s = \"", name);
    for (; *text; text++) lin_buffer_format(b, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    lin_buffer_format(b, "\"\n");
}

static void add_double(lin_buffer *b, double v, const char *before)
{
    char short_form[40];
    snprintf(short_form, sizeof short_form, "%.15g", v);
    if (strtod(short_form, NULL) == v) {
        lin_buffer_format(b, "%s%s", before, short_form);
    } else {
        lin_buffer_format(b, "%s%.17g", before, v);
    }
}

static void add_choice(lin_buffer *b, const lin_option *o, int index)
{
    const char *c = o->choices;
    for (int i = 0; i < index; i++) c += strcspn(c, "|") + 1;
    lin_buffer_format(b, "%s = %.*s\n", o->name, (int)strcspn(c, "|"), c);
}

lin_status lin_options_text(const lin_parsed *parsed, int source, char **text, lin_error *err)
{
    lin_buffer b = {0};
    lin_buffer_text(&b, "");
    for (const lin_option *o = parsed->command->options; o->type != LIN_OPTION_END; o++) {
        const void *value = (const char *)parsed->values + o->at;
        if (parsed->from[o - parsed->command->options] < source) continue;
        switch (o->type) {
        case LIN_OPTION_HEADING: lin_buffer_format(&b, "\n# %s\n", o->help); break;
        case LIN_OPTION_FLAG: lin_buffer_format(&b, "%s = %s\n", o->name, *(const int *)value ? "yes" : "no"); break;
        case LIN_OPTION_INT: lin_buffer_format(&b, "%s = %d\n", o->name, *(const int *)value); break;
        case LIN_OPTION_CHOICE: add_choice(&b, o, *(const int *)value); break;
        case LIN_OPTION_DOUBLE:
            lin_buffer_format(&b, "%s", o->name);
            add_double(&b, *(const double *)value, " = ");
            lin_buffer_format(&b, "\n");
            break;
        case LIN_OPTION_STRING:
        case LIN_OPTION_FILE:
        case LIN_OPTION_FOLDER:
            if (*(const char *const *)value) add_text(&b, o->name, *(const char *const *)value);
            break;
        case LIN_OPTION_FILES: {
            const lin_list *list = value;
            for (int i = 0; i < list->count; i++) add_text(&b, o->name, list->items[i]);
            break;
        }
        case LIN_OPTION_NUMBERS: {
            const lin_numbers *numbers = value;
            if (numbers->count) lin_buffer_format(&b, "%s", o->name);
            for (int i = 0; i < numbers->count; i++) add_double(&b, numbers->items[i], i ? "," : " = ");
            if (numbers->count) lin_buffer_format(&b, "\n");
            break;
        }
        case LIN_OPTION_SETTINGS:
        case LIN_OPTION_END: break;
        }
    }
    lin_status status = lin_buffer_status(&b, err);
    if (status != LIN_OK) lin_buffer_free(&b);
    *text = b.data;
    return status;
}
