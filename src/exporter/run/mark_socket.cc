#include "exporter/run/mark_socket.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <variant>

#include "exporter/run/job_processes.h"

namespace ceems::exporter::run {
namespace {

/// What one user reports about one job has the limits of a node.
constexpr marks::Limits kLimits{.unit_messages = 1000,
                                .node_messages = 1000,
                                .user_connects = 1000,
                                .node_connects = 1000,
                                .unit_connections = 4096,
                                .node_connections = 4096};

/// Makes the directory, or says that it was there. An existing one must be this user's alone.
Result<bool> make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) {
    return true;
  }
  struct stat info{};
  constexpr mode_t kOthers = 077;
  if (errno != EEXIST || ::lstat(path.c_str(), &info) != 0) {
    return fail(errno_error(errno, path));
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & kOthers) != 0) {
    return fail(ErrorCode::kUnavailable, "{}: not a directory of this user alone", path);
  }
  return false;
}

/// A new directory in `temporary`, or in /tmp if the path of a socket there would be too long.
Result<std::string> new_directory(const std::string& temporary) {
  constexpr std::string_view kName = "/ceems-run-XXXXXX";
  constexpr std::size_t kSocket = sizeof("/mark.sock");
  const bool fits = temporary.starts_with('/') &&
                    temporary.size() + kName.size() + kSocket < sizeof(sockaddr_un::sun_path);
  std::string path = (fits ? temporary : "/tmp") + std::string(kName);
  if (::mkdtemp(path.data()) == nullptr) {
    return fail(errno_error(errno, path));
  }
  return path;
}

/// Which processes may send marks: this user's that belong to the job.
marks::FindPeer find_members(const MarkSocket::Options& options) {
  auto snapshot = std::make_shared<UnitSnapshot>();
  snapshot->manager = options.job.manager;
  snapshot->units.emplace_back().uuid = options.job.id;
  return [snapshot, proc = options.paths.proc,
          members = Membership(options.paths, options.job, options.self)](
             const marks::Credentials& peer) -> std::variant<marks::PeerUnit, marks::Refusal> {
    bool member = false;
    if (!marks::look_at_peer(proc, peer, [&] { member = members.has(peer.pid); })) {
      return marks::Refusal::kGone;
    }
    if (peer.uid != ::geteuid()) {
      return marks::Refusal::kOtherUser;
    }
    if (!member) {
      return marks::Refusal::kNoUnit;
    }
    return marks::PeerUnit{.snapshot = snapshot, .unit = &snapshot->units.front()};
  };
}

}  // namespace

const char* const kMarkVariable = "CEEMS_MARK_SOCKET";

MarkSocket::MarkSocket(std::string path, bool made, const Clock& clock)
    : path_(std::move(path)),
      made_(made),
      clock_(clock),
      ledger_(std::make_shared<marks::Ledger>()) {}

Result<std::unique_ptr<MarkSocket>> MarkSocket::create(Options options, const Clock& clock) {
  bool made = true;
  if (options.path.empty()) {
    CEEMS_TRY(directory, new_directory(options.temporary));
    options.path = directory + "/mark.sock";
  } else {
    CEEMS_TRY(is_new, make_directory(std::filesystem::path(options.path).parent_path().string()));
    made = is_new;
  }
  std::unique_ptr<MarkSocket> socket(new MarkSocket(options.path, made, clock));
  CEEMS_TRY(server, marks::Server::create(options.path, find_members(options), socket->ledger_,
                                          clock, kLimits));
  socket->server_ = std::move(server);
  return socket;
}

MarkSocket::~MarkSocket() {
  if (server_ != nullptr && removes_) {
    ::unlink(path_.c_str());
  }
  server_.reset();
  if (made_ && removes_) {
    ::rmdir(std::filesystem::path(path_).parent_path().c_str());
  }
}

void MarkSocket::start() {
  server_->start();
}

void MarkSocket::finish() {
  server_->finish();
  ledger_->end_all(clock_.steady_now());
}

}  // namespace ceems::exporter::run
