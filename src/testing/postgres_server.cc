#include "testing/postgres_server.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace ceems::testing {
namespace {

namespace fs = std::filesystem;

constexpr auto kLimit = std::chrono::seconds(60);
constexpr auto kPause = std::chrono::milliseconds(10);

/// The directory of the newest version that Debian has installed.
std::string find_programs() {
  std::string newest;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", ignored)) {
    const std::string folder = (entry.path() / "bin").string();
    if (fs::exists(folder + "/initdb", ignored) && fs::exists(folder + "/postgres", ignored)) {
      newest = std::max(newest, folder);
    }
  }
  return newest;
}

/// The user that runs the server, which refuses to run as root.
std::optional<passwd> server_user() {
  if (::geteuid() != 0) {
    return std::nullopt;
  }
  for (const char* name : {"postgres", "nobody"}) {
    // Tests call this before they start threads.
    if (const passwd* user = ::getpwnam(name); user != nullptr) {  // NOLINT(concurrency-mt-unsafe)
      return *user;
    }
  }
  return std::nullopt;
}

pid_t spawn(std::vector<std::string> arguments, const std::string& log) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  std::string path = "PATH=/usr/bin:/bin";
  std::string locale = "LC_ALL=C";
  std::string zone = "TZ=UTC";
  std::vector<char*> environment{path.data(), locale.data(), zone.data(), nullptr};
  const auto user = server_user();
  const UniqueFd output(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  const UniqueFd input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const pid_t pid = ::fork();
  if (pid != 0) {
    return pid;
  }
  // Only calls that are allowed between fork and exec.
  if (user && (::setgroups(0, nullptr) != 0 || ::setgid(user->pw_gid) != 0 ||
               ::setuid(user->pw_uid) != 0)) {
    ::_exit(126);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
  ::dup2(input.get(), STDIN_FILENO);
  ::dup2(output.get(), STDOUT_FILENO);
  ::dup2(output.get(), STDERR_FILENO);
  ::execve(argv[0], argv.data(), environment.data());
  ::_exit(127);
}

/// Waits for the process to end; false if it takes too long.
bool ended(pid_t pid, int& status) {
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

std::string read_all(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

}  // namespace

Result<PostgresServer> PostgresServer::start() {
  PostgresServer server;
  server.programs_ = find_programs();
  if (server.programs_.empty()) {
    return fail(ErrorCode::kNotFound,
                "PostgreSQL is not installed: found no /usr/lib/postgresql/*/bin/postgres"
                " (Debian package postgresql)");
  }
  std::string pattern = "/tmp/ceems-postgres-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) {
    return fail(errno_error(errno, pattern));
  }
  server.directory_ = pattern;
  const auto user = server_user();
  if (user && ::chown(pattern.c_str(), user->pw_uid, user->pw_gid) != 0) {
    return fail(errno_error(errno, pattern));
  }
  const std::string log = pattern + "/log";
  int status = 0;
  const pid_t pid = spawn({server.programs_ + "/initdb", "-D", pattern + "/data", "-A", "trust",
                           "-U", "ceems", "-E", "UTF8", "--locale=C", "--no-sync"},
                          log);
  if (!ended(pid, status)) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, &status, 0);
  }
  if (status != 0) {
    return fail(ErrorCode::kUnavailable, "initdb: {}", read_all(log));
  }
  CEEMS_TRY(server.restart());
  return server;
}

PostgresServer::PostgresServer(PostgresServer&& other) noexcept
    : programs_(std::move(other.programs_)),
      directory_(std::exchange(other.directory_, {})),
      pid_(std::exchange(other.pid_, 0)) {}

PostgresServer::~PostgresServer() {
  crash();
  if (!directory_.empty()) {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }
}

PostgresServer* PostgresServer::shared(std::string& why_not) {
  static Result<PostgresServer> server = start();
  if (!server) {
    why_not = server.error().message;
    return nullptr;
  }
  return &*server;
}

std::string PostgresServer::url(std::string_view database) const {
  return fmt::format("postgresql://ceems@/{}?host={}", database, directory_);
}

Result<> PostgresServer::restart() {
  pid_ = spawn({programs_ + "/postgres", "-D", directory_ + "/data", "-k", directory_, "-c",
                "listen_addresses=", "-c", "fsync=off", "-c", "full_page_writes=off", "-c",
                "synchronous_commit=off", "-c", "shared_buffers=32MB", "-c", "max_connections=60"},
               directory_ + "/log");
  return wait_until_ready();
}

Result<> PostgresServer::wait_until_ready() {
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  // The last line of the file is the status of the server.
  while (read_all(directory_ + "/data/postmaster.pid").find("\nready") == std::string::npos) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != 0) {
      pid_ = 0;
      return fail(ErrorCode::kUnavailable, "postgres: {}", read_all(directory_ + "/log"));
    }
    if (std::chrono::steady_clock::now() > deadline) {
      end(SIGKILL);
      return fail(ErrorCode::kTimeout, "postgres: {}", read_all(directory_ + "/log"));
    }
    std::this_thread::sleep_for(kPause);
  }
  return {};
}

void PostgresServer::end(int signal) {
  if (pid_ <= 0) {
    return;
  }
  ::kill(pid_, signal);
  int status = 0;
  if (!ended(pid_, status)) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status, 0);
  }
  pid_ = 0;
}

void PostgresServer::shut_down() {
  end(SIGINT);
}

void PostgresServer::crash() {
  end(SIGQUIT);
}

}  // namespace ceems::testing
