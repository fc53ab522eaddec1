#include <array>

#include "tool/export/all.h"

namespace ceems::tool::exporting {

std::span<const FormatSpec> formats() {
  static const std::array kFormats{csv_format(), jsonl_format(), xdmod_format()};
  return kFormats;
}

}  // namespace ceems::tool::exporting
