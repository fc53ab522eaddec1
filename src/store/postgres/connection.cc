#include "store/postgres/connection.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include <libpq-fe.h>

#include "base/log.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "os/secret.h"

namespace ceems::store::postgres {
namespace {

// Object identifiers of types, fixed in PostgreSQL's pg_type.dat.
constexpr unsigned kBigInt = 20;
constexpr unsigned kText = 25;

constexpr auto kFirstPause = std::chrono::milliseconds(50);
constexpr auto kMaxPause = std::chrono::seconds(10);

// Settings of every session. The TCP timeouts end the leadership of a machine that has disappeared
// within a minute instead of hours. An idle transaction ends, so that it cannot keep the writers'
// lock. Statements are short, and compiling one takes longer than running it.
constexpr const char* kSessionSettings =
    "SET standard_conforming_strings = on; SET TimeZone = 'UTC'; SET jit = off;"
    "SET lock_timeout = '30s';"
    "SET idle_in_transaction_session_timeout = '5min'; SET tcp_keepalives_idle = 30;"
    "SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3; SET tcp_user_timeout = '60s'";

ErrorCode code_of(std::string_view state) {
  const std::string_view group = state.substr(0, std::min<std::size_t>(2, state.size()));
  if (state == "57014") {
    return ErrorCode::kTimeout;
  }
  if (group == "22" || group == "23" || group == "54") {
    return ErrorCode::kInvalidArgument;
  }
  if (group == "28" || state == "42501") {
    return ErrorCode::kPermissionDenied;
  }
  // Connection failures, rollbacks, lack of resources, operator intervention; a lock that is not
  // free; a read-only server.
  for (const std::string_view again : {"08", "40", "53", "57", "58"}) {
    if (group == again) {
      return ErrorCode::kUnavailable;
    }
  }
  return state == "55P03" || state == "25006" ? ErrorCode::kUnavailable : ErrorCode::kInternal;
}

std::string one_line(std::string_view text) {
  std::string result;
  for (const std::string_view line : split(text, '\n')) {
    if (!trim(line).empty()) {
      result += fmt::format("{}{}", result.empty() ? "" : "; ", printable(trim(line), 256));
    }
  }
  return result.empty() ? "connection lost" : result;
}

std::string_view field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? "" : text;
}

bool succeeded(const PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/// Returns host, port and database of a connection URI, for messages; nothing if it is not one.
std::optional<std::string> name_of(const std::string& url) {
  struct Free {
    void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
  };
  char* problem = nullptr;  // not reported, because it quotes parts of the URI
  const std::unique_ptr<PQconninfoOption, Free> options(PQconninfoParse(url.c_str(), &problem));
  PQfreemem(problem);
  if (!options) {
    return std::nullopt;
  }
  std::map<std::string_view, std::string_view> values;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-bounds-pointer-arithmetic): libpq's array ends with null
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val != nullptr) {
      values.emplace(option->keyword, option->val);
    }
  }
  const auto value = [&values](std::string_view key) {
    const auto found = values.find(key);
    return found == values.end() ? std::string() : printable(found->second);
  };
  const std::string host = value("host").empty() ? value("hostaddr") : value("host");
  const std::string port = value("port");
  const std::string database = value("dbname");
  // If a password contains a / or @ that is not written as %2F or %40, a part of it ends up here.
  const bool misread = host.find('@') != std::string::npos ||
                       database.find_first_of("@:/") != std::string::npos ||
                       port.find_first_not_of("0123456789,") != std::string::npos;
  if (misread) {
    return std::nullopt;
  }
  return fmt::format("postgresql://{}{}{}/{}", host, port.empty() ? "" : ":", port, database);
}

void log_notice(void* /*context*/, const char* message) {
  log::debug("database server", {{"message", one_line(message)}});
}

}  // namespace

void Answer::Clear::operator()(pg_result* result) const {
  PQclear(result);
}

std::string_view Answer::text(int row, std::size_t column) const {
  const int index = static_cast<int>(column);
  const int size = PQgetlength(result_.get(), row, index);
  return {PQgetvalue(result_.get(), row, index), static_cast<std::size_t>(size)};
}

std::int64_t Answer::integer(int row, std::size_t column) const {
  const std::string_view digits = text(row, column);
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

int Answer::rows() const {
  return PQntuples(result_.get());
}

Parameters::Parameters(const std::vector<SqlValue>& values) {
  texts_.reserve(values.size());
  for (const SqlValue& value : values) {
    if (const auto* text = std::get_if<std::string>(&value); text != nullptr) {
      texts_.push_back(clean_text(*text));
      types_.push_back(kText);
    } else {
      texts_.push_back(std::to_string(std::get<std::int64_t>(value)));
      types_.push_back(kBigInt);
    }
  }
  pointers_.reserve(texts_.size());
  for (const std::string& text : texts_) {
    pointers_.push_back(text.c_str());
  }
}

void append_copy_line(std::string& out, const std::vector<SqlValue>& values) {
  bool first = true;
  for (const SqlValue& value : values) {
    if (!first) {
      out += '\t';
    }
    first = false;
    if (const auto* number = std::get_if<std::int64_t>(&value); number != nullptr) {
      fmt::format_to(std::back_inserter(out), "{}", *number);
      continue;
    }
    const std::string text = clean_text(std::get<std::string>(value));
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t plain = static_cast<std::size_t>(
          std::ranges::find_if(rest, [](char c) { return c == '\\' || (c >= '\t' && c <= '\r'); }) -
          rest.begin());
      out += rest.substr(0, plain);
      rest.remove_prefix(plain);
      if (!rest.empty()) {
        const char c = rest.front();
        out += '\\';
        out += c == '\t' ? 't' : c == '\n' ? 'n' : c == '\r' ? 'r' : c;
        rest.remove_prefix(1);
      }
    }
  }
  out += '\n';
}

Connection::Connection(pg_conn* handle, std::string name)
    : handle_(handle), name_(std::move(name)) {}

void Connection::Finish::operator()(pg_conn* handle) const {
  PQfinish(handle);
}

bool Connection::alive() const {
  return handle_ != nullptr && PQstatus(handle_.get()) == CONNECTION_OK;
}

bool Connection::idle() const {
  return PQtransactionStatus(handle_.get()) == PQTRANS_IDLE;
}

Error Connection::error(const Answer& answer) const {
  const std::string_view state = answer ? field(answer.handle(), PG_DIAG_SQLSTATE) : "";
  const std::string_view primary = answer ? field(answer.handle(), PG_DIAG_MESSAGE_PRIMARY) : "";
  if (state.empty() || primary.empty()) {
    const char* text = handle_ == nullptr ? "" : PQerrorMessage(handle_.get());
    return {ErrorCode::kUnavailable, fmt::format("database {}: {}", name_, one_line(text))};
  }
  // Prepared statements that are not there, or are there already.
  const bool shared = state == "26000" || state == "42P05";
  return {code_of(state),
          fmt::format("database {}: {} ({}){}", name_, printable(primary, 256), state,
                      shared ? ": a connection pooler has to run with pool_mode = session" : "")};
}

bool row_error(const Answer& answer) {
  const std::string_view state = field(answer.handle(), PG_DIAG_SQLSTATE);
  return !state.empty() && code_of(state) == ErrorCode::kInvalidArgument;
}

Result<> Connection::execute(const std::string& sql) {
  const Answer answer(PQexec(handle_.get(), sql.c_str()));
  if (!succeeded(answer.handle())) {
    return fail(error(answer));
  }
  return {};
}

Result<Answer> Connection::query(std::string_view sql, const std::vector<SqlValue>& values) {
  const Parameters parameters(values);
  Answer answer(PQexecParams(handle_.get(), numbered(sql).c_str(), parameters.count(),
                             parameters.types(), parameters.values(), nullptr, nullptr, 0));
  if (!succeeded(answer.handle())) {
    return fail(error(answer));
  }
  return answer;
}

Result<> Connection::prepare(const std::string& name,
                             const std::string& sql,
                             const Parameters& parameters) {
  const Answer answer(PQprepare(handle_.get(), name.c_str(), numbered(sql).c_str(),
                                parameters.count(), parameters.types()));
  if (!succeeded(answer.handle())) {
    return fail(error(answer));
  }
  return {};
}

Result<> Connection::set_timeout(std::chrono::milliseconds limit) {
  if (limit == timeout_) {
    return {};
  }
  auto done = execute(fmt::format("SET statement_timeout = {}", limit.count()));
  if (done) {
    timeout_ = limit;
  }
  return done;
}

bool Connection::drop_received() {
  constexpr int kMaxRows = 1000;
  pg_conn* const handle = handle_.get();
  for (int i = 0; i < kMaxRows && alive() && PQconsumeInput(handle) == 1; ++i) {
    if (PQisBusy(handle) != 0) {
      return false;
    }
    if (!Answer(PQgetResult(handle))) {
      return true;
    }
  }
  return false;
}

void Connection::abandon() {
  if (alive()) {
    Canceller(*this).cancel();
  }
  handle_.reset();
}

void Canceller::Free::operator()(pg_cancel* cancel) const {
  PQfreeCancel(cancel);
}

Canceller::Canceller(const Connection& connection) : cancel_(PQgetCancel(connection.handle())) {}

void Canceller::cancel() const {
  std::array<char, 256> problem{};
  if (cancel_ && PQcancel(cancel_.get(), problem.data(), static_cast<int>(problem.size())) == 0) {
    log::debug("query not cancelled", {{"err", one_line(problem.data())}});
  }
}

Connector::Connector(std::string url, std::string password_file, std::string name)
    : url_(std::move(url)), password_file_(std::move(password_file)), name_(std::move(name)) {}

Result<std::unique_ptr<Connector>> Connector::create(std::string url, std::string password_file) {
  auto name = name_of(url);
  if (!name || !(url.starts_with("postgresql://") || url.starts_with("postgres://"))) {
    return fail(ErrorCode::kInvalidArgument,
                "the URL of the database is not a connection URI of PostgreSQL"
                " (postgresql://user@host:port/database; reserved characters as %XX)");
  }
  return std::unique_ptr<Connector>(
      new Connector(std::move(url), std::move(password_file), std::move(*name)));
}

Result<Connection> Connector::try_connect() const {
  std::string password;
  if (!password_file_.empty()) {
    CEEMS_TRY_IN("password of the database", read, os::read_secret({}, password_file_));
    password = std::move(read);
  }
  // The options before dbname are defaults that the URI may override; empty values have no effect.
  const std::array<std::pair<const char*, const char*>, 8> options{{
      {"fallback_application_name", "ceems_api_server"},
      {"connect_timeout", "10"},
      {"keepalives_idle", "30"},
      {"keepalives_interval", "10"},
      {"tcp_user_timeout", "60000"},
      {"dbname", url_.c_str()},
      {"password", password.empty() ? nullptr : password.c_str()},
      {"client_encoding", "UTF8"},
  }};
  std::array<const char*, options.size() + 1> names{};
  std::array<const char*, options.size() + 1> values{};
  for (std::size_t i = 0; i < options.size(); ++i) {
    names.at(i) = options.at(i).first;
    values.at(i) = options.at(i).second;
  }
  Connection connection(PQconnectdbParams(names.data(), values.data(), 1), name_);
  if (!connection.alive()) {
    return fail(connection.error({}));
  }
  PQsetNoticeProcessor(connection.handle(), log_notice, nullptr);
  CEEMS_TRY(connection.execute(kSessionSettings));
  return connection;
}

Result<Connection> Connector::connect() {
  {
    const MutexLock lock(mutex_);
    if (pause_.count() > 0 && std::chrono::steady_clock::now() < not_before_) {
      return fail(last_error_);
    }
  }
  auto connection = try_connect();  // takes seconds if the server does not answer
  const MutexLock lock(mutex_);
  if (connection) {
    pause_ = {};
  } else {
    pause_ = std::clamp<std::chrono::milliseconds>(pause_ * 2, kFirstPause, kMaxPause);
    not_before_ = std::chrono::steady_clock::now() + pause_;
    last_error_ = connection.error();
  }
  return connection;
}

}  // namespace ceems::store::postgres
