#include "tool/db/progress.h"

#include <unistd.h>

#include <array>
#include <cstdio>

#include <fmt/format.h>

namespace ceems::tool::db {
namespace {

constexpr auto kPause = std::chrono::milliseconds(250);

std::string left_text(double seconds) {
  constexpr double kMinute = 60;
  return seconds < kMinute ? fmt::format("{:.0f} s left", seconds)
                           : fmt::format("{:.0f} min left", seconds / kMinute);
}

}  // namespace

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  clear();
}

void Progress::show(std::string_view what,
                    std::int64_t done,
                    std::int64_t all,
                    std::string_view unit) {
  if (!terminal_) {
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (what_ != what) {
    what_ = what;
    first_ = done;
    begin_ = now;
    next_ = now;
  }
  if (now < next_ || all <= 0) {
    return;
  }
  next_ = now + kPause;
  std::string left;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  if (done > first_ && seconds > 2) {
    left = ", " + left_text(seconds * static_cast<double>(all - done) /
                            static_cast<double>(done - first_));
  }
  fmt::print(stderr, "\r\x1b[K{}: {} % ({} of {} {}{})", what, done * 100 / all, grouped(done),
             grouped(all), unit, left);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (shown_) {
    fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
    shown_ = false;
  }
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t place = digits.size(); place > first + 3;) {
    place -= 3;
    digits.insert(place, ",");
  }
  return digits;
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"B", "kB", "MB", "GB", "TB"};
  constexpr double kStep = 1000;
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= kStep && unit + 1 < kUnits.size()) {
    value /= kStep;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits.at(unit));
}

}  // namespace ceems::tool::db
