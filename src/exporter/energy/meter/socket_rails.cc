#include "exporter/energy/meter/socket_rails.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/strings.h"

namespace ceems::exporter::energy {
namespace {

constexpr std::array<std::string_view, kRailKinds> kRailNames{"cpu", "sysio", "grace", "module"};
constexpr std::string_view kPower = "power socket ";

}  // namespace

std::optional<RailName> parse_rail_name(std::string_view oem_info) {
  const std::string text = to_lower(trim(oem_info));
  std::string_view rest = text;
  const std::string_view kind = take_until(rest, ' ');
  const auto found = std::ranges::find(kRailNames, kind);
  if (found == kRailNames.end() || !rest.starts_with(kPower)) {
    return std::nullopt;
  }
  const auto socket = parse_int<int>(rest.substr(kPower.size()));
  if (!socket || *socket < 0) {
    return std::nullopt;
  }
  return RailName{.kind = static_cast<RailKind>(found - kRailNames.begin()), .socket = *socket};
}

bool is_part_of_socket(std::string_view oem_info) {
  const std::string text = to_lower(trim(oem_info));
  const auto at = text.rfind("socket ");
  return at != std::string::npos && is_number(std::string_view(text).substr(at + 7), 4);
}

Contents contents_of(RailKind kind) {
  switch (kind) {
    case RailKind::kCpu:
      return kHasCores;
    case RailKind::kSysIo:
      return kHasIo;
    case RailKind::kGrace:
      return kHasCores | kHasIo | kHasMemory;
    case RailKind::kModule:
      return kHasCores | kHasIo | kHasMemory | kHasGpus;
  }
  return 0;
}

Contents RailSource::contents() const {
  Contents all = 0;
  for (const RailKind kind : plus) {
    CEEMS_CHECK((all & contents_of(kind)) == 0);
    all |= contents_of(kind);
  }
  for (const RailKind kind : minus) {
    CEEMS_CHECK((all & contents_of(kind)) == contents_of(kind));
    all &= ~contents_of(kind);
  }
  return all;
}

std::vector<RailSource> plan_sources(const std::vector<RailKind>& rails) {
  const auto has = [&](RailKind kind) { return std::ranges::find(rails, kind) != rails.end(); };
  std::vector<RailKind> cpu;
  std::ranges::copy_if(std::array{RailKind::kCpu, RailKind::kSysIo}, std::back_inserter(cpu), has);
  std::vector<RailSource> plan;
  if (has(RailKind::kGrace) && !has(RailKind::kCpu)) {
    plan.push_back({.domain = Domain::kPackage, .name = "grace", .plus = {RailKind::kGrace}});
  } else if (!cpu.empty()) {
    plan.push_back({.domain = Domain::kPackage, .name = "cpu", .plus = cpu});
    if (has(RailKind::kGrace)) {
      plan.push_back(
          {.domain = Domain::kDram, .name = "memory", .plus = {RailKind::kGrace}, .minus = cpu});
    }
  }
  Contents all = 0;
  for (const RailSource& source : plan) {
    CEEMS_CHECK((all & source.contents()) == 0);
    all |= source.contents();
  }
  return plan;
}

void SocketRails::add(RailName name, std::unique_ptr<EnergyMeter> meter) {
  std::vector<Rail>& rails = sockets_[name.socket].rails;
  if (std::ranges::find(rails, name.kind, &Rail::kind) == rails.end()) {
    Rail rail;
    rail.kind = name.kind;
    rail.meter = std::move(meter);
    rails.push_back(std::move(rail));
  }
}

/// `seconds`: since it was read last.
Result<Reading> SocketRails::read(Rail& rail, const MeterContext& context, double seconds) {
  constexpr double kLine = 60;  // seconds; a shorter line says nothing
  constexpr double kSpread = 0.05;
  if (context.gate == nullptr) {
    return rail.meter->read(context);
  }
  SourceGate& gate = *rail.gate;
  Expected expected = context.gate->expected();
  const double load = expected.load_now.value_or(0);
  if (rail.kind == RailKind::kSysIo) {
    expected.least_watts = 0;
  }
  if (rail.line.seconds() >= kLine) {
    const auto [least, most] = expected.load_range;
    expected.watts =
        std::pair(rail.line.at(least, 1, kSpread * load), rail.line.at(most, 1, kSpread * load));
  }
  gate.expect(expected);
  MeterContext of_rail = context;
  of_rail.gate = &gate;
  auto reading = rail.meter->read(of_rail);
  const auto refused = gate.refused_since();
  if (refused) {
    context.gate->exclude(gate.doubt().value_or(Doubt::kJump));
  }
  const bool never = gate.same() && !gate.changed();
  if (reading && (never || (refused && context.now - *refused >= kHold))) {
    return fail(ErrorCode::kUnavailable, "a rail of the socket is not believed");
  }
  const double watts = reading ? reading->watts.value_or(0) : 0;
  if (watts > 0 && !refused && gate.changed() && !gate.same()) {
    rail.line.add(load, watts, seconds);
  }
  return reading;
}

void SocketRails::refresh(Socket& socket, const MeterContext& context) {
  if (socket.read == context.now) {
    return;
  }
  const double seconds =
      socket.read ? std::chrono::duration<double>(context.now - *socket.read).count() : 0;
  socket.read = context.now;
  socket.error.reset();
  socket.still = socket.never = false;
  for (Rail& rail : socket.rails) {
    auto reading = read(rail, context, seconds);
    socket.never = socket.never || (rail.gate->same() && !rail.gate->changed());
    if (!reading) {
      socket.error = std::move(reading).error();
      continue;
    }
    socket.still = socket.still || rail.gate->same();
    rail.pending += reading->joules;
    socket.fresh = socket.counted ? std::max(socket.fresh, reading->fresh) : reading->fresh;
    socket.counted = true;
  }
  for (Rail& rail : socket.rails) {
    rail.joules += socket.error ? 0 : rail.pending;
    rail.pending = 0;
  }
}

std::optional<double> SocketRails::joules_of(const Socket& socket, RailKind kind) {
  const auto rail = std::ranges::find(socket.rails, kind, &Rail::kind);
  return rail == socket.rails.end() ? std::nullopt : std::optional(rail->joules);
}

const SocketRails::Socket* SocketRails::socket_at(std::size_t place) const {
  return place < sockets_.size()
             ? &std::next(sockets_.begin(), static_cast<std::ptrdiff_t>(place))->second
             : nullptr;
}

std::optional<double> SocketRails::gpu_joules(std::size_t place) const {
  const MutexLock lock(mutex_);
  const Socket* socket = socket_at(place);
  const auto module = socket ? joules_of(*socket, RailKind::kModule) : std::nullopt;
  const auto grace = socket ? joules_of(*socket, RailKind::kGrace) : std::nullopt;
  return module && grace ? std::optional(*module - *grace) : std::nullopt;
}

std::optional<double> SocketRails::grace_joules(std::size_t place) const {
  const MutexLock lock(mutex_);
  const Socket* socket = socket_at(place);
  return socket ? joules_of(*socket, RailKind::kGrace) : std::nullopt;
}

/// One source made of rails. What a difference lacks to 0 is made up before more is reported, so
/// that the sum over sources stays that of the rails.
class RailMeter final : public EnergyMeter {
 public:
  struct Term {
    int socket = 0;
    RailKind kind = RailKind::kModule;
    double sign = 1;
  };

  RailMeter(std::shared_ptr<SocketRails> rails, std::vector<Term> terms, SourceInfo source)
      : rails_(std::move(rails)), terms_(std::move(terms)), source_(std::move(source)) {}

  [[nodiscard]] const SourceInfo& source() const override { return source_; }

  Result<Reading> read(const MeterContext& context) override {
    const MutexLock lock(rails_->mutex_);
    double sum = 0;
    bool still = false;
    Clock::SteadyTime fresh = Clock::SteadyTime::max();
    for (const Term& term : terms_) {
      SocketRails::Socket& socket = rails_->sockets_.at(term.socket);
      SocketRails::refresh(socket, context);
      if (context.gate != nullptr) {
        context.gate->set_never_changed(socket.never);
      }
      if (socket.error) {
        return fail(*socket.error);
      }
      still = still || socket.still;
      sum += term.sign * SocketRails::joules_of(socket, term.kind).value_or(0);
      fresh = std::min(fresh, socket.fresh);
    }
    const double joules = std::max(0.0, sum - reported_);
    reported_ += joules;
    return Reading{.joules = joules,
                   .fresh = fresh,
                   .idle_watts = {},
                   .watts = {},
                   .raw_uj = {},
                   .assumed = still};
  }

 private:
  const std::shared_ptr<SocketRails> rails_;
  const std::vector<Term> terms_;
  const SourceInfo source_;
  double reported_ = 0;
};

Meters SocketRails::meters(const std::shared_ptr<SocketRails>& rails) {
  Meters meters;
  std::vector<RailMeter::Term> modules;
  int place = 0;
  for (const auto& [number, socket] : rails->sockets_) {
    std::vector<RailKind> kinds;
    std::ranges::transform(socket.rails, std::back_inserter(kinds), &Rail::kind);
    for (const RailSource& source : plan_sources(kinds)) {
      std::vector<RailMeter::Term> terms;
      terms.reserve(source.plus.size() + source.minus.size());
      for (const RailKind kind : source.plus) {
        terms.push_back({.socket = number, .kind = kind, .sign = 1});
      }
      for (const RailKind kind : source.minus) {
        terms.push_back({.socket = number, .kind = kind, .sign = -1});
      }
      meters.push_back(std::make_shared<RailMeter>(
          rails, std::move(terms),
          SourceInfo{.name = fmt::format("acpi-{}-{}", source.name, number),
                     .domain = source.domain,
                     .method = source.minus.empty() ? Method::kMeasured : Method::kDerived,
                     .socket = place}));
    }
    if (std::ranges::find(kinds, RailKind::kModule) != kinds.end()) {
      modules.push_back({.socket = number, .kind = RailKind::kModule, .sign = 1});
    }
    ++place;
  }
  if (!modules.empty() && modules.size() == rails->sockets_.size()) {
    meters.push_back(std::make_shared<RailMeter>(rails, std::move(modules),
                                                 SourceInfo{.name = "acpi-module",
                                                            .domain = Domain::kNode,
                                                            .method = Method::kMeasured,
                                                            .rank = kPowerMeterRank}));
  }
  return meters;
}

}  // namespace ceems::exporter::energy
