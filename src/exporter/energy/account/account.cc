#include "exporter/energy/account/account.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"

namespace ceems::exporter::energy {
namespace {

double joules_of(double joules) {
  return joules > 0 && std::isfinite(joules) ? joules : 0;
}

}  // namespace

Account::Account(const AccountOptions& options)
    : options_(options),
      sources_{SourceAccount{.info = {.name = "sum",
                                      .domain = Domain::kNode,
                                      .method = Method::kDerived,
                                      .rank = kSumRank},
                             .joules = {},
                             .other_joules = {},
                             .fresh = {}}},
      units_(options.keep_ended) {
  idle_.at(index(Domain::kOther)) = IdlePower::of_cpus(options.assumed.node);
  idle_.at(index(Domain::kNode)) = IdlePower::of_cpus(options.assumed.node);
  for (const Domain domain : kDomains) {
    if (const auto& watts = options.idle_watts.at(index(domain))) {
      idle_.at(index(domain)).configure(*watts);
    }
  }
}

std::size_t Account::add_source(const SourceInfo& info) {
  CEEMS_CHECK(info.domain != Domain::kOther);  // kOther is computed, never metered
  SourceAccount source;
  source.info = info;
  sources_.insert(sources_.end() - 1, source);
  return sources_.size() - 2;
}

double Account::total(const Parts& parts, Domain domain) {
  if (domain != Domain::kNode) {
    return parts.at(index(domain)).value();
  }
  double sum = 0;
  for (const JouleCounter& part : parts) {
    sum += part.value();
  }
  return sum;
}

double Account::node_joules(Domain domain) const {
  double sum = 0;
  for (const SourceAccount& source : sources_) {
    if (domain == Domain::kOther) {
      sum += source.other_joules.value();
    } else if (source.info.domain == domain) {
      sum += source.joules.value();
    }
  }
  for (const SourceAccount& source : device_sources_) {
    if (source.info.domain == domain) {
      sum += source.joules.value();
    }
  }
  return sum;
}

/// Idle power before it is limited by a configured idle power of the whole node.
std::optional<double> Account::unscaled_idle_watts(Domain domain) const {
  auto watts = learned_watts(domain);
  if (options_.idle_watts.at(index(domain))) {
    return watts;  // configured for all devices together
  }
  for (std::size_t i = 0; i < device_sources_.size(); ++i) {
    if (const auto device = device_idle_[i].watts();
        device && device_sources_[i].info.domain == domain) {
      watts = watts.value_or(0) + *device;
    }
  }
  return watts;
}

/// The sum over packages, memory and GPUs.
double Account::known_idle_watts() const {
  double sum = 0;
  for (const Domain part : {Domain::kPackage, Domain::kDram, Domain::kGpu}) {
    sum += unscaled_idle_watts(part).value_or(0);
  }
  return sum;
}

/// The idle power of the whole node was configured, so its parts cannot have more.
double Account::idle_scale() const {
  const auto& whole = options_.idle_watts.at(index(Domain::kNode));
  if (!whole) {
    return 1;
  }
  const double sum = known_idle_watts();
  return sum > *whole ? *whole / sum : 1;
}

/// The idle power of the rest: the configured idle power of the node minus the known domains', or a
/// learned value.
std::optional<double> Account::other_idle_watts() const {
  const auto& whole = options_.idle_watts.at(index(Domain::kNode));
  const IdlePower& learned = idle_.at(index(Domain::kOther));
  const double known_watts = known_idle_watts();
  if (options_.idle_watts.at(index(Domain::kOther))) {
    return learned.watts();
  }
  if (!whole) {
    // Fans and the power supply follow the known domains, not the use of the CPUs.
    if (!known(Domain::kPackage)) {
      const auto estimate = wall_estimate();
      return estimate ? std::optional(estimate->watts) : std::nullopt;
    }
    const auto wall = lag_.watts_at(known_watts);
    return wall ? std::optional(rest_of_wall(*wall, known_watts)) : learned.watts();
  }
  return std::max(0.0, *whole - known_watts);
}

std::optional<double> Account::idle_watts(Domain domain) const {
  if (domain == Domain::kNode) {
    const bool given = options_.idle_watts.at(index(domain)).has_value();
    const bool modelled = !measured_ && !given;
    if (!modelled && !given && known(Domain::kPackage) && lag_.watts_at(0)) {
      return known_idle_watts() + other_idle_watts().value_or(0);
    }
    if (!modelled && !given && !known(Domain::kPackage) && wall_watts_.idle()) {
      return known_idle_watts() + other_idle_watts().value_or(0);
    }
    return modelled ? model_idle_watts_ : idle_.at(index(domain)).watts();
  }
  if (domain == Domain::kOther) {
    return known(Domain::kPackage) || known(Domain::kDram) || known(Domain::kGpu)
               ? other_idle_watts()
               : std::nullopt;
  }
  const auto watts = unscaled_idle_watts(domain);
  return watts ? std::optional(*watts * idle_scale()) : watts;
}

double Account::device_idle_watts(std::size_t device) const {
  const auto& given = options_.idle_watts.at(index(device_sources_[device].info.domain));
  const double watts = given ? *given / static_cast<double>(device_sources_.size())
                             : device_idle_[device].watts().value_or(0);
  return watts * idle_scale();
}

std::optional<std::size_t> Account::wall_source(const Sample& sample) const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < sample.readings.size(); ++i) {
    const SourceInfo& info = sources_[i].info;
    if (info.domain != Domain::kNode || !sample.readings[i] ||
        (info.method == Method::kModelled && measured_)) {
      continue;
    }
    if (!best || info.rank < sources_[*best].info.rank) {
      best = i;
    }
  }
  return best;
}

void Account::charge(Domain domain, std::span<const double> units, const Remainder& rest) {
  const std::size_t part = index(domain);
  const auto entries = units_.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i]->parts.at(part).add(units[i]);
  }
  system_.at(part).add(rest.system);
  unallocated_.at(part).add(rest.unallocated);
}

/// `split_` is the idle part of the charged energy.
void Account::note_idle(Domain domain) {
  const auto entries = units_.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i]->idle_parts.at(index(domain)).add(split_[i]);
  }
}

void Account::split_and_charge(Domain domain,
                               double joules,
                               double idle_joules,
                               double total_use,
                               std::span<const Claim> claims) {
  const double idle = std::min(idle_joules, joules);
  charge(domain, split_, split(idle, idle, 0, claims, split_));
  note_idle(domain);
  const Remainder rest = split(joules - idle, 0, total_use, claims, split_);
  charge(domain, split_, rest);
  for (std::size_t i = 0; i < split_.size(); ++i) {
    active_units_[i] += split_[i];
  }
  active_system_ += rest.system;
  active_joules_ += joules - idle;
}

bool Account::by_socket(Domain domain) const {
  const auto sockets = static_cast<int>(claims_.sockets());
  return sockets > 1 && std::ranges::all_of(sources_, [&](const SourceAccount& source) {
           return source.info.domain != domain ||
                  (source.info.socket >= 0 && source.info.socket < sockets);
         });
}

void Account::fill_books(Domain domain, const Sample& sample) {
  std::vector<Book>& books = books_.at(index(domain));
  const bool sockets = by_socket(domain);
  const std::size_t count = sockets ? claims_.sockets() : 1;
  if (books.size() != count) {
    books.assign(count, Book(domain, options_.assumed, claims_.sockets() / count));
    restore_books(domain);
  }
  for (Book& book : books) {
    book.joules = 0;
  }
  for (std::size_t i = 0; i < sample.readings.size(); ++i) {
    const SourceInfo& info = sources_[i].info;
    const auto& reading = sample.readings[i];
    if (info.domain == domain && reading) {
      const auto place = sockets ? static_cast<std::size_t>(info.socket) : 0;
      books[place].joules += joules_of(reading->joules);
    }
  }
}

void Account::split_books(Domain domain, const Interval& interval) {
  std::vector<Book>& books = books_.at(index(domain));
  const bool whole = books.size() != claims_.sockets();
  const bool package = domain == Domain::kPackage;
  const auto entries = units_.entries();
  for (std::size_t socket = 0; socket < books.size(); ++socket) {
    Book& book = books[socket];
    if (book.joules <= 0) {
      continue;
    }
    const std::span<const Claim> claims =
        whole ? (package ? claims_.cpus() : claims_.memory())
              : (package ? claims_.cpus(socket) : claims_.memory(socket));
    const double cores = whole ? claims_.cores() : claims_.cores(socket);
    uses_.clear();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const bool over = entries[i]->ended && claims[i].use <= 0;
      if (!over) {
        uses_.push_back({.key = entries[i]->serial,
                         .cores = claims[i].use,
                         .before = before_of(book.before, *entries[i])});
      }
    }
    const double utilisation = whole ? claims_.utilisation() : claims_.utilisation(socket);
    book.seconds += interval.seconds;
    if (book.seconds > kBefore) {
      book.before.clear();
    }
    book.idle.observe(book.joules, interval.seconds, utilisation, interval.timing);
    const auto& given = options_.idle_watts.at(index(domain));
    const double part = whole ? 1 : claims_.part(socket);
    if (given) {
      book.watts.fix_idle(*given * part);
    }
    const double cores_max = whole ? claims_.cores_max() : claims_.cores_max(socket);
    book.watts.observe({.joules = book.joules,
                        .seconds = interval.seconds,
                        .cores_max = std::isnan(utilisation) ? 0 : cores_max,
                        .cores = cores,
                        .timing = interval.timing},
                       uses_);
    const double idle_watts =
        given ? *given * part : book.idle_estimate().value_or(PowerEstimate{}).watts;
    const double idle = std::min(book.joules, idle_watts * idle_scale() * interval.seconds);
    book_claims_.assign(claims.begin(), claims.end());
    for (std::size_t i = 0, use = 0; i < entries.size(); ++i) {
      if (use < uses_.size() && uses_[use].key == entries[i]->serial) {
        book_claims_[i].use = book.watts.watts()[use++];
      }
    }
    split_and_charge(domain, book.joules, idle, book.watts.total_watts(), book_claims_);
  }
}

/// Energy of GPUs with unknown holders: everything outside Sample::devices.
void Account::split_gpus(const Interval& interval) {
  const double joules = interval.joules.at(index(Domain::kGpu));
  if (joules > 0) {
    IdlePower& idle = idle_.at(index(Domain::kGpu));
    idle.observe(joules, interval.seconds, interval.utilisation);
    no_claims_.assign(units_.entries().size(), Claim{});
    split_and_charge(Domain::kGpu, joules,
                     idle.watts().value_or(0) * idle_scale() * interval.seconds, 0, no_claims_);
  }
}

std::optional<std::size_t> Account::find_or_add_device(const SourceInfo& info) {
  for (std::size_t i = 0; i < device_sources_.size(); ++i) {
    if (device_sources_[i].info.name == info.name) {
      return i;
    }
  }
  if (device_sources_.size() == kMaxDevices) {
    return std::nullopt;
  }
  CEEMS_CHECK(info.domain != Domain::kOther && info.domain != Domain::kNode);
  SourceAccount& source = device_sources_.emplace_back();
  source.info = info;
  device_idle_.emplace_back(kDeviceFullLoadIdle);
  device_idle_.back().restore(restored_.bins_of({.domain = info.domain, .device = info.name}));
  return device_sources_.size() - 1;
}

void Account::take_devices(const Sample& sample, Interval& interval) {
  for (const DeviceSample& device : sample.devices) {
    const auto position = find_or_add_device(device.source);
    if (!position) {
      continue;
    }
    SourceAccount& source = device_sources_[*position];
    source.fresh = device.fresh;
    const double joules = joules_of(device.joules);
    source.joules.add(joules);
    const std::size_t domain = index(source.info.domain);
    interval.device_joules.at(domain) += joules;
    interval.known_joules += joules;
    interval.known_source = interval.known_source || source.joules.value() > 0;
    known_.at(domain) = true;
  }
}

void Account::split_devices(const Sample& sample) {
  for (const DeviceSample& device : sample.devices) {
    const auto position = find_or_add_device(device.source);
    const double joules = joules_of(device.joules);
    if (!position || joules <= 0) {
      continue;
    }
    device_idle_[*position].observe(
        joules, device.seconds,
        device.utilisation.value_or(std::numeric_limits<double>::quiet_NaN()));
    device_claims_.assign(units_.entries().size(), Claim{});
    for (const DeviceHolder& holder : device.holders) {
      const UnitEntry* unit = units_.find(holder.manager, holder.cgrouphostname, holder.uuid);
      if (unit == nullptr) {
        continue;
      }
      Claim& claim = device_claims_[unit->position];
      claim.alloc += std::max(0.0, holder.alloc) * unit->presence;
      claim.use += std::max(0.0, holder.use) * unit->presence;
    }
    split_and_charge(device_sources_[*position].info.domain, joules,
                     device_idle_watts(*position) * device.seconds, device.total_use,
                     device_claims_);
  }
}

void Account::split_other(const Interval& interval) {
  SourceAccount& source = sources_[interval.wall.value_or(sources_.size() - 1)];
  double other = 0;
  if (interval.wall) {
    other = other_.advance(interval.joules.at(index(Domain::kNode)),
                           lag_.comparable_joules(interval.known_joules, interval.seconds),
                           kMaxDebtSeconds * peak_known_watts_);
  }
  source.joules.add(interval.known_joules + other);
  if (other <= 0) {
    return;
  }
  source.other_joules.add(other);
  if (!interval.known_source) {
    // Only the node's energy is known. It is split as the energy of the packages would be.
    split_wall(other, idle_watts(Domain::kNode).value_or(0) * interval.seconds);
    return;
  }
  const double idle_joules = std::min(other, other_idle_watts().value_or(0) * interval.seconds);
  if (!known(Domain::kPackage)) {
    // It contains the energy of the packages.
    split_wall(other, idle_joules);
    return;
  }
  // What fans and the power supply take more when the known domains work goes where their active
  // energy went.
  const double idle = active_joules_ > 0 ? idle_joules : other;
  charge(Domain::kOther, split_, split(idle, idle, 0, claims_.cpus(), split_));
  note_idle(Domain::kOther);
  if (other > idle) {
    const Remainder known{.system = active_system_, .unallocated = 0};
    charge(Domain::kOther, split_, split_in_proportion(other - idle, active_units_, known, split_));
  }
}

std::optional<std::size_t> Account::choose_node_source(const Interval& interval, bool first) const {
  const std::size_t sum = sources_.size() - 1;
  if (!interval.wall) {
    return interval.known_source ? std::optional(sum) : std::nullopt;
  }
  // The model counts only until a meter has delivered energy, which takes that of the packages a
  // second sample.
  const bool modelled = sources_[*interval.wall].info.method == Method::kModelled;
  return first && modelled && known(Domain::kPackage) ? sum : *interval.wall;
}

void Account::advance(const Sample& sample) {
  CEEMS_CHECK(sample.readings.size() + 1 == sources_.size());
  units_.update(sample.time, sample.node.cpus_online, sample.managers,
                [this](const UnitEntry& entry) {
                  for (std::size_t part = 0; part < kPartCount; ++part) {
                    ended_.at(part).add(entry.parts.at(part).value());
                  }
                });
  Interval interval;
  const bool first = !last_;
  interval.seconds =
      last_ ? std::max(0.0, std::chrono::duration<double>(sample.time - *last_).count()) : 0;
  last_ = sample.time;
  claims_.make(units_.entries(), sample.node);
  interval.utilisation = claims_.utilisation();
  interval.timing = sample.timing;
  for (std::size_t i = 0; i < sample.readings.size(); ++i) {
    const auto& reading = sample.readings[i];
    if (!reading) {
      continue;
    }
    SourceAccount& source = sources_[i];
    const Domain domain = source.info.domain;
    source.fresh = reading->fresh;
    const double joules = joules_of(reading->joules);
    if (source.info.method != Method::kModelled &&
        (domain == Domain::kPackage || domain == Domain::kNode)) {
      measured_ = measured_ || joules > 0;
    }
    if (domain != Domain::kNode) {
      source.joules.add(joules);
      interval.joules.at(index(domain)) += joules;
      interval.known_joules += joules;
      // A counter that has never moved, as some hypervisors show one, does not count as known.
      interval.known_source = interval.known_source || source.joules.value() > 0;
      known_.at(index(domain)) = true;
    }
  }
  take_devices(sample, interval);
  interval.wall = wall_source(sample);
  if (interval.wall && !known(Domain::kPackage)) {
    follow_use(interval);
  }
  if (interval.wall) {
    const Reading reading = sample.readings[*interval.wall].value_or(Reading{});
    double& wall = interval.joules.at(index(Domain::kNode));
    wall = joules_of(reading.joules);
    if (sources_[*interval.wall].info.method == Method::kModelled) {
      model_idle_watts_ = reading.idle_watts;
      // The model does not include GPUs.
      wall +=
          interval.joules.at(index(Domain::kGpu)) + interval.device_joules.at(index(Domain::kGpu));
    } else {
      learn_from_wall(interval, sample);
    }
    // The model's first reading is 0, and it may be its last, if a meter starts to deliver energy.
    bool& other = known_.at(index(Domain::kOther));
    other = other || wall > 0;
  }
  known_.at(index(Domain::kNode)) =
      known_.at(index(Domain::kNode)) || interval.wall || interval.known_source;
  node_source_ = choose_node_source(interval, first);
  if (interval.seconds >= 0.1) {
    peak_known_watts_ = std::max(peak_known_watts_, interval.known_joules / interval.seconds);
  }
  const auto entries = units_.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i]->position = i;
  }
  split_.assign(entries.size(), 0);
  active_units_.assign(entries.size(), 0);
  active_system_ = 0;
  active_joules_ = 0;
  for (const Domain domain : {Domain::kPackage, Domain::kDram}) {
    fill_books(domain, sample);
    split_books(domain, interval);
  }
  split_gpus(interval);
  split_devices(sample);
  split_other(interval);
}

}  // namespace ceems::exporter::energy
