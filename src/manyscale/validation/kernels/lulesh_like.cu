// SPDX-License-Identifier: Apache-2.0
// One step of an explicit hydrodynamics code on a mesh of hexahedra, in double precision. The work is shaped like that
// of LULESH: gathers through a table of corners, forces of each cell and sums for each node, damping of the modes that
// no pressure resists by eight threads a cell, neighbours across faces, an equation of state that is repeated in
// expensive regions, and the least time step of all cells. The physics is simpler.
//
// Tables of corners and forces are by corner first, then by cell, so that neighbouring threads read neighbouring words.
// Corner c of a cell lies at x = c & 1, y = c >> 1 & 1, z = c >> 2.

#define CORNERS 8
#define FACES 6
#define THREADS 128  // of a CTA that reduces

struct Vector {
    double x, y, z;
};

static __device__ Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
static __device__ Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
static __device__ Vector operator*(double s, Vector a) { return {s * a.x, s * a.y, s * a.z}; }
static __device__ double dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static __device__ Vector cross(Vector a, Vector b)
{
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static __device__ Vector load(const double* x, const double* y, const double* z, int at)
{
    return {x[at], y[at], z[at]};
}

// The corners of a face in an order that goes round it, so that its normal points out of the cell: the faces at x = 0,
// x = 1, y = 0, y = 1, z = 0 and z = 1.
static __device__ constexpr int FACE_CORNERS[FACES][4] = {
    {0, 4, 6, 2}, {1, 3, 7, 5}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 2, 3, 1}, {4, 5, 7, 6},
};

static __device__ Vector face_normal(const Vector corner[CORNERS], int face)
{
    const int* at = FACE_CORNERS[face];
    return 0.5 * cross(corner[at[2]] - corner[at[0]], corner[at[3]] - corner[at[1]]);
}

static __device__ double cell_volume(const Vector corner[CORNERS])
{
    // A third of the flux of the position through the faces, each taken at its middle.
    double volume = 0;
#pragma unroll
    for (int face = 0; face < FACES; face++) {
        const int* at = FACE_CORNERS[face];
        Vector middle = 0.25 * ((corner[at[0]] + corner[at[1]]) + (corner[at[2]] + corner[at[3]]));
        volume += dot(middle, face_normal(corner, face));
    }
    return volume / 3;
}

// Each cell pushes its corners with its pressure and viscosity over a quarter of each face.
extern "C" __global__ void push_corners(int cells, const int* corners, const double* x, const double* y,
                                        const double* z, const double* pressure, const double* viscosity,
                                        double* force_x, double* force_y, double* force_z)
{
    int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= cells) {
        return;
    }
    Vector corner[CORNERS], force[CORNERS];
#pragma unroll
    for (int c = 0; c < CORNERS; c++) {
        corner[c] = load(x, y, z, corners[c * cells + cell]);
        force[c] = {0, 0, 0};
    }
    double push = 0.25 * (pressure[cell] + viscosity[cell]);
#pragma unroll
    for (int face = 0; face < FACES; face++) {
        Vector share = push * face_normal(corner, face);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            force[FACE_CORNERS[face][k]] = force[FACE_CORNERS[face][k]] + share;
        }
    }
#pragma unroll
    for (int c = 0; c < CORNERS; c++) {
        force_x[c * cells + cell] = force[c].x;
        force_y[c * cells + cell] = force[c].y;
        force_z[c * cells + cell] = force[c].z;
    }
}

static __device__ double sum_of_eight(double value)
{
    for (int lane = 1; lane < CORNERS; lane *= 2) {
        value += __shfl_xor_sync(~0u, value, lane);
    }
    return value;
}

// Damps the four patterns of velocity that leave a cell's volume and gradients as they are; a thread for each corner.
extern "C" __global__ void damp_corners(int cells, const int* corners, const double* x, const double* y,
                                        const double* z, const double* velocity_x, const double* velocity_y,
                                        const double* velocity_z, const double* volume, const double* sound,
                                        const double* mass, double* force_x, double* force_y, double* force_z)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int cell = min(thread / CORNERS, cells - 1), c = thread % CORNERS;
    int node = corners[c * cells + cell];
    Vector position = load(x, y, z, node), velocity = load(velocity_x, velocity_y, velocity_z, node);
    double sign_x = c & 1 ? 1 : -1, sign_y = c & 2 ? 1 : -1, sign_z = c & 4 ? 1 : -1;
    double patterns[4] = {sign_x * sign_y, sign_y * sign_z, sign_z * sign_x, sign_x * sign_y * sign_z};
    double coefficient = -0.03 * sound[cell] * mass[cell] / cbrt(volume[cell]);
    Vector damping = {0, 0, 0};
#pragma unroll
    for (int mode = 0; mode < 4; mode++) {
        double pattern = patterns[mode];
        // A distorted cell's pattern has a part along its gradients, which is taken away.
        double bend_x = sum_of_eight(pattern * position.x), bend_y = sum_of_eight(pattern * position.y);
        double bend_z = sum_of_eight(pattern * position.z);
        pattern -= 0.125 * (bend_x * sign_x + bend_y * sign_y + bend_z * sign_z);
        damping.x += pattern * sum_of_eight(pattern * velocity.x);
        damping.y += pattern * sum_of_eight(pattern * velocity.y);
        damping.z += pattern * sum_of_eight(pattern * velocity.z);
    }
    if (thread < cells * CORNERS) {
        force_x[c * cells + cell] = coefficient * damping.x;
        force_y[c * cells + cell] = coefficient * damping.y;
        force_z[c * cells + cell] = coefficient * damping.z;
    }
}

// The forces on a node: those of all corners that meet in it. `first` has one entry more than there are nodes.
extern "C" __global__ void sum_forces(int nodes, const int* first, const int* corners_of_nodes, const double* push_x,
                                      const double* push_y, const double* push_z, const double* damp_x,
                                      const double* damp_y, const double* damp_z, double* force_x,
                                      double* force_y, double* force_z)
{
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes) {
        return;
    }
    Vector force = {0, 0, 0};
    for (int at = first[node]; at < first[node + 1]; at++) {
        int corner = corners_of_nodes[at];
        force = force + load(push_x, push_y, push_z, corner) + load(damp_x, damp_y, damp_z, corner);
    }
    force_x[node] = force.x;
    force_y[node] = force.y;
    force_z[node] = force.z;
}

// Bit d of `held`: the node does not move in direction d.
extern "C" __global__ void accelerate(int nodes, const unsigned* held, const double* mass, double* force_x,
                                      double* force_y, double* force_z)
{
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes) {
        return;
    }
    Vector acceleration = 1 / mass[node] * load(force_x, force_y, force_z, node);
    unsigned holds = held[node];
    force_x[node] = holds & 1 ? 0 : acceleration.x;
    force_y[node] = holds & 2 ? 0 : acceleration.y;
    force_z[node] = holds & 4 ? 0 : acceleration.z;
}

static __device__ double without_noise(double value) { return fabs(value) < 1e-7 ? 0 : value; }

extern "C" __global__ void change_velocity(int nodes, double step, const double* acceleration_x,
                                           const double* acceleration_y, const double* acceleration_z,
                                           double* velocity_x, double* velocity_y, double* velocity_z)
{
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes) {
        return;
    }
    velocity_x[node] = without_noise(velocity_x[node] + step * acceleration_x[node]);
    velocity_y[node] = without_noise(velocity_y[node] + step * acceleration_y[node]);
    velocity_z[node] = without_noise(velocity_z[node] + step * acceleration_z[node]);
}

extern "C" __global__ void move_nodes(int nodes, double step, const double* velocity_x, const double* velocity_y,
                                      const double* velocity_z, double* x, double* y, double* z)
{
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes) {
        return;
    }
    x[node] += step * velocity_x[node];
    y[node] += step * velocity_y[node];
    z[node] += step * velocity_z[node];
}

// The new volume of each cell, how fast it changes, its length across, and the rate of change of each of its faces.
extern "C" __global__ void follow_cells(int cells, double step, const int* corners, const double* x,
                                        const double* y, const double* z, const double* velocity_x,
                                        const double* velocity_y, const double* velocity_z, double* volume,
                                        double* rate, double* length, double* gradient)
{
    int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= cells) {
        return;
    }
    Vector corner[CORNERS], velocity[CORNERS];
#pragma unroll
    for (int c = 0; c < CORNERS; c++) {
        int node = corners[c * cells + cell];
        corner[c] = load(x, y, z, node);
        velocity[c] = load(velocity_x, velocity_y, velocity_z, node);
    }
    double now = cell_volume(corner);
    double widest = 0;
#pragma unroll
    for (int face = 0; face < FACES; face++) {
        Vector normal = face_normal(corner, face);
        widest = fmax(widest, dot(normal, normal));
    }
    length[cell] = now / sqrt(sqrt(widest));
    // Half a step back: the rate of each direction from the faces' velocities through their normals there.
    double sum = 0;
#pragma unroll
    for (int c = 0; c < CORNERS; c++) {
        corner[c] = corner[c] - 0.5 * step * velocity[c];
    }
    double before = 1 / cell_volume(corner);
#pragma unroll
    for (int direction = 0; direction < 3; direction++) {
        double flow = 0;
#pragma unroll
        for (int side = 0; side < 2; side++) {
            const int* at = FACE_CORNERS[2 * direction + side];
            Vector middle = (velocity[at[0]] + velocity[at[1]]) + (velocity[at[2]] + velocity[at[3]]);
            flow += 0.25 * dot(middle, face_normal(corner, 2 * direction + side));
        }
        gradient[direction * cells + cell] = flow * before;
        sum += flow * before;
    }
    volume[cell] = now;
    rate[cell] = sum;
}

static __device__ double limited(double left, double right, double own)
{
    double scale = 1 / (own + (own < 0 ? -1e-36 : 1e-36));
    double from_left = left * scale, from_right = right * scale;
    double limit = fmin(0.5 * (from_left + from_right), fmin(2 * from_left, 2 * from_right));
    return fmin(fmax(limit, 0.0), 1.0);
}

// The viscosity of a cell that is compressed, in two parts: what goes with the speed of sound, and the rest. There is less
// of it where the neighbours are compressed as much.
extern "C" __global__ void resist_shocks(int cells, const int* neighbours, const double* gradient,
                                         const double* rate, const double* volume, const double* length,
                                         const double* mass, double* linear, double* quadratic)
{
    int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= cells) {
        return;
    }
    double with_sound = 0, alone = 0;
    if (rate[cell] < 0) {
        double density = mass[cell] / volume[cell], across = length[cell];
        for (int direction = 0; direction < 3; direction++) {
            const double* along = gradient + direction * cells;
            int left = neighbours[2 * direction * cells + cell];
            int right = neighbours[(2 * direction + 1) * cells + cell];
            double own = along[cell];
            double phi = limited(left < 0 ? own : along[left], right < 0 ? own : along[right], own);
            if (own < 0) {
                double jump = own * across * (1 - phi);
                with_sound += 0.5 * density * fabs(jump) * (1 + phi);
                alone += 2 * density * jump * jump;
            }
        }
    }
    linear[cell] = with_sound;
    quadratic[cell] = alone;
}

// Energy, pressure, viscosity and speed of sound of the cells of a region. They depend on each other: a costly material
// takes more repetitions.
extern "C" __global__ void equation_of_state(int count, const int* members, int repetitions, double step,
                                             const double* volume, const double* initial_volume,
                                             const double* rate, const double* linear, const double* quadratic,
                                             double* energy, double* pressure, double* viscosity, double* sound)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= count) {
        return;
    }
    int cell = members[thread];
    double relative = volume[cell] / initial_volume[cell];
    double change = relative * step * rate[cell], stiffness = 2.0 / 3 / relative;
    double old_energy = energy[cell], old_pressure = pressure[cell], with_sound = linear[cell];
    double alone = quadratic[cell];
    double new_energy = old_energy, new_pressure = old_pressure, speed = sound[cell], resistance = 0;
    for (int repetition = 0; repetition < repetitions; repetition++) {
        resistance = change < 0 ? with_sound * speed + alone : 0;
        new_energy = old_energy - change * (0.5 * (old_pressure + new_pressure) + resistance);
        if (new_energy < 1e-9) {
            new_energy = 1e-9;
        }
        new_pressure = stiffness * new_energy;
        if (new_pressure < 1e-7) {
            new_pressure = 0;
        }
        double squared = (stiffness * new_energy + relative * new_pressure) / (1 + relative * resistance);
        speed = squared <= 1e-12 ? 1e-6 : sqrt(squared);
    }
    energy[cell] = new_energy;
    pressure[cell] = new_pressure;
    viscosity[cell] = resistance;
    sound[cell] = speed;
}

static __device__ void least_of_cta(double value, double* result)
{
    __shared__ double least[THREADS];
    least[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            least[threadIdx.x] = fmin(least[threadIdx.x], least[threadIdx.x + half]);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        result[blockIdx.x] = least[0];
    }
}

// The longest step that sound and compression allow in the cells of a CTA.
extern "C" __global__ void limit_step(int cells, const double* length, const double* sound, const double* rate,
                                      double* limits)
{
    int cell = blockIdx.x * blockDim.x + threadIdx.x;
    double allowed = 1e20;
    if (cell < cells) {
        double speed = sound[cell], across = length[cell], change = rate[cell];
        double squared = speed * speed;
        if (change < 0) {
            squared += 4 * across * across * change * change;
        }
        allowed = 0.5 * across / sqrt(squared + 1e-30);
        if (change != 0) {
            allowed = fmin(allowed, 0.1 / fabs(change));
        }
    }
    least_of_cta(allowed, limits);
}

// The least of the CTAs' limits, by one CTA.
extern "C" __global__ void least_limit(int count, const double* limits, double* result)
{
    double least = 1e20;
    for (int at = threadIdx.x; at < count; at += THREADS) {
        least = fmin(least, limits[at]);
    }
    least_of_cta(least, result);
}
