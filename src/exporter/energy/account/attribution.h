#pragma once

#include <span>

namespace ceems::exporter::energy {

/// One unit's claim on one domain in one interval. Both are >= 0; other values count as 0.
struct Claim {
  double alloc = 0;  ///< part of what the domain can hand out that is reserved for it, 1 = all
  double use = 0;    ///< amount used, in any unit that all claims of the domain share
};

/// Where the part of an interval's energy went that no unit is charged with.
struct Remainder {
  double system = 0;       ///< active energy used by anything that is no unit
  double unallocated = 0;  ///< idle energy of what nobody has reserved
};

/// Splits `joules` of one domain and one interval (docs/energy.md):
///
///   unit u       idle * alloc(u) + active * use(u) / U      active = joules - idle
///   unallocated  idle * (1 - sum of alloc)
///   system       the rest: active * (1 - sum of use / U)
///
/// `idle_joules` is cut to 0...joules. Allocations that overlap (sum > 1) are scaled to 1. U is the
/// larger of `total_use` (use by everything, units or not) and the sum over the units, so shares
/// never exceed the whole; with U = 0 all active energy goes to the system. Results are written to
/// `units` (same length as `claims`); all are >= 0 and, with the remainder, sum to `joules` up to
/// rounding.
Remainder split(double joules,
                double idle_joules,
                double total_use,
                std::span<const Claim> claims,
                std::span<double> units);

/// Splits `joules` in the proportion in which the known domains of the interval were split:
/// `known_units` are joules per unit, `known` what was left of them. The sum of all known joules
/// must be > 0.
Remainder split_in_proportion(double joules,
                              std::span<const double> known_units,
                              const Remainder& known,
                              std::span<double> units);

/// Energy of `other` = node - known domains, where the node's meter reads late and coarse: what the
/// known domains are ahead of it is carried over as a debt, never given out as a negative.
class OtherBalance {
 public:
  /// `node` and `known` are joules of one interval. Gives the joules of `other`, >= 0: in the long
  /// run node - known, as long as the debt stays below `max_debt` joules. (Without a limit, a meter
  /// that read low for a day would make `other` vanish for another day.)
  double advance(double node, double known, double max_debt);
  [[nodiscard]] double debt() const { return debt_; }

 private:
  double debt_ = 0;  // >= 0
};

}  // namespace ceems::exporter::energy
