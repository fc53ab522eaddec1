#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/mail/mute_page.h"
#include "api/mail/report_source.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "mail/config.h"
#include "mail/sender.h"
#include "mail/transport.h"
#include "metrics/registry.h"
#include "store/database.h"

namespace ceems::api {

struct MailSetup {
  mail::Options options = {};
  std::vector<mail::MailCluster> clusters = {};  ///< those that SLURM manages
  std::string help_url = {}, external_url = {};
  std::string data_directory = {};  ///< holds ceems-mail.key, which signs links
  bool reports_stored = true;       ///< by a finisher
  TimeZone zone = {};               ///< of months
  access::Roles roles = {};         ///< with project leads of the configuration
  std::function<bool(const std::string& cluster_id)> measured = {};
};

/// Sends mails in a thread of its own. Nothing happens unless they are switched on.
class MailService {
 public:
  /// `database` and `clock` outlive the service. Errors: any of the key file.
  static Result<std::unique_ptr<MailService>> create(MailSetup setup,
                                                     store::Database& database,
                                                     const Clock& clock);
  ~MailService();
  MailService(const MailService&) = delete;
  MailService& operator=(const MailService&) = delete;

  [[nodiscard]] MutePage& mute_page() { return *page_; }
  /// Starts to send when the database is ready. All outlive the service.
  void start(const ReportMaker& maker,
             const DigestMaker& digests,
             const Accounting& accounting,
             metrics::Registry& registry);
  /// Ends the thread and closes the outboxes. Idempotent.
  void stop();

 private:
  MailService(MailSetup setup, store::Database& database, const Clock& clock);

  MailSetup setup_;
  store::Database& database_;
  const Clock& clock_;
  std::unique_ptr<MutePage> page_;
  std::unique_ptr<MailReports> reports_;
  std::unique_ptr<mail::Transport> transport_;
  std::unique_ptr<mail::Sender> sender_;
  std::jthread thread_;
};

}  // namespace ceems::api
