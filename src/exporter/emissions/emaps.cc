#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "exporter/emissions/service.h"

namespace ceems::exporter::emissions {
namespace {

constexpr std::size_t kAtOnce = 4;
constexpr std::chrono::hours kZonesKept{24};
/// Ends a refresh even if every request runs into its timeout.
constexpr std::chrono::minutes kMaxRefresh{10};

class Emaps {
 public:
  Emaps(std::shared_ptr<Service> service, std::string token, const Clock& clock)
      : service_(std::move(service)), clock_(clock) {
    if (!token.empty()) {
      headers_.emplace_back("auth-token", std::move(token));
    }
  }

  Result<Factors> fetch(const std::stop_token& stop) {
    const std::stop_callback cancel(stop, [this] { service_->cancel(); });
    CEEMS_TRY(refresh_zones());
    const Round round = ask_all(stop);
    if (round.answered == 0) {
      return fail(round.error.value_or(Error{ErrorCode::kUnavailable, "no zone answers"}));
    }
    report(round);
    Factors factors;
    const auto now = clock_.steady_now();
    for (const State& zone : zones_) {
      if (zone.grams_per_kwh > 0 && now - zone.time <= kMaxAge) {
        factors.push_back({zone.key, zone.label, zone.grams_per_kwh});
      }
    }
    return factors;
  }

 private:
  struct State {
    std::string key;
    std::string label;
    double grams_per_kwh = 0;
    Clock::SteadyTime time{};  ///< time of the value
  };
  struct Round {
    std::size_t answered = 0;
    std::optional<Error> error;  ///< error of one zone
  };

  /// Lists the zones again once a day. If that fails, the old list is used.
  Result<> refresh_zones() {
    const auto now = clock_.steady_now();
    if (!zones_.empty() && now - listed_ < kZonesKept) {
      return {};
    }
    auto text = service_->get("/zones");
    auto zones = text ? parse_emaps_zones(*text) : fail(std::move(text).error());
    if (!zones) {
      if (!zones_.empty()) {
        return {};
      }
      return fail(std::move(zones).error().with_context("list of zones"));
    }
    std::vector<State> states;
    for (auto& [key, label] : *zones) {
      const auto before = std::ranges::find(zones_, key, &State::key);
      State state = before != zones_.end() ? *before : State{};
      state.key = std::move(key);
      state.label = std::move(label);
      states.push_back(std::move(state));
    }
    zones_ = std::move(states);
    listed_ = now;
    return {};
  }

  /// Queries every zone. Zones that fail keep their values.
  Round ask_all(const std::stop_token& stop) {
    const auto begin = std::chrono::steady_clock::now();
    std::atomic<std::size_t> next = 0;
    Mutex mutex;
    Round round;
    const auto work = [&] {
      for (std::size_t i = next++; i < zones_.size(); i = next++) {
        if (stop.stop_requested() || std::chrono::steady_clock::now() - begin > kMaxRefresh) {
          return;
        }
        auto value = ask(zones_[i].key);
        const MutexLock lock(mutex);
        if (value) {
          zones_[i].grams_per_kwh = *value;
          zones_[i].time = clock_.steady_now();
          ++round.answered;
        } else {
          round.error = std::move(value).error().with_context("zone " + zones_[i].key);
        }
      }
    };
    {
      std::array<std::jthread, kAtOnce> workers;
      std::ranges::generate(workers, [&work] { return std::jthread(work); });
    }
    return round;
  }

  Result<double> ask(const std::string& zone) {
    try {
      const auto text =
          service_->get("/carbon-intensity/latest?zone=" + net::url_encode(zone), headers_);
      return text ? parse_emaps_intensity(*text) : fail(text.error());
    } catch (const std::exception& error) {
      return fail(ErrorCode::kInternal, "exception: {}", error.what());
    }
  }

  /// Logs one line when zones start to fail and one when all answer. Tokens for some zones only are
  /// common, so this is not an error.
  void report(const Round& round) {
    const bool missing = round.answered < zones_.size();
    if (missing == missing_) {
      return;
    }
    missing_ = missing;
    if (missing) {
      log::warn("some zones do not answer",
                {{"collector", "emissions"},
                 {"provider", "emaps"},
                 {"answered", round.answered},
                 {"zones", zones_.size()},
                 {"err", round.error ? round.error->message : "time is up"}});
    } else {
      log::info("all zones answer", {{"collector", "emissions"}, {"provider", "emaps"}});
    }
  }

  std::shared_ptr<Service> service_;
  net::Headers headers_;
  const Clock& clock_;
  std::vector<State> zones_;
  Clock::SteadyTime listed_{};
  bool missing_ = false;
};

}  // namespace

Result<Fetch> emaps_fetch(const ProviderContext& context) {
  auto token = context.environment("EMAPS_API_TOKEN");
  if (!token) {
    return fail(ErrorCode::kInvalidArgument, "environment variable EMAPS_API_TOKEN is not set");
  }
  CEEMS_TRY(service,
            Service::create(context, "__EMAPS_BASE_URL", "https://api.electricitymap.org/v3"));
  auto emaps = std::make_shared<Emaps>(std::move(service), *std::move(token), *context.clock);
  return Fetch([emaps](const std::stop_token& stop) { return emaps->fetch(stop); });
}

}  // namespace ceems::exporter::emissions
