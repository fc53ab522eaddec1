#include "net/web_access.h"

namespace ceems::net {

struct WebAccess::Impl {};

Result<std::unique_ptr<WebAccess>> WebAccess::open(const std::string& file) {
  return fail(ErrorCode::kInvalidArgument, "{}: web configuration cannot be read yet", file);
}
WebAccess::WebAccess(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WebAccess::~WebAccess() = default;
bool WebAccess::tls() const {
  return false;
}
std::shared_ptr<ssl_ctx_st> WebAccess::tls_context() {
  return nullptr;
}
std::shared_ptr<const WebRules> WebAccess::rules() {
  return nullptr;
}
WebAccess::Verdict WebAccess::authorize(const WebRules& /*rules*/, Request& /*request*/) {
  return Verdict::kDenied;
}
WebAccess::Verdict WebAccess::check_password(const WebRules& /*rules*/, Request& /*request*/) {
  return Verdict::kDenied;
}

}  // namespace ceems::net
