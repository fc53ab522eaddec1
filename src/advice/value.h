#pragma once

#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace ceems::advice {

/// A value of the rule language; std::monostate is "unknown". Texts are views into facts or into
/// the expression.
using Value = std::variant<std::monostate, bool, double, std::string_view>;

inline bool is_known(const Value& value) {
  return !std::holds_alternative<std::monostate>(value);
}
/// Whether the value is known and true; unknown is not.
inline bool is_true(const Value& value) {
  const bool* truth = std::get_if<bool>(&value);
  return truth != nullptr && *truth;
}

/// Where an expression finds its names.
class Names {
 public:
  virtual ~Names() = default;
  /// Unknown for a name that has no value. Does not allocate.
  [[nodiscard]] virtual Value value_of(std::string_view name) const = 0;
};

/// The known facts of one run of a job: names of facts (fact_names() in rule.h) and their values. A
/// fact that was not measured is not set, which is not the same as 0.
class Facts final : public Names {
 public:
  void set(std::string_view name, bool truth) {
    values_.insert_or_assign(std::string(name), truth);
  }
  /// A number that is not finite leaves the fact unknown.
  void set(std::string_view name, double number) {
    if (std::isfinite(number)) {
      values_.insert_or_assign(std::string(name), number);
    }
  }
  void set(std::string_view name, std::string text) {
    values_.insert_or_assign(std::string(name), std::move(text));
  }
  void set(std::string_view name, const char* text) { set(name, std::string(text)); }
  void set(std::string_view name, int number) { set(name, static_cast<double>(number)); }
  void clear(std::string_view name) {
    if (const auto found = values_.find(name); found != values_.end()) {
      values_.erase(found);
    }
  }

  [[nodiscard]] Value value_of(std::string_view name) const override {
    const auto found = values_.find(name);
    if (found == values_.end()) {
      return {};
    }
    if (const bool* truth = std::get_if<bool>(&found->second)) {
      return *truth;
    }
    if (const double* number = std::get_if<double>(&found->second)) {
      return *number;
    }
    return std::string_view(std::get<std::string>(found->second));
  }

 private:
  std::map<std::string, std::variant<bool, double, std::string>, std::less<>> values_;
};

}  // namespace ceems::advice
