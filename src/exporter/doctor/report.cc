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

bool in_virtual_machine(const host::Paths& paths) {
  return file_has_word(paths.proc / "cpuinfo", "hypervisor");
}

}  // namespace ceems::exporter
