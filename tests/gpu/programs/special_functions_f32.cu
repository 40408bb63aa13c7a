// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// Mathematical functions of floats; large arguments of sine, cosine and tangent take the slow path.

extern "C" __global__ void elementary_f32(const float* x, float* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        float value = x[i];
        out[0 * count + i] = sinf(value);
        out[1 * count + i] = cosf(value);
        out[2 * count + i] = tanf(value);
        out[3 * count + i] = expf(value);
        out[4 * count + i] = logf(fabsf(value));
        out[5 * count + i] = powf(fabsf(value), 1.37f);
        out[6 * count + i] = sqrtf(fabsf(value));
        out[7 * count + i] = cbrtf(value);
        out[8 * count + i] = atanf(value);
        out[9 * count + i] = tanhf(value);
        out[10 * count + i] = rsqrtf(fabsf(value));
        out[11 * count + i] = 1.0f / value;
        out[12 * count + i] = fmodf(value, 0.73f);
        out[13 * count + i] = floorf(value) + truncf(value) + rintf(value) + ceilf(value);
    }
}

extern "C" __global__ void statistics_f32(const float* x, float* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        float value = x[i];
        out[0 * count + i] = erff(value);
        out[1 * count + i] = erfcf(value);
        out[2 * count + i] = tgammaf(value);
        out[3 * count + i] = lgammaf(value);
        out[4 * count + i] = expm1f(value);
        out[5 * count + i] = log1pf(fabsf(value));
        out[6 * count + i] = hypotf(value, 1.5f);
        out[7 * count + i] = atan2f(value, -0.5f);
    }
}

// The approximations of the hardware.
extern "C" __global__ void fast_f32(const float* x, float* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        float value = x[i];
        out[0 * count + i] = __sinf(value);
        out[1 * count + i] = __cosf(value);
        out[2 * count + i] = __expf(value);
        out[3 * count + i] = __logf(fabsf(value));
        out[4 * count + i] = __fdividef(2.0f, value);
        out[5 * count + i] = exp2f(value);
        out[6 * count + i] = log2f(fabsf(value));
        out[7 * count + i] = __saturatef(value);
    }
}
