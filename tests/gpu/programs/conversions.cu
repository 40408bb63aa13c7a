// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// Between integers and floating point, with all directions of rounding, and at the ends of the ranges.

extern "C" __global__ void float_to_integer(const float* x, int* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        float value = x[i];
        out[0 * count + i] = __float2int_rn(value);
        out[1 * count + i] = __float2int_rz(value);
        out[2 * count + i] = __float2int_ru(value);
        out[3 * count + i] = __float2int_rd(value);
        out[4 * count + i] = (int)__float2uint_rn(value);
        out[5 * count + i] = (int)__float2uint_rz(value);
        out[6 * count + i] = (int)(__float2ll_rn(value) >> 3);
        out[7 * count + i] = (int)(__float2ull_rz(value) >> 32);
        out[8 * count + i] = (signed char)fminf(fmaxf(value, -100.0f), 100.0f);
        out[9 * count + i] = __float_as_int(value);
    }
}

extern "C" __global__ void double_to_integer(const double* x, long long* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        double value = x[i];
        out[0 * count + i] = __double2ll_rn(value);
        out[1 * count + i] = __double2ll_rz(value);
        out[2 * count + i] = __double2ll_ru(value);
        out[3 * count + i] = __double2ll_rd(value);
        out[4 * count + i] = __double2int_rn(value);
        out[5 * count + i] = (long long)__double2uint_rz(value);
        out[6 * count + i] = (long long)__double2ull_ru(value);
        out[7 * count + i] = __double_as_longlong(value);
        out[8 * count + i] = __float_as_int(__double2float_rn(value));
        out[9 * count + i] = __float_as_int(__double2float_rz(value));
        out[10 * count + i] = __float_as_int(__double2float_ru(value));
        out[11 * count + i] = __float_as_int(__double2float_rd(value));
        out[12 * count + i] = __double2hiint(value) ^ __double2loint(value);
    }
}

extern "C" __global__ void integer_to_float(const long long* x, float* out, double* wide, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        long long value = x[i];
        out[0 * count + i] = __int2float_rn((int)value);
        out[1 * count + i] = __int2float_rz((int)value);
        out[2 * count + i] = __uint2float_ru((unsigned)value);
        out[3 * count + i] = __ll2float_rd(value);
        out[4 * count + i] = __ull2float_rn((unsigned long long)value);
        wide[0 * count + i] = __ll2double_rn(value);
        wide[1 * count + i] = __ll2double_ru(value);
        wide[2 * count + i] = __ull2double_rz((unsigned long long)value);
        wide[3 * count + i] = (double)(unsigned)value;
    }
}

extern "C" __global__ void rounded_arithmetic(const float* x, const float* y, float* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        float a = x[i];
        float b = y[i];
        out[0 * count + i] = __fadd_rn(a, b);
        out[1 * count + i] = __fadd_rz(a, b);
        out[2 * count + i] = __fadd_ru(a, b);
        out[3 * count + i] = __fadd_rd(a, b);
        out[4 * count + i] = __fmul_rz(a, b);
        out[5 * count + i] = __fmul_ru(a, b);
        out[6 * count + i] = __fdiv_rd(a, b);
        out[7 * count + i] = __fsqrt_ru(fabsf(a));
        out[8 * count + i] = __frcp_rz(b);
        out[9 * count + i] = __fdiv_rn(a, b);
        out[10 * count + i] = __fsqrt_rn(fabsf(b));
    }
}
