#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "ingest/manager/slurm/slurm.h"
#include "net/client/client.h"

namespace ceems::ingest {

/// Sends a GET; the body of a 2xx goes to the taker, as net::Client::stream() does it.
using RestGet = std::function<Result<net::ClientResponse>(
    const std::string& url, const net::StreamTaker& taker, std::stop_token stop)>;

/// Numbers of user and group names on this machine; nothing for names it does not know.
struct AccountNumbers {
  std::function<std::optional<std::int64_t>(const std::string&)> uid_of_user;
  std::function<std::optional<std::int64_t>(const std::string&)> gid_of_group;
};
AccountNumbers system_accounts();  ///< getpwnam_r(3), getgrnam_r(3)

struct SlurmRestOptions {
  std::string url = {};                 ///< of slurmrestd, without the path
  std::string version = {};             ///< "v0.0.40"; empty: the newest known one that it has
  std::chrono::milliseconds timeout{};  ///< of one request
  std::chrono::milliseconds page{};     ///< longest time asked for at once
  std::string slurm_cluster = {};       ///< empty: answers may be about one cluster only
};

/// SLURM over slurmrestd's /slurmdb. Answers are read while they arrive. The API has no pages: a
/// long window is asked for in parts, and what shows up in several of them counts once.
std::unique_ptr<SlurmSource> make_slurm_rest(SlurmRestOptions options,
                                             RestGet get,
                                             AccountNumbers numbers);

/// The client for make_slurm_rest(), through a unix socket where one is named. Errors: those of
/// net::Client::create().
Result<RestGet> rest_client(net::ClientOptions options,
                            std::chrono::milliseconds timeout,
                            const std::string& unix_socket);

}  // namespace ceems::ingest
