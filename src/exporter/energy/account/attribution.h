#pragma once

#include <span>

namespace ceems::exporter::energy {

/// One unit's claim on one domain in one interval. Both values are >= 0; other values count as 0.
struct Claim {
  double alloc = 0;  ///< fraction of the domain that is reserved for the unit, 0...1
  double use = 0;    ///< amount used, in the same measure for all claims on the domain
};

/// The part of an interval's energy that no unit is charged with.
struct Remainder {
  double system = 0;       ///< active energy of anything that is not a unit
  double unallocated = 0;  ///< idle energy of what no unit has reserved
};

/// Splits `joules` of one domain and one interval (docs/energy.md):
///
///   unit u       idle * alloc(u) + active * use(u) / U      active = joules - idle
///   unallocated  idle * (1 - sum of alloc)
///   system       the rest: active * (1 - sum of use / U)
///
/// `idle_joules` is limited to 0...joules. If reservations overlap (sum > 1), they are scaled to 1.
/// U is the larger of `total_use` (use by everything, units or not) and the sum over the units, so
/// shares never exceed the whole. With U = 0 all active energy goes to the system. Results are
/// written to `units`, which has the length of `claims`. All are >= 0 and, together with the
/// returned remainder, sum to `joules` except for rounding.
///
/// Units: joules; `alloc` is a fraction, `use` in any measure. Source: a convention. Idle power
/// flows for what is reserved, whether it works or not (docs/energy.md).
Remainder split(double joules,
                double idle_joules,
                double total_use,
                std::span<const Claim> claims,
                std::span<double> units);

/// Splits `joules` in the proportion in which the known domains of the interval were split:
/// `known_units` are joules per unit and `known` is their remainder. The sum of all known joules
/// must be > 0.
Remainder split_in_proportion(double joules,
                              std::span<const double> known_units,
                              const Remainder& known,
                              std::span<double> units);

/// Energy of kOther, which is node - known domains, although the node's meter reads late and
/// coarsely. When the known domains are ahead of it, the difference is carried over as a debt
/// instead of counting negative energy. Units: joules. Source: the balance of energy.
class OtherBalance {
 public:
  /// `node` and `known` are joules of one interval. Returns the joules of kOther, >= 0. In the long
  /// run they are node - known as long as the debt stays below `max_debt` joules. (Without this
  /// limit, a meter that read low for a day would make kOther vanish for another day.)
  double advance(double node, double known, double max_debt);
  [[nodiscard]] double debt() const { return debt_; }

 private:
  double debt_ = 0;  // >= 0
};

}  // namespace ceems::exporter::energy
