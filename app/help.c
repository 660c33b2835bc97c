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

// The help of an option and its default; released with lin_free.
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

// The same for SETTINGS, with the names that they set.
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

// Whether the option belongs to a text with PLAIN, EXPERT or ALL options.
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
    if (command->conf_operand) fprintf(out, "\nEvery option may be given in CONF as 'name = value'.\n");
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

static const char *doc_folder; // of the page being written; one thread

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

// The same, between two pieces of roff.
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

static void man_program(FILE *out, const char *docs)
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
    for (const lin_command *const *c = lin_commands; *c; c++) {
        if ((*c)->hidden) continue;
        put(out, ".TP\n.BR linnet\\-", (*c)->name, " (1)");
        put(out, "\n", (*c)->summary, "\n");
    }
    put_end(out);
    put(out, ".SH SEE ALSO\nMore documentation is in ", doc_folder, ".\n");
}

/* ---- completion ------------------------------------------------------------------------------------------------------------ */

// The word to complete: `kept` bytes of it stay before each candidate.
typedef struct partial {
    const char *word;
    int kept;
} partial;

// Prints a candidate of n bytes and its description if it begins with the word.
static void offer(FILE *out, const partial *p, const char *text, size_t n, const char *about)
{
    const char *like = p->word + p->kept;
    if (strlen(like) <= n && strncmp(text, like, strlen(like)) == 0)
        fprintf(out, "%.*s%.*s\t%s\n", p->kept, p->word, (int)n, text, about);
}

static void offer_commands(FILE *out, const partial *p, const lin_command *const *commands)
{
    for (; *commands; commands++)
        if (!(*commands)->hidden) offer(out, p, (*commands)->name, strlen((*commands)->name), (*commands)->summary);
    offer(out, p, "help", 4, "describe a command");
}

// Whether a name of n bytes is in a list [n_list] whose names each end with a comma.
static int is_listed(const char *list, size_t n_list, const char *name, size_t n)
{
    for (size_t at = 0; at < n_list; at += strcspn(list + at, ",") + 1)
        if (strcspn(list + at, ",") == n && memcmp(list + at, name, n) == 0) return 1;
    return 0;
}

// In a list (--help shows NAME[,NAME]...) the last value is completed by those that are not in the list yet.
static void offer_values(FILE *out, partial p, const lin_option *o)
{
    const char *list = p.word + p.kept, *comma = o->value && strstr(o->value, "[,") ? strrchr(list, ',') : NULL;
    const size_t n_list = comma ? (size_t)(comma - list) + 1 : 0;
    p.kept += (int)n_list;
    for (const char *c = o->choices; c && *c; c += strcspn(c, "|"), c += *c == '|')
        if (!is_listed(list, n_list, c, strcspn(c, "|"))) offer(out, &p, c, strcspn(c, "|"), "");
    if (o->type == LIN_OPTION_FILE || o->type == LIN_OPTION_FILES) fputs(":files\n", out);
    if (o->type == LIN_OPTION_FOLDER) fputs(":folders\n", out);
}

// The option that "--name", "--name=..." or "-n" gives a value to, or NULL.
static const lin_option *with_value(const lin_command *command, const char *word)
{
    const int is_long = strncmp(word, "--", 2) == 0;
    for (const lin_option *o = command->options; *word == '-' && o->type != LIN_OPTION_END; o++) {
        if (!is_in(o, ALL) || o->type == LIN_OPTION_FLAG) continue;
        const size_t n = strlen(o->name);
        const int is_named = is_long && strncmp(word + 2, o->name, n) == 0 && (word[2 + n] == '=' || !word[2 + n]);
        if (is_named || (!is_long && word[1] == o->letter && !word[2])) return o;
    }
    return NULL;
}

static void offer_options(FILE *out, const partial *p, const lin_command *command)
{
    partial name = {p->word, 2};
    if (p->word[1] != '-') name = (partial){"--", 2};
    if (p->word[1] && p->word[1] != '-') { // -f stays what it is
        for (const lin_option *o = command->options; o->type != LIN_OPTION_END; o++)
            if (is_in(o, ALL) && o->letter == p->word[1]) offer(out, p, (char[]){'-', o->letter}, 2, o->help);
        return;
    }
    offer(out, &name, "help", 4, "short help");
    if (command->brief) offer(out, &name, "help-all", 8, "help with the options for experts");
    for (const lin_option *o = command->options; o->type != LIN_OPTION_END; o++)
        if (is_in(o, ALL)) offer(out, &name, o->name, strlen(o->name), o->help);
}

// "write|learn|score TEXT": the first operand is one of these words.
static void offer_verbs(FILE *out, const partial *p, const char *operands)
{
    for (size_t n; islower((unsigned char)*operands); operands += n + (operands[n] == '|')) {
        n = strcspn(operands, "| ");
        offer(out, p, operands, n, "");
    }
}

// The completions of the last of the words after "linnet": one per line, its description after a tab; or ":files", ":folders".
static void complete(FILE *out, const lin_command *const *commands, const char *const *words, int n)
{
    partial p = {words[n - 1], 0};
    const char *equals = strncmp(p.word, "--", 2) == 0 ? strchr(p.word, '=') : NULL, *before = n > 1 ? words[n - 2] : "";
    const lin_command *command = NULL;
    for (const lin_command *const *c = commands; *c; c++)
        if (strcmp((*c)->name, words[0]) == 0 || (!command && strcmp((*c)->name, "transcribe") == 0)) command = *c; // linnet FILE
    if (n == 1 || strcmp(words[0], "help") == 0 || (n == 2 && strcmp(words[0], "man") == 0 && *p.word != '-')) {
        offer_commands(out, &p, commands);
        if (n > 1) return;
        offer(out, &p, "--help", 6, "list the commands");
        offer(out, &p, "--version", 9, "print the version");
    }
    // bash splits --format=json at "=", unless COMP_WORDBREAKS lacks it
    if (n > 1 && strcmp(p.word, "=") == 0) p.word = "";
    else if (n > 2 && strcmp(before, "=") == 0) before = words[n - 3];
    else if (equals) before = p.word, p.kept = (int)(equals + 1 - p.word);
    const lin_option *option = n > 1 ? with_value(command, before) : NULL;
    if (option) offer_values(out, p, option);
    else if (n > 1 && *p.word == '-') offer_options(out, &p, command);
    else if (n == 2 && islower((unsigned char)*command->operands)) offer_verbs(out, &p, command->operands);
    else fputs(":files\n", out);
}

// Each script asks the program, which prints candidates, with descriptions after a tab, or :files, or :folders.
static const struct {
    const char *shell, *text;
} scripts[] = {
    {"bash", "# bash completion for linnet\n"
             "_linnet()\n{\n"
             "    local IFS=$'\\n' word about cur=${COMP_WORDS[COMP_CWORD]} before=\n"
             "    case $cur in\n"
             "    =) cur= ;;\n"
             "    --*=*) before=${cur%%=*}= ;;\n"
             "    esac\n"
             "    COMPREPLY=()\n"
             "    while IFS=$'\\t' read -r word about; do\n"
             "        case $word in\n"
             "        :files) COMPREPLY+=($(compgen -P \"$before\" -f -- \"${cur#\"$before\"}\")) ;;\n"
             "        :folders) COMPREPLY+=($(compgen -P \"$before\" -d -- \"${cur#\"$before\"}\")) ;;\n"
             "        *) COMPREPLY+=(\"$word\") ;;\n"
             "        esac\n"
             "    done < <(\"${COMP_WORDS[0]}\" completion words -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2> /dev/null)\n"
             "}\n"
             "complete -o filenames -F _linnet linnet\n"},
    {"zsh", "#compdef linnet\n"
            "_linnet() {\n"
            "    local word about files\n"
            "    local -a list\n"
            "    \"${words[1]}\" completion words -- \"${(@Q)words[2,CURRENT-1]}\" \"${(Q)PREFIX}\" 2> /dev/null |\n"
            "        while IFS=$'\\t' read -r word about; do\n"
            "            case $word in\n"
            "            (:*) files=$word ;;\n"
            "            (*) list+=(\"$word${about:+:$about}\") ;;\n"
            "            esac\n"
            "        done\n"
            "    (( $#list )) && _describe -V linnet list\n"
            "    [[ -z $files ]] || compset -P '--*=' || :\n"
            "    case $files in\n"
            "    (:files) _files ;;\n"
            "    (:folders) _files -/ ;;\n"
            "    esac\n"
            "}\n"
            "_linnet \"$@\"\n"},
    {"fish", "# fish completion for linnet\n"
             "function __linnet_complete\n"
             "    set -l words (commandline -opc)\n"
             "    set -l word (commandline -ct)\n"
             "    set -l before (string match -r -- '^--[^=]*=' $word)\n"
             "    set -l name (string replace -- \"$before\" '' $word)\n"
             "    for line in (command $words[1] completion words -- $words[2..-1] $word 2> /dev/null)\n"
             "        switch $line\n"
             "            case :files\n"
             "                string replace -r -- '^' \"$before\" (__fish_complete_path $name)\n"
             "            case :folders\n"
             "                string replace -r -- '^' \"$before\" (__fish_complete_directories $name)\n"
             "            case '*'\n"
             "                echo $line\n"
             "        end\n"
             "    end\n"
             "end\n"
             "complete -c linnet -f -k -a '(__linnet_complete)'\n"},
};

lin_status lin_completion(FILE *out, const char *shell, lin_error *err)
{
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        if (strcmp(scripts[i].shell, shell) != 0) continue;
        fputs(scripts[i].text, out);
        return LIN_OK;
    }
    return lin_fail(err, LIN_INVALID, "there is no completion for '%.40s', only for bash, zsh and fish", shell);
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
    else man_program(out.file, docs);
    return lin_output_end(&out, LIN_OK, &err) == LIN_OK ? LIN_EXIT_OK : lin_give_up(&err);
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
    if (!v->output_dir && !command) man_program(stdout, docs);
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
    const lin_list *o = &parsed->operands;
    lin_error err = {0};
    if (o->count > 1 && strcmp(o->items[0], "words") == 0) complete(stdout, lin_commands, o->items + 1, o->count - 1);
    else if (o->count > 1) return lin_misuse(parsed, "unexpected argument '%.200s'", o->items[1]);
    else if (lin_completion(stdout, o->items[0], &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    return LIN_EXIT_OK;
}

const lin_command lin_command_completion = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "print a script that lets a shell complete commands and options",
    .description = "Prints the script. With 'words -- WORD...' it prints completions of the last word; the script calls it so.",
    .examples = "  linnet completion bash > ~/.local/share/bash-completion/completions/linnet",
    .options = no_options,
    .min_operands = 1,
    .max_operands = -1,
    .run = run_completion,
};
