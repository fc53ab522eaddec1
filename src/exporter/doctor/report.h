#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "exporter/doctor/doctor.h"

namespace ceems::exporter {

inline constexpr os::Capability kCapPerfmon = 38;  ///< Linux 5.8

/// Adds the findings of one collector.
class Report {
 public:
  Report(const DoctorContext& context, Findings& findings, std::string collector)
      : context_(context), findings_(findings), collector_(std::move(collector)) {}

  /// `worth_knowing` is an optional improvement, `node_watts` what the collector read.
  void works(std::string cause,
             std::string worth_knowing = {},
             std::optional<double> node_watts = {}) {
    add(Finding::State::kWorks, std::move(cause), std::move(worth_knowing));
    findings_.back().node_watts = node_watts;
  }
  void off(std::string cause) { add(Finding::State::kOff, std::move(cause), {}); }
  void cannot(std::string cause, std::string fix) {
    add(Finding::State::kCannot, std::move(cause), std::move(fix));
  }
  /// Something is missing. That is a fault if the collector is switched on by flag.
  void absent(std::string cause, std::string fix) {
    if (wanted()) {
      cannot(std::move(cause), std::move(fix));
    } else {
      off(std::move(cause));
    }
  }
  [[nodiscard]] bool wanted() const { return context_.wanted.contains(collector_); }

 private:
  void add(Finding::State state, std::string cause, std::string fix) {
    findings_.push_back({collector_, state, std::move(cause), std::move(fix)});
  }

  const DoctorContext& context_;
  Findings& findings_;
  std::string collector_;
};

/// Whether a user without privileges can open `file`, judged by its mode, because the doctor itself
/// may run as root.
bool world_readable(const std::string& file);

/// Whether `file` exists, whatever its type.
bool exists(const std::string& file);

/// Whether `word` is among the words of the file at `path`.
bool file_has_word(const std::string& path, std::string_view word);

/// The value of kernel.perf_event_paranoid, if events may be opened with CAP_PERFMON. Reports what
/// is missing if not.
std::optional<std::string> permitted_perf_events(const DoctorContext& context, Report& report);

/// Whether /proc/cpuinfo has the flag `hypervisor`, which means a virtual machine.
bool in_virtual_machine(const host::Paths& paths);

}  // namespace ceems::exporter
