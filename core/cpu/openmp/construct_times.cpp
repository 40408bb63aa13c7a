// SPDX-License-Identifier: Apache-2.0
#include "cpu/openmp/construct_times.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>

namespace manyscale::cpu {

namespace {

using LogEntry = RegionAccount::LogEntry;

// Times of one kind.
class Samples {
 public:
  void add(Time time) { times_.push_back(std::max<Time>(time, 0)); }
  bool empty() const { return times_.empty(); }
  Time mean() const {
    double sum = 0;
    for (const Time each : times_) sum += static_cast<double>(each);
    return static_cast<Time>(sum / static_cast<double>(times_.size()));
  }
  Time least() const { return *std::min_element(times_.begin(), times_.end()); }
  Time median() {
    const auto middle = times_.begin() + static_cast<std::ptrdiff_t>(times_.size() / 2);
    std::nth_element(times_.begin(), middle, times_.end());
    return *middle;
  }

 private:
  std::vector<Time> times_;
};

// Threads that are in a parallel region together.
struct Team {
  std::uint32_t region = 0;
  std::uint16_t master = 0;
  std::map<std::uint64_t, Time> arrivals{};  // the last at each barrier, by its turn
  Time last_join = 0;
  Time last_task = 0;  // end of one
};

struct Visit {
  std::uint32_t region = 0;
  Time entered = 0;
  Time in_tasks = 0;       // executed within it
  std::uint64_t turn = 0;  // of a barrier
};

struct Thread {
  std::vector<Visit> visits{};  // innermost last
  std::vector<Team*> teams{};
  std::vector<Time> tasks{};  // beginnings of those it is in
  std::uint64_t barriers = 0;
  Time free_since = -1;  // it looks for a task since; -1: it does something else
  Time awaited = -1;     // when that happened which ended its wait; -1: nothing did
  Time core_since = 0;   // another thread was seen on its core then, the last time
};

// Who was seen on a core the last time.
struct CoreUse {
  std::uint16_t thread = 0;
  Time time = 0;
};

// Follows the threads through the log.
class Watcher {
 public:
  Watcher(const RegionTable& regions, std::size_t cores) : regions_(regions), cores_(cores) {}

  void take(const LogEntry& entry, std::size_t core) {
    Thread& thread = threads_[entry.thread];
    CoreUse& use = cores_[core];
    if (use.thread != entry.thread) thread.core_since = use.time;
    use = {entry.thread, entry.time};
    switch (entry.action) {
      case MarkerAction::enter:
        enter(thread, entry);
        break;
      case MarkerAction::leave:
        leave(thread, entry);
        break;
      case MarkerAction::released:
        if (const auto number = static_cast<std::uint32_t>(entry.subject); number < regions_.size())
          released_[regions_[number].object] = entry.time;
        break;
      case MarkerAction::posted:
        posted_[event_number(entry.subject)] = entry.time;
        break;
      case MarkerAction::thread_begins:
        if (const auto post = posted_.find(event_number(entry.subject)); post != posted_.end())
          add_since(thread_, thread, post->second, entry.time);
        break;
      case MarkerAction::awaited:
        thread.awaited = posted_[event_number(entry.subject)];
        break;
      case MarkerAction::task_starts:
        if (thread.free_since >= 0) schedule_.add(entry.time - thread.free_since);
        thread.free_since = -1;
        thread.tasks.push_back(entry.time);
        break;
      case MarkerAction::task_ends:
        end_task(thread, entry.time);
        break;
      default:
        break;
    }
  }

  std::vector<std::pair<std::string, Time>> times() {
    std::vector<std::pair<std::string, Time>> found;
    const auto add = [&](const char* name, const Samples& samples) {
      if (!samples.empty()) found.emplace_back(name, samples.mean());
    };
    add("join_latency", join_);
    add("barrier_latency", barrier_);
    add("lock_latency", lock_);
    add("handover_latency", handover_);
    if (!handover_.empty()) found.emplace_back("handover_least_latency", handover_.least());
    add("create_latency", create_);
    add("taskwait_latency", taskwait_);
    add("thread_latency", thread_);
    add("await_latency", await_);
    add("wake_latency", wake_);
    if (!schedule_.empty()) found.emplace_back("schedule_latency", schedule_.median());
    return found;
  }

 private:
  static bool looks_for_tasks(RegionKind kind) {
    return kind == RegionKind::barrier || kind == RegionKind::taskwait;
  }

  // Whose core another had meanwhile waited for that, too, which it will in a replay.
  static void add_since(Samples& samples, const Thread& thread, Time from, Time until) {
    if (thread.core_since <= from) samples.add(until - from);
  }

  void enter(Thread& thread, const LogEntry& entry) {
    const auto number = static_cast<std::uint32_t>(entry.subject);
    if (number >= regions_.size()) return;
    const Region& region = regions_[number];
    Visit visit{.region = number, .entered = entry.time};
    if (region.kind == RegionKind::parallel) {
      enter_team(thread, entry);
    } else if (region.kind == RegionKind::barrier && !thread.teams.empty()) {
      Team& team = *thread.teams.back();
      if (region.pc == regions_[team.region].pc) {
        team.last_join = entry.time;
      } else {
        visit.turn = thread.barriers++;
        team.arrivals[visit.turn] = entry.time;
      }
    }
    if (looks_for_tasks(region.kind)) thread.free_since = entry.time;
    thread.visits.push_back(visit);
  }

  // The first to enter a region is the master; those who follow while it is open are of its team.
  void enter_team(Thread& thread, const LogEntry& entry) {
    const auto open = std::find_if(teams_.rbegin(), teams_.rend(), [&](const auto& team) {
      return team->region == entry.subject && team->master != entry.thread;
    });
    if (open == teams_.rend()) {
      teams_.push_back(std::make_unique<Team>());
      teams_.back()->region = static_cast<std::uint32_t>(entry.subject);
      teams_.back()->master = entry.thread;
      thread.teams.push_back(teams_.back().get());
    } else {
      thread.teams.push_back(open->get());
    }
    thread.barriers = 0;
  }

  void leave(Thread& thread, const LogEntry& entry) {
    while (!thread.visits.empty()) {
      const Visit visit = thread.visits.back();
      thread.visits.pop_back();
      if (visit.region != entry.subject) continue;
      measure(thread, visit, entry);
      return;
    }
  }

  void measure(Thread& thread, const Visit& visit, const LogEntry& entry) {
    const Region& region = regions_[visit.region];
    Team* team = thread.teams.empty() ? nullptr : thread.teams.back();
    const Time last_task = team == nullptr ? 0 : team->last_task;
    if (looks_for_tasks(region.kind)) thread.free_since = -1;
    switch (region.kind) {
      case RegionKind::parallel:
        leave_team(thread, entry);
        break;
      case RegionKind::barrier:
        if (team != nullptr && region.pc != regions_[team->region].pc)
          barrier_.add(entry.time - std::max(team->arrivals[visit.turn], last_task));
        break;
      case RegionKind::critical_wait:
      case RegionKind::lock: {
        const auto released = released_.find(region.object);
        const bool waited = released != released_.end() && released->second > visit.entered;
        if (!waited) {
          lock_.add(entry.time - visit.entered);
        } else if (!region.sleeps) {
          add_since(handover_, thread, released->second, entry.time);
        }
        break;
      }
      case RegionKind::critical:
        released_[region.object] = entry.time;
        break;
      case RegionKind::task_create:
        create_.add(entry.time - visit.entered - visit.in_tasks);
        break;
      case RegionKind::wait:
        if (thread.awaited < 0) break;
        add_since(thread.awaited > visit.entered ? wake_ : await_, thread,
                  std::max(visit.entered, thread.awaited), entry.time);
        thread.awaited = -1;
        break;
      case RegionKind::taskwait:
        taskwait_.add(entry.time - std::max(visit.entered, last_task));
        break;
      default:
        break;
    }
  }

  void leave_team(Thread& thread, const LogEntry& entry) {
    if (thread.teams.empty()) return;
    Team* team = thread.teams.back();
    thread.teams.pop_back();
    if (team->master != entry.thread) return;
    if (team->last_join > 0) join_.add(entry.time - std::max(team->last_join, team->last_task));
    for (auto& each : threads_) std::erase(each.second.teams, team);
    std::erase_if(teams_, [&](const auto& each) { return each.get() == team; });
  }

  void end_task(Thread& thread, Time time) {
    if (thread.tasks.empty()) return;
    const Time began = thread.tasks.back();
    thread.tasks.pop_back();
    if (!thread.teams.empty()) thread.teams.back()->last_task = time;
    // The region of the task itself may be open still.
    const auto around = std::find_if(thread.visits.rbegin(), thread.visits.rend(), [&](const Visit& visit) {
      return regions_[visit.region].kind != RegionKind::task;
    });
    if (around == thread.visits.rend()) return;
    around->in_tasks += time - began;
    if (looks_for_tasks(regions_[around->region].kind)) thread.free_since = time;
  }

  const RegionTable& regions_;
  std::vector<CoreUse> cores_;
  std::map<std::uint16_t, Thread> threads_;
  std::vector<std::unique_ptr<Team>> teams_;
  std::unordered_map<std::uint64_t, Time> released_;  // when a lock was, the last time
  std::unordered_map<std::uint64_t, Time> posted_;    // when an event happened, the last time
  Samples join_, barrier_, lock_, handover_, create_, taskwait_, schedule_, thread_, await_, wake_;
};

}  // namespace

std::vector<std::pair<std::string, Time>> construct_times(std::span<const std::vector<LogEntry>* const> logs,
                                                          const RegionTable& regions) {
  struct Seen {
    const LogEntry* entry;
    std::size_t core;
  };
  std::vector<Seen> all;
  for (std::size_t core = 0; core < logs.size(); ++core) {
    for (const LogEntry& entry : *logs[core]) all.push_back({&entry, core});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Seen& a, const Seen& b) { return a.entry->time < b.entry->time; });
  Watcher watcher(regions, logs.size());
  for (const Seen& each : all) watcher.take(*each.entry, each.core);
  return watcher.times();
}

}  // namespace manyscale::cpu
