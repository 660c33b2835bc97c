// Every operation but the matrix product, for AVX2 with FMA: vectors of 8 floats.
#define LIN_SUFFIX avx2
#define LIN_WIDTH 8
#include "kernels/cpu/attention.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/ctc.h"
#include "kernels/cpu/denominator.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/optimizer.h"
#include "kernels/cpu/softmax.h"
