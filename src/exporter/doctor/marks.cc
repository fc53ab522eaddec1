#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/fd.h"
#include "exporter/doctor/doctor.h"
#include "exporter/doctor/report.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

constexpr int kMarksAnswerMs = 1000;
constexpr std::size_t kMaxSocketPath = sizeof(sockaddr_un::sun_path) - 1;

/// What came of a connection, without a mark.
struct MarksAnswer {
  int error = 0;     ///< of connect(2)
  std::string text;  ///< "ok", "refused REASON", or empty without an answer
};

MarksAnswer connect_to_marks(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return {.error = errno, .text = {}};
  }
  std::array<char, 64> text{};
  pollfd waiting{.fd = socket.get(), .events = POLLIN, .revents = 0};
  const auto size = ::poll(&waiting, 1, kMarksAnswerMs) == 1
                        ? ::recv(socket.get(), text.data(), text.size(), MSG_DONTWAIT)
                        : 0;
  return {.error = 0,
          .text = std::string(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0)};
}

/// Nothing is there yet.
void examine_place(const std::filesystem::path& path, Report& report) {
  const std::filesystem::path folder = path.parent_path();
  if (host::is_directory(folder)) {
    report.works(fmt::format("the exporter makes {} when it starts", path.string()));
  } else if (host::is_directory(folder.parent_path())) {
    report.works(
        fmt::format("the exporter makes {} and its folder when it starts", path.string()),
        fmt::format("if it does not run as root: install -d -m 1775 -g ceems {}", folder.string()));
  } else {
    report.cannot(fmt::format("{} does not exist, so {} cannot be made",
                              folder.parent_path().string(), path.string()),
                  fmt::format("mkdir -p {}, or give another path with --collector.marks.socket",
                              folder.string()));
  }
}

void examine_error(int error, const std::string& path, Report& report) {
  if (error == ECONNREFUSED) {
    const std::string cause = path + " was left behind by an exporter that has ended";
    if (report.wanted()) {
      report.works(cause + "; the next one replaces it");
    } else {
      report.off(cause);
    }
  } else if (error == EPROTOTYPE) {
    report.cannot(path + " is the socket of another program",
                  "give another path with --collector.marks.socket");
  } else {
    report.cannot(errno_error(error, path).message,
                  "jobs must be able to search its folders (chmod a+x) and the exporter must run; "
                  "its log says if it has stopped reading marks");
  }
}

void examine_answer(std::string_view answer, const std::string& path, Report& report) {
  if (answer == "ok") {
    report.works(fmt::format("an exporter takes marks at {}, of this process as well", path));
  } else if (answer == "refused no_unit" || answer == "refused other_user") {
    report.works(fmt::format(
        "an exporter answers at {}, and refuses marks of this process as it should: {}", path,
        answer == "refused no_unit" ? "it is in no job" : "its job belongs to another user"));
  } else if (answer == "refused gone") {
    report.cannot(fmt::format("the exporter at {} cannot see this process", path),
                  "run the exporter in the PID namespace of the host (in a pod, hostPID: true), "
                  "with a /proc that is mounted without hidepid");
  } else if (answer.empty()) {
    report.cannot(fmt::format("the exporter at {} does not answer", path),
                  "look for \"marks\" in its log, and restart it");
  } else {
    report.cannot(fmt::format("the exporter at {} has reached a limit: {}", path, answer),
                  "ceems_exporter_marks_refused_total counts such connections; "
                  "docs/exporter/collectors.md#marks has the limits");
  }
}

}  // namespace

void examine_marks(const DoctorContext& context, Findings& findings) {
  Report report(context, findings, "marks");
  const std::string& path = context.marks_socket;
  if (report.wanted() && context.energy_refused) {
    report.cannot("marks divide the energy of jobs, which --no-collector.energy turns off",
                  "remove --no-collector.energy");
    return;
  }
  if (!path.starts_with('/') || path.size() > kMaxSocketPath) {
    report.absent(fmt::format("'{}' cannot be a socket", path),
                  fmt::format("give an absolute path of at most {} bytes with "
                              "--collector.marks.socket",
                              kMaxSocketPath));
    return;
  }
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) {
    if (report.wanted()) {
      examine_place(path, report);
    } else {
      report.off("not requested");
    }
    return;
  }
  if (!S_ISSOCK(info.st_mode)) {
    report.absent(path + " is not a socket, and the exporter does not replace it",
                  "remove it, or give another path with --collector.marks.socket");
    return;
  }
  if (const auto answer = connect_to_marks(path); answer.error != 0) {
    examine_error(answer.error, path, report);
  } else if ((info.st_mode & S_IWOTH) == 0) {
    report.cannot(fmt::format("only some users can connect to {}, whose mode is {:04o}", path,
                              info.st_mode & 07777U),
                  "chmod 0666 " + path);
  } else {
    examine_answer(answer.text, path, report);
  }
}

}  // namespace ceems::exporter
