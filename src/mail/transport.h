#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "mail/config.h"
#include "net/client/smtp.h"

namespace ceems::mail {

/// A way to send mails; tests replace it.
class Transport {
 public:
  virtual ~Transport() = default;
  /// See net::send_smtp(). Called by one thread at a time.
  virtual net::MailAnswer send(const std::string& from,
                               const std::vector<std::string>& to,
                               const std::string& message,
                               const std::function<bool()>& handing_over,
                               const std::stop_token& stop) = 0;
};

/// SMTP, or the sendmail program, which is started without a shell and with the message on standard
/// input, once it may have it. The password is read for each mail.
std::unique_ptr<Transport> make_transport(const Options& options);

}  // namespace ceems::mail
