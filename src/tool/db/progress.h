#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace ceems::tool::db {

/// A line on stderr that shows how far a long work is, a few times a second. Writes nothing where
/// stderr is not a terminal. Not thread-safe.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// "what: 12 % (1,200,000 of 10,000,000 rows, 2 min left)"
  void show(std::string_view what, std::int64_t done, std::int64_t all, std::string_view unit);
  /// Removes the line.
  void clear();

 private:
  const bool terminal_;
  bool shown_ = false;
  std::string what_;
  std::int64_t first_ = 0;  ///< what was done when `what_` began
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point next_;
};

/// "1,234,567"
std::string grouped(std::int64_t number);
/// "1.2 GB"
std::string bytes_text(std::int64_t bytes);

}  // namespace ceems::tool::db
