#include "mail/transport.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/strings.h"
#include "os/secret.h"

namespace ceems::mail {
namespace {

using std::chrono::steady_clock;

class Smtp final : public Transport {
 public:
  Smtp(net::SmtpOptions options, std::string password_file)
      : options_(std::move(options)), password_file_(std::move(password_file)) {}

  net::MailAnswer send(const std::string& from,
                       const std::vector<std::string>& to,
                       const std::string& message,
                       const std::function<bool()>& handing_over,
                       const std::stop_token& stop) override {
    net::SmtpOptions options = options_;
    if (!password_file_.empty()) {
      auto password = os::read_secret("", password_file_);
      if (!password) {
        return {.outcome = net::MailOutcome::kTemporary, .problem = password.error().message};
      }
      options.password = std::move(*password);
    }
    return net::send_smtp(options, from, to, message, handing_over, stop);
  }

 private:
  net::SmtpOptions options_;
  std::string password_file_;
};

/// Gives all of the text to a socket, or as much as the other end takes until the deadline.
bool give(int socket, std::string_view text, steady_clock::time_point deadline) {
  while (!text.empty() && steady_clock::now() < deadline) {
    pollfd ready{.fd = socket, .events = POLLOUT, .revents = 0};
    constexpr int kStepMs = 100;
    if (::poll(&ready, 1, kStepMs) <= 0) {
      continue;
    }
    const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
      continue;
    }
    if (sent < 0) {
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return text.empty();
}

/// Waits for the end of a child; after the deadline it is killed. Returns its exit status, or -1.
int wait_for(pid_t child, steady_clock::time_point deadline) {
  constexpr std::chrono::milliseconds kStep{10};
  int status = 0;
  while (true) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) {
      return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    if (ended < 0 && errno != EINTR) {
      return -1;
    }
    if (steady_clock::now() >= deadline) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(kStep);
  }
}

struct Actions {
  Actions() { ::posix_spawn_file_actions_init(&actions); }
  ~Actions() { ::posix_spawn_file_actions_destroy(&actions); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  posix_spawn_file_actions_t actions{};
};

class Sendmail final : public Transport {
 public:
  explicit Sendmail(std::string path) : path_(std::move(path)) {}

  net::MailAnswer send(const std::string& from,
                       const std::vector<std::string>& to,
                       const std::string& message,
                       const std::function<bool()>& handing_over,
                       const std::stop_token& stop) override {
    if (stop.stop_requested() || !handing_over()) {
      return {.outcome = net::MailOutcome::kTemporary, .problem = "stopped"};
    }
    const int status = run(from, to, message);
    constexpr int kBadData = 65;  // EX_DATAERR of sysexits.h, and up to EX_NOHOST
    constexpr int kNoHost = 68;
    if (status == 0) {
      return {.outcome = net::MailOutcome::kSent};
    }
    const std::string problem = fmt::format("{} ended with status {}", path_, status);
    if (status == -1) {  // killed, perhaps when it had taken the mail
      return {.outcome = net::MailOutcome::kUnknown, .problem = problem};
    }
    if (status >= kBadData && status <= kNoHost) {
      return {.outcome = net::MailOutcome::kRefused, .problem = problem};
    }
    return {.outcome = net::MailOutcome::kTemporary, .problem = problem};
  }

 private:
  /// The exit status; 126 if it could not be started, -1 if it did not end in time.
  int run(const std::string& from, const std::vector<std::string>& to, const std::string& message) {
    constexpr int kNotStarted = 126;
    std::array<int, 2> pair{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
      return kNotStarted;
    }
    UniqueFd ours(pair[0]);
    UniqueFd theirs(pair[1]);
    Actions actions;
    auto* const list = &actions.actions;
    ::posix_spawn_file_actions_adddup2(list, theirs.get(), STDIN_FILENO);
    ::posix_spawn_file_actions_addopen(list, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addopen(list, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    // -i: a line with one dot does not end the message.
    std::vector<std::string> words{path_, "-i", "-f", from, "--"};
    words.insert(words.end(), to.begin(), to.end());
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) {
      arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    std::string path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
    std::array<char*, 2> environment{path.data(), nullptr};
    pid_t child = 0;
    if (::posix_spawn(&child, path_.c_str(), list, nullptr, arguments.data(), environment.data()) !=
        0) {
      return kNotStarted;
    }
    theirs.reset();
    const auto deadline = steady_clock::now() + kTimeout;
    const bool given = give(ours.get(), message, deadline);
    if (!given) {
      // It must not take a part for the whole message.
      ::kill(child, SIGKILL);
    }
    ours.reset();
    const int status = wait_for(child, deadline);
    return !given && status == -1 ? kNotStarted : status;
  }

  static constexpr std::chrono::seconds kTimeout{60};
  std::string path_;
};

}  // namespace

std::unique_ptr<Transport> make_transport(const Options& options) {
  if (!options.sendmail.empty()) {
    return std::make_unique<Sendmail>(options.sendmail);
  }
  return std::make_unique<Smtp>(options.smtp, options.password_file);
}

}  // namespace ceems::mail
