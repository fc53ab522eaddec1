#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "access/session.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "net/http.h"
#include "store/outbox.h"

namespace ceems::api {

/// The page that links in mails lead to, on which their reader stops a suggestion, all reports, or
/// the digests of months, for 90 days or until it is withdrawn there. A signed link names the user
/// and the rule, so no login is needed; it does nothing else, and works for a year. Reading the
/// page changes nothing, because programs that check mails follow links; its form, and mail
/// programs (RFC 8058), send a POST. Safe for concurrent use.
class MutePage {
 public:
  static constexpr std::string_view kPath = "/mail/mute";
  using OpenOutbox = std::function<Result<std::unique_ptr<store::Outbox>>()>;

  /// `external_url` is that of the server, for links; empty: there are none. `clock` outlives the
  /// page. kInvalidArgument for a key that is too short.
  static Result<std::unique_ptr<MutePage>> create(std::string key,
                                                  std::string external_url,
                                                  OpenOutbox open_outbox,
                                                  const Clock& clock);

  /// The link for a rule, or "*" for all mails; "" if there can be none.
  [[nodiscard]] std::string url(const std::string& user, const std::string& rule) const;
  void answer(const net::Request& request, net::Response& response);
  /// Closes the outbox, so that the database can be closed; nothing can be muted afterwards.
  void close();

 private:
  MutePage(access::Signer signer,
           std::string external_url,
           OpenOutbox open_outbox,
           const Clock& clock);
  Result<> mute(const std::string& user, const std::string& rule, std::int64_t until_ms);

  access::Signer signer_;
  std::string external_url_;
  const Clock& clock_;
  Mutex mutex_;
  OpenOutbox open_outbox_ CEEMS_GUARDED_BY(mutex_);
  std::unique_ptr<store::Outbox> outbox_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::api
