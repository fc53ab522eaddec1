#include "tool/connection.h"

#include <cmath>
#include <filesystem>
#include <stop_token>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "base/time/rfc3339.h"
#include "base/version.h"
#include "config/yaml.h"
#include "net/client/client_config.h"
#include "tool/db/tables.h"

namespace ceems::tool {
namespace {

constexpr std::chrono::minutes kDeadline{2};
constexpr std::chrono::hours kDefaultRange{3};
constexpr double kMaxSeconds = 1e11;  // far enough from the end of the range of milliseconds

bool has_user(std::string_view url) {
  const std::size_t begin = url.find("://");
  const std::string_view rest = url.substr(begin == std::string_view::npos ? 0 : begin + 3);
  return rest.substr(0, rest.find('/')).find('@') != std::string_view::npos;
}

}  // namespace

void ServerFlags::add(config::FlagSet& flags, std::string_view server, std::string_view prefix) {
  flags.add(fmt::format("{}url", prefix), url,
            {.help = fmt::format("URL of {}.", server), .placeholder = url.empty() ? "URL" : ""});
  flags.add(fmt::format("{}http.config.file", prefix), http_config_file,
            {.help = fmt::format("File with the password, TLS and headers for it, in the format of "
                                 "http_config of Prometheus."),
             .placeholder = "FILE"});
}

Result<std::string> ServerFlags::address() const {
  if (!http_config_file.empty() && has_user(url)) {
    return fail(ErrorCode::kInvalidArgument,
                "Cannot set base auth in the server URL and use a http.config.file at the same "
                "time");
  }
  std::string address = url.find("://") == std::string::npos ? "http://" + url : url;
  while (address.ends_with('/')) {
    address.pop_back();
  }
  return address;
}

Result<net::ClientOptions> ServerFlags::options() const {
  net::ClientOptions options;
  if (!http_config_file.empty()) {
    constexpr std::string_view kContext = "Failed to load HTTP config file";
    std::error_code ignored;
    if (!std::filesystem::exists(http_config_file, ignored)) {
      return fail(ErrorCode::kInvalidArgument, "path '{}' does not exist, try --help",
                  printable(http_config_file));
    }
    CEEMS_TRY_IN(kContext, document, config::load_yaml(http_config_file));
    CEEMS_TRY_IN(kContext, read,
                 net::client_options(
                     document, std::filesystem::path(config::directory_of(http_config_file)), {}));
    options = std::move(read);
  }
  options.user_agent = fmt::format("ceems_tool/{}", version().version);
  return options;
}

void RangeFlags::add(config::FlagSet& flags) {
  flags.add("start", start,
            {.help = "Begin of the time in which series are looked for: seconds since 1970, or a "
                     "time as in RFC 3339. The default is three hours ago.",
             .placeholder = "TIME"});
  flags.add("end", end, {.help = "End of that time. The default is now.", .placeholder = "TIME"});
}

Result<std::int64_t> parse_time(std::string_view text) {
  if (const auto seconds = parse_double(text)) {
    if (std::isfinite(*seconds) && std::abs(*seconds) < kMaxSeconds) {
      return std::llround(*seconds * 1000);
    }
  } else if (const auto time = parse_rfc3339_ms(text)) {
    return *time;
  }
  return fail(ErrorCode::kInvalidArgument, "cannot parse \"{}\" to a valid timestamp",
              printable(text, 60));
}

Result<rules::TimeRange> RangeFlags::range(const Clock& clock) const {
  constexpr std::string_view kContext = "error parsing start and/or end time(s)";
  const auto now = clock.now_ms();
  rules::TimeRange range{.start_ms = now - std::chrono::milliseconds(kDefaultRange).count(),
                         .end_ms = now};
  for (const auto& [text, target] :
       {std::pair(&start, &range.start_ms), std::pair(&end, &range.end_ms)}) {
    if (text->empty()) {
      continue;
    }
    CEEMS_TRY_IN(kContext, time, parse_time(*text));
    *target = time;
  }
  if (range.start_ms >= range.end_ms) {
    return fail(ErrorCode::kInvalidArgument, "{}: start time is not before end time", kContext);
  }
  return range;
}

Result<std::unique_ptr<net::Client>> ServerFlags::client(std::chrono::seconds timeout) const {
  CEEMS_TRY(read, options());
  read.timeout = timeout;
  read.connect_timeout = timeout;
  auto client = net::Client::create(std::move(read));
  if (!client) {
    return fail(
        std::move(client).error().with_context("Failed to create a new HTTP round tripper"));
  }
  return client;
}

Result<std::unique_ptr<TsdbConnection>> TsdbConnection::open(const ServerFlags& flags) {
  CEEMS_TRY(address, flags.address());
  CEEMS_TRY(options, flags.options());
  options.timeout = kDeadline;
  auto transport = tsdb::http_transport(std::move(options));
  if (!transport) {
    return fail(
        std::move(transport).error().with_context("Failed to create a new HTTP round tripper"));
  }
  auto connection = std::make_unique<TsdbConnection>();
  connection->client_ =
      std::make_unique<tsdb::Client>(std::move(address), std::move(*transport), real_clock());
  connection->deadline_ =
      std::jthread([client = connection->client_.get()](const std::stop_token& stop) {
        sleep_for(kDeadline, stop);
        if (!stop.stop_requested()) {
          client->cancel();
        }
      });
  return connection;
}

Result<store::DatabaseOptions> database_options(const std::string& database,
                                                const std::string& password_file,
                                                std::string time_zone) {
  CEEMS_TRY(location, db::Location::parse(database, password_file));
  store::DatabaseOptions options{.time_zone = std::move(time_zone),
                                 .url = location.url,
                                 .password_file = location.password_file};
  if (location.is_file()) {
    const std::filesystem::path path = location.file;
    if (path.filename() != store::kDatabaseFile) {
      return fail(ErrorCode::kInvalidArgument, "'{}' is not called {}", printable(location.file),
                  store::kDatabaseFile);
    }
    options.directory = path.has_parent_path() ? path.parent_path().string() : ".";
  }
  return options;
}

}  // namespace ceems::tool
