// Numbers in words against ICU's (tests/golden/numbers.txt), forms in texts of three languages, rules that are wrong.
#include "lexicon/written.h"

#include <zlib.h>

#include "base/buffer.h"
#include "base/textfile.h"
#include "lexicon/transcript.h"
#include "tests/lexicon/support.h"

static lin_written *load(const char *language)
{
    char path[64];
    lin_written *written;
    snprintf(path, sizeof path, "share/linnet/%s/numbers.txt", language);
    OK(lin_written_load(path, &written, &err));
    return written;
}

START_TEST(numbers_are_those_of_icu)
{
    static const char *const languages[] = {"en", "de", "es"};
    const char *language = languages[_i];
    lin_written *written = NULL;
    lin_readings r = {0};
    char line[512], own[8], set[32], words[400], form[80], before[80] = "";
    FILE *f = fopen("tests/golden/numbers.txt", "r");
    unsigned long long n, to, step;
    int compared = 0, sums = 0;
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f)) {
        unsigned long want;
        ck_assert_int_eq(sscanf(line, "%7s %31s", own, set), 2);
        if (strcmp(own, language) != 0) continue;
        snprintf(form, sizeof form, "\n[written]\n{N} = {1:%s}\n", set);
        if (strcmp(form, before) != 0) {
            lin_written_destroy(written);
            written = rules_with(language, form);
            strcpy(before, form);
        }
        if (sscanf(line, "%7s %31s %llu..%llu/%llu crc32 %lx", own, set, &n, &to, &step, &want) == 6) {
            unsigned long sum = 0;
            for (; n <= to; n += step) {
                const char *text = number_in_words(written, n, &r);
                sum = crc32(sum, (const unsigned char *)text, (unsigned)strlen(text));
                sum = crc32(sum, (const unsigned char *)"\n", 1);
            }
            ck_assert_msg(sum == want, "%s %s: another checksum", language, set);
            sums++;
        } else {
            ck_assert_int_eq(sscanf(line, "%7s %31s %llu %399[^\n]", own, set, &n, words), 4);
            ck_assert_msg(strcmp(number_in_words(written, n, &r), words) == 0, "%s %s %llu: '%s', not '%s'", language, set, n,
                          number_in_words(written, n, &r), words);
            compared++;
        }
    }
    fclose(f);
    ck_assert(compared > 100 && sums == 2);
    lin_readings_free(&r);
    lin_written_destroy(written);
}
END_TEST

// Texts as they are read first, and another reading that must be among all (or "").
static const struct {
    const char *language, *text, *first, *other;
} texts[] = {
    {"en", "In 1984, 3% of 1,500 people paid $5.25.",
     "In nineteen eighty four three percent of one thousand five hundred people paid "
     "five dollars and twenty five cents",
     "five twenty five"},
    {"en", "1066 1805 1900 2005 2024", "ten sixty six eighteen oh five nineteen hundred two thousand and five twenty twenty four",
     "two thousand twenty four"},
    {"en", "on May 3 and the 21st", "on May three and the twenty first", "the third"},
    {"en", "at 10:30 p.m., 9:05, 7:00 and 5pm", "at ten thirty p m nine oh five seven and five p m", "seven o'clock"},
    {"en", "Dr. Smith & Mr. Jones, i.e. us", "doctor Smith and mister Jones that is us", "drive"},
    {"en", "room 405, 007, 12345678",
     "room four hundred and five seven twelve million three hundred and forty five thousand six hundred "
     "and seventy eight",
     "four oh five"},
    {"en", "2.5 -5 1/2 3/8 1914-18 the 1980s '90s",
     "two point five minus five one half three over eight nineteen fourteen to eighteen "
     "the nineteen eighties nineties",
     ""},
    {"en",
     "$3 million, $2.5 billion, \xC2\xA3"
     "20, \xE2\x82\xAC"
     "1",
     "three million dollars two point five billion dollars twenty "
     "pounds one euro",
     ""},
    {"en", "MP3s 5km AT&T 1,2,3 x=2", "MP three s five kilometers AT&T one two three x equals two", ""},
    {"en", "1234567890123456789",
     "one two three four five six seven eight nine zero one two three four five six seven eight nine", ""},
    {"en", "555-1212", "five hundred and fifty five to one thousand two hundred and twelve", "five five five one two one two"},
    {"en", "\xC2\xA3" "2.5 million \xE2\x82\xAC" "3.5 billion $1.2M \xC2\xA3" "2.5bn 10:15",
     "two point five million pounds three point five billion euros one point two million dollars two point five billion pounds "
     "ten fifteen",
     "a quarter past ten"},
    {"en", "no. 5 No. he said", "number five No he said", ""},
    {"en", "10\xE2\x80\x93" "20 \xE2\x88\x92" "5 20 \xC2\xB0" "C", "ten to twenty minus five twenty degrees celsius", ""},
    {"en", "10:05 pm", "ten oh five p m", "ten oh five pm"},
    {"en", "$.50 $.5 $0.99 $5.5 $5.99 \xC2\xA3" ".05 \xE2\x82\xAC" "1.125",
     "fifty cents point five dollars ninety nine cents five point five dollars five dollars and ninety nine cents five pence "
     "one point one two five euros",
     "five ninety nine"},
    {"en", "$100k $2.5K \xC2\xA3" "5k $2B", "one hundred thousand dollars two point five thousand dollars five thousand pounds "
     "two billion dollars", ""},
    {"en", "1.5M 3M 2.5k 1.5B 5bn 5mm", "one point five million three million two point five thousand one point five billion "
     "five billion five millimeters", "three m"},
    {"en", "-$5, \u2212$2.50", "minus five dollars minus two dollars and fifty cents", ""},
    {"en", "1 000 000, 1\u00A0000\u00A0000.5, 12\u202F345",
     "one million one million point five twelve thousand three hundred and forty five", ""},
    {"en", "10 000, 1 234 567, 100 000",
     "ten thousand one million two hundred and thirty four thousand five hundred and sixty seven one hundred thousand", ""},
    {"en", "5 100, 100 200 300, 555 123 4567, 0 000",
     "five one hundred one hundred two hundred three hundred five hundred and fifty five one hundred and twenty three "
     "four thousand five hundred and sixty seven zero zero", ""},
    {"en", "1 800 555-1234, 20 000-30 000",
     "one eight hundred five hundred and fifty five to one thousand two hundred and thirty four "
     "twenty thousand to thirty thousand", ""},
    {"en", "5\u00A0km 20\u202F\u00B0C $3\u2009million", "five kilometers twenty degrees celsius three million dollars", ""},
    {"en", "2\u00BD, 3 \u00BC, 4 1/2, 10 2/3, 11/2 and 5 1/20",
     "two and a half three and a quarter four and a half ten and two thirds eleven over two and five one over twenty",
     "four and one half"},
    {"en", "1960-65 1914-18", "nineteen sixty to sixty five nineteen fourteen to eighteen", ""},
    {"de", "2,5 \xE2\x82\xAC 2,75 \xE2\x82\xAC", "zwei komma f\u00FCnf euro zwei euro und f\u00FCnfundsiebzig cent", ""},
    {"en", "2.5 km, 2.5km, 0.5\u00A0kg, 90 km/h, 36.6 \u00B0" "C 98.6\u00B0" "F, 2.5% 5pm 2 1/2 21/2",
     "two point five kilometers two point five kilometers zero point five kilograms ninety kilometers per hour "
     "thirty six point six degrees celsius ninety eight point six degrees fahrenheit two point five percent five p m "
     "two and a half twenty one over two",
     "two point five k"},
    {"de", "0,50 \u20AC, 0,01\u20AC 2,5 km, 3kg 38,5 \u00B0" "C",
     "f\u00FCnfzig cent ein cent zwei komma f\u00FCnf kilometer drei kilogramm achtunddrei\u00DFig komma f\u00FCnf grad celsius",
     "null euro und f\u00FCnfzig cent"},
    {"en", "1 km, 1kg 101 km 1 \u00B0" "C 1.1 km",
     "one kilometer one kilogram one hundred and one kilometers one degree celsius one point one kilometers", ""},
    {"de", "1 km, 1% 101 km 1 \u20AC 1,10\u20AC",
     "ein kilometer ein prozent einhunderteins kilometer ein euro ein euro und zehn cent", ""},
    {"es", "1km 11 km", "un kil\u00F3metro once kil\u00F3metros", ""},
    {"es", "0,50 \u20AC 0,21\u20AC", "cincuenta c\u00E9ntimos veinti\u00FAn c\u00E9ntimos", "cero euros con cincuenta"},
    {"es", "2,5 \xE2\x82\xAC 2,75 \xE2\x82\xAC", "dos coma cinco euros dos euros con setenta y cinco", ""},
    {"de", "1 Million und 1 Mio.", "eine million und eine million", ""},
    {"de", "Am 3. Mai 1984 um 10:30 Uhr kostete es 2,50 \xE2\x82\xAC.",
     "Am dritte Mai neunzehnhundertvierundachtzig um zehn uhr drei\xC3\x9Fig "
     "kostete es zwei euro und f\xC3\xBCnfzig cent",
     "dritten"},
    {"de", "0190-12345, 2,5 Mio., 3,5 Mrd. \xE2\x82\xAC, -5 \xC2\xB0" "C",
     "einhundertneunzig bis zw\xC3\xB6lftausenddreihundertf\xC3\xBCnfundvierzig zwei komma f\xC3\xBCnf millionen "
     "drei komma f\xC3\xBCnf milliarden euro minus f\xC3\xBCnf grad celsius",
     "null eins neun null eins zwei drei vier f\xC3\xBCnf"},
    {"de", "3 Milliarden \u20AC, 2,5 Millionen \u20AC", // as readable text has them
     "drei Milliarden euro zwei komma f\u00FCnf Millionen euro", ""},
    {"de", "z. B. 21 % von 1.000", "zum beispiel einundzwanzig prozent von eintausend", "tausend"},
    {"es", "El 21 de 1.984, a las 9:15, el 50 %",
     "El veintiuno de mil novecientos ochenta y cuatro a las nueve quince el cincuenta por "
     "ciento",
     "y cuarto"},
    {"es", "3.er a\xC3\xB1o, 2,5 km & 31.000 \xE2\x82\xAC",
     "tercero a\xC3\xB1o dos coma cinco kil\u00F3metros y treinta y un mil euros", "tercer"},
};

START_TEST(forms_in_texts)
{
    lin_written *written = load(texts[_i].language);
    const char *text = texts[_i].text;
    const size_t n = strlen(text);
    lin_buffer out = {0};
    lin_readings r = {0};
    int other = !*texts[_i].other;
    for (size_t at = 0, end; at < n;) {
        OK(lin_written_match(written, text, n, at, &end, &r, &err));
        for (int i = 0; i < r.n; i++) other |= strcmp(r.items[i], texts[_i].other) == 0 ||
            (strlen(r.items[i]) > strlen(texts[_i].other) && strstr(r.items[i], texts[_i].other) && *texts[_i].other);
        if (end) {
            if (out.n && out.data[out.n - 1] != ' ') lin_buffer_char(&out, ' ');
            for (const char *c = r.items[0]; *c; c++)
                if (*c != '+') lin_buffer_char(&out, *c);
            lin_buffer_char(&out, ' ');
            at = end;
        } else {
            const int is_mark = strchr(" ,.'", text[at]) != NULL;
            if (!is_mark) lin_buffer_char(&out, text[at]);
            else if (out.n && out.data[out.n - 1] != ' ') lin_buffer_char(&out, ' ');
            at++;
        }
    }
    while (out.n && out.data[out.n - 1] == ' ') out.data[--out.n] = 0;
    ck_assert_str_eq(out.data, texts[_i].first);
    ck_assert_msg(other, "no reading has '%s'", texts[_i].other);
    lin_buffer_free(&out);
    lin_readings_free(&r);
    lin_written_destroy(written);
}
END_TEST

START_TEST(bad_rules_are_refused)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "n: it has no section [written]"},
        {"[written]\n", "n: it has no section [written]"},
        {"1: one\n", "n:1: there is a rule before the first [section]"},
        {"[Cardinal]\n", "n:1: the name of a section must have small letters and '-' only"},
        {"[a]\n[a]\n", "n:2: a section of this name already exists"},
        {"[]\n", "n:1: a section must be [name]"},
        {"[a]\none\n", "n:2: a rule must begin with a number"},
        {"[a]\n1000000000000000: x\n", "n:2: a rule must begin with a number below 10^15"},
        {"[a]\n1 one\n", "n:2: ':' must follow the number of a rule"},
        {"[a]\n1/0: one\n", "n:2: the divisor must be a number from 1 on"},
        {"[a]\n2: two\n2: two\n", "n:3: the numbers of a section must increase"},
        {"[a]\n100: <b<\n[written]\n& = and\n", "n:2: there is no section [b]"},
        {"[written]\n{N} = {1:b}\n", "n:2: there is no section [b]"},
        {"[written]\n{N} {1:b}\n", "n:2: the line must be: what is written = how it is said"},
        {"[written]\n{Q} = x\n", "n:2: what is written may have at most four of {N}, {D}, {Y}, {H}, {M} and {C}"},
        {"[written]\n{N}{N}{N}{N}{N} = x\n", "n:2: what is written may have at most four"},
        {"[a]\n[written]\n{N} = {2:a}\n", "n:3: a reading may refer to {1:set} or {1*set}"},
        {"[a]\n[written]\n{N} = {1:a\n", "n:3: a reading may refer to {1:set} or {1*set}"},
        {"[marks]\npoint = .\n", "n:2: a mark must be: group = SIGN, or onward = WORD|WORD"},
        {"[marks]\nonward =\n", "n:2: a mark must be"},
        {"[a]\n1: =#a\n[written]\n& = and\n", "n:2: digits are =#=, <#<, >#>, or with #,"},
        {"[spoken]\n{a} 5\n", "n:2: the line must be: what is said = how it is written"},
        {"[spoken]\n{a} = {1}\n", "n:2: there is no section of this name"},
        {"[a]\n1: x\n[spoken]\n{a = 1\n", "n:4: '}' must end a '{'"},
        {"[a]\n1: x\n[spoken]\n{a}x = 1\n", "n:4: '}' must end a '{'"},
        {"[a]\n1: x\n[spoken]\nx{a} = 1\n", "n:4: there must be blanks around {...}"},
        {"[a]\n1: x\n[spoken]\n{a*0} = 1\n", "n:4: what is said may have {set}, {set*} for digits"},
        {"[a]\n1: x\n[spoken]\n{a} {a} {a} {a} {a} = 1\n", "n:4: what is said may have at most four {...}"},
        {"[a]\n1: x\n[spoken]\n{a} (b) {a} = 1\n", "n:4: words in ( ) stand first or last"},
        {"[a]\n1: x\n[spoken]\n(b){a} = 1\n", "n:4: words in ( ) stand first or last"},
        {"[a]\n1: x\n[spoken]\n(b) = 1\n", "n:4: words in ( ) stand first or last"},
        {"[a]\n1: x\n[spoken]\n{a} = {2}\n", "n:4: what is written may refer to {1}, {1:#,} or {1:set}"},
        {"[a]\n1: x\n[spoken]\n{a} = {1:b}\n", "n:4: there is no section of this name"},
        {"[a]\n1: x\n[spoken]\n{a} = {1\n", "n:4: what is written may refer to"},
        {"[a]\n1: x\n[spoken]\n{a} = 1}\n", "n:4: '}' without '{'"},
        {"[titles]\nmister\n", "n:2: the line must be: what is said"},
        {"[written]\n& = \x01\n", "n:2: the line has a control character, or bytes that are not UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lin_written *written;
        FAILS(lin_written_parse(cases[i].text, strlen(cases[i].text), "n", &written, &err), LIN_FORMAT, cases[i].message);
    }
}
END_TEST

// Rules in circles end, many readings are cut, and a number without a rule is no match.
START_TEST(rules_without_end)
{
    static const char text[] =
        "[a]\n1: x =a= | y =a= | z\n[b]\n1: =b=\n[c]\n1: <c< >c> | q | r | s\n[written]\n{N} = {1:a}\nb{N} = {1:b}\n"
        "c{N}.{N}.{N} = {1:c} {2:c} {3:c}\n";
    lin_written *written;
    lin_readings r = {0};
    size_t end;
    OK(lin_written_parse(text, sizeof text - 1, "n", &written, &err));
    OK(lin_written_match(written, "5", 1, 0, &end, &r, &err));
    ck_assert_int_eq(r.n, LIN_READINGS_MOST);
    OK(lin_written_match(written, "b5", 2, 0, &end, &r, &err));
    ck_assert_uint_eq(end, 0);
    OK(lin_written_match(written, "0", 1, 0, &end, &r, &err));
    ck_assert_uint_eq(end, 0);
    OK(lin_written_match(written, "c123456.777777.999999", 21, 0, &end, &r, &err));
    ck_assert_uint_eq(end, 21);
    ck_assert_int_le(r.n, LIN_READINGS_MOST);
    lin_readings_free(&r);
    lin_written_destroy(written);
}
END_TEST

// Training and scoring use the first reading.
START_TEST(a_transcriber_reads_numbers)
{
    lin_phones *phones;
    lin_dictionary *dictionary;
    lin_transcriber *t;
    lin_written *written = load("en");
    const int *labels;
    int n;
    char text[256] = "";
    OK(lin_phones_create(NULL, &phones, &err));
    static const char words[] = "one W AH N\ntwo T UW\ntwenty T W EH N T IY\nand AE N D\na EY\na. AH\n";
    OK(lin_dictionary_parse(words, sizeof words - 1, "d", phones, &dictionary, &err));
    OK(lin_transcriber_create(dictionary, NULL, &t, &err));
    ck_assert_int_eq(lin_transcriber_line(t, "21", 2, &labels, &n, NULL), LIN_FORMAT);
    lin_transcriber_read_written(t, written);
    static const char line[] = "(21) & [noise 3] A. two!";
    OK(lin_transcriber_line(t, line, sizeof line - 1, &labels, &n, &err));
    for (int i = 0; i < n; i++) {
        strcat(text, i ? " " : "");
        strcat(text, lin_phones_name(phones, labels[i]));
    }
    ck_assert_str_eq(text, "T W EH N T IY W AH N AE N D AH T UW");
    ck_assert_int_eq(lin_transcriber_words(t), 5);
    ck_assert_int_eq(lin_transcriber_marks(t, NULL), 1);
    lin_transcriber_destroy(t);
    lin_dictionary_destroy(dictionary);
    lin_phones_destroy(phones);
    lin_written_destroy(written);
}
END_TEST

static lin_status everything(void)
{
    static const char rules[] =
        "[marks]\ngroup = ,\n[a]\n1: one\n2: two | a pair\n20: twenty[ >]\n[written]\n{N} = {1:a} | {1*a}\n& = and\n"
        "[marks]\nonward = b|c\n[spoken]\nthe {a} (!) = {1}\n[titles]\nmister = Mr.\n";
    lin_written *written;
    lin_readings r = {0};
    size_t end;
    lin_status status = lin_written_parse(rules, sizeof rules - 1, "n", &written, NULL);
    if (status == LIN_OK) status = lin_written_match(written, "22", 2, 0, &end, &r, NULL);
    lin_readings_free(&r);
    lin_written_destroy(written);
    return status;
}

START_TEST(memory_that_is_short)
{
    FAIL_EVERY_ALLOCATION(everything(), (void)0);
}
END_TEST

TEST_MAIN("written", TESTS(numbers_are_those_of_icu, 0, 3), TESTS(forms_in_texts, 0, sizeof texts / sizeof *texts),
          TEST(bad_rules_are_refused), TEST(rules_without_end), TEST(a_transcriber_reads_numbers), TEST(memory_that_is_short))
