#include "exporter/emissions/provider.h"

#include <algorithm>
#include <utility>

#include "exporter/source/slow_source.h"

namespace ceems::exporter::emissions {
namespace {

/// How often the thread checks whether a refresh is due.
constexpr std::chrono::seconds kTick{5};

class FixedProvider final : public Provider {
 public:
  FixedProvider(std::string key, std::string name, Factors factors)
      : Provider(std::move(key), std::move(name)),
        factors_(std::make_shared<const Factors>(std::move(factors))) {}

  std::shared_ptr<const Factors> factors() override { return factors_; }

 private:
  std::shared_ptr<const Factors> factors_;
};

class RemoteProvider final : public Provider {
 public:
  RemoteProvider(std::string key,
                 std::string name,
                 std::chrono::seconds period,
                 const Clock& clock,
                 Fetch fetch)
      : Provider(std::move(key), std::move(name)),
        clock_(clock),
        refresh_(period, clock, std::move(fetch)),
        // Ages count from the request, see young(). The source only has to keep the value.
        source_({.collector = "emissions",
                 .source = this->key(),
                 .period = kTick,
                 .max_age = 2 * kMaxAge,
                 .patience = {},
                 .first_wait = {}},
                clock,
                [this](const std::stop_token& stop) { return refresh_.step(stop); }) {}

  void start() override { source_.start(); }

  std::shared_ptr<const Factors> factors() override {
    const auto value = young();
    return value ? value->factors : nullptr;
  }

  [[nodiscard]] std::optional<std::chrono::nanoseconds> age() const override {
    const auto value = young();
    return value ? std::optional<std::chrono::nanoseconds>(clock_.steady_now() - value->time)
                 : std::nullopt;
  }

 private:
  [[nodiscard]] std::optional<Refresh::Fetched> young() const {
    const auto value = source_.value();
    if (!value || clock_.steady_now() - value->value.time > kMaxAge) {
      return std::nullopt;
    }
    return value->value;
  }

  const Clock& clock_;
  Refresh refresh_;  // used by the source's thread only
  // Mutable, as value() may wake it. The last member, so that it ends first.
  mutable SlowSource<Refresh::Fetched> source_;
};

}  // namespace

std::unique_ptr<Provider> fixed_provider(std::string key, std::string name, Factors factors) {
  return std::make_unique<FixedProvider>(std::move(key), std::move(name), std::move(factors));
}

std::unique_ptr<Provider> remote_provider(std::string key,
                                          std::string name,
                                          std::chrono::seconds period,
                                          const Clock& clock,
                                          Fetch fetch) {
  return std::make_unique<RemoteProvider>(std::move(key), std::move(name), period, clock,
                                          std::move(fetch));
}

Refresh::Refresh(std::chrono::seconds period, const Clock& clock, Fetch fetch)
    : period_(period),
      clock_(clock),
      fetch_(std::move(fetch)),
      last_(fail(ErrorCode::kNoData, "not requested yet")) {}

Result<Refresh::Fetched> Refresh::step(const std::stop_token& stop) {
  const auto now = clock_.steady_now();
  if (next_ && now < *next_) {
    return last_;
  }
  next_ = now + pause_;  // also if fetch_ throws
  auto factors = fetch_(stop);
  if (factors) {
    pause_ = std::min(kFirstRetryPause, period_);
    next_ = now + period_;
    last_ = Fetched{std::make_shared<const Factors>(*std::move(factors)), now};
  } else {
    pause_ = std::min(2 * pause_, period_);
    last_ = fail(std::move(factors).error());
  }
  return last_;
}

}  // namespace ceems::exporter::emissions
