#pragma once

#include <memory>
#include <string_view>

#include "audit/config.h"
#include "base/result.h"

namespace ceems::audit {

/// Where audit lines go. Not thread-safe.
class Destination {
 public:
  virtual ~Destination() = default;
  /// Writes one line, which has no line end. Errors: kUnavailable if the line is lost.
  virtual Result<> write(std::string_view line) = 0;
  /// Opens the file or the socket again. On an error the old one stays.
  virtual Result<> reopen() = 0;
};

/// Opens the file of the options for appending, with mode 0640, or the socket of systemd's journal
/// (https://systemd.io/JOURNAL_NATIVE_PROTOCOL/). `program` is a field of each entry of the
/// journal. Fails if that cannot be opened.
Result<std::unique_ptr<Destination>> open_destination(const Options& options,
                                                      std::string_view program);

}  // namespace ceems::audit
