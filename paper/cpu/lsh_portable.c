// LSH attention for any machine: vectors of 4 floats.
#define LIN_SUFFIX portable
#define LIN_WIDTH 4
#include "paper/cpu/lsh_body.h"
