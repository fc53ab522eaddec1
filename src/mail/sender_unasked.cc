// Unsolicited mails: digests of months, and budgets that run out.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "mail/address.h"
#include "mail/sender.h"

namespace ceems::mail {
namespace {

constexpr std::int64_t kMsOfDay = std::int64_t{24} * 3600 * 1000;
/// When digests of a month are made: its last windows and reports have come, and not long after,
/// because late ones are of no use.
constexpr std::int64_t kMonthFromMs = 36 * 3600'000LL;
constexpr std::int64_t kMonthToMs = 10 * kMsOfDay;
/// Digests come in batches at half the rate, so that mails about jobs do not wait behind them.
constexpr std::size_t kMonthBatch = 50;
constexpr std::int64_t kBudgetsMs = 3600'000;  // between looks at budgets, which count days

bool is_muted(const LetterOptions& options, std::string_view kind) {
  return std::ranges::any_of(
      options.muted, [kind](const std::string& rule) { return rule == kAllMails || rule == kind; });
}

}  // namespace

/// Puts the digests of the last month into the outbox, once: their ids name the month and the user,
/// so that a restart adds none again.
Result<> Sender::queue_months() {
  if (setup_.options.monthly == Mode::kDisabled) {
    return {};
  }
  const EndedMonth month = reports_.last_month();
  const std::int64_t now = clock_.now_ms();
  if (month.name == queued_month_ || now < month.ended_ms + kMonthFromMs ||
      now > month.ended_ms + kMonthToMs) {
    return {};
  }
  CEEMS_TRY(users, reports_.users_of(month.name));
  std::vector<Mail> mails;
  mails.reserve(users.size());
  const double pause_ms = 2 * 1000 * static_cast<double>(kMonthBatch) / setup_.options.rate;
  for (const std::string& user : users) {
    const std::size_t batch = mails.size() / kMonthBatch;
    // Service accounts and the like have no mailbox.
    if (is_address(user + "@" + setup_.options.domain)) {
      mails.push_back(
          {.id = fmt::format("month {} {}", month.name, user),
           .kind = std::string(kMonthMail),
           .username = user,
           .recipient = user,
           .body = month.name,
           .received_ms = now,
           .due_ms = now + static_cast<std::int64_t>(static_cast<double>(batch) * pause_ms)});
    }
  }
  CEEMS_TRY(added, outbox_->add(mails));
  queued_month_ = month.name;
  if (added > 0) {
    log::info("queued the digests of a month", {{"month", month.name}, {"mails", added}});
  }
  return {};
}

Result<> Sender::send_month(const Mail& mail, const std::stop_token& stop) {
  CEEMS_TRY(options, letter_options(mail.username));
  if (is_muted(options, kMonthlyDigest)) {
    return drop(mail, true);
  }
  CEEMS_TRY(digest, reports_.digest(mail.username, mail.body, options.muted));
  if (const auto& known = digest) {
    return deliver({mail}, month_letter(mail.username, *known, options), kMonthlyDigest, stop);
  }
  return drop(mail, false);
}

/// Puts a mail for each lead of a project into the outbox when a share of its budget has passed.
/// Its id names the budget, the period, the share and the lead, so that each is sent once.
Result<> Sender::queue_budgets() {
  const std::int64_t now = clock_.now_ms();
  if (setup_.options.budgets == Mode::kDisabled || now < next_budgets_ms_) {
    return {};
  }
  CEEMS_TRY(passed, look_at_budgets());
  std::vector<Mail> mails;
  for (const PassedBudget& budget : passed) {
    for (const std::string& lead : budget.leads) {
      if (is_address(lead + "@" + setup_.options.domain)) {
        mails.push_back({.id = fmt::format("budget {} {}", budget.id, lead),
                         .kind = std::string(kBudgetMail),
                         .username = lead,
                         .recipient = lead,
                         .body = budget.id,
                         .received_ms = now,
                         .due_ms = now});
      }
    }
  }
  CEEMS_TRY(added, outbox_->add(mails));
  if (added > 0) {
    log::info("queued mails about budgets", {{"mails", added}});
  }
  next_budgets_ms_ = now + kBudgetsMs;
  return {};
}

Result<std::span<const PassedBudget>> Sender::look_at_budgets() {
  if (!passed_) {
    CEEMS_TRY(passed, reports_.passed_budgets());
    passed_ = std::move(passed);
  }
  return std::span(*passed_);
}

Result<> Sender::send_budget(const Mail& mail, const std::stop_token& stop) {
  CEEMS_TRY(options, letter_options(mail.username));
  if (is_muted(options, kBudgetWarnings)) {
    return drop(mail, true);
  }
  CEEMS_TRY(passed, look_at_budgets());
  // Meanwhile a higher share may have passed, which has a mail of its own, or somebody else leads.
  const auto budget = std::ranges::find(passed, mail.body, &PassedBudget::id);
  if (budget == passed.end() ||
      std::ranges::find(budget->leads, mail.username) == budget->leads.end()) {
    return drop(mail, false);
  }
  return deliver({mail}, budget_letter(mail.username, *budget, options), kBudgetWarnings, stop);
}

}  // namespace ceems::mail
