// rows.c - a tool for the shell tests: writes matrices of log-probabilities whose phones and times are known.
//
//   rows OUT [V=40] [p=0.9] < SCRIPT
//
// The script is pairs of words: PHONE ROWS writes ROWS rows in which this phone (CMUdict's name, "-" for the blank) has
// probability p and the other columns share the rest. PHONE:Q gives it probability Q; PHONE:Q+PHONE2:Q2 names two phones. V: the
// number of columns; those after the phones have no name. The words nan, half and logits in place of PHONE write rows that are
// not log-probabilities.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/lab/npy.h"
#include "lexicon/phones.h"

enum { MOST_V = 256 };

static void fail(const char *what)
{
    fprintf(stderr, "rows: %s\n", what);
    exit(1);
}

static int find(const lin_phones *phones, const char *name, size_t n)
{
    if (n == 1 && *name == '-') return 0;
    int label = lin_phones_find(phones, name, n);
    if (label < 0) fail(name);
    return label;
}

// "B", "B:0.6", "B:0.5+P:0.4"
static void fill(const lin_phones *phones, const char *spec, double p, int V, float *row)
{
    double probability[MOST_V] = {0}, rest = 1;
    int named = 0;
    for (const char *at = spec; *at; named++) {
        size_t n = strcspn(at, ":+"), all = strcspn(at, "+");
        double q = at[n] == ':' ? atof(at + n + 1) : p;
        probability[find(phones, at, n)] = q;
        rest -= q;
        at += all + (at[all] == '+');
    }
    for (int v = 0; v < V; v++) row[v] = (float)log(probability[v] > 0 ? probability[v] : rest / (V - named));
}

int main(int argc, char **argv)
{
    lin_error err = {0};
    lin_phones *phones;
    lin_npy_writer *out;
    int V = LIN_PHONES_DEFAULT_COUNT, rows;
    double p = 0.9;
    char spec[256];
    float row[MOST_V];
    if (argc < 2) fail("rows OUT [V=40] [p=0.9] < SCRIPT");
    for (int i = 2; i < argc; i++) {
        if (strncmp(argv[i], "V=", 2) == 0) V = atoi(argv[i] + 2);
        else if (strncmp(argv[i], "p=", 2) == 0) p = atof(argv[i] + 2);
        else fail(argv[i]);
    }
    if (V < 1 || V > MOST_V) fail("V");
    if (lin_phones_create(NULL, &phones, &err) != LIN_OK || lin_npy_create(argv[1], V, &out, &err) != LIN_OK) fail(err.message);
    while (scanf("%255s %d", spec, &rows) == 2) {
        for (int t = 0; t < rows; t++) {
            const int odd = strcmp(spec, "nan") == 0 || strcmp(spec, "half") == 0 || strcmp(spec, "logits") == 0;
            fill(phones, odd ? "-" : spec, p, V, row);
            if (strcmp(spec, "nan") == 0) row[V - 1] = NAN;
            for (int v = 0; v < V && strcmp(spec, "half") == 0; v++) row[v] -= (float)log(2);
            for (int v = 0; v < V && strcmp(spec, "logits") == 0; v++) row[v] += 3;
            if (lin_npy_append(out, row, 1, &err) != LIN_OK) fail(err.message);
        }
    }
    if (lin_npy_close(out, &err) != LIN_OK) fail(err.message);
    lin_phones_destroy(phones);
    return 0;
}
