#pragma once

#include <initializer_list>
#include <string_view>

#include "base/fd.h"
#include "base/log.h"
#include "base/result.h"
#include "cacct/series/config.h"

namespace ceems::cacct {

/// The log of what people ask, for administrators: cacct.log or cacct.json in the configured
/// directory, created with mode 0660 and appended to. Lines of processes that run at the same time
/// never mix. Open it before privileges are given up.
class LogFile {
 public:
  /// Writes nothing.
  LogFile() = default;
  /// The directory must exist.
  static Result<LogFile> open(const LogOptions& options);

  /// What cannot be written, for example on a full disk, is lost.
  void write(log::Level level,
             std::string_view message,
             std::initializer_list<log::Field> fields) const;

 private:
  UniqueFd fd_;
  log::Level level_ = log::Level::kInfo;
  log::Format format_ = log::Format::kLogfmt;
};

}  // namespace ceems::cacct
