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

/// Sends a GET request. The body of a 2xx answer goes to the taker, as with net::Client::stream().
using RestGet = std::function<Result<net::ClientResponse>(
    const std::string& url, const net::StreamTaker& taker, std::stop_token stop)>;

/// Looks up numeric ids of user and group names on this machine; nothing for unknown names.
struct AccountNumbers {
  std::function<std::optional<std::int64_t>(const std::string&)> uid_of_user;
  std::function<std::optional<std::int64_t>(const std::string&)> gid_of_group;
};
AccountNumbers system_accounts();  ///< uses getpwnam_r(3), getgrnam_r(3)

struct SlurmRestOptions {
  std::string url = {};                 ///< base URL of slurmrestd, without the path
  std::string version = {};             ///< "v0.0.40"; empty: the newest known one it supports
  std::chrono::milliseconds timeout{};  ///< of one request
  std::chrono::milliseconds page{};     ///< longest time span requested at once
  std::string slurm_cluster = {};       ///< empty: answers must be about one cluster only
};

/// The jobs of SLURM from the /slurmdb API of slurmrestd. Answers are parsed while they arrive. The
/// API has no pages, so a long window is requested in parts, and a job that several parts list
/// counts once.
std::unique_ptr<SlurmSource> make_slurm_rest(SlurmRestOptions options,
                                             RestGet get,
                                             AccountNumbers numbers);

/// The client for make_slurm_rest(). It connects through a unix socket if one is given. Errors: any
/// of net::Client::create().
Result<RestGet> rest_client(net::ClientOptions options,
                            std::chrono::milliseconds timeout,
                            const std::string& unix_socket);

}  // namespace ceems::ingest
