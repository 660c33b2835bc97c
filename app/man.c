// man.c - the manual page, from the option tables: roff with the man macros.

#include <ctype.h>
#include <string.h>

#include "app/options.h"
#include "app/version.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "base/utf8.h"

static const char *doc_folder; // of the page that is being written, by one thread

// Text with roff's special characters escaped: backslash, dash (else a hyphen), and . or ' at the start of a line; characters
// beyond ASCII by their number.
static void put_plain(FILE *out, const char *text, int at_start)
{
    for (; *text; text++) {
        unsigned code;
        const size_t step = (unsigned char)*text < 0x80 ? 0 : lin_utf8_decode(text, strlen(text), &code);
        if (step) {
            fprintf(out, "\\[u%04X]", code);
            text += step - 1;
            at_start = 0;
            continue;
        }
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

static void put(FILE *out, const char *text, int at_start)
{
    char *own = lin_help_with_docs(text, doc_folder);
    put_plain(out, own ? own : text, at_start);
    lin_free(own);
}

// Paragraphs: an empty line becomes .PP.
static void put_paragraphs(FILE *out, const char *given)
{
    char *own = lin_help_with_docs(given, doc_folder);
    char *text = own;
    if (!own) put_plain(out, given, 1), fputc('\n', out); // memory is short: in one paragraph
    while (text && *text) {
        char *end = strstr(text, "\n\n");
        const size_t n = end ? (size_t)(end - text) : strlen(text);
        const char kept = text[n];
        text[n] = 0;
        put_plain(out, text, 1);
        text[n] = kept;
        text += n;
        while (*text == '\n') text++;
        fputs(*text ? "\n.PP\n" : "\n", out);
    }
    lin_free(own);
}

static void put_upper(FILE *out, const char *text)
{
    for (; *text; text++) fputc(toupper((unsigned char)*text), out);
}

static void put_option(FILE *out, const lin_option *o)
{
    fputs(".TP\n", out);
    if (o->letter) fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
    fputs(o->under ? "\\fB" : "\\fB\\-\\-", out);
    put(out, o->name, 0);
    fputs("\\fR", out);
    if (o->type != LIN_OPTION_FLAG) {
        fputs(o->under ? "=\\fI" : " \\fI", out);
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
        fputs("\\fR turns it off)", out);
    }
    fputs(".\n", out);
}

// A SETTINGS option, and below it those that it sets.
static void put_settings(FILE *out, const lin_command *command, const lin_option *o)
{
    const lin_option *row = NULL;
    put_option(out, o);
    fputs(".RS\n", out);
    while ((row = lin_options_under(command, o->name, row))) put_option(out, row);
    fputs(".RE\n", out);
}

static void put_options(FILE *out, const lin_command *command)
{
    for (const lin_option *o = command->options; o->type != LIN_OPTION_END; o++) {
        if (o->type == LIN_OPTION_HEADING) {
            if (o[1].under) continue;
            fputs(o == command->options ? "\\fI" : ".PP\n\\fI", out);
            put(out, o->help, 0);
            fputs("\\fR\n", out);
        } else if (o->type == LIN_OPTION_SETTINGS) {
            put_settings(out, command, o);
        } else if (!o->under) {
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
    fputs(".SH ENVIRONMENT\n"
          ".TP\n"
          "\\fBLINNET_MODEL\\fR\n"
          "The model file, if \\fB\\-\\-model\\fR is not given.\n"
          ".TP\n"
          "\\fBLINNET_LEXICON\\fR, \\fBLINNET_LM\\fR\n"
          "The lexicon and the language model, if \\fB\\-\\-lexicon\\fR and \\fB\\-\\-lm\\fR are not given; before those of "
          "\\fB\\-\\-language\\fR.\n"
          ".TP\n"
          "\\fBLINNET_FFMPEG\\fR\n"
          "The program that decodes formats which libsndfile does not (m4a, mp4, webm, mkv, ...); if not set, ffmpeg; empty: "
          "none.\n"
          ".TP\n"
          "\\fBLINNET_SANDBOX\\fR\n"
          "off: ffmpeg, and the processes that read uploads, run without limits and without a sandbox.\n"
          ".TP\n"
          "\\fBLINNET_ISA\\fR\n"
          "The instruction set of the CPU kernels: avx512, avx2 or portable.\n"
          ".SH EXIT STATUS\n"
          ".TP\n"
          "0\n"
          "Success.\n"
          ".TP\n"
          "1\n"
          "Something failed; the rest was done.\n"
          ".TP\n"
          "2\n"
          "The command line or the configuration file is wrong.\n"
          ".TP\n"
          "130\n"
          "Interrupted.\n", out);
}

static void put_docs(FILE *out)
{
    fputs("More documentation is in ", out);
    put(out, doc_folder, 0);
    fputs(".\n", out);
}

void lin_man_command(FILE *out, const lin_command *command, const char *docs)
{
    doc_folder = docs;
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
    fputs(".SH SEE ALSO\n.BR linnet (1)\n.PP\n", out);
    put_docs(out);
}

void lin_man_program(FILE *out, const lin_command *const *commands, const char *docs)
{
    doc_folder = docs;
    fputs(".TH LINNET 1 \"\" \"linnet " LIN_VERSION "\" \"User Commands\"\n"
                                                    ".SH NAME\n"
                                                    "linnet \\- recognise phonemes and words in speech\n"
                                                    ".SH SYNOPSIS\n"
                                                    "\\fBlinnet\\fR \\fICOMMAND\\fR [arguments] [options]\n"
                                                    ".SH DESCRIPTION\n"
                                                    "linnet recognises phonemes and words in recorded or live speech with a "
                                                    "linear\\-attention transformer, while the speaker is still talking. It also "
                                                    "aligns texts with sound, trains models and scores results.\n"
                                                    ".SH COMMANDS\n"
                                                    "Each has its own manual page, and \\fB\\-\\-help\\fR.\n", out);
    for (; *commands; commands++) {
        if ((*commands)->hidden) continue;
        fputs(".TP\n.BR linnet\\-", out);
        put(out, (*commands)->name, 0);
        fputs(" (1)\n", out);
        put(out, (*commands)->summary, 1);
        fputs("\n", out);
    }
    put_end(out);
    fputs(".SH SEE ALSO\n", out);
    put_docs(out);
}
