// What an account has learned, and how another continues with it.
#include <utility>

#include "exporter/energy/account/account.h"

namespace ceems::exporter::energy {
namespace {

constexpr bool has_books(Domain domain) {
  return domain == Domain::kPackage || domain == Domain::kDram;
}

}  // namespace

/// The sources on which the idle power of a domain depends.
std::string Account::meters_of(Domain domain) const {
  std::string names;
  for (const SourceAccount& source : sources_) {
    const bool metered = source.info.method == Method::kMeasured;
    if (metered && (domain == Domain::kOther || source.info.domain == domain)) {
      names += (names.empty() ? "" : ",") + source.info.name;
    }
  }
  return names;
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

void Account::restore_books(Domain domain) {
  std::vector<Book>& books = books_.at(index(domain));
  for (std::size_t i = 0; i < books.size(); ++i) {
    books[i].idle.restore(restored_.bins_of(place_of_book(domain, i)));
  }
}

Learned Account::learned() const {
  Learned learned;
  for (const Domain domain : kDomains) {
    learned.add(
        {.domain = domain, .meters = meters_of(domain), .bins = idle_.at(index(domain)).state()});
    const std::vector<Book>& books = books_.at(index(domain));
    const bool given = options_.idle_watts.at(index(domain)).has_value();
    for (std::size_t i = 0; !given && i < books.size(); ++i) {
      Learned::Idle entry = place_of_book(domain, i);
      entry.bins = books[i].idle.state();
      learned.add(std::move(entry));
    }
  }
  for (std::size_t i = 0; i < device_sources_.size(); ++i) {
    const SourceInfo& info = device_sources_[i].info;
    learned.add({.domain = info.domain, .device = info.name, .bins = device_idle_[i].state()});
  }
  return learned;
}

void Account::restore(const Learned& learned) {
  restored_ = learned;
  for (const Domain domain : kDomains) {
    if (has_books(domain)) {
      restore_books(domain);
    } else {
      idle_.at(index(domain))
          .restore(learned.bins_of({.domain = domain, .meters = meters_of(domain)}));
    }
  }
  for (std::size_t i = 0; i < device_sources_.size(); ++i) {
    const SourceInfo& info = device_sources_[i].info;
    device_idle_[i].restore(learned.bins_of({.domain = info.domain, .device = info.name}));
  }
}

}  // namespace ceems::exporter::energy
