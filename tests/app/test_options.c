// Option tables: the command line, the configuration file, and the texts generated from the tables.

#include <string.h>

#include "app/common.h"
#include "app/options.h"
#include "base/memory.h"
#include "tests/support.h"

typedef struct values {
    int flag, on, whole, choice;
    double number;
    const char *text, *file;
    lin_list files;
    lin_numbers numbers, few;
    double wide;
    int deep;
} values;

static const lin_option options[] = {
    {.type = LIN_OPTION_HEADING, .help = "All types"},
    {.name = "flag", .letter = 'f', .type = LIN_OPTION_FLAG, .at = offsetof(values, flag), .help = "A flag"},
    {.name = "on", .letter = 'n', .type = LIN_OPTION_FLAG, .at = offsetof(values, on), .text = "yes",
     .help = "On unless switched off"},
    {.name = "whole", .letter = 'w', .type = LIN_OPTION_INT, .at = offsetof(values, whole), .text = "3", .min = -10, .max = 1000,
     .help = "A number"},
    {.name = "choice", .type = LIN_OPTION_CHOICE, .at = offsetof(values, choice), .text = "two", .choices = "one|two|three",
     .help = "One"},
    {.name = "number", .type = LIN_OPTION_DOUBLE, .at = offsetof(values, number), .text = "0.5", .min = 0,
     .max = 1e9, .help = "Real"},
    {.name = "text", .letter = 't', .type = LIN_OPTION_STRING, .at = offsetof(values, text),
     .help = "It's \"a\" -text [x]: .dot"},
    {.name = "a-file", .letter = 'o', .type = LIN_OPTION_FILE, .required = 1, .at = offsetof(values, file), .help = "A file"},
    {.name = "files", .type = LIN_OPTION_FILES, .at = offsetof(values, files), .help = "Some files"},
    {.name = "numbers", .type = LIN_OPTION_NUMBERS, .at = offsetof(values, numbers), .text = "1", .min = 0.5, .max = 2,
     .help = "List"},
    {.name = "set", .type = LIN_OPTION_SETTINGS, .help = "Values"},
    {.name = "wide", .under = "set", .type = LIN_OPTION_DOUBLE, .at = offsetof(values, wide), .text = "4", .min = -9, .max = 9,
     .help = "Real"},
    {.name = "deep", .under = "set", .type = LIN_OPTION_FLAG, .at = offsetof(values, deep), .help = "A flag"},
    {.name = "few", .under = "set", .type = LIN_OPTION_NUMBERS, .at = offsetof(values, few), .min = -9, .max = 9, .help = "List"},
    {.type = LIN_OPTION_END},
};

static const lin_command command = {
    .name = "try", .operands = "FILE", .summary = "a command", .description = "First.\n\n.second", .examples = "  linnet try x",
    .options = options, .values_size = sizeof(values), .min_operands = 1, .max_operands = 2,
};

static values v;
static lin_parsed p;

// Words separated by spaces.
static lin_status parse(const char *line, lin_error *err)
{
    static char words[1024];
    char *argv[64];
    int argc = 0;
    snprintf(words, sizeof words, "%s", line);
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " ")) argv[argc++] = w;
    lin_options_free(&p);
    lin_status status = lin_options_begin(&command, &v, &p, err);
    if (status == LIN_OK) status = lin_options_command_line(&p, argc, argv, err);
    if (status != LIN_OK) lin_options_free(&p);
    return status;
}

static lin_status conf(const char *text, lin_error *err)
{
    lin_status status = parse("", err);
    if (status == LIN_OK) status = lin_options_conf(&p, text, strlen(text), "x.conf", err);
    if (status != LIN_OK) lin_options_free(&p);
    return status;
}

static void teardown(void)
{
    lin_options_free(&p);
    ck_assert_uint_eq(lin_memory_live(), 0);
}

START_TEST(defaults)
{
    OK(parse("", &err));
    ck_assert_int_eq(v.flag, 0);
    ck_assert_int_eq(v.on, 1);
    ck_assert_int_eq(v.whole, 3);
    ck_assert_int_eq(v.choice, 1);
    ck_assert_double_eq(v.number, 0.5);
    ck_assert_ptr_null(v.text);
    ck_assert_int_eq(v.numbers.count, 1);
}
END_TEST

START_TEST(all_forms)
{
    OK(parse("-f --no-on --whole=-7 a --choice three --number 1e-3 -tx -o y.npy --files p --files=q - --numbers 0.9,1,1.1",
             &err));
    ck_assert_int_eq(v.flag, 1);
    ck_assert_int_eq(v.on, 0);
    ck_assert_int_eq(v.whole, -7);
    ck_assert_int_eq(v.choice, 2);
    ck_assert_double_eq(v.number, 1e-3);
    ck_assert_str_eq(v.text, "x");
    ck_assert_str_eq(v.file, "y.npy");
    ck_assert_int_eq(v.files.count, 2);
    ck_assert_str_eq(v.files.items[1], "q");
    ck_assert_int_eq(p.operands.count, 2);
    ck_assert_str_eq(p.operands.items[1], "-");
    ck_assert_int_eq(v.numbers.count, 3);
    ck_assert_double_eq(v.numbers.items[2], 1.1);
    OK(lin_options_finish(&p, &err));
    OK(parse("-fn -w5 -- --flag", &err));
    ck_assert_int_eq(v.whole, 5);
    ck_assert_str_eq(p.operands.items[0], "--flag");
    OK(parse("--on=off --flag=yes", &err));
    ck_assert(v.flag && !v.on);
}
END_TEST

static const struct {
    const char *line, *message;
} wrong[] = {
    {"--set wide", "--set wide needs a value: wide=X"},
    {"--set wid=3", "--set has no 'wid', perhaps wide; --set help lists its names"},
    {"--set whole=3", "--set has no 'whole': it is an option, --whole"},
    {"--set wide=3,", "--set has no ''"},
    {"--set deep,wide=3,no-deep", "--set deep is given twice"},
    {"--set wide=10", "--set wide must be between -9 and 9, not 10"},
    {"--set deep=maybe", "--set deep needs yes or no, not 'maybe'"},
    {"--set", "--set needs a value (NAME=VALUE,...)"},
    {"--whoel 3", "unknown option --whoel; did you mean --whole?"},
    {"--xyzzy", "unknown option --xyzzy"},
    {"-z", "unknown option -z"},
    {"--whole", "--whole needs a value (N)"},
    {"--whole x", "--whole needs a whole number, not 'x'"},
    {"--whole 1.5", "--whole needs a whole number, not '1.5'"},
    {"--whole 1001", "--whole must be between -10 and 1000, not 1001"},
    {"--whole 99999999999999999999", "--whole must be between"},
    {"--number nan", "--number needs a number, not 'nan'"},
    {"--number -0.1", "--number must be between 0 and 1000000000"},
    {"--choice four", "--choice must be one of one|two|three, not 'four'"},
    {"--choice on", "--choice must be one of"},
    {"--flag=maybe", "--flag needs yes or no, not 'maybe'"},
    {"--no-flag=yes", "--no-flag takes no value"},
    {"--no-whole", "unknown option --no-whole"},
    {"--a-file=", "--a-file needs a name"},
    {"--numbers 1,,2", "--numbers needs a number, not ''"},
    {"--numbers 1,3", "--numbers must be between 0.5 and 2, not 3"},
};

START_TEST(mistakes)
{
    FAILS(parse(wrong[_i].line, &err), LIN_INVALID, wrong[_i].message);
}
END_TEST

START_TEST(completeness)
{
    OK(parse("x", &err));
    FAILS(lin_options_finish(&p, &err), LIN_INVALID, "--a-file FILE is missing");
    OK(parse("-o y", &err));
    FAILS(lin_options_finish(&p, &err), LIN_INVALID, "FILE is missing");
    OK(parse("-o y 1 2 3", &err));
    FAILS(lin_options_finish(&p, &err), LIN_INVALID, "unexpected argument '3'");
    OK(parse("--bogus --help", &err));
    ck_assert_int_eq(p.help, LIN_HELP_TEXT);
}
END_TEST

START_TEST(conf_values)
{
    OK(conf("\xef\xbb\xbf# comment\n\nwhole = 17\r\n  a_file\t=\ta b#c # not this\ntext = \"x # \\\" \\\\\"  # c\n"
            "files = 1\nfiles = 2\nflag = yes\nnumbers = 0.9,1.1", &err));
    ck_assert_int_eq(v.whole, 17);
    ck_assert_str_eq(v.file, "a b#c");
    ck_assert_str_eq(v.text, "x # \" \\");
    ck_assert_int_eq(v.files.count, 2);
    ck_assert_int_eq(v.flag, 1);
    ck_assert_int_eq(v.numbers.count, 2);
}
END_TEST

START_TEST(conf_and_command_line)
{
    static const char text[] = "whole = 5\nfiles = a\nfiles = b\nnumber = 0.25\n";
    OK(parse("--whole 7 --files z", &err));
    OK(lin_options_conf(&p, text, strlen(text), "x.conf", &err));
    ck_assert_int_eq(v.whole, 7);
    ck_assert_int_eq(v.files.count, 1);
    ck_assert_str_eq(v.files.items[0], "z");
    ck_assert_double_eq(v.number, 0.25);
}
END_TEST

static const struct {
    const char *text, *message;
    lin_status status;
} wrong_conf[] = {
    {"whole = 1\nwhole 2\n", "x.conf:2: expected 'name = value', found 'whole 2'", LIN_FORMAT},
    {"= 2\n", "x.conf:1: expected 'name = value'", LIN_FORMAT},
    {"\n\nwhoel = 2\n", "x.conf:3: unknown name 'whoel'; did you mean whole?", LIN_INVALID},
    {"qqqqqq = 2\n", "x.conf:1: unknown name 'qqqqqq'", LIN_INVALID},
    {"whole = x\n", "x.conf:1: whole needs a whole number, not 'x'", LIN_INVALID},
    {"whole =\n", "x.conf:1: whole: no value after '='", LIN_FORMAT},
    {"whole = # 3\n", "x.conf:1: whole: no value after '='", LIN_FORMAT},
    {"text = \"abc\n", "x.conf:1: text: a quoted value has no closing quote", LIN_FORMAT},
    {"text = \"abc\" d\n", "x.conf:1: text: there is text after the closing quote", LIN_FORMAT},
    {"flag = perhaps\n", "x.conf:1: flag needs yes or no", LIN_INVALID},
    {"whole = 3\nte\001xt = 4\n", "x.conf:2: control character 0x01 in column 3", LIN_FORMAT},
    {"--whole = 3\n", "x.conf:1: unknown name '--whole'", LIN_INVALID},
    {"whole = 3\n# x\nwhole = 3\n", "x.conf:3: whole is given in line 1 already; remove one of the two", LIN_INVALID},
    {"a_file = x\na-file = y\n", "x.conf:2: a-file is given in line 1 already", LIN_INVALID},
    {"wide = 3\nset = deep,wide=4\n", "x.conf:2: --set wide is given in line 1 already", LIN_INVALID},
};

START_TEST(conf_mistakes)
{
    FAILS(conf(wrong_conf[_i].text, &err), wrong_conf[_i].status, wrong_conf[_i].message);
}
END_TEST

START_TEST(conf_limits)
{
    static char long_line[20000];
    memset(long_line, 'a', sizeof long_line - 1);
    memcpy(long_line, "text = ", 7);
    FAILS(conf(long_line, &err), LIN_FORMAT, "x.conf:1: a line of more than");
    long_line[5000] = 0;
    FAILS(conf(long_line, &err), LIN_FORMAT, "a value of more than");
    OK(parse("", &err));
    FAILS(lin_options_conf_file(&p, "/nonexistent/x.conf", &err), LIN_IO,
          "cannot open /nonexistent/x.conf: No such file or directory");
    FAILS(lin_options_conf_file(&p, "/", &err), LIN_IO, "");
    FAILS(lin_options_conf(&p, "a\0b", 3, "x.conf", &err), LIN_FORMAT, "");
}
END_TEST

START_TEST(text_reads_back)
{
    char *text, *again;
    OK(parse("-f -t a\"b\\# --number 0.1 --files x --files y -o z --numbers 0.7,0.9 --choice one", &err));
    OK(lin_options_text(&p, LIN_FROM_DEFAULT, &text, &err));
    OK(conf(text, &err));
    ck_assert_str_eq(v.text, "a\"b\\#");
    ck_assert_double_eq(v.number, 0.1);
    OK(lin_options_text(&p, LIN_FROM_DEFAULT, &again, &err));
    ck_assert_str_eq(text, again);
    lin_free(text);
    lin_free(again);
}
END_TEST

static lin_status parsed_and_written(void)
{
    char *argv[] = {"--files", "a", "--files", "b", "--files", "c", "-t", "x", "operand", "--numbers", "1,2"};
    static const char text[] = "files = q\na-file = z\n";
    lin_error err;
    char *out = NULL;
    lin_parsed q;
    values w;
    lin_status status = lin_options_begin(&command, &w, &q, &err);
    if (status == LIN_OK) status = lin_options_command_line(&q, 11, argv, &err);
    if (status == LIN_OK) status = lin_options_conf(&q, text, strlen(text), "x.conf", &err);
    if (status == LIN_OK) status = lin_options_text(&q, LIN_FROM_DEFAULT, &out, &err);
    lin_free(out);
    lin_options_free(&q);
    return status;
}

START_TEST(failing_memory) { FAIL_EVERY_ALLOCATION(parsed_and_written(), (void)0); }
END_TEST

static char *printed(void (*print)(FILE *, const lin_command *))
{
    static char buffer[16384];
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    print(file, &command);
    rewind(file);
    buffer[fread(buffer, 1, sizeof buffer - 1, file)] = 0;
    fclose(file);
    return buffer;
}

static void print_all(FILE *out, const lin_command *c) { lin_help_command(out, c, 1); }

START_TEST(help_names_every_option)
{
    char *text = printed(print_all);
    for (const lin_option *o = options; o->type != LIN_OPTION_END; o++) {
        if (o->type == LIN_OPTION_HEADING) continue;
        char name[80];
        snprintf(name, sizeof name, o->under ? " %s" : "--%s", o->name);
        ck_assert_msg(strstr(text, name) != NULL, "--help lacks %s", name);
    }
    HAS(text, "(default 3)", "(required)", "one|two|three", "--no-on turns it off");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        ck_assert_msg(strlen(line) <= 110, "too wide: %s", line);
}
END_TEST

static void print_man(FILE *out, const lin_command *c) { lin_man_command(out, c, "/usr/share/doc/linnet"); }

START_TEST(documentation_is_where_it_is)
{
    char *text = lin_help_with_docs("See docs/a.md, docs/b.md (not docs).", "/x");
    ck_assert_str_eq(text, "See /x/a.md, /x/b.md (not docs).");
    lin_free(text);
    text = lin_help_with_docs("", "/x");
    ck_assert_str_eq(text, "");
    lin_free(text);
    ck_assert_str_eq(lin_doc_folder(), "docs"); // of the source tree
}
END_TEST

START_TEST(man_is_safe)
{
    char *text = printed(print_man);
    HAS(text, ".TH LINNET\\-TRY 1", "\\&.second", "\\fB\\-\\-a\\-file\\fR");
    ck_assert_ptr_null(strstr(text, "\n.second"));
}
END_TEST

START_TEST(completion_of_unknown_shell)
{
    FAILS(lin_completion(stdout, "tcsh", &err), LIN_INVALID, "bash, zsh and fish");
}
END_TEST

START_TEST(nearest)
{
    ck_assert_int_eq(lin_edit_cost("kitten", "sitting"), 3);
    ck_assert_int_eq(lin_edit_cost("", "abc"), 3);
    ck_assert_int_eq(lin_edit_cost("same", "same"), 0);
    ck_assert_str_eq(lin_nearest_option(&command, "fil"), "files");
    ck_assert_str_eq(lin_nearest_option(&command, "hlep"), "help");
    ck_assert_ptr_null(lin_nearest_option(&command, "zzzzzzzz"));
}
END_TEST

// Before a command runs, its marked options are compared with the inputs (app/inputs.h): every option that writes must be marked.
START_TEST(options_that_write_are_marked)
{
    static const char *const writing[] = {"output", "output-dir", "save", "save-state", "html", "oov"};
    int found = 0;
    for (const lin_command *const *c = lin_commands; *c; c++) {
        for (const lin_option *o = (*c)->options; o && o->type != LIN_OPTION_END; o++) {
            for (size_t i = 0; o->name && i < sizeof writing / sizeof *writing; i++) {
                if (strcmp(o->name, writing[i]) != 0) continue;
                ck_assert_msg(o->writes, "linnet %s: --%s writes and is not marked", (*c)->name, o->name);
                found++;
            }
        }
    }
    ck_assert_int_ge(found, 12);
}
END_TEST

// name=value,... of one option; a comma before a digit or a sign belongs to a list of numbers.
START_TEST(settings)
{
    OK(parse("--set few=1,-2,3,deep,wide=5 x", &err));
    ck_assert(v.deep == 1 && v.wide == 5 && v.few.count == 3 && v.few.items[1] == -2);
    OK(parse("--set=deep --set no-deep,wide=-1", &err));
    ck_assert(v.deep == 0 && v.wide == -1);
    FAILS(parse("--wide 2", &err), LIN_INVALID, "unknown option --wide; it is a value of --set");
    OK(parse("--set help", &err));
    ck_assert(p.help == LIN_HELP_SETTINGS && strcmp(p.settings, "set") == 0);
    OK(conf("wide = 3\nset = deep,few=2\n", &err));
    ck_assert(v.wide == 3 && v.deep == 1 && v.few.items[0] == 2);
    OK(conf("set = wide=3\nset = deep\nfiles = a\nfiles = b\n", &err)); // these may be repeated
    ck_assert(v.wide == 3 && v.deep == 1 && v.files.count == 2);
}
END_TEST

TEST_MAIN_WITH(NULL, teardown, "app/options", TEST(defaults), TEST(all_forms),
               TESTS(mistakes, 0, (int)(sizeof wrong / sizeof *wrong)), TEST(completeness), TEST(conf_values),
               TEST(conf_and_command_line), TESTS(conf_mistakes, 0, (int)(sizeof wrong_conf / sizeof *wrong_conf)),
               TEST(conf_limits), TEST(text_reads_back), TEST(failing_memory), TEST(help_names_every_option),
               TEST(documentation_is_where_it_is), TEST(man_is_safe), TEST(completion_of_unknown_shell), TEST(nearest),
               TEST(settings), TEST(options_that_write_are_marked))
