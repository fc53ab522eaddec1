#pragma once

#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "net/client/client.h"

namespace ceems::net {

/// A text that changes whenever one of the files in the options does.
std::string tls_files_state(const TlsOptions& options);

/// TLS options in which the names of files are replaced by the texts of the files (PEM). These are
/// read again whenever one of the files has changed. Safe for concurrent use.
class TlsFiles {
 public:
  explicit TlsFiles(TlsOptions options) : options_(std::move(options)) {}

  /// Returns the same object until one of the files changes. kInvalidArgument names the file that
  /// cannot be read or is empty. An empty CA file is an error, because without a CA the client
  /// would trust the system's.
  Result<std::shared_ptr<const TlsOptions>> read();

 private:
  const TlsOptions options_;
  Mutex mutex_;
  std::string state_ CEEMS_GUARDED_BY(mutex_);
  std::shared_ptr<const TlsOptions> texts_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::net
