#pragma once

#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "net/client/client.h"

namespace ceems::net {

/// Changes whenever one of the files of the options does.
std::string tls_files_state(const TlsOptions& options);

/// TLS options with the texts of their files (PEM) in place of the names, read again whenever one
/// of the files has changed. Safe for concurrent use.
class TlsFiles {
 public:
  explicit TlsFiles(TlsOptions options) : options_(std::move(options)) {}

  /// The same object as long as the files stay as they are. kInvalidArgument names the file that
  /// cannot be read or is empty: an empty list of authorities must not become the system's.
  Result<std::shared_ptr<const TlsOptions>> read();

 private:
  const TlsOptions options_;
  Mutex mutex_;
  std::string state_ CEEMS_GUARDED_BY(mutex_);
  std::shared_ptr<const TlsOptions> texts_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::net
