// SPDX-License-Identifier: Apache-2.0
// A file that is written from its beginning to its end: every error is seen, and says why.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace manyscale {

// A file that could not be written, with the number of the operating system's error.
class FileError : public std::runtime_error {
 public:
  FileError(const std::string& path, int number);
  int number() const { return number_; }

 private:
  int number_;
};

// Writes through a buffer; calls that a signal interrupts or that write only a part go on. What has not been
// closed by `close` may not be on the disk. It does not remove what it began: see manyscale.results.files.
class FileWriter {
 public:
  explicit FileWriter(std::string path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::string_view bytes);
  void close();

 private:
  void write_all(std::string_view bytes);

  std::string path_;
  std::string pending_;
  int descriptor_;
};

}  // namespace manyscale
