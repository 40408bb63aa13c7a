#include "gpu/exec/opcodes.hpp"
#include "gpu/exec/access_check.hpp"
#include "gpu/exec/launch.hpp"
namespace manyscale::gpu {
#define WEAK __attribute__((weak))
WEAK std::span<const Opcode> float_opcodes() { return {}; }
WEAK std::span<const Opcode> half_opcodes() { return {}; }
WEAK std::span<const Opcode> convert_opcodes() { return {}; }
WEAK std::span<const Opcode> atomic_opcodes() { return {}; }
WEAK std::span<const Opcode> async_copy_opcodes() { return {}; }
WEAK std::span<const Opcode> texture_opcodes() { return {}; }
WEAK std::span<const Opcode> tensor_opcodes() { return {}; }
}
