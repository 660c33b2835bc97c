// Spoken numbers as digits: tables, what stays, and numbers that are spelled out and read back, in three languages.

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "lexicon/written.h"
#include "tests/lexicon/support.h"

// All words with their numbers as digits, as lexicon/readable reads them, without its marks.
static lin_written *rules;

static const char *digits_of(const char *text)
{
    static char line[512];
    static lin_buffer out;
    const char *words[64], *before = "";
    int n = 0, keep = 0;
    snprintf(line, sizeof line, "%s", text);
    for (char *w = strtok(line, " "); w; w = strtok(NULL, " ")) words[n++] = w;
    lin_buffer_clear(&out);
    for (int i = 0; i < n;) {
        int kept, used = 0;
        if (i) lin_buffer_char(&out, ' ');
        if (!keep) {
            used = lin_number_read(rules, words + i, n - i, before, &out, &kept);
            if (!used) keep = kept;
        }
        if (!used) lin_buffer_text(&out, words[i]), keep--;
        i += used ? used : 1;
        before = words[i - 1];
    }
    return out.data;
}

static const char *const table[][2] = {
    // cardinals
    {"twenty three", "23"}, {"ten", "10"}, {"nineteen men", "19 men"}, {"ninety nine", "99"}, {"one hundred", "100"},
    {"three hundred and five", "305"}, {"three hundred five", "305"}, {"nine hundred and ninety nine", "999"},
    {"one thousand", "1,000"}, {"three thousand four hundred and five", "3,405"}, {"twelve thousand", "12,000"},
    {"two hundred thousand and one", "200,001"}, {"one million two hundred thousand and fifty", "1,200,050"},
    {"five million", "5 million"}, {"three hundred billion", "300 billion"}, {"a hundred and five", "105"},
    {"a thousand and one", "1,001"}, {"a million and a half", "a million and a half"},
    {"twenty one thousand three hundred and forty", "21,340"}, {"five hundred and twelve thousand", "512,000"},
    // small numbers and words that only look like numbers
    {"one", "one"}, {"nine men", "nine men"}, {"zero", "zero"}, {"a hundred", "a hundred"},
    {"hundreds of men", "hundreds of men"},
    {"a thousand", "a thousand"}, {"and", "and"}, {"the point is", "the point is"}, {"half past ten", "half past 10"},
    {"one third", "one third"}, {"two thirds", "two thirds"}, {"i am", "i am"}, {"a dollar", "a dollar"},
    {"one by one", "one by one"},
    {"per cent", "per cent"}, {"oh no", "oh no"}, {"a penny", "a penny"}, {"one two", "one two"},
    {"seven and twenty", "seven and 20"},
    // ordinals
    {"first", "first"}, {"the ninth", "the ninth"}, {"tenth", "10th"}, {"twenty first", "21st"}, {"thirty second", "32nd"},
    {"forty third", "43rd"}, {"eleventh", "11th"}, {"twelfth", "12th"}, {"hundred", "hundred"}, {"two hundredth", "200th"},
    {"one hundred and eleventh", "111th"}, {"one hundred and first", "101st"}, {"three thousandth", "3,000th"},
    {"its thirtieth thousand", "its 30th thousand"}, {"the twenty first century", "the 21st century"}, {"twentieth", "20th"},
    // years
    {"nineteen eighty four", "1984"}, {"eighteen fifteen", "1815"}, {"nineteen oh five", "1905"}, {"twenty twenty", "2020"},
    {"ten sixty six", "1066"}, {"nineteen hundred", "1900"}, {"eighteen hundred and twelve", "1812"},
    {"two thousand and five", "2005"},
    {"two thousand nineteen", "2019"}, {"two thousand", "2,000"}, {"nineteen eighties", "1980s"}, {"thirteen ten", "1310"},
    {"seventeen ninety nine", "1799"}, {"eighteen hundreds", "1800s"},
    {"june ten nineteen eighty", "june 10 1980"}, {"july four twenty twenty", "july 4 2020"},
    {"may three nineteen ninety nine", "may 3 1999"}, {"march twenty twenty ten", "march 20 2010"},
    {"january twenty twenty one", "january 2021"}, {"june ten thirty", "june 10:30"}, {"may three men", "may three men"},
    // decimals
    {"three point one four", "3.14"}, {"zero point five", "0.5"}, {"twenty three point oh five", "23.05"},
    {"two point five million", "2.5 million"}, {"one hundred point one", "100.1"}, {"two point", "two point"},
    // percent and money
    {"five percent", "5%"}, {"twenty five per cent", "25%"}, {"zero point five percent", "0.5%"}, {"one dollar", "$1"},
    {"five dollars", "$5"}, {"two dollars and fifty cents", "$2.50"}, {"two dollars fifty", "$2.50"},
    {"two thousand and twenty three dollars and two cents", "$2,023.02"},
    {"ten dollars and five cents", "$10.05"}, {"fifty cents", "50 cents"}, {"five cents", "5 cents"},
    {"two million dollars", "$2 million"},
    {"two point five million dollars", "$2.5 million"}, {"three thousand dollars", "$3,000"}, {"twenty pounds", "\xC2\xA3" "20"},
    {"two pounds fifty pence", "\xC2\xA3" "2.50"}, {"ten pounds of flour", "10 pounds of flour"},
    {"eleven euros", "\xE2\x82\xAC" "11"},
    {"five dollars and a half", "$5 and a half"}, {"six dollars and twenty men", "$6 and 20 men"},
    // times
    {"ten thirty am", "10:30 am"}, {"five pm", "5 pm"}, {"ten oh five p m", "10:05 pm"}, {"twelve fifteen", "12:15"},
    {"five thirty", "five thirty"}, {"one twenty five", "one twenty five"}, {"at five thirty", "at 5:30"}, {"nine a.m.", "9 am"},
    {"nine oh five am", "9:05 am"}, {"at nine oh five", "at 9:05"}, {"at nine oh five five one", "at 90551"},
    {"at five thirty ten came", "at 5:30 10 came"},
    {"seven forty five in the morning", "seven forty five in the morning"}, {"at seven forty five", "at 7:45"},
    // digits
    {"five five five one two three four", "5551234"}, {"oh", "oh"}, {"zero zero seven", "007"}, {"nine one one", "911"},
    {"four oh four", "404"}, {"one two hundred", "one 200"},
    {"eight hundred five five five one two one two", "800 5551212"}, {"eight hundred five", "805"},
    {"eight hundred and five five", "805 five"},
    // several
    {"twenty three and forty two", "23 and 42"}, {"from nineteen fourteen to nineteen eighteen", "from 1914 to 1918"},
    {"fifty sixty", "50 60"}, {"two hundred three hundred", "200 300"}, {"page ten twenty lines", "page 10:20 lines"},
};

START_TEST(tables)
{
    ck_assert_str_eq(digits_of(table[_i][0]), table[_i][1]);
}
END_TEST

/* ---- every language -------------------------------------------------------------------------------------------------------- */

static const char *const languages[] = {"en", "de", "es"};

static void load(const char *language)
{
    char path[64];
    lin_written_destroy(rules);
    snprintf(path, sizeof path, "share/linnet/%s/numbers.txt", language);
    OK(lin_written_load(path, &rules, &err));
}

// Every number to two thousand and a sample to a billion: as words and back, by the rules, and as readable text writes it.
START_TEST(words_and_back)
{
    static const int stay[] = {10, 13, 10}; // numbers below it stay words
    lin_readings r = {0};
    lin_buffer out = {0};
    load(languages[_i]);
    lin_written *cardinals =
        rules_with(languages[_i], "\n[written]\n{N} = {1:cardinal}\n[spoken]\n{cardinal} = {1}\n");
    const char group = _i ? '.' : ',';
    for (uint64_t n = 0; n < 1000000000; n += n < 2000 ? 1 : n < 10000 ? 7 : n < 1000000 ? 4877 : 98765431) {
        char number[24], copy[512], *said[64];
        int keep, n_words = 0;
        snprintf(number, sizeof number, "%llu", (unsigned long long)n);
        const char *words = number_in_words(cardinals, n, &r), *digits = digits_of(words);
        uint64_t written = 0;
        snprintf(copy, sizeof copy, "%s", words);
        for (char *w = strtok(copy, " "); w; w = strtok(NULL, " ")) said[n_words++] = w;
        lin_buffer_clear(&out);
        ck_assert_msg(lin_number_read(cardinals, (const char *const *)said, n_words, "", &out, &keep) == n_words,
                      "%s: '%s' is no number", languages[_i], words);
        ck_assert_msg(!strcmp(out.data, number), "%s: '%s' is %s", languages[_i], words, out.data);
        if (n < (uint64_t)stay[_i]) {
            ck_assert_str_eq(digits, words);
            continue;
        }
        for (const char *c = digits; *c; c++) {
            ck_assert_msg(*c == group || (*c >= '0' && *c <= '9'), "%s: '%s' is '%s'", languages[_i], words, digits);
            if (*c != group) written = 10 * written + (uint64_t)(*c - '0');
        }
        ck_assert_msg(written == n, "%s: '%s' is '%s'", languages[_i], words, digits);
    }
    lin_readings_free(&r);
    lin_buffer_free(&out);
    lin_written_destroy(cardinals);
}
END_TEST

static const char *const others[][3] = {
    {"de", "zweiundvierzig leute", "42 leute"}, {"de", "zw\xC3\xB6lf leute", "zw\xC3\xB6lf leute"},
    {"de", "hundertf\xC3\xBCnf", "105"}, {"de", "neunzehnhundertvierundachtzig", "1984"},
    {"de", "eintausendneunhundertvierundachtzig", "1984"}, {"de", "zwanzigtausend", "20.000"},
    {"de", "zwei millionen", "2 Millionen"}, {"de", "eine million f\xC3\xBCnfhunderttausend", "1.500.000"},
    {"de", "drei komma eins vier", "3,14"}, {"de", "f\xC3\xBCnf prozent", "5 %"}, 
    {"de", "zwei komma f\xC3\xBCnf prozent", "2,5 %"}, {"de", "zwei komma f\xC3\xBCnf millionen", "2,5 Millionen"},
    {"de", "eins komma eins milliarden euro", "1,1 Milliarden \xE2\x82\xAC"},
    {"de", "zwei euro und f\xC3\xBCnfzig cent", "2,50 \xE2\x82\xAC"}, {"de", "zwei euro f\xC3\xBCnfzig", "2,50 \xE2\x82\xAC"},
    {"de", "ein euro", "1 \xE2\x82\xAC"}, {"de", "um zehn uhr drei\xC3\x9Fig", "um 10:30 Uhr"}, {"de", "ein uhr", "1 Uhr"},
    {"de", "am dritten mai", "am 3. mai"}, {"de", "der dritte mann", "der dritte mann"},
    {"de", "am einundzwanzigsten", "am 21."}, {"de", "sieben und acht", "sieben und acht"},
    {"de", "eine frau und ein mann", "eine frau und ein mann"}, {"de", "undein", "undein"}, {"de", "zwanzigzwei", "zwanzigzwei"},
    {"de", "eins eins zwei", "112"},
    {"es", "cuarenta y dos personas", "42 personas"}, {"es", "nueve personas", "nueve personas"},
    {"es", "mil novecientos ochenta y cuatro", "1984"}, {"es", "ciento una", "101"}, {"es", "veintiún mil", "21.000"},
    {"es", "dos millones de euros", "2 millones de euros"}, {"es", "cincuenta por ciento", "50 %"},
    {"es", "dos coma cinco", "2,5"}, {"es", "a las nueve y quince", "a las 9:15"}, 
    {"es", "cinco euros con veinte", "5,20 \xE2\x82\xAC"},
    {"es", "y uno y dos", "y uno y dos"},
};

START_TEST(other_languages)
{
    load(others[_i][0]);
    ck_assert_str_eq(digits_of(others[_i][1]), others[_i][2]);
}
END_TEST

START_TEST(words_of_numbers)
{
    static const char *const cases[][3] = {
        {"en", "twenty", "1"}, {"en", "twentieth", "1"}, {"en", "percent", "1"}, {"en", "and", "1"}, {"en", "of", ""},
        {"en", "dollarsand", ""}, {"en", "", ""}, {"de", "zweiundvierzig", "1"}, {"de", "vierzig", "1"}, {"de", "uhr", "1"},
        {"de", "uhrzeit", ""}, {"de", "zweig", ""}, {"de", "h\xC3\xB6rt", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        load(cases[i][0]);
        ck_assert_msg(lin_number_word(rules, cases[i][1]) == (*cases[i][2] != 0), "%s", cases[i][1]);
    }
    ck_assert(!lin_number_word(NULL, "twenty"));
    load("en");
    ck_assert_str_eq(lin_number_title(rules, "mister"), "Mr.");
    ck_assert_ptr_null(lin_number_title(rules, "master"));
    ck_assert_ptr_null(lin_number_title(NULL, "mister"));
}
END_TEST

// Rules in circles, and words without end.
START_TEST(rules_without_end)
{
    static const char text[] = "[a]\n0: <b<a\n1: =b= | =a= | <a<>a> | a\n[b]\n0: =a= | a\n[written]\nx = y\n"
                               "[spoken]\n{a} {b*} {a} a = {1:a}{2}{3:b}\n{a} = =\n";
    const char *words[600];
    lin_buffer out = {0};
    int keep;
    lin_written_destroy(rules);
    OK(lin_written_parse(text, sizeof text - 1, "n", &rules, &err));
    for (int i = 0; i < 600; i++) words[i] = "aaa";
    lin_number_read(rules, words, 600, "", &out, &keep);
    ck_assert_int_ge(keep, 1);
    lin_buffer_free(&out);
}
END_TEST

static void setup(void) { load("en"); }
static void teardown(void)
{
    lin_written_destroy(rules);
    rules = NULL;
}

TEST_MAIN_WITH(setup, teardown, "numbers", TESTS(tables, 0, sizeof table / sizeof *table), TESTS(words_and_back, 0, 3),
               TESTS(other_languages, 0, sizeof others / sizeof *others), TEST(words_of_numbers), TEST(rules_without_end))
