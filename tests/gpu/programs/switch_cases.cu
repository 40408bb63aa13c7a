// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// Branches with many targets: a switch that runs small programs, and a table of targets written by hand.

extern "C" __global__ void run_programs(const unsigned char* codes, const int* lengths, int stride, int* results, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    const unsigned char* code = codes + i * stride;
    int a = i;
    int b = 1;
    for (int at = 0; at < lengths[i]; at++) {
        switch (code[at]) {
        case 0:
            a = a + b;
            break;
        case 1:
            a = a - 3 * b;
            break;
        case 2:
            b = a ^ (b << 1);
            break;
        case 3:
            a = a * 5 + 1;
            break;
        case 4:
            b = b & 0xffff;
            break;
        case 5: {
            int old = a;
            a = b;
            b = old;
            break;
        }
        case 6:
            if (a > b) {
                at++;
            }
            break;
        case 7:
            a = (a >> 3) | (b & 7);
            b++;
            // falls through
        case 8:
            b = b - a;
            break;
        case 9:
            a = __popc(a);
            break;
        case 10:
            a = ~a;
            break;
        case 11:
            b = max(a, b);
            break;
        case 12:
            b = min(a, b) - 1;
            break;
        default:
            a += 7;
        }
    }
    results[i] = a ^ (b * 31);
}

extern "C" __global__ void branch_table(const unsigned* choices, unsigned* results, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    unsigned value = i;
    asm volatile("{\n\t"
                 "targets: .branchtargets ONE, TEN, TWENTY, SQUARE;\n\t"
                 "brx.idx %1, targets;\n\t"
                 "ONE: add.u32 %0, %0, 1;\n\t"
                 "bra.uni END;\n\t"
                 "TWENTY: add.u32 %0, %0, 10;\n\t"
                 "TEN: add.u32 %0, %0, 10;\n\t"
                 "bra.uni END;\n\t"
                 "SQUARE: mul.lo.u32 %0, %0, %0;\n\t"
                 "END:\n\t"
                 "}"
                 : "+r"(value)
                 : "r"(choices[i]));
    results[i] = value;
}
