#include "store/postgres/coordinator.h"

#include <poll.h>

#include <chrono>
#include <utility>

#include <libpq-fe.h>

#include "base/log.h"

namespace ceems::store::postgres {
namespace {

// A stop, or a connection that another thread has replaced, is noticed within this time.
constexpr int kPollMs = 200;
// Pause between attempts to reach the server. The connector makes real attempts less often.
constexpr auto kPause = std::chrono::milliseconds(200);

}  // namespace

Coordinator::Coordinator(Connector& connector, Generations& generations)
    : connector_(&connector),
      generations_(&generations),
      thread_([this](const std::stop_token& stop) { listen(stop); }) {}

Coordinator::~Coordinator() {
  stop();
}

void Coordinator::stop() {
  thread_.request_stop();
  if (thread_.joinable()) {
    thread_.join();
  }
  const MutexLock lock(mutex_);
  listening_ = false;
  connection_.reset();
  term_.reset();
}

std::optional<std::int64_t> Coordinator::term() const {
  const MutexLock lock(mutex_);
  return term_;
}

void Coordinator::lost(const Error& error) {
  listening_ = false;
  connection_.reset();
  if (std::exchange(term_, std::nullopt)) {
    log::warn("leadership lost: the connection to the database broke", {{"err", error.message}});
  } else if (!std::exchange(reported_, true)) {
    log::warn("the database does not answer", {{"err", error.message}});
  }
}

Result<> Coordinator::connect() {
  if (connection_) {
    return {};
  }
  auto connection = connector_->connect();
  if (!connection) {
    lost(connection.error());
    return fail(std::move(connection).error());
  }
  if (auto done = connection->execute("LISTEN ceems_commit"); !done) {
    lost(done.error());
    return done;
  }
  connection_ = std::make_unique<Connection>(std::move(*connection));
  generations_->committed();  // commits in the meantime were not announced
  listening_ = true;
  if (std::exchange(reported_, false)) {
    log::info("the database answers again", {{"database", connector_->name()}});
  }
  return {};
}

void Coordinator::take_notices() {
  while (connection_) {
    PGnotify* notice = PQnotifies(connection_->handle());
    if (notice == nullptr) {
      return;
    }
    generations_->committed(std::string_view(notice->extra) == kNoUsage);
    PQfreemem(notice);
  }
}

Result<std::optional<std::int64_t>> Coordinator::try_lead() {
  CEEMS_TRY(connect());
  CEEMS_TRY(locked, connection_->query(
                        term_ ? "SELECT true" : "SELECT pg_try_advisory_lock(?)",
                        term_ ? std::vector<SqlValue>() : std::vector<SqlValue>{kLeaderLock}));
  take_notices();
  if (term_ || locked.text(0, 0) != "t") {
    return term_;
  }
  // Waits for a transaction of the former leader, which may have lost only its other session.
  const auto done = connection_->execute(fmt::format(
      "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT pg_advisory_xact_lock({});"
      "UPDATE ceems_leader SET term = term + 1",
      kWriterLock));
  auto term = done ? connection_->query("SELECT term FROM ceems_leader")
                   : Result<Answer>(fail(done.error()));
  if (term && term->rows() == 1) {
    CEEMS_TRY(connection_->execute("COMMIT"));
    term_ = term->integer(0, 0);
    log::info("this program leads: it updates the database", {{"database", connector_->name()}});
    return term_;
  }
  return fail(term ? Error{ErrorCode::kInternal, "the table ceems_leader has no row"}
                   : std::move(term).error());
}

Result<std::optional<std::int64_t>> Coordinator::lead() {
  const MutexLock lock(mutex_);
  auto term = try_lead();
  if (!term && connection_) {
    const bool led = term_.has_value();
    lost(term.error());  // the server has released the locks of the session
    if (led || term.error().code == ErrorCode::kUnavailable) {
      term = try_lead();  // the connection may have broken while it was idle
      if (!term && connection_) {
        lost(term.error());
      }
    }
  }
  return term;
}

void Coordinator::listen(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    int descriptor = -1;
    {
      const MutexLock lock(mutex_);
      if (connect()) {
        descriptor = PQsocket(connection_->handle());
      }
    }
    if (descriptor < 0) {
      std::this_thread::sleep_for(kPause);
      continue;
    }
    pollfd wait{.fd = descriptor, .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, kPollMs) <= 0) {
      continue;
    }
    const MutexLock lock(mutex_);
    // If the connection has been replaced in the meantime, there is nothing to read yet.
    if (connection_) {
      if (PQconsumeInput(connection_->handle()) == 0 || !connection_->alive()) {
        lost(connection_->error({}));
      } else {
        take_notices();
      }
    }
  }
}

}  // namespace ceems::store::postgres
