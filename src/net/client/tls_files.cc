#include "net/client/tls_files.h"

#include "base/mutex.h"
#include "os/secret.h"

namespace ceems::net {
namespace {

Result<> take_text(std::string& file, std::string& text) {
  if (file.empty()) {
    return {};
  }
  auto read = os::read_secret({}, file);
  if (read && read->empty()) {
    read = fail(ErrorCode::kInvalidArgument, "{} is empty", file);
  }
  if (!read) {
    Error error = std::move(read).error().with_context("TLS file");
    error.code = ErrorCode::kInvalidArgument;
    return fail(std::move(error));
  }
  text = *std::move(read);
  file.clear();
  return {};
}

}  // namespace

std::string tls_files_state(const TlsOptions& options) {
  return os::file_state(options.ca_file) + os::file_state(options.cert_file) +
         os::file_state(options.key_file);
}

Result<std::shared_ptr<const TlsOptions>> TlsFiles::read() {
  // Taken before the texts are read, so that a change in the meantime is noticed by the next call.
  std::string state = tls_files_state(options_);
  const MutexLock lock(mutex_);
  if (texts_ && state == state_) {
    return texts_;
  }
  TlsOptions texts = options_;
  for (const auto& [file, text] :
       {std::pair(&texts.ca_file, &texts.ca), std::pair(&texts.cert_file, &texts.cert),
        std::pair(&texts.key_file, &texts.key)}) {
    CEEMS_TRY(take_text(*file, *text));
  }
  texts_ = std::make_shared<const TlsOptions>(std::move(texts));
  state_ = std::move(state);
  return texts_;
}

}  // namespace ceems::net
