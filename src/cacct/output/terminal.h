#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ceems::cacct {

/// The columns of the terminal, from 60 to 240; 80 if standard output is none.
std::size_t terminal_width();

/// The columns of the terminal as they are; 100 if standard output is none.
std::size_t list_width();
/// Its rows; 24 if standard output is none.
std::size_t terminal_rows();

/// How wide the API server writes texts.
inline constexpr long kMinTextWidth = 60;
inline constexpr long kMaxTextWidth = 240;

/// Whether the environment names a character set, and it is not UTF-8.
bool lacks_utf8();

/// The whole terminal of standard output, and the keys of standard input if that is one. One object
/// at a time. The terminal is as it was before after the object is gone, while the program is
/// stopped (Ctrl-Z), and after SIGINT, SIGTERM, SIGHUP, SIGQUIT or a crash, which end the program
/// as they would without it.
class LiveScreen {
 public:
  LiveScreen();
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  /// Shows lines that are not wider than the terminal, as many as it has rows. False if it is gone.
  static bool draw(const std::vector<std::string>& lines);
  /// Waits for a key, and returns it; 0 after `time`, and earlier if the terminal has changed.
  char wait(std::chrono::milliseconds time);

 private:
  bool keys_ = true;  ///< standard input has not ended
};

}  // namespace ceems::cacct
