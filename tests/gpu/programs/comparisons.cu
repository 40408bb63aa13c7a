// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Comparisons of floating point numbers with infinities, signed zeros and numbers that are none.

extern "C" __global__ void comparisons(const double* x, const double* y, int* out, double* values, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    double a = x[i];
    double b = y[i];
    int bits = 0;
    bits |= a < b ? 1 : 0;
    bits |= a <= b ? 2 : 0;
    bits |= a == b ? 4 : 0;
    bits |= a != b ? 8 : 0;
    bits |= !(a >= b) ? 16 : 0;
    bits |= !(a > b) ? 32 : 0;
    bits |= isnan(a) ? 64 : 0;
    bits |= isinf(b) ? 128 : 0;
    bits |= isfinite(a) && isfinite(b) ? 256 : 0;
    bits |= signbit(a) ? 512 : 0;
    float c = (float)a;
    float d = (float)b;
    bits |= c < d ? 1024 : 0;
    bits |= isnan(c) || isnan(d) ? 2048 : 0;
    bits |= c == 0.0f || d > c ? 4096 : 0;
    out[i] = bits;
    values[0 * count + i] = fmin(a, b);
    values[1 * count + i] = fmax(a, b);
    values[2 * count + i] = fabs(a);
    values[3 * count + i] = -b;
    values[4 * count + i] = copysign(a, b);
    values[5 * count + i] = fminf(c, d);
    values[6 * count + i] = fmaxf(c, d);
    values[7 * count + i] = a + b;
    values[8 * count + i] = fdim(a, b);
}
