// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Discrete Fourier transform of one block's values in shared memory, radix 2, in place after a bit reversal.

template <typename T>
struct Complex {
    T re;
    T im;
};

__device__ void turn(float angle, float* sine, float* cosine)
{
    sincospif(angle, sine, cosine);
}

__device__ void turn(double angle, double* sine, double* cosine)
{
    sincospi(angle, sine, cosine);
}

template <typename T>
__device__ void transform(Complex<T>* data, int bits, T sign)
{
    extern __shared__ __align__(16) unsigned char bytes[];
    Complex<T>* values = reinterpret_cast<Complex<T>*>(bytes);
    int thread = threadIdx.x;
    int count = 1 << bits;
    Complex<T>* own = data + blockIdx.x * count;
    for (int i = thread; i < count; i += blockDim.x) {
        values[__brev(i) >> (32 - bits)] = own[i];
    }
    __syncthreads();
    for (int half = 1; half < count; half *= 2) {
        for (int pair = thread; pair < count / 2; pair += blockDim.x) {
            int index = pair % half;
            int low = pair / half * 2 * half + index;
            T sine;
            T cosine;
            turn(sign * index / half, &sine, &cosine);
            Complex<T> a = values[low];
            Complex<T> b = values[low + half];
            Complex<T> turned = {b.re * cosine - b.im * sine, b.re * sine + b.im * cosine};
            values[low] = {a.re + turned.re, a.im + turned.im};
            values[low + half] = {a.re - turned.re, a.im - turned.im};
        }
        __syncthreads();
    }
    for (int i = thread; i < count; i += blockDim.x) {
        own[i] = values[i];
    }
}

extern "C" __global__ void fft_f32(Complex<float>* data, int bits, float sign)
{
    transform(data, bits, sign);
}

extern "C" __global__ void fft_f64(Complex<double>* data, int bits, double sign)
{
    transform(data, bits, sign);
}
