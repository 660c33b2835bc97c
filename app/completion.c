// completion.c - completion scripts for bash, zsh and fish, from the option tables.

#include <string.h>

#include "app/options.h"

static int is_shown(const lin_option *o)
{
    return o->type != LIN_OPTION_HEADING && !o->under;
}

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
                fprintf(out, ") _linnet_%s_of '", is_list(o) ? "some" : "one");
                put_choices(out, o->choices);
                fputs("'; return ;;\n", out);
            } else if (o->type == LIN_OPTION_FOLDER) {
                fputs(") COMPREPLY=($(compgen -P \"$before\" -d -- \"$cur\")); return ;;\n", out);
            } else if (o->type == LIN_OPTION_FILE || o->type == LIN_OPTION_FILES) {
                fputs(") COMPREPLY=($(compgen -P \"$before\" -f -- \"$cur\")); return ;;\n", out);
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

static void zsh_action(FILE *out, const lin_option *o)
{
    if (is_list(o)) {
        fputs("_values -s , ", out);
        put_quoted(out, o->name, ":\\");
        fputc(' ', out);
        put_choices(out, o->choices);
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

static void zsh_option(FILE *out, const lin_option *o)
{
    if (o->letter) zsh_form(out, o, 1);
    zsh_form(out, o, 0);
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
            if (is_list(o)) {
                fputs(" -x -a '(__fish_complete_list , \"string split , ", out);
                for (const char *s = o->choices; *s; s++) fputc(*s == '|' ? ',' : *s, out);
                fputs("\")'", out);
            } else if (o->choices) {
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
        return lin_fail(err, LIN_INVALID, "there is no completion for '%.40s', only for bash, zsh and fish", shell);
    }
    return LIN_OK;
}
