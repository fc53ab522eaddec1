#include <fmt/format.h>
#include <fmt/ranges.h>

#include "exporter/doctor/doctor.h"
#include "exporter/doctor/report.h"
#include "exporter/flag_names.h"

namespace ceems::exporter {

/// Which releases of CEEMS would start with the same flags. For sites that come from another
/// release or want to go back to it. Never a fault, because this program accepts the flags.
void examine_release(const DoctorContext& context, Findings& findings) {
  const ReleaseFit fit = fitting_releases(context.flags);
  Report(context, findings, "release")
      .works(fit.summary, fmt::format("{}", fmt::join(fit.notes, "; ")));
}

}  // namespace ceems::exporter
