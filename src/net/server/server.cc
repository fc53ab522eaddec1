#include "net/server/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>

#include "base/log.h"
#include "base/mutex.h"
#include "net/server/connection.h"
#include "net/server/listen.h"

namespace ceems::net {

namespace {

using Descriptor = asio::posix::basic_stream_descriptor<IoExecutor>;

void ended(ServerCore& core, Connection* connection) {
  core.connections.erase(connection);
  core.room.cancel();
  const MutexLock lock(core.mutex);
  --core.open;
  core.changed.notify_all();
}

void serve(ServerCore& core, int fd, const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET || peer.ss_family == AF_INET6) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  Socket socket(core.io.get_executor(), asio::generic::stream_protocol(peer.ss_family, 0), fd);
  auto connection = std::make_shared<Connection>(core, std::move(socket), peer_text(peer));
  core.connections.emplace(connection.get(), connection);
  {
    const MutexLock lock(core.mutex);
    ++core.open;
  }
  asio::co_spawn(core.io.get_executor(), Connection::serve(connection),
                 [&core, key = connection.get()](const std::exception_ptr& thrown) {
                   ended(core, key);
                   try {
                     if (thrown) {
                       std::rethrow_exception(thrown);
                     }
                   } catch (const std::exception& exception) {
                     log::error("A connection failed", {{"err", exception.what()}});
                   }
                 });
}

/// Accepts all connections that are waiting. Returns false if descriptors or memory run out.
bool accept_all(ServerCore& core, int listener) {
  while (core.connections.size() < core.max_connections) {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    const int fd = ::accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size,
                             SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      if (peer.ss_family == AF_UNSPEC) {
        peer.ss_family = AF_UNIX;
      }
      serve(core, fd, peer);
    } else {
      // Any other error means that none is waiting, or concerns that one connection (accept(2)).
      return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
    }
  }
  return true;
}

Task<void> accept_loop(ServerCore& core, std::shared_ptr<Descriptor> listener) {
  bool short_of_descriptors = false;
  while (listener->is_open()) {
    ErrorCondition error;
    if (core.connections.size() >= core.max_connections) {
      auto token = asio::redirect_error(kAwait, error);
      co_await core.room.async_wait(token);
      continue;
    }
    auto token = asio::redirect_error(kAwait, error);
    co_await listener->async_wait(Descriptor::wait_read, token);
    if (error || !listener->is_open()) {
      co_return;
    }
    if (accept_all(core, listener->native_handle())) {
      short_of_descriptors = false;
      continue;
    }
    if (!short_of_descriptors) {
      short_of_descriptors = true;
      log::error("No connection can be accepted", {{"err", errno_error(errno, "accept").message}});
    }
    Timer pause(core.io.get_executor(), std::chrono::milliseconds(100));
    auto pause_token = asio::redirect_error(kAwait, error);
    co_await pause.async_wait(pause_token);
  }
}

}  // namespace

struct Server::Impl {
  std::vector<Listener> listeners;
  ServerCore core;
  std::vector<std::shared_ptr<Descriptor>> accepting;
  asio::executor_work_guard<IoExecutor> work{core.io.get_executor()};
  std::jthread thread;

  Impl(ServerOptions options, Handler handler) : core(std::move(options), std::move(handler)) {}

  void run() {
    while (true) {
      try {
        core.io.run();
        return;
      } catch (const std::exception& exception) {
        log::error("The server's loop failed", {{"err", exception.what()}});
      }
    }
  }

  /// Call the next three functions on the I/O thread.
  void close_listeners() {
    for (const auto& listener : accepting) {
      ErrorCondition ignored;
      (void)listener->close(ignored);
    }
    core.room.cancel();
  }
  void close_connections(bool only_idle) {
    std::vector<std::shared_ptr<Connection>> all;
    all.reserve(core.connections.size());
    for (const auto& [key, weak] : core.connections) {
      all.push_back(weak.lock());
    }
    for (const auto& connection : all) {
      if (connection && (!only_idle || connection->idle())) {
        connection->close();
      }
    }
  }
  void give_up_waiting() {
    for (const auto& [key, weak] : core.connections) {
      if (const auto connection = weak.lock()) {
        connection->give_up();
      }
    }
  }
};

Result<std::unique_ptr<Server>> Server::create(ServerOptions options, Handler handler) {
  auto impl = std::make_unique<Impl>(std::move(options), std::move(handler));
  const ServerOptions& chosen = impl->core.options;
  if (!chosen.web_config_file.empty()) {
    CEEMS_TRY(web,
              WebAccess::open(chosen.web_config_file, chosen.around_files, chosen.on_certificate));
    impl->core.web = std::move(web);
  }
  if (chosen.systemd_socket) {
    CEEMS_TRY(passed, systemd_listeners(
                          [](const std::string& name) {
                            // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment never changes
                            const char* value = std::getenv(name.c_str());
                            return std::string(value == nullptr ? "" : value);
                          },
                          ::getpid()));
    impl->listeners = std::move(passed);
  } else {
    for (const std::string& text : chosen.listen_addresses) {
      CEEMS_TRY(address, parse_listen_address(text));
      CEEMS_TRY(listener, listen_on(address));
      impl->listeners.push_back(std::move(listener));
    }
  }
  if (impl->listeners.empty()) {
    return fail(ErrorCode::kInvalidArgument, "no address to listen on");
  }
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  stop();
  for (const Listener& listener : impl_->listeners) {
    if (!listener.unix_path.empty()) {
      ::unlink(listener.unix_path.c_str());
    }
  }
}

void Server::start() {
  ServerCore& core = impl_->core;
  const std::size_t wanted = core.options.max_connections;
  core.max_connections = connections_allowed(wanted, open_file_limit(), core.options.file_share);
  if (core.max_connections < wanted) {
    log::info("The limit of open files bounds the number of connections",
              {{"connections", core.max_connections}, {"files", open_file_limit()}});
  }
  core.start_workers();
  for (Listener& listener : impl_->listeners) {
    auto descriptor =
        std::make_shared<Descriptor>(impl_->core.io.get_executor(), listener.fd.release());
    impl_->accepting.push_back(descriptor);
    asio::co_spawn(impl_->core.io.get_executor(), accept_loop(impl_->core, descriptor),
                   [](const std::exception_ptr& thrown) {
                     if (thrown) {
                       log::error("Accepting connections ended unexpectedly");
                     }
                   });
  }
  impl_->thread = std::jthread([this] { impl_->run(); });
}

void Server::stop(std::chrono::milliseconds grace) {
  Impl& impl = *impl_;
  if (!impl.thread.joinable()) {
    return;
  }
  impl.core.stopping = true;
  asio::post(impl.core.io, [&impl] {
    impl.close_listeners();
    impl.close_connections(true);
  });
  {
    MutexLock lock(impl.core.mutex);
    const auto none = [&impl]() CEEMS_REQUIRES(impl.core.mutex) { return impl.core.open == 0; };
    constexpr std::chrono::milliseconds kGraceOfWaiting{1000};
    const auto first = std::min(grace, kGraceOfWaiting);
    bool done = impl.core.changed.wait_for(lock, first, none);
    if (!done) {
      lock.unlock();
      asio::post(impl.core.io, [&impl] { impl.give_up_waiting(); });
      lock.lock();
      done = impl.core.changed.wait_for(lock, grace - first, none);
    }
    if (!done) {
      lock.unlock();
      asio::post(impl.core.io, [&impl] {
        impl.close_connections(false);
        impl.core.drop_late();  // their clients are gone now
      });
      lock.lock();
      impl.core.changed.wait(lock, none);  // connections end when their handlers return
    }
  }
  impl.core.join_workers();
  impl.work.reset();
  impl.core.io.stop();
  impl.thread.join();
}

std::vector<std::string> Server::addresses() const {
  std::vector<std::string> all;
  for (const Listener& listener : impl_->listeners) {
    all.push_back(listener.address);
  }
  return all;
}

}  // namespace ceems::net
