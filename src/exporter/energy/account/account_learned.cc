// What an account has learned, and how another continues with it.
#include <utility>

#include "exporter/energy/account/account.h"

namespace ceems::exporter::energy {
namespace {

constexpr bool has_books(Domain domain) {
  return domain == Domain::kPackage || domain == Domain::kDram;
}

}  // namespace

std::string_view to_string(IdleBasis basis) {
  switch (basis) {
    case IdleBasis::kLearned:
      return "learned";
    case IdleBasis::kAssumed:
      return "assumed";
    case IdleBasis::kConfigured:
      return "configured";
    case IdleBasis::kModelled:
      return "modelled";
  }
  return "";
}

Account::Book::Book(Domain domain, const AssumedIdle& assumed, std::size_t sockets)
    : idle(domain == Domain::kDram ? IdlePower(assumed.memory)
                                   : IdlePower::of_cpus(assumed.packages)),
      watts(domain == Domain::kDram
                ? UnitWatts::memory(assumed.memory)
                : UnitWatts::packages(assumed.packages, static_cast<double>(sockets))) {}

std::optional<PowerEstimate> Account::Book::idle_estimate() const {
  auto estimate = watts.idle();
  if (!estimate) {
    return idle.estimate();
  }
  estimate->watts = std::min(estimate->watts, idle.lowest().value_or(estimate->watts));
  return estimate;
}

/// Of the domain without its devices; the configured value if there is one.
std::optional<double> Account::learned_watts(Domain domain) const {
  if (const auto& given = options_.idle_watts.at(index(domain))) {
    return given;
  }
  auto watts = idle_.at(index(domain)).watts();
  for (const Book& book : books_.at(index(domain))) {
    if (const auto more = book.idle_estimate()) {
      watts = watts.value_or(0) + more->watts;
    }
  }
  return watts;
}

/// The idle power of a domain and its deviation, as a sum over its parts.
PowerEstimate Account::learned_estimate(Domain domain) const {
  PowerEstimate sum;
  const auto add = [&sum](const std::optional<PowerEstimate>& part) {
    if (part) {
      sum.watts += part->watts;
      sum.deviation += part->deviation;
    }
  };
  add(idle_.at(index(domain)).estimate());
  for (const Book& book : books_.at(index(domain))) {
    add(book.idle_estimate());
  }
  for (std::size_t i = 0; i < device_sources_.size(); ++i) {
    if (device_sources_[i].info.domain == domain && known_set_.member(devices_[i].place)) {
      add(devices_[i].idle.estimate());
    }
  }
  return sum;
}

IdleBasis Account::idle_basis(Domain domain) const {
  if (options_.idle_watts.at(index(domain)) ||
      (domain == Domain::kOther && options_.idle_watts.at(index(Domain::kNode)))) {
    return IdleBasis::kConfigured;
  }
  if (domain == Domain::kNode && !measured_) {
    return IdleBasis::kModelled;
  }
  if (learned_until_ && !known(Domain::kPackage) && domain == wall_domain()) {
    return wall_estimate().value_or(PowerEstimate{}).learned() ? IdleBasis::kLearned
                                                               : IdleBasis::kAssumed;
  }
  const bool of_wall = domain == Domain::kNode || domain == Domain::kOther;
  if (!of_wall || !known(Domain::kPackage) || !lag_.watts_at(0)) {
    return learned_estimate(domain).learned() ? IdleBasis::kLearned : IdleBasis::kAssumed;
  }
  // It follows from the idle power of the known domains.
  PowerEstimate sum{.watts = idle_watts(Domain::kNode).value_or(0)};
  for (const Domain part : {Domain::kPackage, Domain::kDram, Domain::kGpu}) {
    const bool given = options_.idle_watts.at(index(part)).has_value();
    sum.deviation += given ? 0 : learned_estimate(part).deviation;
  }
  return sum.learned() ? IdleBasis::kLearned : IdleBasis::kAssumed;
}

/// The sources on which the idle power of a domain depends.
std::string Account::meters_of(Domain domain) const {
  std::string names;
  for (const SourceAccount& source : sources_) {
    const Domain metered = domain == Domain::kOther ? Domain::kNode : domain;
    if (source.info.method == Method::kMeasured && source.info.domain == metered) {
      names += (names.empty() ? "" : ",") + source.info.name;
    }
  }
  // The rest of the node is the node without the members of the known set.
  return domain == Domain::kOther ? names + ":" + known_set_.names() : names;
}

Learned::Idle Account::place_of_book(Domain domain, std::size_t book) const {
  if (books_.at(index(domain)).size() == 1) {
    return {.domain = domain, .meters = meters_of(domain)};
  }
  Learned::Idle place{.domain = domain, .socket = static_cast<int>(book)};
  for (const SourceAccount& source : sources_) {
    if (source.info.domain == domain && source.info.socket == *place.socket) {
      place.meters += (place.meters.empty() ? "" : ",") + source.info.name;
    }
  }
  return place;
}

std::string Account::unit_name(const UnitEntry& unit) {
  return unit.manager + "/" + unit.cgrouphostname + "/" + unit.uuid;
}

const PowerEstimate* Account::before_of(const Before& before, const UnitEntry& unit) {
  if (before.empty()) {
    return nullptr;
  }
  const auto found = before.find(unit_name(unit));
  return found == before.end() ? nullptr : &found->second;
}

void Account::restore_books(Domain domain) {
  for (std::size_t i = 0; i < books_.at(index(domain)).size(); ++i) {
    Book& book = books_.at(index(domain))[i];
    const Learned::Idle* before = restored_.find(place_of_book(domain, i));
    if (before == nullptr) {
      continue;
    }
    book.idle.restore(before->bins);
    book.watts.restore({.idle = before->estimate ? before->estimate : book.idle.estimate(),
                        .core = before->core,
                        .system = before->system});
    for (const Learned::UnitCore& unit : before->units) {
      book.before.emplace(unit.unit, unit.core);
    }
  }
}

/// Of the source whose lag is learned.
void Account::restore_lag() {
  if (lag_source_) {
    const std::string& name = sources_[*lag_source_].info.name;
    if (const MeterLag::State* state = restored_.lag_of(name)) {
      lag_.restore(*state);
      lag_.set_line(restored_.lag_of(name, known_set_.names()));
    }
  }
}

std::vector<Learned::UnitCore> Account::learned_units(const UnitWatts& watts) const {
  std::vector<Learned::UnitCore> units;
  for (const auto& entry : units_.entries()) {
    const auto core = watts.of_unit(entry->serial);
    if (core && core->plausible() && !entry->ended) {
      units.push_back({.unit = unit_name(*entry), .core = *core});
    }
  }
  return units;
}

/// Of what the wall meter shows where no meter shows the packages.
Domain Account::wall_domain() const {
  return known_set_.empty() ? Domain::kNode : Domain::kOther;
}

/// Begins to learn what units draw at the wall, starting from stored values.
void Account::begin_wall() {
  wall_watts_ =
      UnitWatts(UnitWatts::wall(options_.assumed.node, static_cast<double>(claims_.sockets())));
  const Domain domain = wall_domain();
  const auto& given = options_.idle_watts;
  if (given.at(index(Domain::kNode)) || given.at(index(Domain::kOther))) {
    wall_watts_.fix_idle(other_idle_watts().value_or(0));
  }
  const Learned::Idle* before = restored_.find({.domain = domain, .meters = meters_of(domain)});
  if (before != nullptr) {
    wall_watts_.restore({.idle = before->estimate,
                         .core = before->core,
                         .system = before->system,
                         .losses = before->losses});
    for (const Learned::UnitCore& unit : before->units) {
      wall_before_.emplace(unit.unit, unit.core);
    }
  }
}

Learned Account::learned() const {
  Learned learned;
  for (const Domain domain : kDomains) {
    Learned::Idle whole{
        .domain = domain, .meters = meters_of(domain), .bins = idle_.at(index(domain)).state()};
    if (domain == wall_domain()) {
      add_learned_wall(whole);
    }
    if (domain == Domain::kOther) {
      whole = learned_rest();
    }
    learned.add(std::move(whole));
    const std::vector<Book>& books = books_.at(index(domain));
    const bool given = options_.idle_watts.at(index(domain)).has_value();
    for (std::size_t i = 0; !given && i < books.size(); ++i) {
      Learned::Idle entry = place_of_book(domain, i);
      entry.bins = books[i].idle.state();
      entry.estimate = books[i].idle_estimate();
      const UnitWatts::State state = books[i].watts.state();
      entry.core = state.core;
      entry.system = state.system;
      entry.units = learned_units(books[i].watts);
      learned.add(std::move(entry));
    }
  }
  for (std::size_t i = 0; i < device_sources_.size(); ++i) {
    const SourceInfo& info = device_sources_[i].info;
    learned.add({.domain = info.domain, .device = info.name, .bins = devices_[i].idle.state()});
  }
  if (auto lag = learned_lag()) {
    learned.lags.push_back(*std::move(lag));
  }
  // The rest of the node beside other known domains.
  Learned others;
  for (const Learned::Idle& entry : restored_.idle) {
    if (entry.domain == Domain::kOther) {
      others.idle.push_back(entry);
    }
  }
  others.lags = restored_.lags;
  learned.add_missing(others);
  return learned;
}

void Account::restore(const Learned& learned) {
  restored_ = learned;
  for (const Domain domain : kDomains) {
    if (has_books(domain)) {
      restore_books(domain);
    } else if (domain == Domain::kOther) {
      // See learn_rest_anew().
    } else {
      idle_.at(index(domain))
          .restore(learned.bins_of({.domain = domain, .meters = meters_of(domain)}));
    }
  }
  restore_lag();
  for (std::size_t i = 0; i < device_sources_.size(); ++i) {
    const SourceInfo& info = device_sources_[i].info;
    devices_[i].idle.restore(learned.bins_of({.domain = info.domain, .device = info.name}));
  }
}

}  // namespace ceems::exporter::energy
