// SPDX-License-Identifier: Apache-2.0
// The caches that belong to one core or SM: one to three levels, each inside the next (inclusive), called
// directly by the component that embeds them. A hit at any level is answered at once with the time its data
// is there; only what misses all levels becomes a message. Coherent (MESI, with a home that keeps the
// directory) or not; write-back or write-through. Beside the L1 there may be one for instructions;
// what it misses, the L2 serves, and what that loses, it loses too. Where there is only one level,
// its misses go out by themselves. Leaves out: the traffic of dirty lines between the levels (they change
// hands without taking a port).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/time.hpp"
#include "memory/address_hash.hpp"
#include "memory/cache/level.hpp"
#include "memory/cache/miss_table.hpp"
#include "memory/prefetch/prefetcher.hpp"
#include "memory/protocol.hpp"

namespace manyscale::memory {

enum class AccessKind : std::uint8_t { load, store, atomic_add, fetch };

// Whether an access of this kind leaves its line as it is.
inline bool only_reads(AccessKind kind) {
  return kind == AccessKind::load || kind == AccessKind::fetch;
}

struct Access {
  std::uint64_t address = 0;
  Value value = 0;  // stored or added
  std::uint32_t size = 8;
  std::uint32_t token = 0;  // the owner's own number
  std::uint32_t id = 0;     // of the instruction or stream, for prefetchers
  AccessKind kind = AccessKind::load;
};

struct AccessResult {
  enum class Status : std::uint8_t {
    done,     // the data is there, or written, at `ready`
    waiting,  // the owner will be told
    blocked,  // nothing was done: try again when told that it is unblocked
  };
  Status status = Status::done;
  Time ready = 0;
  Value value = 0;
  Served served = Served::l1;  // of done
};

struct PrivateCachesSpec {
  std::vector<CacheSpec> levels;           // from the core outwards, all with the same line size
  std::optional<CacheSpec> instruction{};  // L1I; without it there are no fetches
  bool coherent = false;
  bool keep_values = false;
  std::int64_t homes = 1;             // responders that lines are spread over
  std::string home_hash = "modulo";   // how; see SliceHash
  PrefetcherSpec prefetcher{};        // of the outermost level
  PrefetcherSpec first_prefetcher{};  // of L1D, where there are more
  std::int64_t fetch_ahead = 0;       // lines brought in behind one that a fetch missed
  // Whether prefetches of the last level take no MSHRs of L1.
  bool mshrs_per_level = false;
  std::int64_t writeback_buffer = 16;  // owned lines given back and not yet confirmed, if coherent
};

class PrivateCaches {
 public:
  // The component that embeds the caches.
  class Owner {
   public:
    virtual void send_to_memory(const Message& message, Time when) = 0;
    virtual void access_done(std::uint32_t token, Time ready, Value value, Served served) = 0;
    // Something became free that a blocked access may have waited for.
    virtual void unblocked() = 0;

   protected:
    ~Owner() = default;
  };

  PrivateCaches(Owner& owner, const PrivateCachesSpec& spec, Time period, std::uint64_t seed);

  // An access lies within one line.
  AccessResult access(const Access& access, Time now);
  // A message from a home or from memory.
  void receive(const Message& message, Time now);
  // Draws from the seed for random replacement.
  void reseed(Random& random) {
    for (auto& level : levels_) level->array.reseed(random.next());
    if (instruction_) instruction_->array.reseed(random.next());
  }
  // Drops all lines, without writing any back: the software-managed coherence of GPU L1s.
  void invalidate_all();

  std::size_t outstanding() const { return misses_.size() + writebacks_.size() + pending_writes_; }
  std::vector<std::unique_ptr<Level>>& levels() { return levels_; }
  // L1I; nullptr if there is none.
  Level* instruction() { return instruction_.get(); }
  const PrefetcherStatistics& prefetcher_statistics() const { return prefetcher_.statistics(); }
  const PrefetcherStatistics& first_prefetcher_statistics() const { return first_prefetcher_.statistics(); }
  // What is outstanding, for a deadlock's diagnosis; empty if nothing is.
  std::string waits() const;

 private:
  using Table = MissTable<Access>;
  static constexpr std::uint64_t page_size = 4096;

  struct Writeback {
    std::uint64_t line;
    Value value;
    bool dirty;
  };

  // MSHRs of an L1 for what L2 serves: each is occupied until then.
  class MshrPool {
   public:
    void resize(std::int64_t mshrs) { until_.assign(static_cast<std::size_t>(mshrs), 0); }
    Time next_free() const { return until_.empty() ? 0 : until_[next_]; }
    void take(Time until) {
      if (until_.empty()) return;
      until_[next_] = until;
      if (++next_ == until_.size()) next_ = 0;
    }

   private:
    std::vector<Time> until_;
    std::size_t next_ = 0;
  };

  Level& outermost() { return *levels_.back(); }
  // The level of this number for an access of this kind.
  Level& level_of(AccessKind kind, std::size_t number) {
    return number == 0 && kind == AccessKind::fetch ? *instruction_ : *levels_[number];
  }
  bool can_fetch() const {
    return fetches_ < static_cast<std::size_t>(instruction_->spec.outstanding_misses);
  }
  MshrPool& mshrs_of(AccessKind kind) { return l1_mshrs_[kind == AccessKind::fetch]; }
  std::uint8_t wanted_sectors(const Access& access) const;
  AccessResult access_beyond_first(const Access& access, std::uint64_t line, std::uint8_t sectors,
                                   Time begin);
  AccessResult fetch(const Access& access, Time now);
  AccessResult fetch_alone(const Access& access, std::uint64_t line, Time begin);
  AccessResult write_through(const Access& access, std::uint64_t line, std::uint8_t sectors, Time begin);
  AccessResult miss(const Access& access, std::uint64_t line, std::uint8_t sectors, Time begin);
  AccessResult write_around(const Access& access, std::uint64_t line, std::uint8_t sectors, Time begin);
  AccessResult blocked(AccessKind kind);
  bool has_mshr(AccessKind kind) const;
  void train(const Access& access, bool hit, Time when);
  void prefetch(std::uint64_t line, Time when);
  Table::Entry* open_prefetch(std::uint64_t line, Time when, AccessKind kind = AccessKind::load);
  void train_first(const Access& access, bool hit, Time when);
  void prefetch_first(const Access& access, Time when);
  void use_prefetched(CacheArray::Line& line);
  void fetch_ahead(std::uint64_t line, Time when);
  bool merge(const Access& access, std::uint64_t line, std::uint8_t sectors, Time begin);
  void count_miss(const Access& access, std::uint64_t line);
  void ask(std::uint64_t line, std::uint8_t sectors, AccessKind kind, bool has_data, Time when);
  void evict(std::uint32_t at, Time when);
  Value perform(const Access& access, std::uint32_t at);
  void make_modified(std::uint64_t line, std::uint8_t sectors);
  void copy_inwards(AccessKind kind, std::uint64_t line, std::size_t from_level, std::uint8_t sectors,
                    LineState state, Time when);
  void take_fetched(std::uint64_t line, Time when);
  void drop_fetched(std::uint64_t line, LineState state);
  void set_inwards(std::uint64_t line, LineState state);
  void data_arrived(const Message& message, Time now);
  void fetched_alone(const Message& message, Time now);
  void serve_waiters(std::uint64_t line, std::uint32_t at, Time now);
  void give_up(const Message& message, Time now);
  void unblock();
  void show_outstanding();
  bool writing_back(std::uint64_t line) const;
  void send(Message message, Time when);

  Owner& owner_;
  const PrivateCachesSpec spec_;
  const bool write_through_;
  std::vector<std::unique_ptr<Level>> levels_;
  std::unique_ptr<Level> instruction_;
  std::size_t fetches_ = 0;  // outstanding lines that a fetch asked for
  std::size_t demands_ = 0;  // outstanding lines of L1D
  Table misses_;
  Prefetcher prefetcher_;
  Prefetcher first_prefetcher_;
  const bool has_first_prefetcher_;
  SliceHash homes_;
  std::vector<Writeback> writebacks_;
  MshrPool l1_mshrs_[2];                // of L1D and L1I
  std::vector<Value> values_;           // of the outermost level's lines, if kept
  std::size_t pending_writes_ = 0;      // written through and not yet confirmed
  std::vector<std::uint32_t> atomics_;  // tokens of outstanding atomic operations at the responder, by tag
  std::vector<std::uint8_t> free_tags_;
  bool somebody_blocked_ = false;
};

}  // namespace manyscale::memory
