/*
 * turns.h - what several speakers say, each on a channel, as one transcript: their turns in the order of time.
 *
 * Pipeline: a result of each channel -> [this] -> the writers, a result of each turn.
 * A turn goes on over pauses of up to 2 s in which nobody else speaks; where speakers interrupt each other, at pauses of 0.5 s.
 *
 *   lin_turns turns = {0};                                       // reused
 *   lin_turns_make(&turns, results, n, &err);
 *   for (i = 0; i < turns.n; i++) ... turns.items[i].result, turns.items[i].until_s ...
 *   lin_turns_free(&turns);
 *
 * Threads: one at a time.
 */
#ifndef LIN_APP_TURNS_H
#define LIN_APP_TURNS_H

#include "decoder/result.h"

typedef struct lin_turn {
    lin_result result; /* named after the whole, its speaker and the number of the turn: "call-anna-0001" */
    double start_s, end_s, until_s; /* of what is said; when the next turn begins, at least end_s; INFINITY: there is none */
} lin_turn;

typedef struct lin_turns {
    lin_turn *items;
    int n, capacity;
} lin_turns;

/* Replaces the turns by those of results [n], whose ids begin with the name of the sound, `name`. LIN_NO_MEMORY. */
lin_status lin_turns_make(lin_turns *turns, const char *name, const lin_result *const *results, int n, lin_error *err);
void lin_turns_free(lin_turns *turns);

#endif
