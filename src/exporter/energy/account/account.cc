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
  source_places_.push_back(known_set_.add(info.domain, info.name));
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
    if (const auto device = devices_[i].idle.watts(); device &&
                                                      device_sources_[i].info.domain == domain &&
                                                      known_set_.member(devices_[i].place)) {
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
      return estimate ? std::optional(estimate->watts + wall_watts_.losses() * known_watts)
                      : std::nullopt;
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

/// `split_` is the idle part of the charged energy, `unused` the part of each reservation that was
/// not used.
void Account::note_idle(Domain domain, std::span<const double> unused) {
  const auto entries = units_.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i]->idle_parts.at(index(domain)).add(split_[i]);
    entries[i]->unused_parts.at(index(domain)).add(split_[i] * unused[i]);
  }
}

void Account::find_unused(const NodeUse& node) {
  const auto entries = units_.entries();
  unused_cpus_.resize(entries.size());
  unused_memory_.resize(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    unused_cpus_[i] = entries[i]->unused_cpus();
    unused_memory_[i] = entries[i]->unused_memory(node.memory_total_bytes);
  }
}

void Account::split_and_charge(Domain domain,
                               double joules,
                               double idle_joules,
                               double total_use,
                               std::span<const Claim> claims,
                               std::span<const double> unused) {
  const double idle = std::min(idle_joules, joules);
  charge(domain, split_, split(idle, idle, 0, claims, split_));
  note_idle(domain, unused);
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
    split_and_charge(domain, book.joules, idle, book.watts.total_watts(), book_claims_,
                     package ? unused_cpus_ : unused_memory_);
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
                     idle.watts().value_or(0) * idle_scale() * interval.seconds, 0, no_claims_,
                     unused_cpus_);
  }
}

void Account::split_other(const Interval& interval) {
  SourceAccount& source = sources_[interval.wall.value_or(sources_.size() - 1)];
  double other = 0;
  if (interval.wall) {
    const double comparable =
        lag_.comparable_joules(interval.known_joules, interval.seconds, interval.even_joules);
    other = other_.advance(interval.joules.at(index(Domain::kNode)), comparable,
                           kMaxDebtSeconds * peak_known_watts_);
    source.other_joules.add(other);
    source.joules.add(interval.known_joules + other);
    if (known_set_.any_missing() && other > 0 && interval.seconds > 0) {
      other -= split_missing(interval, other, comparable / interval.seconds);
    }
  } else {
    source.joules.add(interval.known_joules);
  }
  if (other <= 0) {
    return;
  }
  if (!interval.known_source) {
    // Only the node's energy is known. It is split as the energy of the packages would be.
    split_wall(other, idle_watts(Domain::kNode).value_or(0) * interval.seconds);
    return;
  }
  double idle_joules = std::min(other, other_idle_watts().value_or(0) * interval.seconds);
  const Losses losses = split_losses(interval, other, idle_joules);
  other -= losses.joules;
  idle_joules -= losses.idle_joules;
  if (!known(Domain::kPackage)) {
    // It contains the energy of the packages.
    split_wall(other, idle_joules);
    return;
  }
  // What fans and the power supply take more when the known domains work goes where their active
  // energy went.
  const double idle = active_joules_ > 0 ? std::min(idle_joules, other) : other;
  charge(Domain::kOther, split_, split(idle, idle, 0, claims_.cpus(), split_));
  note_idle(Domain::kOther, unused_cpus_);
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
    source.info.method = reading->method.value_or(source.info.method);
    const double shown = joules_of(reading->joules);
    const double joules = reading->elsewhere ? 0 : shown;
    if (source.info.method != Method::kModelled &&
        (domain == Domain::kPackage || domain == Domain::kNode)) {
      measured_ = measured_ || shown > 0;
    }
    if (domain != Domain::kNode) {
      source.joules.add(joules);
      interval.joules.at(index(domain)) += joules;
      interval.known_joules += joules;
      interval.even_joules += joules;
      if (joules > 0) {
        known_set_.see(source_places_[i]);
      }
      // A counter that has never moved, as some hypervisors show one, does not count as known.
      interval.known_source = interval.known_source || source.joules.value() > 0;
      known_.at(index(domain)) = true;
    }
  }
  take_devices(sample, interval);
  interval.wall = wall_source(sample);
  follow_known_set(interval);
  hold_devices(interval);
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
    peak_known_watts_ = std::max(peak_known_watts_, interval.even_joules / interval.seconds);
  }
  const auto entries = units_.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i]->position = i;
  }
  split_.assign(entries.size(), 0);
  find_unused(sample.node);
  active_units_.assign(entries.size(), 0);
  active_system_ = 0;
  active_joules_ = 0;
  for (const Domain domain : {Domain::kPackage, Domain::kDram}) {
    fill_books(domain, sample);
    split_books(domain, interval);
  }
  split_gpus(interval);
  split_devices(sample);
  note_active_devices(interval);
  split_other(interval);
}

}  // namespace ceems::exporter::energy
