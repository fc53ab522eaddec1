#include "api/auditing.h"

#include <string>
#include <vector>

#include "model/protocol.h"

namespace ceems::api {
namespace {

constexpr int kOk = 200;
constexpr int kNotModified = 304;  // the caller has the data already
constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;
constexpr int kTooMany = 429;

std::string_view role_of(const access::Identity& identity) {
  if (identity.user.empty()) {
    return {};
  }
  return identity.user == model::kServiceAccount ? "service" : access::role_name(identity.role);
}

std::string_view reason_of(const Endpoint& endpoint, const Call& call) {
  if (!call.denied_for.empty()) {
    return call.denied_for;
  }
  if (call.identity.user.empty()) {
    return "no_identity";
  }
  return endpoint.caller == Caller::kAdmin ? "role" : "units";
}

std::vector<std::string> list_of(const std::string& text) {
  return text.empty() ? std::vector<std::string>() : std::vector{text};
}

}  // namespace

void audit_call(audit::Log* log, const Endpoint& endpoint, const Call& call) {
  if (log == nullptr) {
    return;
  }
  const int status = call.response->status;
  const bool denied = status == kUnauthorized || status == kForbidden ||
                      (status == kTooMany && !call.denied_for.empty());
  const bool changed = status == kOk && !call.changed.empty();
  if (!denied && !changed && (!call.foreign || (status != kOk && status != kNotModified))) {
    return;
  }
  const Params& params = call.params;
  using audit::What;
  log->write({.what = denied    ? What::kDenied
                      : changed ? What::kChanged
                                : What::kRead,
              .user = call.identity.user,
              .role = role_of(call.identity),
              .request = call.request,
              .status = status,
              .reason = denied ? reason_of(endpoint, call) : call.changed,
              .selected = {{"endpoint", {std::string(endpoint.path)}},
                           {"cluster_id", params.clusters},
                           {"project", params.projects},
                           {"of_user", changed ? list_of(call.changed_owner) : params.users},
                           {"token", list_of(call.changed_token)},
                           {"uuid", params.uuids},
                           {"from", list_of(params.from)},
                           {"to", list_of(params.to)}}});
}

void audit_login(audit::Log* log, const net::Request& request, const net::Response& response) {
  const int status = response.status;
  if (log == nullptr || (status != kUnauthorized && status != kForbidden && status != kTooMany)) {
    return;
  }
  // The name in the form is left out: people type passwords there by mistake.
  log->write({.what = audit::What::kDenied,
              .request = &request,
              .status = status,
              .reason = status == kTooMany ? "too_many_logins" : "login"});
}

}  // namespace ceems::api
