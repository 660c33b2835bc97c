// Spoken numbers as digits: tables, what stays, and numbers that are spelled out and read back.

#include <stdio.h>
#include <string.h>

#include "lexicon/numbers.h"
#include "tests/lexicon/support.h"

// All words with their numbers as digits, as lexicon/readable reads them, without its marks.
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
            used = lin_number_read(words + i, n - i, before, &out, &kept);
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
    {"the twenty first century", "the 21st century"}, {"twentieth", "20th"},
    // years
    {"nineteen eighty four", "1984"}, {"eighteen fifteen", "1815"}, {"nineteen oh five", "1905"}, {"twenty twenty", "2020"},
    {"ten sixty six", "1066"}, {"nineteen hundred", "1900"}, {"eighteen hundred and twelve", "1812"},
    {"two thousand and five", "2005"},
    {"two thousand nineteen", "2019"}, {"two thousand", "2,000"}, {"nineteen eighties", "1980s"}, {"eighteen hundreds", "1800s"},
    // decimals
    {"three point one four", "3.14"}, {"zero point five", "0.5"}, {"twenty three point oh five", "23.05"},
    {"two point five million", "2.5 million"}, {"one hundred point one", "100.1"}, {"two point", "two point"},
    // percent and money
    {"five percent", "5%"}, {"twenty five per cent", "25%"}, {"zero point five percent", "0.5%"}, {"one dollar", "$1"},
    {"five dollars", "$5"}, {"two dollars and fifty cents", "$2.50"}, {"two dollars fifty", "$2.50"},
    {"ten dollars and five cents", "$10.05"}, {"fifty cents", "50 cents"}, {"five cents", "5 cents"},
    {"two million dollars", "$2 million"},
    {"two point five million dollars", "$2.5 million"}, {"three thousand dollars", "$3,000"}, {"twenty pounds", "\xC2\xA3" "20"},
    {"two pounds fifty pence", "\xC2\xA3" "2.50"}, {"ten pounds of flour", "10 pounds of flour"},
    {"eleven euros", "\xE2\x82\xAC" "11"},
    {"five dollars and a half", "$5 and a half"}, {"six dollars and twenty men", "$6 and 20 men"},
    // times
    {"ten thirty am", "10:30 am"}, {"five pm", "5 pm"}, {"ten oh five p m", "10:05 pm"}, {"twelve fifteen", "12:15"},
    {"five thirty", "five thirty"}, {"one twenty five", "one twenty five"}, {"at five thirty", "at 5:30"}, {"nine a.m.", "9 am"},
    {"seven forty five in the morning", "seven forty five in the morning"}, {"at seven forty five", "at 7:45"},
    // digits
    {"five five five one two three four", "5551234"}, {"oh", "oh"}, {"zero zero seven", "007"}, {"nine one one", "911"},
    {"four oh four", "404"}, {"one two hundred", "one 200"},
    // several
    {"twenty three and forty two", "23 and 42"}, {"from nineteen fourteen to nineteen eighteen", "from 1914 to 1918"},
    {"fifty sixty", "50 60"}, {"two hundred three hundred", "200 300"}, {"page ten twenty lines", "page 10:20 lines"},
};

START_TEST(tables)
{
    ck_assert_str_eq(digits_of(table[_i][0]), table[_i][1]);
}
END_TEST

static const char *const ones[] = {"zero",     "one",     "two",     "three",     "four",     "five",    "six",
                                   "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
                                   "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
static const char *const tens[] = {"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};

static void spell(lin_buffer *out, long long n, int with_and)
{
    static const struct { long long value; const char *word; } scales[] =
        {{1000000000, "billion"}, {1000000, "million"}, {1000, "thousand"}, {100, "hundred"}};
    for (int i = 0; i < 4; i++) {
        const long long rest = n % scales[i].value;
        if (n < scales[i].value) continue;
        spell(out, n / scales[i].value, with_and);
        lin_buffer_format(out, " %s", scales[i].word);
        if (rest) lin_buffer_text(out, with_and && rest < 100 ? " and " : " ");
        if (rest) spell(out, rest, with_and);
        return;
    }
    if (n < 20) lin_buffer_text(out, ones[n]);
    else lin_buffer_format(out, "%s%s%s", tens[n / 10], n % 10 ? " " : "", n % 10 ? ones[n % 10] : "");
}

static void group(lin_buffer *out, long long n)
{
    if (n >= 1000) group(out, n / 1000);
    if (n >= 1000) lin_buffer_format(out, ",%03lld", n % 1000);
    else lin_buffer_integer(out, n);
}

// Every number to ten thousand, and some up to billions, spelled out in two ways.
START_TEST(round_trips)
{
    lin_buffer words = {0}, want = {0};
    for (long long n = 10; n < 4000000000; n += n < 10000 ? 1 : n / 7 * 3 + 11) {
        for (int with_and = 0; with_and < 2; with_and++) {
            lin_buffer_clear(&words);
            lin_buffer_clear(&want);
            spell(&words, n, with_and);
            if (n > 2000 && n < 2100) lin_buffer_integer(&want, n); // a year
            else group(&want, n);
            ck_assert_msg(strcmp(digits_of(words.data), want.data) == 0, "'%s' is %s, not %s", words.data, digits_of(words.data),
                          want.data);
        }
    }
    lin_buffer_free(&words);
    lin_buffer_free(&want);
}
END_TEST

START_TEST(years_round_trip)
{
    lin_buffer words = {0}, want = {0};
    for (int year = 1310; year < 2000; year++) {
        if (year % 100 < 10) continue;
        lin_buffer_clear(&words);
        lin_buffer_clear(&want);
        spell(&words, year / 100, 0);
        lin_buffer_char(&words, ' ');
        spell(&words, year % 100, 0);
        lin_buffer_integer(&want, year);
        ck_assert_str_eq(digits_of(words.data), want.data);
    }
    lin_buffer_free(&words);
    lin_buffer_free(&want);
}
END_TEST

TEST_MAIN("numbers", TESTS(tables, 0, sizeof table / sizeof *table), TEST(round_trips), TEST(years_round_trip))
