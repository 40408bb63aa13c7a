// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Objects with virtual functions, made and used on the device.

struct Shape {
    __device__ virtual float area() const = 0;

    __device__ virtual int corners() const
    {
        return 0;
    }
};

struct Circle : Shape {
    float radius;

    __device__ explicit Circle(float r) : radius(r)
    {
    }

    __device__ float area() const override
    {
        return 3.0f * radius * radius;
    }
};

struct Box : Shape {
    float width;
    float height;

    __device__ Box(float w, float h) : width(w), height(h)
    {
    }

    __device__ float area() const override
    {
        return width * height;
    }

    __device__ int corners() const override
    {
        return 4;
    }
};

struct Square : Box {
    __device__ explicit Square(float side) : Box(side, side)
    {
    }

    __device__ float area() const override
    {
        return width * width + 0.5f;
    }
};

extern "C" __global__ void make_shapes(Shape** shapes, const float* sizes, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        float size = sizes[i];
        switch (i % 3) {
        case 0:
            shapes[i] = new Circle(size);
            break;
        case 1:
            shapes[i] = new Box(size, size + 1.0f);
            break;
        default:
            shapes[i] = new Square(size);
        }
    }
}

extern "C" __global__ void measure_shapes(Shape** shapes, float* areas, int* corners, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        areas[i] = shapes[i]->area();
        corners[i] = shapes[i]->corners();
        delete shapes[i];
    }
}
