#include "exporter/doctor/report.h"

#include <sys/stat.h>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::exporter {

bool world_readable(const std::string& file) {
  struct stat info{};
  return ::stat(file.c_str(), &info) == 0 && (info.st_mode & S_IROTH) != 0;
}

bool exists(const std::string& file) {
  struct stat info{};
  return ::stat(file.c_str(), &info) == 0;
}

bool file_has_word(const std::string& path, std::string_view word) {
  const auto text = host::read_file(path);
  if (!text) {
    return false;
  }
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = rest.find_first_of(" \t\n");
    if (rest.substr(0, end) == word) {
      return true;
    }
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return false;
}

std::optional<std::string> permitted_perf_events(const DoctorContext& context, Report& report) {
  constexpr int kMaxParanoid = 2;  // of the kernel's own values
  const auto text =
      host::read_file((context.paths.proc / "sys/kernel/perf_event_paranoid").string());
  if (!text) {
    report.cannot(text.error().message, "use a kernel with CONFIG_PERF_EVENTS");
    return std::nullopt;
  }
  std::string level(trim(*text));
  if (parse_int<int>(level).value_or(0) <= kMaxParanoid) {
    return level;
  }
  if (!context.may_raise(kCapPerfmon)) {
    report.cannot("kernel.perf_event_paranoid is " + level,
                  "sysctl kernel.perf_event_paranoid=2, or link the drop-in "
                  "/usr/share/ceems/systemd/ceems_exporter.service.d/perf.conf in "
                  "/etc/systemd/system/ceems_exporter.service.d (CAP_PERFMON)");
    return std::nullopt;
  }
  const auto version = host::read_file((context.paths.proc / "version").string());
  if (version &&
      (version->contains("debian") || version->contains("Debian") || version->contains("Ubuntu"))) {
    report.cannot("kernel.perf_event_paranoid is " + level +
                      "; above 2 the kernels of Debian and Ubuntu refuse events even with "
                      "CAP_PERFMON",
                  "sysctl kernel.perf_event_paranoid=2");
    return std::nullopt;
  }
  return level;
}

bool in_virtual_machine(const host::Paths& paths) {
  return file_has_word(paths.proc / "cpuinfo", "hypervisor");
}

}  // namespace ceems::exporter
