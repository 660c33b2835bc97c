// help.c - --help of a command and of the program, from the option tables.

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "app/options.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "base/system.h"

enum { WIDTH = 100, COLUMN = 30 };

const char *lin_option_value_name(const lin_option *option)
{
    if (option->value) return option->value;
    switch (option->type) {
    case LIN_OPTION_INT: return "N";
    case LIN_OPTION_DOUBLE: return "X";
    case LIN_OPTION_NUMBERS: return "X,X,...";
    case LIN_OPTION_CHOICE: return option->choices;
    case LIN_OPTION_FILE:
    case LIN_OPTION_FILES: return "FILE";
    case LIN_OPTION_FOLDER: return "DIR";
    case LIN_OPTION_STRING: return "TEXT";
    case LIN_OPTION_SETTINGS: return "NAME=VALUE,...";
    default: return "";
    }
}

/* ---- documentation --------------------------------------------------------------------------------------------------------- */

const char *lin_doc_folder(void)
{
    static char folder[PATH_MAX + 32]; // written once, by the one thread that prints help
    if (*folder) return folder;
    char file[PATH_MAX + 64], program[PATH_MAX];
    const int is_known = lin_system_program(program, sizeof program);
    for (int i = 0; i < 2; i++) { // PREFIX/bin/linnet
        char *slash = strrchr(program, '/');
        if (slash) *slash = 0;
    }
    snprintf(file, sizeof file, "%s/share/doc/linnet/alignment.md", program);
    if (is_known && access(file, F_OK) == 0) {
        snprintf(folder, sizeof folder, "%s/share/doc/linnet", program);
    } else {
        snprintf(folder, sizeof folder, "docs");
    }
    return folder;
}

char *lin_help_with_docs(const char *text, const char *folder)
{
    static const char name[] = "docs/";
    const size_t n_name = sizeof name - 2, n_folder = strlen(folder);
    size_t n = strlen(text) + 1;
    for (const char *at = text; (at = strstr(at, name)); at++) n += n_folder;
    char *out = lin_alloc(n, 1), *to = out;
    if (!out) return NULL;
    while (*text) {
        if (!strncmp(text, name, sizeof name - 1)) {
            memcpy(to, folder, n_folder);
            to += n_folder;
            text += n_name;
        } else {
            *to++ = *text++;
        }
    }
    *to = 0;
    return out;
}

/* ---- help ------------------------------------------------------------------------------------------------------------------ */

// Words of text, wrapped, each line but the first indented; column: the position of the cursor.
static void wrap_words(FILE *out, const char *text, int indent, int column)
{
    while (*text) {
        int n = (int)strcspn(text, " \n");
        if (column > indent && column + 1 + n > WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", n, text);
        column += n;
        text += n;
        if (text[0] == '\n' && text[1] == '\n') {
            fprintf(out, "\n\n%*s", indent, "");
            column = indent;
        }
        while (*text == ' ' || *text == '\n') text++;
    }
    fputc('\n', out);
}

static void wrap(FILE *out, const char *text, int indent, int column)
{
    char *own = lin_help_with_docs(text, lin_doc_folder());
    wrap_words(out, own ? own : text, indent, column);
    lin_free(own);
}

static void print_heading(FILE *out, const char *title)
{
    char *own = lin_help_with_docs(title, lin_doc_folder());
    fprintf(out, "\n%s:\n", own ? own : title);
    lin_free(own);
}

// What an option is, and its default; released with lin_free. Of SETTINGS: its names.
static char *about(const lin_command *command, const lin_option *o)
{
    lin_buffer b = {0};
    lin_buffer_text(&b, o->help);
    const lin_option *row = NULL;
    if (o->type == LIN_OPTION_SETTINGS) {
        while ((row = lin_options_under(command, o->name, row))) {
            lin_buffer_format(&b, "%s%s", row == lin_options_under(command, o->name, NULL) ? ": " : ", ", row->name);
        }
        lin_buffer_format(&b, ". --%s help explains them", o->name);
    } else if (o->required) {
        lin_buffer_text(&b, " (required)");
    } else if (o->type != LIN_OPTION_FLAG && o->text && *o->text) {
        lin_buffer_format(&b, " (default %s)", o->text);
    } else if (o->type == LIN_OPTION_FLAG && o->text && strcmp(o->text, "yes") == 0) {
        lin_buffer_format(&b, " (default; %sno-%s turns it off)", o->under ? "" : "--", o->name);
    }
    return b.data;
}

static void print_option(FILE *out, const lin_command *command, const lin_option *o)
{
    char left[160];
    const char *dashes = o->under ? "" : "--", *is = o->under ? "=" : " ";
    int n = o->letter ? snprintf(left, sizeof left, "  -%c, --%s", o->letter, o->name)
                      : snprintf(left, sizeof left, "      %s%s", dashes, o->name);
    if (o->type != LIN_OPTION_FLAG) n += snprintf(left + n, sizeof left - (size_t)n, "%s%s", is, lin_option_value_name(o));
    fputs(left, out);
    if (n > COLUMN - 2) {
        fprintf(out, "\n%*s", COLUMN, "");
    } else {
        fprintf(out, "%*s", COLUMN - n, "");
    }
    char *text = about(command, o);
    wrap(out, text ? text : o->help, COLUMN, COLUMN);
    lin_free(text);
}

// Whether an option of its own follows before the next heading.
static int is_used(const lin_option *heading)
{
    for (const lin_option *o = heading + 1; o->type != LIN_OPTION_END && o->type != LIN_OPTION_HEADING; o++) {
        if (!o->under) return 1;
    }
    return 0;
}

void lin_help_settings(FILE *out, const lin_command *command, const char *settings)
{
    const lin_option *heading = NULL;
    fprintf(out, "usage: linnet %s --%s NAME=VALUE,...\n\n", command->name, settings);
    wrap(out, command->options[lin_options_find(command, settings)].help, 0, 0);
    for (const lin_option *o = command->options; o->type != LIN_OPTION_END; o++) {
        if (o->type == LIN_OPTION_HEADING) heading = o;
        if (!o->under || strcmp(o->under, settings) != 0) continue;
        if (heading) print_heading(out, heading->help);
        heading = NULL;
        print_option(out, command, o);
    }
}

void lin_help_command(FILE *out, const lin_command *command)
{
    fprintf(out, "usage: linnet %s%s%s [options]\n\n", command->name, *command->operands ? " " : "", command->operands);
    wrap(out, command->description ? command->description : command->summary, 0, 0);
    int open = 0;
    for (const lin_option *o = command->options; o->type != LIN_OPTION_END; o++) {
        if (o->under || (o->type == LIN_OPTION_HEADING && !is_used(o))) continue;
        if (o->type == LIN_OPTION_HEADING) {
            print_heading(out, o->help);
            open = 1;
            continue;
        }
        if (!open) fprintf(out, "\nOptions:\n");
        open = 1;
        print_option(out, command, o);
    }
    if (!open) fprintf(out, "\nOptions:\n");
    fprintf(out, "  -h, --help%*sThis text\n", COLUMN - 12, "");
    if (command->conf_operand) fprintf(out, "\n"
                                            "Every option may be given in %s as 'name = value'.\n", command->operands);
    if (command->examples) fprintf(out, "\nExamples:\n%s\n", command->examples);
}

void lin_help_program(FILE *out, const lin_command *const *commands)
{
    fprintf(out,
            "usage: linnet COMMAND [arguments] [options]\n\n"
            "linnet recognises phonemes and words in speech.\n\n"
            "Commands:\n");
    for (; *commands; commands++) {
        if (!(*commands)->hidden) fprintf(out, "  %-14s%s\n", (*commands)->name, (*commands)->summary);
    }
    fprintf(out, "\n"
                 "linnet COMMAND --help describes a command; linnet --version prints the version.\n"
                 "Manual pages: man linnet, man linnet-COMMAND. More documentation: %s.\n"
                 "The model is that of --model, else of the environment variable LINNET_MODEL, else the one installed with the "
                 "program.\n"
                 "Exit status: 0 success, 1 something failed (the rest was done), 2 wrong command line, 130 interrupted.\n",
            lin_doc_folder());
}
