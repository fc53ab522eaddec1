#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"

namespace ceems::net {

/// How to reach a mail server (RFC 5321). Holds a password, which is never logged.
struct SmtpOptions {
  std::string url = {};  ///< smtp://HOST:PORT or, with TLS from the start, smtps://HOST:PORT
  std::string username = {}, password = {};  ///< empty: without authentication
  bool starttls = true;                      ///< refuse smtp:// servers without STARTTLS
  std::string ca_file = {};                  ///< PEM; empty: the system's
  std::string hello = {};                    ///< the name of this host for EHLO; empty: libcurl's
  std::chrono::milliseconds timeout{30'000};
};

/// The result of sending a mail. After the zero value, the mail must not be sent again.
enum class MailOutcome {
  kUnknown,    ///< the connection was lost when the server had the mail, but had not answered
  kSent,       ///< the server took it
  kTemporary,  ///< it was not taken; a later attempt may succeed
  kRefused,    ///< it was not taken for good (a 5xx)
};

struct MailAnswer {
  MailOutcome outcome = MailOutcome::kUnknown;
  std::string problem = {};  ///< for the log
};

/// kInvalidArgument for a URL of another kind.
Result<> check_smtp(const SmtpOptions& options);

/// Sends a message, in which lines end with CR LF, in a connection of its own. All addresses must
/// be free of spaces, control characters and angle brackets. `handing_over` is called once all but
/// the end of the message has been sent; if it returns false, the connection is closed and the
/// server discards the message (kTemporary). After a stop nothing is sent. Safe for concurrent use.
MailAnswer send_smtp(const SmtpOptions& options,
                     const std::string& from,
                     const std::vector<std::string>& to,
                     const std::string& message,
                     const std::function<bool()>& handing_over,
                     const std::stop_token& stop);

}  // namespace ceems::net
