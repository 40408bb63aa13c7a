// SPDX-License-Identifier: Apache-2.0
// Deadlock diagnosis: what each replica waits for, as text.
#include <algorithm>

#include "cpu/replay/arbiter.hpp"
#include "cpu/stream/hexadecimal.hpp"
#include "engine/component.hpp"

namespace manyscale::cpu {

namespace {

constexpr std::size_t most_named = 8;  // of those that are missing

// Names one after the other, but not too many.
class NameList {
 public:
  void add(const std::string& name) {
    if (++count_ > most_named) return;
    text_ += (count_ > 1 ? ", " : "") + name;
  }
  std::string text() const {
    if (count_ <= most_named) return text_;
    return text_ + " and " + std::to_string(count_ - most_named) + " more";
  }
  std::size_t count() const { return count_; }

 private:
  std::string text_;
  std::size_t count_ = 0;
};

}  // namespace

void Arbiter::refuse(Replica replica, const TraceNode& node, const std::string& what) const {
  const std::string kind = static_cast<std::size_t>(node.sync) < sync_kinds
                               ? std::string(sync_kind_name(node.sync))
                               : "synchronisation";
  throw SimulationError("the trace makes no sense: the " + kind + " node of " + name_of(replica) + " at pc " +
                        hexadecimal(node.pc) + " " + what);
}

std::string Arbiter::name_of(Replica replica) const {
  const ReplicaState& state = replicas_[replica];
  const StreamInfo& stream = trace_.streams[state.stream];
  std::string name = (stream.is_task ? "task " : "thread ") + std::to_string(stream.subject);
  if (copies_ > 1) name += " of copy " + std::to_string(state.copy);
  return name;
}

std::string Arbiter::title_of(std::uint32_t team) const {
  const std::uint32_t region = trace_.teams[team].region;
  return "team " + std::to_string(team) +
         (region < trace_.regions.size() ? " (" + trace_.regions[region] + ")" : "");
}

std::string Arbiter::doing(Replica replica) const {
  const ReplicaState& state = replicas_[replica];
  if (state.stage == Stage::done) return "has ended";
  return state.waiting ? "waits at " + std::string(sync_kind_name(state.kind)) : "has not come";
}

// Who of a team has not arrived.
std::string Arbiter::missing_from(std::uint32_t number, std::vector<Replica> Team::* list) const {
  const auto found = teams_.find(number);
  if (found == teams_.end()) return ", which has ended";
  const Team& team = found->second;
  const std::vector<Replica>& arrived = team.*list;
  std::string text = ": " + std::to_string(arrived.size()) + " of " + std::to_string(expected(number)) +
                     " threads have come";
  NameList missing;
  for (const Replica each : team.begun) {
    if (std::find(arrived.begin(), arrived.end(), each) == arrived.end())
      missing.add(name_of(each) + " (" + doing(each) + ")");
  }
  if (missing.count() > 0) text += "; missing: " + missing.text();
  if (team.begun.size() < expected(number))
    text += "; " + std::to_string(expected(number) - team.begun.size()) + " never began";
  if (team.tasks > 0) text += "; " + unfinished_tasks("tasks not done: ", none, none, number);
  return text;
}

// The tasks of a creator, group or team that are not done.
std::string Arbiter::unfinished_tasks(const std::string& before, Replica creator, std::uint32_t group,
                                      std::uint32_t team) const {
  NameList names;
  for (Replica task = threads_; task < replicas_.size(); ++task) {
    const ReplicaState& state = replicas_[task];
    if (state.stage == Stage::unborn || state.stage == Stage::done) continue;
    if ((creator != none && state.creator == creator) || (group != none && state.group == group) ||
        (team != none && state.team == team)) {
      const bool blocked = state.stage == Stage::blocked;
      names.add(name_of(task) + (blocked ? " (" + std::to_string(state.missing) + " before it are not done)"
                                 : state.waiting ? " (" + doing(task) + ")"
                                                 : ""));
    }
  }
  return before + names.text();
}

std::string Arbiter::wait_of(Replica replica) const {
  const ReplicaState& state = replicas_[replica];
  if (!state.waiting) return "";
  const auto team = static_cast<std::uint32_t>(state.object);
  const std::string at = " at pc " + hexadecimal(state.pc);
  const std::string who = name_of(replica) + " waits ";
  switch (state.kind) {
    case SyncKind::begin:
      return who + "for the fork of " + title_of(team) + at;
    case SyncKind::join:
      return who + "for the end of " + title_of(team) + at + missing_from(team, &Team::at_join);
    case SyncKind::barrier:
      return who + "at the barrier of " + title_of(team) + at + missing_from(team, &Team::at_barrier);
    case SyncKind::acquire: {
      const Lock& lock = locks_.at(lock_of(replica, state.object));
      if (lock.holder == none) return who + "for lock " + hexadecimal(state.object) + at + ", which is free";
      return who + "for lock " + hexadecimal(state.object) + at + ", which " + name_of(lock.holder) +
             " holds; that " + doing(lock.holder);
    }
    case SyncKind::thread_begin:
      return who + "to be created by another thread" + at;
    case SyncKind::await: {
      const Event& event = events_[state.copy].at(event_number(state.object));
      return who + "for another thread" + at + ": what it waits for has happened " +
             std::to_string(event.posts) + " of " + std::to_string(event_posts(state.object)) + " times";
    }
    case SyncKind::taskwait:
      return who + "for tasks" + at + unfinished_tasks(": ", replica, none, none);
    case SyncKind::taskgroup_end:
      return who + "for its taskgroup" + at + unfinished_tasks(": ", none, state.groups.back(), none);
    default:
      return who + at;
  }
}

}  // namespace manyscale::cpu
