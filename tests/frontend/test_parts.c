// Where a sound file ends by its own structure: made-up containers of every kind, joined, cut off, with tags and junk after them.
#include "frontend/parts.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "tests/frontend/support.h"

static unsigned char bytes[1 << 16];
static size_t n_bytes;

static void clear(void) { n_bytes = 0; }

static void add(const void *b, size_t n)
{
    memcpy(bytes + n_bytes, b, n);
    n_bytes += n;
}

static void add_text(const char *text) { add(text, strlen(text)); }

static void add_number(uint64_t x, int n, int big)
{
    for (int i = 0; i < n; i++) {
        const unsigned char b = (unsigned char)(x >> 8 * (big ? n - 1 - i : i));
        add(&b, 1);
    }
}

// Never zero, never a name of a chunk.
static void add_sound(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char b = (unsigned char)(0x80 + (i * 7 + n) % 90);
        add(&b, 1);
    }
}

static lin_part_file file;

static int64_t end_at(int64_t from, lin_part_facts *facts)
{
    file.size = (int64_t)n_bytes;
    close(file.fd);
    file.fd = open(write_bytes("x", bytes, n_bytes), O_RDONLY | O_CLOEXEC);
    return lin_part_end(&file, from, facts);
}

static int64_t end_of(void)
{
    lin_part_facts facts;
    return end_at(0, &facts);
}

static void add_wav(const char *magic, uint32_t data, size_t is)
{
    const int big = strcmp(magic, "RIFX") == 0;
    add_text(magic);
    add_number(36 + data, 4, big);
    add_text("WAVEfmt ");
    add_number(16, 4, big);
    add_sound(16);
    add_text("data");
    add_number(data, 4, big);
    add_sound(is);
}

START_TEST(chunks)
{
    const char *const kinds[] = {"RIFF", "RIFX"};
    for (int k = 0; k < 2; k++) {
        clear();
        add_wav(kinds[k], 100, 100);
        ck_assert_int_eq(end_of(), 144);
        add_wav(kinds[k], 51, 51); // odd, and its byte of padding is missing
        ck_assert_int_eq(end_of(), 144);
        const int64_t second = (int64_t)n_bytes;
        add_wav(kinds[k], 10, 10);
        lin_part_facts facts;
        ck_assert_int_eq(end_at(144, &facts), second);
        ck_assert_int_eq(end_at(second, &facts), (int64_t)n_bytes);
        clear();
        add_wav(kinds[k], 100, 300); // more than its header gives
        ck_assert_int_eq(end_of(), 144);
        ck_assert_int_eq(lin_part_is_chunk(&file, 144), 0);
        clear();
        add_wav(kinds[k], 100, 40); // cut off
        ck_assert_int_eq(end_of(), (int64_t)n_bytes);
        clear();
        add_wav(kinds[k], 0xffffffff, 300);
        ck_assert_int_eq(end_of(), (int64_t)n_bytes);
        clear();
        add_wav(kinds[k], 0, 300); // interrupted
        ck_assert_int_eq(end_of(), (int64_t)n_bytes);
        clear();
        add_wav(kinds[k], 100, 100);
        add_text("LIST");
        add_number(4, 4, k);
        add_text("INFO");
        ck_assert_int_eq(end_of(), (int64_t)n_bytes);
        ck_assert_int_eq(lin_part_is_chunk(&file, 144), 1);
        add_sound(50); // no chunk, and no sound
        ck_assert_int_eq(end_of(), (int64_t)n_bytes);
        n_bytes -= 50;
        add_text("fLaC");
        add_sound(50);
        ck_assert_int_eq(end_of(), 156);
    }
    clear(); // AIFF whose length is not known
    add_text("FORM");
    add_number(0, 4, 1);
    add_text("AIFFSSND");
    add_number(0, 4, 1);
    add_sound(100);
    ck_assert_int_eq(end_of(), (int64_t)n_bytes);
    clear(); // an AVI file in two chunks
    for (int i = 0; i < 3; i++) {
        add_text("RIFF");
        add_number(54, 4, 0);
        add_text(i == 1 ? "AVIX" : "AVI ");
        add_sound(50);
    }
    ck_assert_int_eq(end_of(), 124);
    const uint32_t unknown[] = {0xffffffff, 0x7ffff000, 0x7fffffff, 0x7f000008, 0x80000000};
    for (int i = 0; i < 5; i++) ck_assert_int_eq(lin_part_is_unknown(unknown[i]), 1);
    ck_assert(!lin_part_is_unknown(0) && !lin_part_is_unknown(0x7e000000) && !lin_part_is_unknown(3000000000u));
}
END_TEST

START_TEST(boxes_and_signatures)
{
    clear();
    for (int i = 0; i < 2; i++) {
        add_number(16, 4, 1);
        add_text("ftypM4A xxxx");
        add_number(1, 4, 1); // a length of 64 bits
        add_text("mdat");
        add_number(116, 8, 1);
        add_sound(100);
    }
    ck_assert_int_eq(end_of(), 132);
    clear();
    add_text("fLaC");
    add_number(0x22, 4, 1);
    add_sound(13);
    add_number(0x80, 1, 1); // no count of samples
    add_number(0, 4, 1);
    add_sound(20);
    const size_t length = n_bytes;
    add(bytes, length);
    ck_assert_int_eq(end_of(), (int64_t)length);
    clear();
    add("\x1a\x45\xdf\xa3\x9f\x42\x82\x84webm", 12);
    add_sound(40000);
    add("\x1a\x45\xdf\xa3", 4); // by chance
    add_sound(100);
    const size_t next = n_bytes;
    add("\x1a\x45\xdf\xa3\x9f\x42\x82\x84webm", 12);
    add_sound(40);
    ck_assert_int_eq(end_of(), (int64_t)next);
    clear();
    add_sound(1000); // not known
    ck_assert_int_eq(end_of(), 1000);
}
END_TEST

static void add_page(int kind, uint32_t serial, uint32_t number, unsigned char size)
{
    add("OggS\0", 5);
    add_number((uint64_t)kind, 1, 0);
    add_number(number * 960, 8, 0);
    add_number(serial, 4, 0);
    add_number(number, 4, 0);
    add_number(0, 4, 0);
    add_number(1, 1, 0);
    add(&size, 1);
    add_sound(size);
}

START_TEST(ogg)
{
    lin_part_facts facts;
    clear();
    for (uint32_t i = 0; i < 5; i++) add_page(i ? 0 : 2, 7, i, 100);
    ck_assert_int_eq(end_at(0, &facts), 5 * 128);
    ck_assert_int_eq(facts.has_gap, 0);
    add_page(2, 9, 0, 50);
    add_page(0, 9, 1, 50);
    ck_assert_int_eq(end_at(0, &facts), 5 * 128);
    ck_assert_int_eq(facts.has_gap, 0);
    ck_assert_int_eq(end_at(5 * 128, &facts), (int64_t)n_bytes);
    clear(); // two streams at once
    add_page(2, 1, 0, 10);
    add_page(2, 2, 0, 10);
    add_page(0, 1, 1, 10);
    add_page(0, 2, 1, 10);
    const int64_t link = (int64_t)n_bytes;
    add_page(2, 3, 0, 10);
    ck_assert_int_eq(end_at(0, &facts), link);
    ck_assert_int_eq(facts.has_gap, 0);
    clear(); // a page is missing
    add_page(2, 7, 0, 10);
    add_page(0, 7, 1, 10);
    add_page(0, 7, 3, 10);
    end_at(0, &facts);
    ck_assert_int_eq(facts.has_gap, 1);
    clear(); // after the headers that is no loss
    add_page(2, 7, 0, 10);
    add_page(0, 7, 3, 10);
    end_at(0, &facts);
    ck_assert_int_eq(facts.has_gap, 0);
    clear(); // the first is cut off within a page, and another follows
    add_page(2, 7, 0, 10);
    add_page(0, 7, 1, 200);
    n_bytes -= 100;
    const int64_t second = (int64_t)n_bytes;
    add_page(2, 8, 0, 10);
    add_page(0, 8, 1, 10);
    ck_assert_int_eq(end_at(0, &facts), second);
    ck_assert_int_eq(facts.has_gap, 1);
    clear(); // junk
    add_page(2, 7, 0, 10);
    add_page(0, 7, 1, 10);
    add_sound(1000);
    ck_assert_int_eq(end_at(0, &facts), (int64_t)n_bytes);
    ck_assert_int_eq(facts.has_gap, 1);
}
END_TEST

START_TEST(tags_and_padding)
{
    clear();
    add_sound(1000);
    add_text("TAG");
    add_sound(125);
    memset(bytes + n_bytes, 0, 5000);
    n_bytes += 5000;
    ck_assert_int_eq(end_of(), 1000);
    ck_assert_int_eq(lin_part_next(&file, 1000), (int64_t)n_bytes);
    add_sound(1);
    end_of();
    ck_assert_int_eq(lin_part_next(&file, 1000), 6128);
    clear();
    add_sound(1000);
    for (int i = 0; i < 2; i++) { // a header and a footer
        if (i) add_sound(40);
        add_text("APETAGEX");
        add_number(2000, 4, 0);
        add_number(40 + 32, 4, 0);
        add_number(1, 4, 0);
        add_number(i ? 0x80000000 : 0xa0000000, 4, 0);
        add_number(0, 8, 0);
    }
    ck_assert_int_eq(end_of(), 1000);
    ck_assert_int_eq(lin_part_next(&file, 1000), (int64_t)n_bytes);
}
END_TEST

// Any bytes, and any change of the ones above: within the file, and it ends.
START_TEST(hostile)
{
    const char *const begins[] = {"RIFF", "RF64", "FORM", "caff", "riff", ".snd", "OggS", "fLaC", "\xff\xfb\x90\x64",
                                  "Creative Voice File\x1a", "\x1a\x45\xdf\xa3", "\x30\x26\xb2\x75\x8e\x66\xcf\x11"};
    for (uint64_t i = 0; i < 3000; i++) {
        clear();
        const size_t n = 1 + lin_random_below(3, i, 600);
        for (size_t k = 0; k < n; k++) bytes[k] = (unsigned char)(lin_random_bits(i, k) & (i & 1 ? 0xff : 0x03));
        n_bytes = n;
        const char *begin = begins[i % 12];
        memcpy(bytes, begin, strlen(begin) < n ? strlen(begin) : n);
        lin_part_facts facts;
        for (int64_t at = 0, parts = 0; at < (int64_t)n_bytes; parts++) {
            const int64_t end = end_at(at, &facts), next = lin_part_next(&file, end);
            ck_assert_int_gt(end, at);
            ck_assert_int_le(end, (int64_t)n_bytes);
            ck_assert_int_ge(next, end);
            ck_assert_int_le(next, (int64_t)n_bytes);
            lin_part_is_chunk(&file, end);
            lin_part_flac_samples(&file, at, end);
            at = next;
        }
    }
}
END_TEST

int main(void)
{
    file.fd = -1;
    Suite *suite = suite_create("frontend/parts");
    TCase *cases = tcase_create("parts");
    tcase_add_unchecked_fixture(cases, NULL, remove_temp_folder);
    tcase_add_checked_fixture(cases, NULL, remove_temp_folder);
    tcase_add_test(cases, chunks);
    tcase_add_test(cases, boxes_and_signatures);
    tcase_add_test(cases, ogg);
    tcase_add_test(cases, tags_and_padding);
    tcase_add_test(cases, hostile);
    suite_add_tcase(suite, cases);
    return test_run(suite);
}
