/*
 * list.h - a list of strings that it does not own: operands, phrases, columns.
 */
#ifndef LIN_BASE_LIST_H
#define LIN_BASE_LIST_H

typedef struct lin_list {
    const char **items; /* [count] */
    int count;
} lin_list;

#endif
