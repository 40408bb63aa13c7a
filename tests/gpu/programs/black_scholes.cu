// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Prices of European options in single and in double precision.

extern "C" __global__ void black_scholes_f32(const float* spot, const float* strike, const float* years, float rate,
                                             float volatility, float* call, float* put, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    float root = sqrtf(years[i]);
    float d1 = (logf(spot[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / (volatility * root);
    float d2 = d1 - volatility * root;
    float discounted = strike[i] * expf(-rate * years[i]);
    float n1 = 0.5f * erfcf(-d1 * 0.70710678f);
    float n2 = 0.5f * erfcf(-d2 * 0.70710678f);
    call[i] = spot[i] * n1 - discounted * n2;
    put[i] = discounted * (1.0f - n2) - spot[i] * (1.0f - n1);
}

extern "C" __global__ void black_scholes_f64(const double* spot, const double* strike, const double* years, double rate,
                                             double volatility, double* call, double* put, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    double root = sqrt(years[i]);
    double d1 = (log(spot[i] / strike[i]) + (rate + 0.5 * volatility * volatility) * years[i]) / (volatility * root);
    double d2 = d1 - volatility * root;
    double discounted = strike[i] * exp(-rate * years[i]);
    double n1 = normcdf(d1);
    double n2 = normcdf(d2);
    call[i] = spot[i] * n1 - discounted * n2;
    put[i] = discounted * (1.0 - n2) - spot[i] * (1.0 - n1);
}
