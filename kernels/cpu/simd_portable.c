// Every operation but the matrix product, for any machine: vectors of 4 floats.
#define LIN_SUFFIX portable
#define LIN_WIDTH 4
#include "kernels/cpu/attention.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/ctc.h"
#include "kernels/cpu/denominator.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/optimizer.h"
#include "kernels/cpu/softmax.h"
