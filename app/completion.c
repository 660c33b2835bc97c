// completion.c - completion scripts for bash, zsh and fish, from the option tables.

#include <string.h>

#include "app/options.h"

static int is_shown(const lin_option *o)
{
    return o->type != LIN_OPTION_HEADING;
}

static void put_choices(FILE *out, const char *choices)
{
    for (; *choices; choices++) fputc(*choices == '|' ? ' ' : *choices, out);
}

// Text between single quotes; extra: characters that get a backslash in front (zsh's [ ] :).
static void put_quoted(FILE *out, const char *text, const char *extra)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs("'\\''", out);
        } else {
            if (strchr(extra, *text)) fputc('\\', out);
            fputc(*text, out);
        }
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
    fputs("# bash completion for linnet\n"
          "_linnet()\n{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} options=\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W '", out);
    put_command_names(out, commands);
    fputs(" --help --version' -- \"$cur\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n", out);
    fputs("    help) COMPREPLY=($(compgen -W '", out);
    put_command_names(out, commands);
    fputs("' -- \"$cur\")); return ;;\n", out);
    for (; *commands; commands++) {
        if ((*commands)->hidden) continue;
        fprintf(out, "    %s)\n        case $prev in\n", (*commands)->name);
        for (const lin_option *o = (*commands)->options; o->type != LIN_OPTION_END; o++) {
            if (!is_shown(o) || o->type == LIN_OPTION_FLAG) continue;
            fprintf(out, "        --%s", o->name);
            if (o->letter) fprintf(out, "|-%c", o->letter);
            if (o->choices) {
                fputs(") COMPREPLY=($(compgen -W '", out);
                put_choices(out, o->choices);
                fputs("' -- \"$cur\")); return ;;\n", out);
            } else if (o->type == LIN_OPTION_FOLDER) {
                fputs(") COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n", out);
            } else if (o->type == LIN_OPTION_FILE || o->type == LIN_OPTION_FILES) {
                fputs(") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", out);
            } else {
                fputs(") return ;;\n", out);
            }
        }
        fputs("        *) ;;\n        esac\n        options='--help", out);
        for (const lin_option *o = (*commands)->options; o->type != LIN_OPTION_END; o++) {
            if (is_shown(o)) fprintf(out, " --%s", o->name);
        }
        fputs("' ;;\n", out);
    }
    fputs("    esac\n"
          "    case $cur in\n"
          "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")) ;;\n"
          "    *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
          "    esac\n}\ncomplete -o filenames -F _linnet linnet\n", out);
}

static void zsh_option(FILE *out, const lin_option *o)
{
    fputs("            '", out);
    if (o->type == LIN_OPTION_FILES) fputc('*', out);
    fprintf(out, "--%s%s[", o->name, o->type == LIN_OPTION_FLAG ? "" : "=");
    put_quoted(out, o->help, "[]:\\");
    fputc(']', out);
    if (o->type != LIN_OPTION_FLAG) {
        fputc(':', out);
        put_quoted(out, o->choices ? o->name : lin_option_value_name(o), ":\\");
        fputc(':', out);
        if (o->choices) {
            fputc('(', out);
            put_choices(out, o->choices);
            fputc(')', out);
        } else if (o->type == LIN_OPTION_FILE || o->type == LIN_OPTION_FILES) {
            fputs("_files", out);
        } else if (o->type == LIN_OPTION_FOLDER) {
            fputs("_files -/", out);
        }
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
    fputs("    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        return\n    fi\n"
          "    local command=${words[2]}\n    shift words\n    (( CURRENT-- ))\n    case $command in\n", out);
    for (const lin_command *const *c = commands; *c; c++) {
        if ((*c)->hidden) continue;
        fprintf(out, "        %s)\n            _arguments -s -S \\\n", (*c)->name);
        for (const lin_option *o = (*c)->options; o->type != LIN_OPTION_END; o++) {
            if (is_shown(o)) zsh_option(out, o);
        }
        fputs("            '--help[short help]' '*:file:_files'\n            ;;\n", out);
    }
    fputs("        help) _describe command commands ;;\n    esac\n}\n_linnet \"$@\"\n", out);
}

static void fish(FILE *out, const lin_command *const *commands)
{
    fputs("# fish completion for linnet\n", out);
    for (const lin_command *const *c = commands; *c; c++) {
        if ((*c)->hidden) continue;
        fprintf(out, "complete -c linnet -n __fish_use_subcommand -f -a %s -d '", (*c)->name);
        for (const char *s = (*c)->summary; *s; s++) fprintf(out, *s == '\'' ? "\\'" : "%c", *s);
        fputs("'\n", out);
        for (const lin_option *o = (*c)->options; o->type != LIN_OPTION_END; o++) {
            if (!is_shown(o)) continue;
            fprintf(out, "complete -c linnet -n '__fish_seen_subcommand_from %s' -l %s", (*c)->name, o->name);
            if (o->letter) fprintf(out, " -s %c", o->letter);
            if (o->choices) {
                fputs(" -x -a '", out);
                put_choices(out, o->choices);
                fputc('\'', out);
            } else if (o->type == LIN_OPTION_FOLDER) {
                fputs(" -x -a '(__fish_complete_directories)'", out);
            } else if (o->type == LIN_OPTION_FILE || o->type == LIN_OPTION_FILES) {
                fputs(" -r", out);
            } else if (o->type != LIN_OPTION_FLAG) {
                fputs(" -x", out);
            }
            fputs(" -d '", out);
            for (const char *s = o->help; *s; s++) {
                if (*s == '\'' || *s == '\\') fputc('\\', out);
                fputc(*s, out);
            }
            fputs("'\n", out);
        }
    }
}

lin_status lin_completion(FILE *out, const lin_command *const *commands, const char *shell, lin_error *err)
{
    if (strcmp(shell, "bash") == 0) {
        bash(out, commands);
    } else if (strcmp(shell, "zsh") == 0) {
        zsh(out, commands);
    } else if (strcmp(shell, "fish") == 0) {
        fish(out, commands);
    } else {
        return lin_fail(err, LIN_INVALID, "no completion for '%.40s'; there is one for bash, zsh and fish", shell);
    }
    return LIN_OK;
}
