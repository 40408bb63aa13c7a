// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "gpu/exec/fault_report.hpp"
#include "gpu/exec/launch.hpp"

namespace manyscale::gpu {

namespace {

// The CTAs of a grid that one worker carries out.
class CtaRunner {
 public:
  CtaRunner(const Launch& launch, Worker& worker) : launch_(launch), worker_(worker) {}

  // Runs CTAs in the order they are given out by `next`, which says false when there are no more. A CTA that
  // waits for others stays while later ones are started.
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
      launch_.check_end(worker_.counts);
      return finished;
    } catch (const Fault& fault) {
      throw explain(cta, cta.running(), fault);
    } catch (const Deadlock&) {
      throw explain_deadlock(cta);
    }
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

void Launch::give_up() const {
  FaultLocation at;
  at.kernel = program->kernel_name;
  throw KernelFault("kernel " + at.kernel + " has executed more than the " +
                        std::to_string(maximum_instructions) +
                        " warp instructions it may; if it is not caught in a loop, allow more",
                    FaultKind::instruction_limit, at);
}

void Worker::warn(const std::string& warning) {
  if (warnings.size() < 100 && std::ranges::find(warnings, warning) == warnings.end())
    warnings.push_back(warning);
}

LaunchResult run_grid(Launch launch) {
  launch.begin();
  const std::uint64_t ctas = launch.ctas();
  const bool in_turn = launch.order_matters || static_cast<bool>(launch.check);
  const auto count = static_cast<unsigned>(
      in_turn ? 1 : std::clamp<std::uint64_t>(launch.threads, 1, std::max<std::uint64_t>(ctas, 1)));
  std::vector<Worker> workers(count);
  std::vector<Access> accesses(count);
  for (unsigned i = 0; i < count; ++i) {
    Worker& worker = workers[i];
    worker.launch = &launch;
    worker.access = &accesses[i];
    worker.shares_memory = count > 1;
  }
  // CTAs are handed out in small runs, so that threads end at about the same time; which thread runs which
  // CTA does not show in the result.
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
  try {
    threads.reserve(count - 1);
    for (unsigned i = 1; i < count; ++i) threads.emplace_back([&, i] { work(workers[i]); });
  } catch (
      const std::system_error&) {  // a host without memory for another thread: those there are do the work
  } catch (const std::bad_alloc&) {
  }
  work(workers[0]);
  threads.clear();
  if (failure) std::rethrow_exception(failure);
  return collect(workers);
}

}  // namespace manyscale::gpu
