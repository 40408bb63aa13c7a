// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100 sm_80-lineinfo
// The number of steps each point takes to escape: lanes leave the loop at different times.

extern "C" __global__ void mandelbrot(unsigned short* steps, int width, int height, int limit)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) {
        return;
    }
    double c_re = -2.0 + 3.0 * x / width;
    double c_im = -1.25 + 2.5 * y / height;
    double re = 0;
    double im = 0;
    int step = 0;
    while (step < limit && __dadd_rn(__dmul_rn(re, re), __dmul_rn(im, im)) <= 4.0) {
        double next = __dadd_rn(__dsub_rn(__dmul_rn(re, re), __dmul_rn(im, im)), c_re);
        im = __dadd_rn(__dmul_rn(2.0, __dmul_rn(re, im)), c_im);
        re = next;
        step++;
    }
    steps[y * width + x] = step;
}
