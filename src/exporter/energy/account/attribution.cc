#include "exporter/energy/account/attribution.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace ceems::exporter::energy {
namespace {

double at_least_zero(double value) {
  return value > 0 && std::isfinite(value) ? value : 0;
}

}  // namespace

Remainder split(double joules,
                double idle_joules,
                double total_use,
                std::span<const Claim> claims,
                std::span<double> units) {
  CEEMS_CHECK(claims.size() == units.size());
  const double energy = at_least_zero(joules);
  const double idle = std::min(at_least_zero(idle_joules), energy);
  const double active = energy - idle;

  double alloc_sum = 0;
  double use_sum = 0;
  for (const Claim& claim : claims) {
    alloc_sum += at_least_zero(claim.alloc);
    use_sum += at_least_zero(claim.use);
  }
  const double per_alloc = alloc_sum > 1 ? idle / alloc_sum : idle;
  const double use_total = std::max(at_least_zero(total_use), use_sum);
  const double per_use = use_total > 0 ? active / use_total : 0;

  double given = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    units[i] = per_alloc * at_least_zero(claims[i].alloc) + per_use * at_least_zero(claims[i].use);
    given += units[i];
  }
  Remainder rest;
  rest.unallocated = alloc_sum < 1 ? idle * (1 - alloc_sum) : 0;
  // The remainder rather than active * (1 - shares), so that the parts sum to the whole by
  // construction.
  rest.system = std::max(0.0, energy - given - rest.unallocated);
  return rest;
}

Remainder split_in_proportion(double joules,
                              std::span<const double> known_units,
                              const Remainder& known,
                              std::span<double> units) {
  CEEMS_CHECK(known_units.size() == units.size());
  const double energy = at_least_zero(joules);
  double total = known.system + known.unallocated;
  for (const double unit : known_units) {
    total += unit;
  }
  CEEMS_CHECK(total > 0);
  const double factor = energy / total;
  double given = 0;
  for (std::size_t i = 0; i < units.size(); ++i) {
    units[i] = factor * known_units[i];
    given += units[i];
  }
  Remainder rest;
  rest.unallocated = factor * known.unallocated;
  rest.system = std::max(0.0, energy - given - rest.unallocated);
  return rest;
}

double OtherBalance::advance(double node, double known, double max_debt) {
  const double balance = at_least_zero(node) - at_least_zero(known) - debt_;
  if (balance >= 0) {
    debt_ = 0;
    return balance;
  }
  debt_ = std::min(-balance, at_least_zero(max_debt));
  return 0;
}

}  // namespace ceems::exporter::energy
