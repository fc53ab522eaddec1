#pragma once

#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace ceems::ingest {

struct AdminNames {
  std::vector<std::string> names;
  bool all = true;  ///< false: there may be more, so known administrators are kept
};

/// The names of administrators kept elsewhere, e.g. in Grafana teams. Must be called from one
/// thread at a time.
class AdminSource {
 public:
  virtual ~AdminSource() = default;
  /// Returns the administrators that could be read, or an error if none could.
  virtual Result<AdminNames> fetch(const std::stop_token& stop) = 0;
};

/// Writes the administrators to the database: from the configuration as source "ceems", from the
/// AdminSource as source "grafana". Failures are logged when they begin and when they end. Not
/// thread-safe.
class AdminSync {
 public:
  /// `writer` must outlive it.
  AdminSync(std::vector<std::string> configured, bool has_source, store::Writer& writer)
      : configured_(std::move(configured)), has_source_(has_source), writer_(writer) {}

  /// Writes the configured administrators, unless an earlier call has done so. Without an
  /// AdminSource it also removes the administrators of "grafana".
  void write_configured();
  /// Writes the answer of the AdminSource. An empty list is treated as an error and changes
  /// nothing. Returns whether anything was written.
  bool write_fetched(Result<AdminNames> fetched);

 private:
  const std::vector<std::string> configured_;
  const bool has_source_;
  store::Writer& writer_;
  bool configured_written_ = false;
  std::string last_error_;  ///< of write_fetched(); empty after success
};

}  // namespace ceems::ingest
