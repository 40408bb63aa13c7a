// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// Mathematical functions of doubles; large arguments of sine, cosine and tangent take the slow path.

extern "C" __global__ void elementary_f64(const double* x, double* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        double value = x[i];
        out[0 * count + i] = sin(value);
        out[1 * count + i] = cos(value);
        out[2 * count + i] = tan(value);
        out[3 * count + i] = exp(value);
        out[4 * count + i] = log(fabs(value));
        out[5 * count + i] = pow(fabs(value), 1.37);
        out[6 * count + i] = sqrt(fabs(value));
        out[7 * count + i] = cbrt(value);
        out[8 * count + i] = atan(value);
        out[9 * count + i] = tanh(value);
        out[10 * count + i] = rsqrt(fabs(value));
        out[11 * count + i] = 1.0 / value;
        out[12 * count + i] = fmod(value, 0.73);
        out[13 * count + i] = floor(value) + trunc(value) + rint(value) + ceil(value);
    }
}

extern "C" __global__ void statistics_f64(const double* x, double* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        double value = x[i];
        out[0 * count + i] = erf(value);
        out[1 * count + i] = erfc(value);
        out[2 * count + i] = tgamma(value);
        out[3 * count + i] = lgamma(value);
        out[4 * count + i] = expm1(value);
        out[5 * count + i] = log1p(fabs(value));
        out[6 * count + i] = hypot(value, 1.5);
        out[7 * count + i] = atan2(value, -0.5);
    }
}
