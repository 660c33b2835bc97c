// help.c - all that is made of the option tables: --help, the manual pages, completion for shells; linnet man, linnet completion.

#include <ctype.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "app/common.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/unicode.h"
#include "linnet/linnet.h"

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
    snprintf(file, sizeof file, "%s/share/doc/linnet/docs/alignment.md", program);
    if (is_known && access(file, F_OK) == 0) snprintf(folder, sizeof folder, "%s/share/doc/linnet/docs", program);
    else snprintf(folder, sizeof folder, "docs");
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

// What an option is, and its default; released with lin_free.
static char *about(const lin_option *o)
{
    lin_buffer b = {0};
    lin_buffer_text(&b, o->help);
    if (o->required) lin_buffer_text(&b, " (required)");
    else if (o->type != LIN_OPTION_FLAG && o->text && *o->text) lin_buffer_format(&b, " (default %s)", o->text);
    else if (o->type == LIN_OPTION_FLAG && o->text && strcmp(o->text, "yes") == 0)
        lin_buffer_format(&b, " (default; %sno-%s turns it off)", o->under ? "" : "--", o->name);
    return b.data;
}

// The same of SETTINGS: their names too.
static char *about_settings(const lin_command *command, const lin_option *o)
{
    lin_buffer b = {0};
    const lin_option *row = NULL;
    lin_buffer_text(&b, o->help);
    for (const char *before = ": "; (row = lin_options_under(command, o->name, row)); before = ", ")
        lin_buffer_format(&b, "%s%s", before, row->name);
    lin_buffer_format(&b, ". --%s help explains them", o->name);
    return b.data;
}

static void print_option(FILE *out, const lin_command *command, const lin_option *o)
{
    char left[160];
    const char *dashes = o->under ? "" : "--", *is = o->under ? "=" : o->bare ? "[=" : " ";
    int n = o->letter ? snprintf(left, sizeof left, "  -%c, --%s", o->letter, o->name)
                      : snprintf(left, sizeof left, "      %s%s", dashes, o->name);
    if (o->type != LIN_OPTION_FLAG)
        n += snprintf(left + n, sizeof left - (size_t)n, "%s%s%s", is, lin_option_value_name(o), o->bare ? "]" : "");
    if (n > COLUMN - 2) fprintf(out, "%s\n%*s", left, COLUMN, "");
    else fprintf(out, "%-*s", COLUMN, left);
    char *text = o->type == LIN_OPTION_SETTINGS ? about_settings(command, o) : about(o);
    wrap(out, text ? text : o->help, COLUMN, COLUMN);
    lin_free(text);
}

enum { PLAIN = 1, EXPERT = 2, ALL = PLAIN | EXPERT };

// Which options a text has: PLAIN, EXPERT or ALL.
static int is_in(const lin_option *o, int which)
{
    return o->type != LIN_OPTION_HEADING && !o->under && (which & (o->expert ? EXPERT : PLAIN));
}

// Whether such an option follows before the next heading.
static int is_used(const lin_option *heading, int which)
{
    for (const lin_option *o = heading + 1; o->type != LIN_OPTION_END && o->type != LIN_OPTION_HEADING; o++) {
        if (is_in(o, which)) return 1;
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

static void print_options(FILE *out, const lin_command *command, int which, const char *first, const char *more)
{
    int open = 0;
    for (const lin_option *o = command->options; o->type != LIN_OPTION_END; o++) {
        char title[160];
        if (o->type == LIN_OPTION_HEADING && is_used(o, which)) {
            snprintf(title, sizeof title, "%s%s", o->help, more);
            print_heading(out, title);
            open = 1;
        }
        if (!is_in(o, which)) continue;
        if (!open) print_heading(out, first);
        open = 1;
        print_option(out, command, o);
    }
    if (!open) print_heading(out, first);
}

void lin_help_command(FILE *out, const lin_command *command, int all)
{
    int experts = 0;
    for (const lin_option *o = command->options; o->type != LIN_OPTION_END; o++) experts += command->brief && is_in(o, EXPERT);
    fprintf(out, "usage: linnet %s%s%s [options]\n\n", command->name, *command->operands ? " " : "", command->operands);
    wrap(out, command->description ? command->description : command->summary, 0, 0);
    print_options(out, command, command->brief ? PLAIN : ALL, "Options", "");
    fprintf(out, "  -h, --help%*sThis text\n", COLUMN - 12, "");
    if (experts && !all) fprintf(out, "      --help-all%*sAlso the %d options for experts\n", COLUMN - 16, "", experts);
    if (experts && all) print_options(out, command, EXPERT, "For experts", ", for experts");
    if (command->conf_operand) fprintf(out, "\n"
                                            "Every option may be given in %s as 'name = value'.\n", command->operands);
    if (command->examples) fprintf(out, "\nExamples:\n%s\n", command->examples);
}

void lin_help_program(FILE *out, const lin_command *const *commands)
{
    fprintf(out,
            "usage: linnet FILE... [options]     writes the words of sound files; - is standard input\n"
            "       linnet COMMAND [arguments] [options]\n\n"
            "linnet recognises phonemes and words in speech.\n\n"
            "Commands:\n");
    for (; *commands; commands++) {
        if (!(*commands)->hidden) fprintf(out, "  %-14s%s\n", (*commands)->name, (*commands)->summary);
    }
    fprintf(out, "\n"
                 "linnet COMMAND --help describes a command; linnet --version prints the version.\n"
                 "Manual pages: man linnet, man linnet-COMMAND. More documentation: %s.\n"
                 "Commands use the model of --model, else of the environment variable LINNET_MODEL, else the installed one.\n"
                 "Exit status: 0 success, 1 something failed (the rest was done), 2 wrong command line, 130 interrupted.\n",
            lin_doc_folder());
}

/* ---- the manual page, in roff with the man macros -------------------------------------------------------------------------- */

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
        if (*text == '\\') fputs("\\e", out);
        else fprintf(out, *text == '-' ? "\\-" : "%c", *text);
    }
}

// Such a text between two that are roff.
static void put(FILE *out, const char *before, const char *text, const char *behind)
{
    char *own = lin_help_with_docs(text, doc_folder);
    fputs(before, out);
    put_plain(out, own ? own : text, before[strlen(before) - 1] == '\n');
    fputs(behind, out);
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
    put(out, o->under ? "\\fB" : "\\fB\\-\\-", o->name, "\\fR");
    if (o->type != LIN_OPTION_FLAG)
        put(out, o->under ? "=\\fI" : o->bare ? "[=\\fI" : " \\fI", lin_option_value_name(o), o->bare ? "\\fR]" : "\\fR");
    char *text = about(o);
    put(out, "\n", text ? text : o->help, ".\n");
    lin_free(text);
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
            if (!is_used(o, ALL)) continue;
            put(out, o == command->options ? "\\fI" : ".PP\n\\fI", o->help, "\\fR\n");
        } else if (o->type == LIN_OPTION_SETTINGS) {
            put_settings(out, command, o);
        } else if (!o->under) {
            put_option(out, o);
        }
    }
    fputs(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nA short help text.\n", out);
}

static void put_end(FILE *out)
{
    fputs(".SH ENVIRONMENT\n"
          ".TP\n"
          "\\fBLINNET_MODEL\\fR\n"
          "The model file, if \\fB\\-\\-model\\fR is not given.\n"
          ".TP\n"
          "\\fBLINNET_LEXICON\\fR, \\fBLINNET_LM\\fR\n"
          "The lexicon and the language model, if \\fB\\-\\-lexicon\\fR and \\fB\\-\\-lm\\fR are not given. They come "
          "before the files of \\fB\\-\\-language\\fR.\n"
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

void lin_man_command(FILE *out, const lin_command *command, const char *docs)
{
    doc_folder = docs;
    fputs(".TH LINNET\\-", out);
    put_upper(out, command->name);
    put(out, " 1 \"\" \"linnet " LINNET_VERSION "\" \"User Commands\"\n.SH NAME\nlinnet\\-", command->name, "");
    put(out, " \\- ", command->summary, "\n.SH SYNOPSIS\n");
    put(out, "\\fBlinnet ", command->name, "\\fR ");
    if (*command->operands) put(out, "\\fI", command->operands, "\\fR ");
    fputs("[options]\n.SH DESCRIPTION\n", out);
    put_paragraphs(out, command->description ? command->description : command->summary);
    fputs(".SH OPTIONS\n", out);
    put_options(out, command);
    if (command->examples) put(out, ".PP\nExamples:\n.PP\n.nf\n", command->examples, "\n.fi\n");
    put_end(out);
    put(out, ".SH SEE ALSO\n.BR linnet (1)\n.PP\nMore documentation is in ", doc_folder, ".\n");
}

void lin_man_program(FILE *out, const lin_command *const *commands, const char *docs)
{
    doc_folder = docs;
    fputs(".TH LINNET 1 \"\" \"linnet " LINNET_VERSION "\" \"User Commands\"\n"
                                                    ".SH NAME\n"
                                                    "linnet \\- recognise phonemes and words in speech\n"
                                                    ".SH SYNOPSIS\n"
                                                    "\\fBlinnet\\fR \\fIFILE\\fR... [options]\n.br\n"
                                                    "\\fBlinnet\\fR \\fICOMMAND\\fR [arguments] [options]\n"
                                                    ".SH DESCRIPTION\n"
                                                    "linnet recognises phonemes and words in recorded or live speech with a "
                                                    "linear\\-attention transformer, while the speaker is still talking. It also "
                                                    "aligns texts with sound, trains models and scores results.\n"
                                                    ".SH COMMANDS\n"
                                                    "Each has its own manual page, and \\fB\\-\\-help\\fR.\n", out);
    for (; *commands; commands++) {
        if ((*commands)->hidden) continue;
        put(out, ".TP\n.BR linnet\\-", (*commands)->name, " (1)");
        put(out, "\n", (*commands)->summary, "\n");
    }
    put_end(out);
    put(out, ".SH SEE ALSO\nMore documentation is in ", doc_folder, ".\n");
}

/* ---- completion ------------------------------------------------------------------------------------------------------------ */

// Several between commas: what --help shows as NAME[,NAME]...
static int is_list(const lin_option *o) { return o->choices && o->value && strstr(o->value, "[,") != NULL; }

static void put_choices(FILE *out, const char *choices)
{
    for (; *choices; choices++) fputc(*choices == '|' ? ' ' : *choices, out);
}

// Text between single quotes; extra: characters that get a backslash in front (zsh's [ ] :).
static void put_quoted(FILE *out, const char *text, const char *extra)
{
    for (; *text; text++) {
        if (*text == '\'') fputs("'\\''", out);
        else fprintf(out, strchr(extra, *text) ? "\\%c" : "%c", *text);
    }
}

static void put_command_names(FILE *out, const lin_command *const *commands)
{
    for (; *commands; commands++) {
        if (!(*commands)->hidden) fprintf(out, "%s ", (*commands)->name);
    }
    fputs("help", out);
}

static void bash(FILE *out, const lin_command *const *commands)
{
    // bash takes --format=json apart at "=", unless COMP_WORDBREAKS lacks it.
    fputs("# bash completion for linnet\n"
          "_linnet_one_of()\n{\n"
          "    COMPREPLY=($(compgen -P \"$before\" -W \"$1\" -- \"$cur\"))\n}\n"
          "_linnet_some_of()\n{\n"
          "    local done= left= word\n"
          "    case $cur in *,*) done=${cur%,*}, ;; esac\n"
          "    for word in $1; do\n"
          "        case ,$done in *,$word,*) ;; *) left=\"$left $word\" ;; esac\n"
          "    done\n"
          "    COMPREPLY=($(compgen -P \"$before$done\" -W \"$left\" -- \"${cur#\"$done\"}\"))\n}\n"
          "_linnet()\n{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} options= before=\n"
          "    COMPREPLY=()\n"
          "    case $cur in\n"
          "    =) cur= ;;\n"
          "    --*=*) prev=${cur%%=*} before=$prev= cur=${cur#*=} ;;\n"
          "    *) [ \"$prev\" != = ] || [ \"$COMP_CWORD\" -lt 3 ] || prev=${COMP_WORDS[COMP_CWORD-2]} ;;\n"
          "    esac\n"
          "    local command=${COMP_WORDS[1]} commands='", out);
    put_command_names(out, commands);
    fputs("'\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W \"$commands --help --version\" -- \"$cur\") $(compgen -f -- \"$cur\"))\n"
          "        return\n    fi\n"
          "    case \" $commands \" in *\" $command \"*) ;; *) command=transcribe ;; esac\n" // linnet FILE...
          "    case $command in\n", out);
    fputs("    help) COMPREPLY=($(compgen -W '", out);
    put_command_names(out, commands);
    fputs("' -- \"$cur\")); return ;;\n", out);
    for (; *commands; commands++) {
        if ((*commands)->hidden) continue;
        fprintf(out, "    %s)\n        case $prev in\n", (*commands)->name);
        for (const lin_option *o = (*commands)->options; o->type != LIN_OPTION_END; o++) {
            if (!is_in(o, ALL) || o->type == LIN_OPTION_FLAG) continue;
            fprintf(out, "        --%s", o->name);
            if (o->letter) fprintf(out, "|-%c", o->letter);
            if (o->choices) {
                fprintf(out, ") _linnet_%s_of '", is_list(o) ? "some" : "one");
                put_choices(out, o->choices);
                fputs("'", out);
                if (o->type == LIN_OPTION_FILE) fputs("; COMPREPLY+=($(compgen -P \"$before\" -f -- \"$cur\"))", out);
                fputs("; return ;;\n", out);
            } else if (o->type == LIN_OPTION_FOLDER) {
                fputs(") COMPREPLY=($(compgen -P \"$before\" -d -- \"$cur\")); return ;;\n", out);
            } else if (o->type == LIN_OPTION_FILE || o->type == LIN_OPTION_FILES) {
                fputs(") COMPREPLY=($(compgen -P \"$before\" -f -- \"$cur\")); return ;;\n", out);
            } else {
                fputs(") return ;;\n", out);
            }
        }
        fprintf(out, "        *) ;;\n        esac\n        options='--help%s", (*commands)->brief ? " --help-all" : "");
        for (const lin_option *o = (*commands)->options; o->type != LIN_OPTION_END; o++) {
            if (is_in(o, ALL)) fprintf(out, " --%s", o->name);
        }
        fputs("' ;;\n", out);
    }
    fputs("    esac\n"
          "    case $cur in\n"
          "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")) ;;\n"
          "    *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
          "    esac\n}\ncomplete -o filenames -F _linnet linnet\n", out);
}

static void zsh_action(FILE *out, const lin_option *o)
{
    if (is_list(o)) {
        fputs("_values -s , ", out);
        put_quoted(out, o->name, ":\\");
        fputc(' ', out);
        put_choices(out, o->choices);
    } else if (o->choices && o->type == LIN_OPTION_FILE) {
        fputs("_alternative \"names\\:name\\:(", out);
        put_choices(out, o->choices);
        fputs(")\" \"files\\:file\\:_files\"", out);
    } else if (o->choices) {
        fputc('(', out);
        put_choices(out, o->choices);
        fputc(')', out);
    } else if (o->type == LIN_OPTION_FILE || o->type == LIN_OPTION_FILES) {
        fputs("_files", out);
    } else if (o->type == LIN_OPTION_FOLDER) {
        fputs("_files -/", out);
    }
}

// Each form of an option excludes the other, unless it may be repeated.
static void zsh_form(FILE *out, const lin_option *o, int is_letter)
{
    const int has_value = o->type != LIN_OPTION_FLAG;
    fputs("            '", out);
    if (o->type == LIN_OPTION_FILES) fputc('*', out);
    if (o->type != LIN_OPTION_FILES && o->letter) fprintf(out, "(-%c --%s)", o->letter, o->name);
    if (is_letter) fprintf(out, "-%c%s[", o->letter, has_value ? "+" : "");
    if (!is_letter) fprintf(out, "--%s%s[", o->name, has_value ? "=" : "");
    put_quoted(out, o->help, "[]:\\");
    fputc(']', out);
    if (has_value) {
        fputc(':', out);
        put_quoted(out, o->choices ? o->name : lin_option_value_name(o), ":\\");
        fputc(':', out);
        zsh_action(out, o);
    }
    fputs("' \\\n", out);
}

static void zsh(FILE *out, const lin_command *const *commands)
{
    fputs("#compdef linnet\n_linnet() {\n    local -a commands\n    commands=(\n", out);
    for (const lin_command *const *c = commands; *c; c++) {
        if ((*c)->hidden) continue;
        fprintf(out, "        '%s:", (*c)->name);
        put_quoted(out, (*c)->summary, ":\\");
        fputs("'\n", out);
    }
    fputs("    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        _files\n        return\n    fi\n"
          "    local command=${words[2]}\n"
          "    (( ${commands[(I)$command:*]} )) || [[ $command == help ]] || command=transcribe\n" // linnet FILE...
          "    shift words\n    (( CURRENT-- ))\n    case $command in\n", out);
    for (const lin_command *const *c = commands; *c; c++) {
        if ((*c)->hidden) continue;
        fprintf(out, "        %s)\n            _arguments -s -S \\\n", (*c)->name);
        for (const lin_option *o = (*c)->options; o->type != LIN_OPTION_END; o++) {
            if (is_in(o, ALL) && o->letter) zsh_form(out, o, 1);
            if (is_in(o, ALL)) zsh_form(out, o, 0);
        }
        if ((*c)->brief) fputs("            '--help-all[help with the options for experts]' \\\n", out);
        fputs("            '--help[short help]' '*:file:_files'\n            ;;\n", out);
    }
    fputs("        help) _describe command commands ;;\n    esac\n}\n_linnet \"$@\"\n", out);
}

static void put_description(FILE *out, const char *text)
{
    fputs(" -d '", out);
    for (; *text; text++) fprintf(out, *text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
    fputs("'\n", out);
}

static void fish(FILE *out, const lin_command *const *commands)
{
    fputs("# fish completion for linnet\n", out);
    for (const lin_command *const *c = commands; *c; c++) {
        if ((*c)->hidden) continue;
        fprintf(out, "complete -c linnet -n __fish_use_subcommand -a %s", (*c)->name);
        put_description(out, (*c)->summary);
        if ((*c)->brief) fprintf(out, "complete -c linnet -n '__fish_seen_subcommand_from %s' -l help-all\n", (*c)->name);
        for (const lin_option *o = (*c)->options; o->type != LIN_OPTION_END; o++) {
            if (!is_in(o, ALL)) continue;
            fprintf(out, "complete -c linnet -n '__fish_seen_subcommand_from %s' -l %s", (*c)->name, o->name);
            if (o->letter) fprintf(out, " -s %c", o->letter);
            if (is_list(o)) {
                fputs(" -x -a '(__fish_complete_list , \"string split , ", out);
                for (const char *s = o->choices; *s; s++) fputc(*s == '|' ? ',' : *s, out);
                fputs("\")'", out);
            } else if (o->choices) {
                fprintf(out, " %s -a '", o->type == LIN_OPTION_FILE ? "-r -F" : "-x");
                put_choices(out, o->choices);
                fputc('\'', out);
            } else if (o->type == LIN_OPTION_FOLDER) {
                fputs(" -x -a '(__fish_complete_directories)'", out);
            } else if (o->type == LIN_OPTION_FILE || o->type == LIN_OPTION_FILES) {
                fputs(" -r", out);
            } else if (o->type != LIN_OPTION_FLAG) {
                fputs(" -x", out);
            }
            put_description(out, o->help);
        }
    }
}

lin_status lin_completion(FILE *out, const lin_command *const *commands, const char *shell, lin_error *err)
{
    if (strcmp(shell, "bash") == 0) bash(out, commands);
    else if (strcmp(shell, "zsh") == 0) zsh(out, commands);
    else if (strcmp(shell, "fish") == 0) fish(out, commands);
    else return lin_fail(err, LIN_INVALID, "there is no completion for '%.40s', only for bash, zsh and fish", shell);
    return LIN_OK;
}

/* ---- commands -------------------------------------------------------------------------------------------------------------- */

// What `make install` puts beside the program.
typedef struct man_values {
    const char *output_dir, *doc_dir;
} man_values;

static const lin_option man_options[] = {
    {.name = "output-dir", .type = LIN_OPTION_FOLDER, .writes = 1, .at = offsetof(man_values, output_dir),
     .help = "Write the pages of the program and of all commands there: linnet.1, linnet-align.1, ..."},
    {.name = "doc-dir", .type = LIN_OPTION_FOLDER, .at = offsetof(man_values, doc_dir),
     .help = "Folder of the documentation to print in the pages; if not given, the present one"},
    {.type = LIN_OPTION_END},
};

// The page of one command; NULL: of the program.
static int write_page(const man_values *v, const lin_command *command, const char *docs)
{
    char path[4096];
    lin_error err = {0};
    lin_output out;
    const int n = snprintf(path, sizeof path, "%s/linnet%s%s.1", v->output_dir, command ? "-" : "", command ? command->name : "");
    if (n < 0 || (size_t)n >= sizeof path) lin_fail(&err, LIN_INVALID, "the name %.200s... is too long", v->output_dir);
    if (err.status != LIN_OK || lin_output_open(path, 0, &out, &err) != LIN_OK) return lin_give_up(&err);
    if (command) lin_man_command(out.file, command, docs);
    else lin_man_program(out.file, lin_commands, docs);
    return lin_output_close(&out, &err) == LIN_OK ? LIN_EXIT_OK : lin_give_up(&err);
}

static int run_man(lin_parsed *parsed)
{
    const man_values *v = parsed->values;
    const char *docs = v->doc_dir ? v->doc_dir : lin_doc_folder();
    const lin_command *command = NULL;
    for (int i = 0; parsed->operands.count && lin_commands[i]; i++) {
        if (!strcmp(lin_commands[i]->name, parsed->operands.items[0])) command = lin_commands[i];
    }
    if (parsed->operands.count && !command) return lin_misuse(parsed, "there is no command '%.60s'", parsed->operands.items[0]);
    if (v->output_dir && command) return lin_misuse(parsed, "--output-dir is for the pages of all commands");
    if (!v->output_dir && command) lin_man_command(stdout, command, docs);
    if (!v->output_dir && !command) lin_man_program(stdout, lin_commands, docs);
    int status = v->output_dir ? write_page(v, NULL, docs) : LIN_EXIT_OK;
    for (int i = 0; v->output_dir && lin_commands[i] && status == LIN_EXIT_OK; i++) {
        if (!lin_commands[i]->hidden) status = write_page(v, lin_commands[i], docs);
    }
    return status;
}

const lin_command lin_command_man = {
    .name = "man",
    .operands = "[COMMAND]",
    .summary = "print the manual page of the program or of one command",
    .description = "Prints the manual page of the program, or of one command, as roff: 'linnet man align | man -l -'. make "
                   "install writes all of them.",
    .options = man_options,
    .values_size = sizeof(man_values),
    .max_operands = 1,
    .hidden = 1,
    .run = run_man,
};

static const lin_option no_options[] = {{.type = LIN_OPTION_END}};

static int run_completion(lin_parsed *parsed)
{
    lin_error err = {0};
    if (lin_completion(stdout, lin_commands, parsed->operands.items[0], &err) != LIN_OK)
        return lin_misuse(parsed, "%s", err.message);
    return LIN_EXIT_OK;
}

const lin_command lin_command_completion = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "print a script that lets a shell complete commands and options",
    .examples = "  linnet completion bash > ~/.local/share/bash-completion/completions/linnet",
    .options = no_options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_completion,
};
