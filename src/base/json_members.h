#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ceems {

/// The members of a JSON object, which may be hostile: texts without their quotes, numbers and
/// words as they stand, objects and lists as JSON. Members that are null are left out.
class JsonMembers {
 public:
  /// Of a text that is not an object: none, or those before the fault.
  static JsonMembers parse(std::string_view json);

  /// Empty if there is none.
  [[nodiscard]] std::string_view text(std::string_view name) const;
  /// The first of these that is not empty.
  [[nodiscard]] std::string_view first(std::string_view name, std::string_view other) const;
  /// Nothing for what is not a finite number, and for numbers in quotes.
  [[nodiscard]] std::optional<double> number(std::string_view name) const;

 private:
  struct Value {
    std::string text;
    bool quoted = false;
  };
  std::map<std::string, Value, std::less<>> members_;
};

}  // namespace ceems
