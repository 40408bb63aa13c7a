// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_70 sm_75 sm_90
// Locks held by single threads of a warp.

// The lane that has the lock works in the same iteration: needs no independent progress of lanes.
extern "C" __global__ void lock_inside_loop(int* lock, volatile int* counter)
{
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *counter = *counter + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

// The classical form: lanes that wait must not keep the lane that has the lock from going on.
extern "C" __global__ void lock_before_work(int* lock, volatile int* counter, int* order)
{
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    int index = *counter;
    order[index] = blockIdx.x * blockDim.x + threadIdx.x;
    *counter = index + 1;
    __threadfence();
    atomicExch(lock, 0);
}

// Many locks, each for one account; money moves between two of them, locked in the order of their numbers.
extern "C" __global__ void transfer(int* locks, volatile int* balances, const int* from, const int* to, const int* amounts,
                                    int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    int low = min(from[i], to[i]);
    int high = max(from[i], to[i]);
    while (atomicCAS(&locks[low], 0, 1) != 0) {
    }
    while (atomicCAS(&locks[high], 0, 1) != 0) {
    }
    __threadfence();
    balances[from[i]] -= amounts[i];
    balances[to[i]] += amounts[i];
    __threadfence();
    atomicExch(&locks[high], 0);
    atomicExch(&locks[low], 0);
}
