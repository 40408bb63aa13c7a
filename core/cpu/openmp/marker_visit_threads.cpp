// SPDX-License-Identifier: Apache-2.0
// Calls of the C library by which a program makes threads and lets them wait for each other.
#include "cpu/openmp/marker_visit.hpp"

namespace manyscale::cpu {

std::uint64_t MarkerWatch::Visit::lock_at(std::uint64_t call_pc, std::uint64_t object, bool sleeps) {
  return watch.regions_.intern({RegionKind::lock, {}, call_pc, object, sleeps});
}

void MarkerWatch::Visit::mark_event(std::uint64_t event, std::uint64_t posts, MarkerAction action) {
  mark(sync_event(event, posts), action);
}

void MarkerWatch::Visit::at_thread_call(Construct construct) {
  ThreadEvents& events = watch.events_;
  switch (construct) {
    case Construct::mutex_lock:
      if (!alone()) enter_until_return(construct, RegionKind::lock, argument(0));
      break;
    case Construct::mutex_unlock:
      if (!alone()) mark(lock_at(caller_pc(), argument(0)), MarkerAction::released);
      break;
    case Construct::try_lock:
    case Construct::test_lock:
      follow(construct).object = argument(0);
      until_return();
      break;
    case Construct::thread_create: {
      Open& call = follow(construct);
      call.handle = argument(0);
      call.event = events.create(number, argument(2), argument(3));
      until_return();
      Watched& body = watch.watch_address(argument(2));
      body.outlined = true;
      body.outlined_by = construct;
      break;
    }
    case Construct::thread_join:
    case Construct::semaphore_wait:
      enter_until_return(construct, RegionKind::wait).object = argument(0);
      break;
    case Construct::condition_wait: {
      mark(lock_at(caller_pc(), argument(1)), MarkerAction::released);
      Open& call = enter_until_return(construct, RegionKind::wait);
      call.object = argument(0);
      call.lock = argument(1);
      call.event = events.next();
      break;
    }
    case Construct::condition_signal:
      mark_event(events.signal(argument(0)), 1, MarkerAction::posted);
      break;
    case Construct::semaphore_post:
      mark_event(events.post(argument(0)), 1, MarkerAction::posted);
      break;
    case Construct::thread_barrier: {
      const std::uint64_t event = events.arrive(argument(0));
      mark_event(event, 1, MarkerAction::posted);
      Open& call = enter_until_return(construct, RegionKind::wait);
      call.object = argument(0);
      call.event = event;
      break;
    }
    default:
      break;
  }
}

// The function of such a call has returned; the region that it entered is still open.
void MarkerWatch::Visit::thread_call_returns(const Open& call) {
  ThreadEvents& events = watch.events_;
  const std::uint64_t result = argument(0), call_pc = call_site(call.return_address);
  switch (call.construct) {
    case Construct::try_lock:
    case Construct::test_lock:
      if ((result == 0) == (call.construct == Construct::try_lock))
        mark(lock_at(call_pc, call.object), MarkerAction::acquired);
      break;
    case Construct::thread_create: {
      std::uint64_t name = 0;
      if (result != 0) {
        events.give_up(call.event);
      } else {
        if (memory.read(call.handle, &name, sizeof name)) events.name(name, call.event);
        mark_event(call.event, 1, MarkerAction::posted);
      }
      break;
    }
    case Construct::thread_join:
      if (const auto end = events.end_of(call.object); end && result == 0)
        mark_event(*end, 1, MarkerAction::awaited);
      break;
    case Construct::condition_wait:
      if (const auto signal = events.signalled(call.object, call.event))
        mark_event(*signal, 1, MarkerAction::awaited);
      mark(lock_at(call_pc, call.lock, true), MarkerAction::acquired);
      break;
    case Construct::thread_barrier: {
      const auto [event, arrivals] = events.meet(call.object, call.event);
      mark_event(event, arrivals, MarkerAction::awaited);
      break;
    }
    case Construct::semaphore_wait:
      if (const auto post = result == 0 ? events.take(call.object) : std::nullopt)
        mark_event(*post, 1, MarkerAction::awaited);
      break;
    default:
      break;
  }
}

void MarkerWatch::Visit::start_thread() {
  const auto beginning = watch.events_.begin(number, hart.pc, argument(0));
  if (!beginning) return;
  mark_event(beginning->begin, 1, MarkerAction::thread_begins);
  Open& body = enter(Construct::thread, {.kind = RegionKind::thread, .pc = hart.pc});
  body.in_body = true;
  body.event = beginning->end;
}

}  // namespace manyscale::cpu
