#include "store/unit_name.h"

#include "base/strings.h"

namespace ceems::store {

std::string normal_name(std::string_view name) {
  std::string result;
  bool digits = false;
  for (const char c : name) {
    const bool digit = is_digit(c);
    if (!digit) {
      result += c;
    } else if (!digits) {
      result += '#';
    }
    digits = digit;
  }
  return result;
}

}  // namespace ceems::store
