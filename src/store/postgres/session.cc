#include "store/postgres/session.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <libpq-fe.h>

#include "base/log.h"
#include "store/postgres/answer_row.h"

namespace ceems::store::postgres {
namespace {

std::string name_of(WriterStatement statement) {
  return fmt::format("w{}", static_cast<std::size_t>(statement));
}

// With fewer rows, a COPY is not worthwhile.
constexpr std::size_t kFewestToCopy = 8;

bool can_copy(std::span<const WriterCall> calls) {
  return calls.size() >= kFewestToCopy && !insert_target(calls.front().statement).empty() &&
         std::ranges::all_of(calls, [&calls](const WriterCall& call) {
           return call.statement == calls.front().statement;
         });
}

std::vector<const WriterCall*> pointers(std::span<const WriterCall> calls) {
  std::vector<const WriterCall*> result;
  result.reserve(calls.size());
  for (const WriterCall& call : calls) {
    result.push_back(&call);
  }
  return result;
}

}  // namespace

Result<> PgSession::connect() {
  CEEMS_TRY(ready());
  if (connection_ && connection_->alive()) {
    return {};
  }
  connection_.reset();
  prepared_ = {};
  CEEMS_TRY(connection, connector_->connect());
  connection_ = std::make_unique<Connection>(std::move(connection));
  // All statements of the writer can use an index. A plan made while a table is new and empty would
  // scan the whole table each time until there are statistics, which takes minutes for the first
  // window.
  return connection_->execute("SET enable_seqscan = off");
}

/// A connection that is lost within a transaction is not reopened, because what the transaction has
/// done so far is lost too.
Result<> PgSession::still_there() const {
  if (connection_ && connection_->alive()) {
    return {};
  }
  return fail(ErrorCode::kUnavailable, "database {}: the connection was lost", connector_->name());
}

Result<> PgSession::begin() {
  CEEMS_TRY(ready());
  // A connection that broke while it was idle fails at the first statement.
  for (int attempt = 0;; ++attempt) {
    auto term = coordinator_->term();
    if (!term) {
      CEEMS_TRY(leads, coordinator_->lead());
      term = leads;
    }
    if (!term) {
      return fail(ErrorCode::kUnavailable, "database {}: another program leads",
                  connector_->name());
    }
    roll_back();  // a transaction that an earlier failure left open; closes a connection that fails
    CEEMS_TRY(connect());
    auto done = start_transaction(*term);
    if (done || attempt > 0 || connection_->alive()) {
      return done;
    }
  }
}

Result<> PgSession::start_transaction(std::int64_t term) {
  // The lock comes first, so that later statements see what the previous writer has committed.
  CEEMS_TRY(connection_->execute(fmt::format(
      "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT pg_advisory_xact_lock({})",
      kWriterLock)));
  CEEMS_TRY(stored, connection_->query("SELECT term FROM ceems_leader"));
  if (stored.rows() != 1 || stored.integer(0, 0) != term) {
    return fail(ErrorCode::kUnavailable, "database {}: another program leads since",
                connector_->name());
  }
  in_transaction_ = true;
  return {};
}

Result<> PgSession::commit() {
  CEEMS_TRY(still_there());
  auto done = connection_->execute(leaves_usage()
                                       ? fmt::format("NOTIFY ceems_commit, '{}'; COMMIT", kNoUsage)
                                       : "NOTIFY ceems_commit; COMMIT");
  in_transaction_ = !done;
  return done;
}

void PgSession::roll_back() {
  in_transaction_ = false;
  if (!connection_ || !connection_->alive() || connection_->idle()) {
    return;
  }
  if (PQpipelineStatus(connection_->handle()) != PQ_PIPELINE_OFF) {
    connection_.reset();  // the server rolls back
    return;
  }
  if (auto done = connection_->execute("ROLLBACK"); !done) {
    connection_.reset();
  }
}

Result<> PgSession::prepare(std::span<const WriterCall> calls) {
  for (const WriterCall& call : calls) {
    bool& prepared = prepared_.at(static_cast<std::size_t>(call.statement));
    if (prepared) {
      continue;
    }
    CEEMS_TRY(connection_->prepare(name_of(call.statement), statement_text(call.statement),
                                   Parameters(call.values)));
    prepared = true;
  }
  return {};
}

bool PgSession::send(const WriterCall& call) {
  const Parameters parameters(call.values);
  return PQsendQueryPrepared(connection_->handle(), name_of(call.statement).c_str(),
                             parameters.count(), parameters.values(), nullptr, nullptr, 0) == 1;
}

PgSession::Failure PgSession::broken() {
  Failure failure{.error = connection_->error({}), .row_only = false};
  connection_.reset();
  return failure;
}

std::optional<PgSession::Failure> PgSession::copy(std::span<const WriterCall* const> calls,
                                                  bool savepoint) {
  constexpr std::size_t kBytesAtOnce = 65'536;
  pg_conn* handle = connection_->handle();
  const std::string sql =
      fmt::format("{}COPY {} FROM STDIN{}", savepoint ? "SAVEPOINT one; " : "",
                  insert_target(calls.front()->statement), savepoint ? "; RELEASE one" : "");
  const Answer begun(PQexec(handle, sql.c_str()));
  if (PQresultStatus(begun.handle()) != PGRES_COPY_IN) {
    return connection_->alive() ? Failure{.error = connection_->error(begun), .row_only = false}
                                : broken();
  }
  std::string lines;
  const auto put = [handle, &lines] {
    const bool sent = PQputCopyData(handle, lines.data(), static_cast<int>(lines.size())) == 1;
    lines.clear();
    return sent;
  };
  for (const WriterCall* call : calls) {
    append_copy_line(lines, call->values);
    if (lines.size() >= kBytesAtOnce && !put()) {
      return broken();
    }
  }
  if (!put() || PQputCopyEnd(handle, nullptr) != 1) {
    return broken();
  }
  std::optional<Failure> failure;
  while (const Answer answer{PQgetResult(handle)}) {
    if (PQresultStatus(answer.handle()) != PGRES_COMMAND_OK && !failure) {
      failure = Failure{.error = connection_->error(answer), .row_only = row_error(answer)};
    }
    if (!connection_->alive()) {
      return broken();
    }
  }
  return failure;
}

std::optional<PgSession::Failure> PgSession::pipeline(std::span<const WriterCall> calls,
                                                      const OnRow& on_row,
                                                      bool savepoint) {
  pg_conn* handle = connection_->handle();
  bool sent = PQenterPipelineMode(handle) == 1;
  const auto send_text = [handle](const char* sql) {
    return PQsendQueryParams(handle, sql, 0, nullptr, nullptr, nullptr, nullptr, 0) == 1;
  };
  sent = sent && (!savepoint || send_text("SAVEPOINT one"));
  for (std::size_t i = 0; i < calls.size() && sent; ++i) {
    sent = send(calls[i]);
  }
  sent = sent && (!savepoint || send_text("RELEASE one")) && PQpipelineSync(handle) == 1;
  if (!sent) {
    return broken();
  }
  std::optional<Failure> failure;
  const std::size_t before = savepoint ? 1 : 0;
  for (std::size_t i = 0; i < calls.size() + 2 * before; ++i) {
    while (const Answer answer{PQgetResult(handle)}) {
      const ExecStatusType status = PQresultStatus(answer.handle());
      if (status == PGRES_FATAL_ERROR && !failure) {
        failure = Failure{.error = connection_->error(answer), .row_only = row_error(answer)};
      }
      if (!connection_->alive()) {
        return broken();
      }
      for (int row = 0; status == PGRES_TUPLES_OK && on_row && row < answer.rows(); ++row) {
        on_row(i - before, Row(answer, row));
      }
    }
  }
  const Answer end(PQgetResult(handle));
  if (!end || PQresultStatus(end.handle()) != PGRES_PIPELINE_SYNC ||
      PQexitPipelineMode(handle) != 1) {
    return broken();
  }
  return failure;
}

Result<> PgSession::run(std::span<const WriterCall> calls, const OnRow& on_row) {
  if (calls.empty()) {
    return {};
  }
  const bool alone = !in_transaction_;
  // A connection that broke while it was idle fails at the first statement.
  for (int attempt = 0;; ++attempt) {
    auto done = alone ? connect() : still_there();
    const bool copies = done && can_copy(calls);
    if (done && !copies) {
      done = prepare(calls);
    }
    if (done) {
      if (auto failure = copies ? copy(pointers(calls), false) : pipeline(calls, on_row, false);
          failure) {
        done = fail(std::move(failure->error));
      }
    }
    if (done || !alone || attempt > 0 || (connection_ && connection_->alive())) {
      return done;
    }
  }
}

Result<> PgSession::copy_groups(std::span<const std::vector<WriterCall>> all,
                                std::vector<std::size_t>& groups) {
  std::map<WriterStatement, std::vector<std::size_t>> copies;
  std::vector<std::size_t> others;
  for (const std::size_t group : groups) {
    const bool insert =
        all[group].size() == 1 && !insert_target(all[group].front().statement).empty();
    (insert ? copies[all[group].front().statement] : others).push_back(group);
  }
  for (const auto& [statement, inserts] : copies) {
    std::vector<const WriterCall*> calls;
    calls.reserve(inserts.size());
    for (const std::size_t group : inserts) {
      calls.push_back(all[group].data());
    }
    if (calls.size() >= kFewestToCopy) {
      auto failure = copy(calls, true);
      if (!failure) {
        continue;
      }
      if (!failure->row_only) {
        return fail(std::move(failure->error));
      }
      CEEMS_TRY(undo());
    }
    others.insert(others.end(), inserts.begin(), inserts.end());
  }
  groups = std::move(others);
  return {};
}

Result<std::vector<std::optional<Error>>> PgSession::run_groups(
    std::span<const std::vector<WriterCall>> groups) {
  std::vector<std::optional<Error>> refused(groups.size());
  std::vector<std::size_t> rest;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!groups[i].empty()) {
      rest.push_back(i);
    }
  }
  auto ready = still_there();
  if (ready) {
    ready = copy_groups(groups, rest);
  }
  std::vector<WriterCall> together;
  for (const std::size_t i : rest) {
    together.insert(together.end(), groups[i].begin(), groups[i].end());
  }
  if (ready) {
    ready = prepare(together);
  }
  if (!ready) {
    return fail(std::move(ready).error());
  }
  if (together.empty()) {
    return refused;
  }
  auto failure = pipeline(together, {}, true);
  if (!failure) {
    return refused;
  }
  if (!failure->row_only) {
    return fail(std::move(failure->error));
  }
  CEEMS_TRY(undo());
  // One of them was rejected, so each is run separately.
  for (const std::size_t i : rest) {
    failure = pipeline(groups[i], {}, true);
    if (!failure) {
      continue;
    }
    if (!failure->row_only) {
      return fail(std::move(failure->error));
    }
    CEEMS_TRY(undo());
    refused[i] = std::move(failure->error);
  }
  return refused;
}

Result<> PgSession::run(const Sql& sql, const OnRow& on_row) {
  CEEMS_TRY(in_transaction_ ? still_there() : connect());
  CEEMS_TRY(answer, connection_->query(sql.text(), sql.values()));
  for (int row = 0; on_row && row < answer.rows(); ++row) {
    on_row(0, Row(answer, row));
  }
  return {};
}

}  // namespace ceems::store::postgres
