#include "os/daemon.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include <date/date.h>
#include <fmt/format.h>

#include "base/log.h"
#include "base/version.h"
#include "os/signals.h"

namespace ceems::os {
namespace {

/// Waits for a signal, and meanwhile notifies systemd's watchdog.
int next_signal(const std::function<bool()>& works) {
  const auto limit = watchdog_limit();
  if (!limit) {
    return wait_for_signal();
  }
  const auto pause = std::chrono::ceil<std::chrono::milliseconds>(*limit / 3);
  while (true) {
    if (!works || works()) {
      notify_systemd("WATCHDOG=1");
    }
    if (const auto signal = wait_for_signal(pause)) {
      return *signal;
    }
  }
}

}  // namespace

int daemon_main(std::string_view name,
                int argc,
                char** argv,
                int (*run)(int argc, const char* const* argv)) {
  block_signals();
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return 1;
  }
}

int give_up_early(const Error& error) {
  const auto now = date::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  fmt::print(stderr, "{} {}\n", date::format("%Y/%m/%d %H:%M:%S", now), error.message);
  return 1;
}

int give_up(const Error& error) {
  log::error("cannot start", {{"err", error.message}});
  return 1;
}

void raise_file_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    const rlim_t before = std::exchange(files.rlim_cur, files.rlim_max);
    if (::setrlimit(RLIMIT_NOFILE, &files) != 0) {
      log::warn("could not raise the limit of open files", {{"files", before}});
    }
  }
}

void log_start(std::string_view name) {
  const Version& about = version();
  utsname system{};
  ::uname(&system);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  log::info(fmt::format("starting {}", name),
            {{"version", about.version},
             {"branch", about.branch},
             {"revision", about.revision},
             {"hostname", static_cast<const char*>(system.nodename)},
             {"open_files", files.rlim_cur}});
}

void serve_until_stopped(const std::function<void()>& on_hangup,
                         const std::function<bool()>& works) {
  notify_systemd("READY=1");
  int signal = next_signal(works);
  while (signal == SIGHUP) {
    on_hangup();
    signal = next_signal(works);
  }
  notify_systemd("STOPPING=1");
  log::info("stopping", {{"signal", signal}});
}

}  // namespace ceems::os
