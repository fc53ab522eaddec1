#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "export/unit.h"

namespace ceems::exporting {

/// Writes units in the form of one format. Used by one thread.
class Format {
 public:
  virtual ~Format() = default;
  /// What stands before the first unit.
  virtual void begin(std::string& /*out*/) {}
  /// Appends a unit, or nothing if the format has no form for it.
  virtual void add(const ExportedUnit& unit, std::string& out) = 0;
  /// What stands behind the last unit.
  virtual void end(std::string& /*out*/) {}
};

/// What the operator says of money.
struct FormatOptions {
  std::string provider = {};  ///< who runs the site
  std::string currency = {};  ///< ISO 4217
  double price_per_kwh = 0;
};

/// How a format is known on the command line. The table in docs/export.md has a row for each.
struct FormatSpec {
  std::string_view name;
  std::string_view help;     ///< one clause, without a full stop
  bool needs_price = false;  ///< all of FormatOptions
  std::unique_ptr<Format> (*create)(const FormatOptions& options) = nullptr;
};

// Each is one source, one line here, from which the build makes formats(), one test and one row in
// docs/export.md.
FormatSpec csv_format();
FormatSpec focus_format();
FormatSpec jsonl_format();
FormatSpec xdmod_format();

/// All formats, in the order of the documentation.
std::span<const FormatSpec> formats();

}  // namespace ceems::exporting
