#include "exporter/marks/unit_marks.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

namespace ceems::exporter::marks {
namespace {

double seconds_between(Clock::SteadyTime from, Clock::SteadyTime to) {
  return std::max(0.0, std::chrono::duration<double>(to - from).count());
}

}  // namespace

double sum(const Parts& parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

std::string_view to_string(Drop drop) {
  constexpr std::array<std::string_view, kDropCount> kNames{"rate", "malformed", "names", "depth",
                                                            "unmatched"};
  return kNames.at(static_cast<std::size_t>(drop));
}

void UnitMarks::Region::Account::take(Account& other) {
  seconds += other.seconds;
  self_seconds += other.self_seconds;
  for (std::size_t part = 0; part < energy.joules.size(); ++part) {
    energy.joules.at(part) += other.energy.joules.at(part);
  }
  energy.self += other.energy.self;
  other = {};
}

void UnitMarks::Region::Account::charge(const Parts& joules,
                                        double total,
                                        double seconds_of_interval) {
  for (std::size_t part = 0; part < joules.size(); ++part) {
    energy.joules.at(part) += joules.at(part) * (seconds / seconds_of_interval);
  }
  energy.self += total * (self_seconds / seconds_of_interval);
  seconds = 0;
  self_seconds = 0;
}

void UnitMarks::run_to(Clock::SteadyTime now) {
  const double passed = seconds_between(cursor_, now);
  cursor_ = std::max(cursor_, now);
  for (std::size_t i = 0; i < open_count_; ++i) {
    Region& region = regions_[open_.at(i)];
    region.seconds += passed;
    region.current_.seconds += passed;
  }
  if (open_count_ > 0) {
    regions_[open_.at(open_count_ - 1)].current_.self_seconds += passed;
    marked_seconds_ += passed;
  }
}

/// Regions that were open in an earlier life of the unit have ended with it.
void UnitMarks::renew(Stream& stream) const {
  if (std::exchange(stream.life, life_) != life_) {
    stream.open = 0;
  }
}

std::optional<Drop> UnitMarks::take(const Message& message, Stream& stream, Clock::SteadyTime now) {
  run_to(now);
  renew(stream);
  switch (message.kind) {
    case Message::Kind::kBegin:
      return begin(message.name, stream);
    case Message::Kind::kEnd:
      return end(message.name, stream);
    case Message::Kind::kResult:
    case Message::Kind::kProgress:
      return count(message);
    case Message::Kind::kFom:
      return set(message);
    case Message::Kind::kAttach:
      break;
  }
  return std::nullopt;
}

std::optional<Drop> UnitMarks::begin(std::string_view name, Stream& stream) {
  const auto found = std::ranges::find(regions_, name, &Region::name);
  const auto index = static_cast<std::size_t>(found - regions_.begin());
  const bool known = found != regions_.end();
  if (!known && is_full()) {
    return Drop::kNames;
  }
  const std::uint32_t bit = 1U << index;
  if (known && (stream.open & bit) != 0) {
    // Its end was lost, or the program does not mark ends.
    leave(index);
  }
  const bool opened = !known || regions_[index].streams_ == 0;
  if (opened && open_count_ == kMaxOpen) {
    stream.open &= ~bit;
    return Drop::kDepth;
  }
  if (!known) {
    regions_.emplace_back().name = name;
  }
  Region& region = regions_[index];
  ++region.streams_;
  stream.open |= bit;
  if (opened) {
    region.since_ = cursor_;
    open_.at(open_count_++) = static_cast<std::uint8_t>(index);
  }
  return std::nullopt;
}

std::optional<Drop> UnitMarks::end(std::string_view name, Stream& stream) {
  const auto found = std::ranges::find(regions_, name, &Region::name);
  const auto index = static_cast<std::size_t>(found - regions_.begin());
  const std::uint32_t bit = found == regions_.end() ? 0 : 1U << index;
  if ((stream.open & bit) == 0) {
    return Drop::kUnmatched;
  }
  stream.open &= ~bit;
  leave(index);
  return std::nullopt;
}

/// One stream has ended the region.
void UnitMarks::leave(std::size_t index) {
  Region& region = regions_[index];
  ++region.count;
  if (--region.streams_ > 0) {
    return;
  }
  const auto end = open_.begin() + static_cast<std::ptrdiff_t>(open_count_);
  std::rotate(std::find(open_.begin(), end, index), std::find(open_.begin(), end, index) + 1, end);
  --open_count_;
  end_period(region);
}

void UnitMarks::end_period(Region& region) {
  if (cursor_ - region.since_ >= kShort) {
    region.shown_.take(region.current_);
    region.has_energy_ = true;
    return;
  }
  region.hidden_.take(region.current_);
  if (++region.short_periods_ >= kMinShort) {
    region.shown_.take(region.hidden_);
    region.has_energy_ = true;
  }
}

void UnitMarks::close(Stream& stream, Clock::SteadyTime now) {
  run_to(now);
  renew(stream);
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    if ((stream.open & (1U << i)) != 0) {
      leave(i);
    }
  }
  stream.open = 0;
}

void UnitMarks::end_all(Clock::SteadyTime now) {
  run_to(now);
  while (open_count_ > 0) {
    Region& region = regions_[open_.at(--open_count_)];
    region.count += std::exchange(region.streams_, 0);
    end_period(region);
  }
  ++life_;
}

void UnitMarks::charge(const Parts& joules, double seconds, Clock::SteadyTime now) {
  run_to(now);
  const double interval = std::max(seconds - ahead_, marked_seconds_);
  const double total = sum(joules);
  if (interval > 0) {
    for (Region& region : regions_) {
      for (Region::Account* account : {&region.current_, &region.hidden_, &region.shown_}) {
        account->charge(joules, total, interval);
      }
      if (region.streams_ > 0 && cursor_ - region.since_ >= kShort) {
        region.shown_.take(region.current_);
        region.has_energy_ = true;
      }
    }
  }
  unmarked_joules_ += interval > 0 ? total * (1 - marked_seconds_ / interval) : total;
  marked_seconds_ = 0;
  ahead_ = seconds_between(now, cursor_);
}

std::optional<Drop> UnitMarks::count(const Message& message) {
  const bool running = message.kind == Message::Kind::kProgress;
  auto found = std::ranges::find_if(results_, [&message](const Result& result) {
    return result.name == message.name && result.measure == message.measure;
  });
  if (found == results_.end()) {
    if (is_full()) {
      return Drop::kNames;
    }
    results_.push_back(
        {.name = std::string(message.name), .measure = std::string(message.measure)});
    found = results_.end() - 1;
  }
  if (!running) {
    found->total += message.value;
  } else if (found->first < 0 || message.value <= found->first) {
    found->first = message.value;  // another run of the program
    found->last = message.value;
  } else if (message.value > found->last) {
    found->total += message.value - std::exchange(found->last, message.value);
  }
  return std::nullopt;
}

std::optional<Drop> UnitMarks::set(const Message& message) {
  auto found = std::ranges::find_if(foms_, [&message](const Fom& fom) {
    return fom.name == message.name && fom.measure == message.measure;
  });
  if (found == foms_.end()) {
    if (is_full()) {
      return Drop::kNames;
    }
    foms_.push_back({.name = std::string(message.name), .measure = std::string(message.measure)});
    found = foms_.end() - 1;
  }
  found->value = message.value;
  return std::nullopt;
}

}  // namespace ceems::exporter::marks
