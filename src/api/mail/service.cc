#include "api/mail/service.h"

#include <utility>

#include "api/login/key_file.h"
#include "base/log.h"

namespace ceems::api {

MailService::MailService(MailSetup setup, store::Database& database, const Clock& clock)
    : setup_(std::move(setup)), database_(database), clock_(clock) {}

MailService::~MailService() {
  stop();
}

Result<std::unique_ptr<MailService>> MailService::create(MailSetup setup,
                                                         store::Database& database,
                                                         const Clock& clock) {
  CEEMS_TRY(key, login::read_or_make_key(setup.data_directory + "/ceems-mail.key"));
  CEEMS_TRY(page, MutePage::create(
                      std::move(key), setup.external_url,
                      [&database] { return database.open_outbox(); }, clock));
  std::unique_ptr<MailService> service(new MailService(std::move(setup), database, clock));
  service->page_ = std::move(page);
  return service;
}

void MailService::start(const ReportMaker& maker,
                        const DigestMaker& digests,
                        const Accounting& accounting,
                        metrics::Registry& registry) {
  reports_ = std::make_unique<MailReports>(database_.reader(), maker, digests,
                                           MailReports::Setup{.stored = setup_.reports_stored,
                                                              .measured = setup_.measured,
                                                              .zone = setup_.zone,
                                                              .accounting = &accounting,
                                                              .roles = setup_.roles},
                                           clock_);
  transport_ = mail::make_transport(setup_.options);
  mail::SenderSetup setup{.options = setup_.options,
                          .clusters = setup_.clusters,
                          .help_url = setup_.help_url,
                          .open_outbox = [this] { return database_.open_outbox(); }};
  setup.mute_url = [this](const std::string& user, const std::string& rule) {
    return page_->url(user, rule);
  };
  sender_ =
      std::make_unique<mail::Sender>(std::move(setup), *reports_, *transport_, registry, clock_);
  thread_ = std::jthread([this](const std::stop_token& stop) {
    if (database_.wait_until_ready(stop)) {
      sender_->run(stop);
    }
  });
  log::info("mails are sent from the spool", {{"spool", setup_.options.spool}});
}

void MailService::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  sender_.reset();
  if (page_) {
    page_->close();
  }
}

}  // namespace ceems::api
