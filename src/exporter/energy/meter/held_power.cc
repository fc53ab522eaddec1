#include "exporter/energy/meter/held_power.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace ceems::exporter::energy {
namespace {

double seconds_between(Clock::SteadyTime from, Clock::SteadyTime to) {
  return std::max(0.0, std::chrono::duration<double>(to - from).count());
}

}  // namespace

void HeldPower::set(const PowerReading& reading, SourceGate* gate) {
  if (current_ && reading.time < current_->time) {
    return;
  }
  if (gate != nullptr ? !gate->believes(reading) : judge_watts(reading.watts).has_value()) {
    return;
  }
  if (current_ && done_ && reading.time > *done_) {
    const auto until = std::min(reading.time, current_->time + kMaxHold);
    pending_joules_ += current_->watts * seconds_between(*done_, until);
    done_ = reading.time;
  }
  current_ = reading;
  if (gate == nullptr || !gate->stale()) {
    fresh_ = reading.time;
  }
}

std::optional<double> HeldPower::advance(Clock::SteadyTime now) {
  if (!current_ || now - current_->time > kMaxHold) {
    done_.reset();
    pending_joules_ = 0;
    return std::nullopt;
  }
  const double joules =
      pending_joules_ + (done_ ? current_->watts * seconds_between(*done_, now) : 0);
  pending_joules_ = 0;
  done_ = done_ ? std::max(*done_, now) : now;
  return joules;
}

std::optional<Clock::SteadyTime> HeldPower::fresh() const {
  return fresh_;
}

std::optional<double> HeldPower::watts() const {
  return current_ ? std::optional(current_->watts) : std::nullopt;
}

void PublishedPowerMeter::publish(const PowerReading& reading) {
  const MutexLock lock(mutex_);
  queue_.push_back(reading);
  if (queue_.size() > kMaxQueue) {
    queue_.pop_front();
  }
}

Result<Reading> PublishedPowerMeter::read(const MeterContext& context) {
  {
    const MutexLock lock(mutex_);
    for (const PowerReading& reading : queue_) {
      power_.set(reading, context.gate);
    }
    queue_.clear();
  }
  const auto joules = power_.advance(context.now);
  if (!joules) {
    return fail(ErrorCode::kUnavailable, "no power reading in the last {} s",
                HeldPower::kMaxHold.count());
  }
  return Reading{.joules = *joules,
                 .fresh = power_.fresh().value_or(context.now),
                 .idle_watts = {},
                 .watts = power_.watts()};
}

}  // namespace ceems::exporter::energy
