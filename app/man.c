// man.c - the manual page, from the option tables: roff with the man macros.

#include <ctype.h>
#include <string.h>

#include "app/options.h"
#include "app/version.h"

// Text with roff's special characters made harmless: backslash, dash (else a hyphen), and . or ' at the start of a line.
static void put(FILE *out, const char *text, int at_start)
{
    for (; *text; text++) {
        if (at_start && (*text == '.' || *text == '\'')) fputs("\\&", out);
        at_start = *text == '\n';
        if (*text == '\\') {
            fputs("\\e", out);
        } else if (*text == '-') {
            fputs("\\-", out);
        } else {
            fputc(*text, out);
        }
    }
}

// Paragraphs: an empty line becomes .PP.
static void put_paragraphs(FILE *out, const char *text)
{
    fputs(".PP\n", out);
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t n = end ? (size_t)(end - text) : strlen(text);
        for (size_t i = 0; i < n; i++) {
            char c[2] = {text[i], 0};
            put(out, c, i == 0 || text[i - 1] == '\n');
        }
        text += n;
        while (*text == '\n') text++;
        fputs(*text ? "\n.PP\n" : "\n", out);
    }
}

static void put_upper(FILE *out, const char *text)
{
    for (; *text; text++) fputc(toupper((unsigned char)*text), out);
}

static void put_option(FILE *out, const lin_option *o)
{
    fputs(".TP\n", out);
    if (o->letter) fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", out);
    put(out, o->name, 0);
    fputs("\\fR", out);
    if (o->type != LIN_OPTION_FLAG) {
        fputs(" \\fI", out);
        put(out, lin_option_value_name(o), 0);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    put(out, o->help, 1);
    if (o->required) fputs(" (required)", out);
    if (!o->required && o->type != LIN_OPTION_FLAG && o->text && *o->text) {
        fputs(" (default ", out);
        put(out, o->text, 0);
        fputs(")", out);
    }
    if (o->type == LIN_OPTION_FLAG && o->text && strcmp(o->text, "yes") == 0) {
        fputs(" (default; \\fB\\-\\-no\\-", out);
        put(out, o->name, 0);
        fputs("\\fR switches it off)", out);
    }
    fputs(".\n", out);
}

static void put_options(FILE *out, const lin_command *command)
{
    for (const lin_option *o = command->options; o->type != LIN_OPTION_END; o++) {
        if (o->type == LIN_OPTION_HEADING) {
            fputs(".PP\n\\fI", out);
            put(out, o->help, 0);
            fputs("\\fR\n", out);
        } else {
            put_option(out, o);
        }
    }
    fputs(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nA short help text.\n", out);
}

static void put_usage(FILE *out, const lin_command *command)
{
    fputs("\\fBlinnet ", out);
    put(out, command->name, 0);
    fputs("\\fR ", out);
    if (*command->operands) {
        fputs("\\fI", out);
        put(out, command->operands, 0);
        fputs("\\fR ", out);
    }
    fputs("[options]\n", out);
}

static void put_examples(FILE *out, const lin_command *command)
{
    if (!command->examples) return;
    fputs(".PP\nExamples:\n.PP\n.nf\n", out);
    put(out, command->examples, 1);
    fputs("\n.fi\n", out);
}

static void put_end(FILE *out)
{
    fputs(".SH ENVIRONMENT\n.TP\n\\fBLINNET_MODEL\\fR\nThe model file, where \\fB\\-\\-model\\fR is not given.\n"
          ".TP\n\\fBLINNET_ISA\\fR\nThe instruction set of the CPU kernels: avx512, avx2 or portable.\n"
          ".SH EXIT STATUS\n.TP\n0\nAll was done.\n.TP\n1\nSomething failed; what could be done was done.\n"
          ".TP\n2\nThe command line or the configuration file is wrong.\n.TP\n130\nInterrupted.\n", out);
}

void lin_man_command(FILE *out, const lin_command *command)
{
    fputs(".TH LINNET\\-", out);
    put_upper(out, command->name);
    fputs(" 1 \"\" \"linnet " LIN_VERSION "\" \"User Commands\"\n.SH NAME\nlinnet\\-", out);
    put(out, command->name, 0);
    fputs(" \\- ", out);
    put(out, command->summary, 0);
    fputs("\n.SH SYNOPSIS\n", out);
    put_usage(out, command);
    fputs(".SH DESCRIPTION\n", out);
    put_paragraphs(out, command->description ? command->description : command->summary);
    fputs(".SH OPTIONS\n", out);
    put_options(out, command);
    put_examples(out, command);
    put_end(out);
}

void lin_man_program(FILE *out, const lin_command *const *commands)
{
    fputs(".TH LINNET 1 \"\" \"linnet " LIN_VERSION "\" \"User Commands\"\n.SH NAME\nlinnet \\- hear speech, write phonemes\n"
          ".SH SYNOPSIS\n\\fBlinnet\\fR \\fICOMMAND\\fR [arguments] [options]\n.SH DESCRIPTION\n"
          "linnet recognises phonemes in recorded or live speech with a linear\\-attention transformer, while the speaker is still "
          "talking.\n"
          ".SH COMMANDS\n", out);
    for (; *commands; commands++) {
        if ((*commands)->hidden) continue;
        fputs(".SS linnet ", out);
        put(out, (*commands)->name, 0);
        fputs("\n", out);
        put_usage(out, *commands);
        put_paragraphs(out, (*commands)->description ? (*commands)->description : (*commands)->summary);
        put_options(out, *commands);
        put_examples(out, *commands);
    }
    put_end(out);
}
