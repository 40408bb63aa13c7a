// SPDX-License-Identifier: Apache-2.0
// The memory of one process: pages with permissions, and where each lies for the caches.
//
// A page is private to the process or part of a shared segment (an mmap with MAP_SHARED). The caches of all
// cores see one range of addresses: a private page of process p at virtual address v is at (p + 1) << 40 | v,
// and byte o of shared segment s at (0xff00 + s) << 40 | o. Virtual addresses have 39 bits or fewer (Sv39).
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace manyscale::cpu {

struct Permission {
  static constexpr std::uint8_t read = 1, write = 2, execute = 4;
};

inline constexpr std::uint64_t page_bytes = 4096;
inline constexpr std::uint64_t virtual_limit = std::uint64_t{1} << 38;  // user half of Sv39
inline constexpr std::uint64_t first_shared = 0xff00;                   // number of the first shared segment

// Zeroed memory that several mappings can show, of one process or of many. Its pages are made when first
// touched.
class SharedSegment {
 public:
  // The number is the s above, unique in a simulation.
  SharedSegment(std::uint32_t number, std::uint64_t bytes);
  std::uint32_t number() const { return number_; }
  std::uint64_t bytes() const { return bytes_; }
  // Where the caches, and futexes, see its first byte; and whether an address is in it.
  std::uint64_t physical() const { return (first_shared + number_) << 40; }
  bool holds(std::uint64_t physical_address) const {
    return physical_address >> 40 == first_shared + number_;
  }
  // The page that holds this byte; nullptr beyond the end.
  std::uint8_t* page(std::uint64_t offset);
  // What is cut off becomes zero; its pages stay, since mappings may show them.
  void resize(std::uint64_t bytes);

 private:
  std::map<std::uint64_t, std::unique_ptr<std::uint8_t[]>> pages_;  // by page number
  std::uint64_t bytes_;
  std::uint32_t number_;
};

// Zeroed pages for private memory, taken from the host in larger pieces.
class PagePool {
 public:
  std::uint8_t* take();
  void give_back(std::uint8_t* page) { free_.push_back(page); }

 private:
  static constexpr std::size_t pages_per_piece = 256;
  struct Release {
    void operator()(std::uint8_t* piece) const;
  };
  std::vector<std::unique_ptr<std::uint8_t[], Release>> pieces_;
  std::vector<std::uint8_t*> free_;  // used before, so no longer zero
  std::size_t taken_of_last_ = pages_per_piece;
};

class AddressSpace {
 public:
  // `limit` is how many bytes of pages it may hold; the number is the p above.
  AddressSpace(std::uint32_t number, std::uint64_t limit);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // Maps whole pages, zeroed and private (made when first touched), or a piece of a shared segment; what was
  // mapped there goes. False if the range is not in user space.
  bool map(std::uint64_t address, std::uint64_t bytes, std::uint8_t permissions,
           std::shared_ptr<SharedSegment> segment = {}, std::uint64_t offset = 0);
  bool unmap(std::uint64_t address, std::uint64_t bytes);
  bool protect(std::uint64_t address, std::uint64_t bytes, std::uint8_t permissions);
  // Private pages become zero again; mapping and permissions stay.
  bool discard(std::uint64_t address, std::uint64_t bytes);
  // What is mapped in a range, with contents and permissions, goes to another range of the same length; what
  // was mapped there goes. The ranges must not overlap.
  bool move(std::uint64_t from, std::uint64_t to, std::uint64_t bytes);
  // A free range of so many bytes, searched downwards from `below`; 0 if there is none.
  std::uint64_t find_free(std::uint64_t bytes, std::uint64_t below) const;
  // Whether all pages of the range are mapped with at least these permissions.
  bool allows(std::uint64_t address, std::uint64_t bytes, std::uint8_t permissions) const;

  // The host's bytes behind a virtual address, up to the end of its page; nullptr if it is not mapped with
  // these permissions or the limit is reached (`exhausted` distinguishes them). Stays valid until the page is
  // unmapped; `version` counts what makes it invalid.
  std::uint8_t* host(std::uint64_t address, std::uint8_t permissions);
  std::uint64_t version() const { return version_; }
  // Counts changes of what is executable, so that decoded code can be dropped.
  std::uint64_t code_version() const { return code_version_; }

  // Whether the last access that was refused came from the limit, not from permissions.
  bool exhausted() const { return exhausted_; }

  // Copies for system calls and loaders, across pages; false if a byte of it is not mapped so.
  bool read(std::uint64_t address, void* to, std::uint64_t bytes);
  bool write(std::uint64_t address, const void* from, std::uint64_t bytes);
  // As write, but whatever the permissions: for loaders.
  bool copy_in(std::uint64_t address, const void* from, std::uint64_t bytes);
  std::optional<std::string> read_string(std::uint64_t address, std::size_t most);

  // Where the caches see a mapped virtual address.
  std::uint64_t physical(std::uint64_t address) const;

  std::uint64_t resident_bytes() const { return resident_pages_ * page_bytes; }
  std::uint64_t limit() const { return limit_; }
  std::uint32_t number() const { return number_; }

 private:
  // A mapped range; its start is its key in `ranges_`.
  struct Range {
    std::uint64_t end = 0;
    std::uint64_t offset = 0;  // of its start in the segment
    std::shared_ptr<SharedSegment> segment;
    std::uint8_t permissions = 0;
  };
  // A page that was touched.
  struct Page {
    std::uint8_t* host = nullptr;
    std::uint64_t physical = 0;  // of its first byte, with the permissions in the low bits
    bool shared() const { return physical >> 40 >= first_shared; }
  };
  static constexpr unsigned leaf_bits = 9, middle_bits = 9, top_bits = 8;
  using Leaf = std::array<Page, std::size_t{1} << leaf_bits>;
  using Middle = std::array<std::unique_ptr<Leaf>, std::size_t{1} << middle_bits>;

  using Ranges = std::map<std::uint64_t, Range>;
  // The range that holds this address, or the end.
  Ranges::const_iterator range_of(std::uint64_t address) const;
  // Makes range boundaries at both ends, so that whole ranges can be changed in between.
  void split(std::uint64_t address);
  bool whole_pages(std::uint64_t address, std::uint64_t& bytes) const;
  void forget_pages(std::uint64_t address, std::uint64_t end);
  Page& page_entry(std::uint64_t address);
  void remove(std::uint64_t address, std::uint64_t end);
  Page* find_page(std::uint64_t address) const;
  Page* touch(std::uint64_t address);
  template <class Visit>
  void for_touched_pages(std::uint64_t address, std::uint64_t end, Visit visit);
  template <class Step>
  bool across_pages(std::uint64_t address, std::uint64_t bytes, std::uint8_t permissions, Step step);

  Ranges ranges_;
  std::array<std::unique_ptr<Middle>, std::size_t{1} << top_bits> top_;
  PagePool pool_;
  std::uint64_t resident_pages_ = 0;
  std::uint32_t number_;
  std::uint64_t limit_;
  std::uint64_t version_ = 0;
  std::uint64_t code_version_ = 0;
  bool exhausted_ = false;
};

}  // namespace manyscale::cpu
