#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ceems::ingest {

/// Appends "key":value members to a JSON object under construction, in the order of the calls.
class JsonObject {
 public:
  void add(std::string_view key, std::string_view text);  ///< cleaned and escaped
  void add(std::string_view key, std::int64_t number);
  void add(std::string_view key, double number);  ///< shortest text; not finite becomes 0
  void add(std::string_view key, const JsonObject& object);
  /// "{...}"; further members can still be added.
  [[nodiscard]] std::string text() const { return "{" + members_ + "}"; }

 private:
  void add_key(std::string_view key);
  std::string members_;
};

}  // namespace ceems::ingest
