#include "store/unit_name.h"

namespace ceems::store {

std::string normal_name(std::string_view name) {
  std::string result;
  bool digits = false;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
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
