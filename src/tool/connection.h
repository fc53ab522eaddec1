#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "base/result.h"
#include "config/flags.h"
#include "net/client/client.h"
#include "store/factory/open_database.h"
#include "tool/rules/discovery.h"
#include "tsdb/client.h"

namespace ceems::tool {

/// The flags --url and --http.config.file, or with a prefix --api.url and so on, and what they lead
/// to.
struct ServerFlags {
  std::string url;
  std::string http_config_file;

  void add(config::FlagSet& flags, std::string_view server, std::string_view prefix = {});
  /// The URL with a scheme and without a slash at its end. kInvalidArgument if it has a user as
  /// well as a file.
  [[nodiscard]] Result<std::string> address() const;
  /// The options that the file gives.
  [[nodiscard]] Result<net::ClientOptions> options() const;
  /// A client with these options.
  [[nodiscard]] Result<std::unique_ptr<net::Client>> client(std::chrono::seconds timeout) const;
};

/// The flags --start and --end.
struct RangeFlags {
  std::string start;
  std::string end;

  void add(config::FlagSet& flags);
  /// From three hours ago until now if the flags are empty.
  [[nodiscard]] Result<rules::TimeRange> range(const Clock& clock) const;
};

/// A client of the TSDB whose calls fail after two minutes in all.
class TsdbConnection {
 public:
  static Result<std::unique_ptr<TsdbConnection>> open(const ServerFlags& flags);
  tsdb::Client& client() { return *client_; }

 private:
  std::unique_ptr<tsdb::Client> client_;
  std::jthread deadline_;
};

/// How to read the database that --db names. kInvalidArgument for a file of another name.
Result<store::DatabaseOptions> database_options(const std::string& database,
                                                const std::string& password_file,
                                                std::string time_zone);

/// Seconds since 1970, with a fraction, or a time as in RFC 3339, in milliseconds.
Result<std::int64_t> parse_time(std::string_view text);

}  // namespace ceems::tool
