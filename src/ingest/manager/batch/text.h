#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time/time_zone.h"

// Texts that the commands of batch systems print.
namespace ceems::ingest {

/// Reads a time as ctime(3) prints it: "Wed Apr 14 23:34:19 2021", with or without the weekday, the
/// seconds and the year. Without a year it is the last such time that is at most a day after
/// `now_ms`. A letter behind it (bjobs appends L, E or X to estimates) is ignored. Epoch
/// milliseconds; nothing for any other text.
std::optional<std::int64_t> parse_ctime(std::string_view text,
                                        const TimeZone& zone,
                                        std::int64_t now_ms);

/// Reads a size in bytes: a number with K, M, G, T, P or E, which are powers of 1024 and may be
/// followed by B, b, "bytes" ("9 Mbytes", "3.2G", "8388608kb"). Without a letter it is in
/// `default_unit` bytes; "b" or "w" (PBS: a word of 8 bytes) alone mean 1 and 8. Nothing for any
/// other text and for negative or absurd sizes.
std::optional<double> parse_size(std::string_view text, double default_unit);

/// Splits a JSON document while it arrives: an object, of whose member `name` each element (of a
/// list or of an object) is passed on as soon as it is complete. Holds one element at a time, of at
/// most 4 MiB. Tracks only brackets and quotes; whether an element is valid JSON is left to its
/// parser.
class JsonCutter {
 public:
  /// Called with the element's key, which is empty in a list, and its text. An error stops the
  /// splitting.
  using Take = std::function<Result<>(std::string_view key, std::string_view json)>;

  JsonCutter(std::string name, Take take) : name_(std::move(name)), take_(std::move(take)) {}

  /// kParse, or the error that Take returned. The part may end anywhere.
  Result<> add(std::string_view part);
  /// kParse if the document is incomplete.
  [[nodiscard]] Result<> finish() const;
  /// Whether there was any text.
  [[nodiscard]] bool began() const { return began_; }

 private:
  Result<> add_character(char c);
  Result<> open(char c);
  Result<> close(char c);
  Result<> end_element();
  Result<> keep(char c);
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view why) const;
  [[nodiscard]] bool between() const { return depth_ == 1 || (depth_ == 2 && inside_); }

  const std::string name_;
  const Take take_;
  std::string member_;  // key of the current member at the top
  std::string key_;     // of the current element
  std::string text_;    // of the current key or value so far
  bool has_member_ = false;
  bool has_key_ = false;
  bool inside_ = false;  // in the member `name`
  bool keyed_ = false;   // which is an object
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  bool began_ = false;
  bool ended_ = false;
};

}  // namespace ceems::ingest
