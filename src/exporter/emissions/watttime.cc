#include <optional>
#include <utility>

#include <fmt/format.h>

#include "crypto/base64.h"
#include "exporter/emissions/service.h"

namespace ceems::exporter::emissions {
namespace {

constexpr std::chrono::minutes kTokenLife{25};
constexpr std::chrono::minutes kWindow{15};

/// "2026-11-21T15:00:00+00:00"
std::string utc(Clock::SystemTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}+00:00", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

struct Account {
  std::string username;
  std::string password;
  std::string region;
};

class WattTime {
 public:
  WattTime(std::shared_ptr<Service> service, Account account, const Clock& clock)
      : service_(std::move(service)), account_(std::move(account)), clock_(clock) {}

  Result<Factors> fetch(const std::stop_token& stop) {
    const std::stop_callback cancel(stop, [this] { service_->cancel(); });
    CEEMS_TRY(log_in());
    const auto now = clock_.now();
    auto text =
        service_->get(fmt::format("/v3/historical?start={}&end={}&region={}&signal_type=co2_moer",
                                  net::url_encode(utc(now - kWindow)), net::url_encode(utc(now)),
                                  net::url_encode(account_.region)),
                      {{"Authorization", "Bearer " + token_}});
    if (!text) {
      if (text.error().code == ErrorCode::kPermissionDenied) {
        token_.clear();  // it may have expired early: the next call logs in again
      }
      return fail(std::move(text).error());
    }
    CEEMS_TRY(value, parse_watttime_intensity(*text));
    return Factors{{account_.region, account_.region, value}};
  }

 private:
  Result<> log_in() {
    const auto now = clock_.steady_now();
    if (!token_.empty() && now - token_time_ < kTokenLife) {
      return {};
    }
    token_.clear();
    auto text = service_->get(
        "/login", {{"Authorization", "Basic " + crypto::base64_encode(account_.username + ":" +
                                                                      account_.password)}});
    CEEMS_TRY_IN("login", token,
                 text ? parse_watttime_token(*text) : fail(std::move(text).error()));
    token_ = std::move(token);
    token_time_ = now;
    return {};
  }

  std::shared_ptr<Service> service_;
  Account account_;
  const Clock& clock_;
  std::string token_;
  Clock::SteadyTime token_time_{};
};

}  // namespace

Result<Fetch> watttime_fetch(const ProviderContext& context) {
  Account account;
  std::string missing;
  const auto take = [&](const char* name, std::string& value) {
    value = context.environment(name).value_or("");
    if (value.empty()) {
      missing.append(missing.empty() ? "" : ", ").append(name);
    }
  };
  take("WT_USERNAME", account.username);
  take("WT_PASSWORD", account.password);
  take("WT_REGION", account.region);
  if (!missing.empty()) {
    return fail(ErrorCode::kInvalidArgument, "environment variables not set: {}", missing);
  }
  CEEMS_TRY(service, Service::create(context, "__WT_BASE_URL", "https://api.watttime.org"));
  auto watttime =
      std::make_shared<WattTime>(std::move(service), std::move(account), *context.clock);
  return Fetch([watttime](const std::stop_token& stop) { return watttime->fetch(stop); });
}

}  // namespace ceems::exporter::emissions
