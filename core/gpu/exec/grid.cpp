// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <exception>
#include <mutex>
#include <thread>

#include "gpu/exec/fault.hpp"
#include "gpu/exec/launch.hpp"

namespace manyscale::gpu {

namespace {

std::string triple(const std::array<std::uint32_t, 3>& value) {
  return "(" + std::to_string(value[0]) + ", " + std::to_string(value[1]) + ", " + std::to_string(value[2]) + ")";
}

// "file.ptx:12 (saxpy.cu:7)".
std::string place_of(const ptx::Module& module, const OpInfo& info) {
  std::string text = module.name + ":" + std::to_string(info.where.line);
  if (info.source.line != 0 && info.source.file < module.files.size())
    text += " (" + module.files[info.source.file] + ":" + std::to_string(info.source.line) + ")";
  return text;
}

std::string instruction_text(const ptx::Module& module, const Code& code, const Program& program,
                             const OpInfo& info) {
  const auto function = static_cast<std::size_t>(&code - program.codes.data());
  if (info.instruction == ptx::kNone || function >= module.functions.size()) return "ret";
  const ptx::Instruction& instruction = module.functions[function].instructions[info.instruction];
  std::string text(instruction.opcode);
  for (std::string_view modifier : module.modifiers_of(instruction)) text.append(".").append(modifier);
  return text;
}

std::string explain(const Launch& launch, const Cta& cta, const Fault& fault) {
  const Program& program = *launch.program;
  const ptx::Module& module = *program.module;
  const Warp& warp = cta.running();
  const OpInfo& info = warp.fault_place();
  const unsigned thread = warp.thread(fault.lane);
  const std::array<std::uint32_t, 3> position{thread % launch.block[0], thread / launch.block[0] % launch.block[1],
                                              thread / launch.block[0] / launch.block[1]};
  std::string text = std::string(fault.what()) + "\n  kernel " + std::string(module.functions[program.kernel].name);
  if (warp.code().name != module.functions[program.kernel].name) text += ", in function " + warp.code().name;
  return text + ", CTA " + triple(cta.position()) + ", thread " + triple(position) + "\n  at " +
         place_of(module, info) + ": " + instruction_text(module, warp.code(), program, info);
}

std::string explain_deadlock(const Launch& launch, const Cta& cta) {
  const ptx::Module& module = *launch.program->module;
  std::string text = "deadlock: no warp of CTA " + triple(cta.position()) + " of kernel " +
                     std::string(module.functions[launch.program->kernel].name) + " can go on";
  unsigned shown = 0;
  for (const auto& warp : cta.warps()) {
    for (const Split& split : warp->splits()) {
      if (++shown > 8) return text + "\n  …";
      const bool at_barrier = split.state == Split::State::at_barrier;
      const std::uint32_t pc = at_barrier ? split.pc - 1 : split.pc;
      const OpInfo& info = split.frame->code->infos[split.frame->code->ops[pc].info];
      text += "\n  warp " + std::to_string(warp->index()) + ": " + std::to_string(std::popcount(split.mask)) +
              " lanes wait at " + place_of(module, info) +
              (at_barrier ? " for barrier " + std::to_string(split.members) : " for other lanes of the warp");
    }
  }
  for (unsigned i = 0; i < kBarriers; ++i) {
    const Barrier& barrier = cta.barrier(i);
    if (barrier.arrived_threads == 0) continue;
    text += "\n  barrier " + std::to_string(i) + ": " + std::to_string(barrier.arrived_threads) + " threads came, " +
            (barrier.expected == 0 ? "all that have not exited" : std::to_string(barrier.expected)) + " are expected";
  }
  return text;
}

// The CTAs of a grid that one worker carries out: those with index = first, first + step, …
class CtaRunner {
 public:
  CtaRunner(const Launch& launch, Worker& worker) : launch_(launch), worker_(worker) {}

  // Runs CTAs in the order they are given out by `next`, which says false when there are no more. A CTA that waits
  // for others stays while later ones are started.
  template <class Next>
  void run(Next next) {
    std::uint64_t index = 0;
    bool more = true;
    while (more || !resident_.empty()) {
      bool finished = false;
      for (std::size_t i = 0; i < resident_.size();) {
        if (step(*resident_[i])) {
          idle_.push_back(std::move(resident_[i]));
          resident_.erase(resident_.begin() + static_cast<std::ptrdiff_t>(i));
          finished = true;
        } else {
          ++i;
        }
      }
      if (finished || !more) continue;
      if ((more = next(index))) {
        if (idle_.empty()) idle_.push_back(std::make_unique<Cta>());
        resident_.push_back(std::move(idle_.back()));
        idle_.pop_back();
        resident_.back()->start(launch_, worker_, index);
      }
    }
  }

 private:
  bool step(Cta& cta) {
    try {
      const bool finished = cta.run() == Cta::State::finished;
      check_limits();
      return finished;
    } catch (const Fault& fault) {
      throw KernelFault(explain(launch_, cta, fault));
    } catch (const Deadlock&) {
      throw KernelFault(explain_deadlock(launch_, cta));
    }
  }

  void check_limits() const {
    if (launch_.stop != nullptr && launch_.stop->load(std::memory_order_relaxed)) throw Stopped("interrupted");
    if (launch_.maximum_instructions != 0 && worker_.counts.warp_instructions > launch_.maximum_instructions)
      throw KernelFault("kernel " + std::string(launch_.program->module->functions[launch_.program->kernel].name) +
                        " has executed more than the " + std::to_string(launch_.maximum_instructions) +
                        " warp instructions it may; if it is not caught in a loop, allow more");
  }

  const Launch& launch_;
  Worker& worker_;
  std::vector<std::unique_ptr<Cta>> resident_;
  std::vector<std::unique_ptr<Cta>> idle_;
};

LaunchResult collect(std::vector<Worker>& workers) {
  LaunchResult result;
  for (Worker& worker : workers) {
    result.counts.warp_instructions += worker.counts.warp_instructions;
    result.counts.thread_instructions += worker.counts.thread_instructions;
    result.printed += worker.printed;
    for (std::string& warning : worker.warnings)
      if (std::ranges::find(result.warnings, warning) == result.warnings.end())
        result.warnings.push_back(std::move(warning));
  }
  return result;
}

}  // namespace

void Worker::warn(const std::string& warning) {
  if (warnings.size() < 100 && std::ranges::find(warnings, warning) == warnings.end()) warnings.push_back(warning);
}

LaunchResult run_grid(const Launch& launch) {
  const std::uint64_t ctas = launch.ctas();
  const bool in_turn = launch.program->order_matters || launch.check;
  const auto count = static_cast<unsigned>(
      in_turn ? 1 : std::clamp<std::uint64_t>(launch.threads, 1, std::max<std::uint64_t>(ctas, 1)));
  std::vector<Worker> workers(count);
  for (Worker& worker : workers) {
    worker.launch = &launch;
    worker.shares_memory = count > 1;
  }
  // CTAs are handed out in small runs, so that threads end at about the same time; which thread runs which CTA does
  // not show in the result.
  std::atomic<std::uint64_t> next_run{0};
  const std::uint64_t run = std::clamp<std::uint64_t>(ctas / (count * 16ULL), 1, 64);
  std::exception_ptr failure;
  std::uint64_t failed_cta = ~std::uint64_t{0};
  std::mutex mutex;
  auto work = [&](Worker& worker) {
    std::uint64_t at = 0;
    std::uint64_t end = 0;
    std::uint64_t current = 0;
    try {
      CtaRunner(launch, worker).run([&](std::uint64_t& index) {
        if (at == end) {
          at = next_run.fetch_add(1) * run;
          end = std::min(at + run, ctas);
          if (at >= ctas) return false;
        }
        current = index = at++;
        return true;
      });
    } catch (...) {
      const std::lock_guard lock(mutex);
      // The first CTA's failure is reported, whichever thread met one first.
      if (current < failed_cta) {
        failed_cta = current;
        failure = std::current_exception();
      }
      next_run.store(ctas);
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < count; ++i) threads.emplace_back([&, i] { work(workers[i]); });
  work(workers[0]);
  threads.clear();
  if (failure) std::rethrow_exception(failure);
  return collect(workers);
}

}  // namespace manyscale::gpu
