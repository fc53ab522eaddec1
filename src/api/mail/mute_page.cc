#include "api/mail/mute_page.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "base/text/html.h"
#include "mail/letter.h"

namespace ceems::api {
namespace {

constexpr std::string_view kPurpose = "mail-mute";
constexpr std::int64_t kDaySeconds = std::int64_t{24} * 3600;
constexpr std::int64_t kLinkSeconds = 366 * kDaySeconds;
constexpr std::int64_t kMuteMs = 90 * kDaySeconds * 1000;

/// How long the reader of a mail does not want what the link names.
enum class Wish : std::uint8_t { kForDays, kUntilWithdrawn, kAgain };
struct WishName {
  std::string_view value, button, done;
};
/// In the order of Wish.
constexpr std::array<WishName, 3> kWishes{
    {{"days", "Stop for 90 days", "stopped for 90 days."},
     {"always", "Stop until I want them again",
      "stopped until you want them again, which the link of this page says."},
     {"again", "Send them again", "sent again."}}};

/// What the form of the page, or a mail program, asks for. A program that unsubscribes says no
/// more: digests of months and mails about budgets were not requested, so they do not come again.
Wish wish_in(std::string_view body, std::string_view rule) {
  for (const auto& [name, value] : net::parse_query(body)) {
    const auto found = std::ranges::find(kWishes, value, &WishName::value);
    if (name == "for" && found != kWishes.end()) {
      return static_cast<Wish>(found - kWishes.begin());
    }
  }
  return rule == mail::kMonthlyDigest || rule == mail::kBudgetWarnings ? Wish::kUntilWithdrawn
                                                                       : Wish::kForDays;
}

std::string form_html() {
  std::string html = "<form method=\"post\">";
  for (const WishName& wish : kWishes) {
    html += fmt::format("<p><button type=\"submit\" name=\"for\" value=\"{}\">{}</button></p>",
                        wish.value, wish.button);
  }
  return html + "</form>\n";
}

std::int64_t seconds_of(const Clock& clock) {
  return std::chrono::duration_cast<std::chrono::seconds>(clock.now().time_since_epoch()).count();
}

std::string token_in(std::string_view query) {
  for (const auto& [name, value] : net::parse_query(query)) {
    if (name == "token") {
      return value;
    }
  }
  return {};
}

void answer_page(
    net::Response& response, int status, std::string_view title, std::string_view text, bool form) {
  response.status = status;
  response.set_header("Content-Type", "text/html; charset=utf-8");
  response.set_header("Content-Security-Policy",
                      "default-src 'none'; form-action 'self'; base-uri 'none'; "
                      "frame-ancestors 'none'");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cache-Control", "no-store");
  response.body = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light "
      "dark\"><title>{0} – CEEMS</title></head>\n<body>\n<main>\n<h1>{0}</h1>\n<p>{1}</p>\n{2}"
      "</main>\n</body>\n</html>\n",
      escape_html(title), escape_html(text), form ? form_html() : "");
}

}  // namespace

MutePage::MutePage(access::Signer signer,
                   std::string external_url,
                   OpenOutbox open_outbox,
                   const Clock& clock)
    : signer_(std::move(signer)),
      external_url_(std::move(external_url)),
      clock_(clock),
      open_outbox_(std::move(open_outbox)) {}

Result<std::unique_ptr<MutePage>> MutePage::create(std::string key,
                                                   std::string external_url,
                                                   OpenOutbox open_outbox,
                                                   const Clock& clock) {
  CEEMS_TRY(signer, access::Signer::create(std::move(key)));
  while (external_url.ends_with('/')) {
    external_url.pop_back();
  }
  return std::unique_ptr<MutePage>(
      new MutePage(std::move(signer), std::move(external_url), std::move(open_outbox), clock));
}

std::string MutePage::url(const std::string& user, const std::string& rule) const {
  if (external_url_.empty() || user.empty()) {
    return {};
  }
  return fmt::format(
      "{}{}?token={}", external_url_, kPath,
      signer_.seal(kPurpose, {user, rule, std::to_string(seconds_of(clock_) + kLinkSeconds)}));
}

Result<> MutePage::mute(const std::string& user, const std::string& rule, std::int64_t until_ms) {
  const MutexLock lock(mutex_);
  if (!outbox_) {
    if (!open_outbox_) {
      return fail(ErrorCode::kUnavailable, "the server stops");
    }
    CEEMS_TRY(outbox, open_outbox_());
    outbox_ = std::move(outbox);
  }
  return outbox_->mute(user, rule, until_ms);
}

void MutePage::close() {
  const MutexLock lock(mutex_);
  open_outbox_ = nullptr;
  outbox_.reset();
}

void MutePage::answer(const net::Request& request, net::Response& response) {
  const auto opened = signer_.open(kPurpose, token_in(request.query), 3);
  const auto fields = opened.value_or(std::vector<std::string>(3));
  if (parse_int<std::int64_t>(fields[2]).value_or(0) < seconds_of(clock_)) {
    constexpr int kNotFound = 404;
    answer_page(response, kNotFound, "Link not valid", "This link is not valid any more.", false);
    return;
  }
  const std::string& rule = fields[1];
  const std::string what = rule == mail::kAllMails         ? "All mails with reports"
                           : rule == mail::kMonthlyDigest  ? "Mails about the month"
                           : rule == mail::kBudgetWarnings ? "Mails about budgets"
                                                           : "The suggestion '" + rule + "'";
  if (request.method != "POST") {
    constexpr int kNotAllowed = 405;
    const bool read = request.method == "GET" || request.method == "HEAD";
    answer_page(response, read ? 200 : kNotAllowed, "Mails from CEEMS",
                what + ": stop them, or have them again?", read);
    return;
  }
  const Wish wish = wish_in(request.body, rule);
  const std::int64_t until_ms = wish == Wish::kForDays ? seconds_of(clock_) * 1000 + kMuteMs
                                : wish == Wish::kAgain ? 0
                                                       : store::kUntilWithdrawn;
  if (auto done = mute(fields[0], rule, until_ms); !done) {
    log::warn("a user could not mute mails", {{"err", done.error().message}});
    constexpr int kUnavailable = 503;
    answer_page(response, kUnavailable, "Mails from CEEMS",
                "This cannot be stored now. Please try again in a minute.", true);
    return;
  }
  answer_page(response, 200, "Mails from CEEMS",
              fmt::format("{}: {}", what, kWishes.at(static_cast<std::size_t>(wish)).done),
              wish == Wish::kUntilWithdrawn);
}

}  // namespace ceems::api
