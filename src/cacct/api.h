#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cacct/output/answer.h"
#include "net/client/client.h"

namespace ceems::cacct {

/// What the API server is asked for.
struct Question {
  std::string cluster_id;
  std::vector<std::string> projects;
  std::vector<std::string> uuids;
  std::vector<std::string> users;  ///< other users; only admins may ask for them
  bool all_users = false;          ///< likewise
  std::int64_t from = 0;           ///< epoch seconds
  std::int64_t to = 0;
  std::vector<std::string> tags;  ///< members that the answer needs
};

/// Which reports the API server is asked for.
struct ReportQuestion {
  std::string cluster_id;
  std::vector<std::string> uuids;
  std::string format;
  std::string language;
  long width = 80;
  bool compare = false;
  bool so_far = false;
  bool all_findings = false;
  bool all_users = false;  ///< only admins may ask for the jobs of others
};

/// What `insight/TOPIC` is asked for.
struct InsightQuestion {
  std::string topic = {};
  std::string cluster_id = {};
  std::vector<std::string> projects = {};
  std::string month = {};
  std::string by = {};
  std::string uuid = {};
  std::string host = {};
  bool all_users = false;  ///< only admins may ask for what is of others
};

/// Which digest the API server is asked for. Empty texts are left out.
struct DigestQuestion {
  std::string cluster_id;
  std::string month;
  std::string project;
  std::string format;
  std::string language;
  long width = 80;
};

/// Which jobs units/list is asked for.
struct JobsQuestion {
  std::string cluster_id;
  std::vector<std::string> uuids;
  std::string user;        ///< only jobs of this user
  bool running = false;    ///< only running jobs, the last started first
  bool of_others = false;  ///< only admins may ask for the jobs of others
};

/// What units/series is asked for.
struct ChartsQuestion {
  std::string cluster_id;
  std::string uuid;
  std::string metrics;
  std::string by;
  std::int64_t from = 0;  ///< epoch seconds
  std::int64_t to = 0;
  std::size_t points = 2;
};

/// The API server as the caller sees it. Not thread-safe.
class Api {
 public:
  static constexpr std::chrono::milliseconds kTimeout{60'000};

  /// `user` is sent in `user_header` with every request, in place of any configured value. Without
  /// a name of the header, the credentials say who asks.
  static Result<Api> create(std::string url,
                            net::ClientOptions options,
                            const std::string& user_header,
                            const std::string& user,
                            std::chrono::milliseconds timeout = kTimeout);

  /// kPermissionDenied, with the wording of the reference, if the server refuses the caller
  /// (401, 403). Other errors name the URL without user information.
  /// The ID of an array or of a heterogeneous job means all of it.
  Result<std::vector<Record>> units(const Question& question);
  /// The sums by user and project.
  Result<std::vector<Record>> usage(const Question& question);
  /// A report, or the comparison of two, as the server wrote it. kNotFound if the caller sees no
  /// such job, kNoData if it still runs.
  Result<std::string> report(const ReportQuestion& question);
  /// The body of the answer of api/v1/gpus, or of that for admins.
  Result<std::string> gpus(const std::string& cluster_id, bool all_users);
  /// A digest as the server wrote it. kNotFound if the caller has no such project.
  Result<std::string> digest(const DigestQuestion& question);
  /// The answer as the server wrote it.
  Result<std::string> insight(const InsightQuestion& question);
  /// The answer of units/list with the columns of JobLine; at most 200 IDs can be asked for.
  Result<std::string> jobs(const JobsQuestion& question);
  /// The answer of units/series.
  Result<std::string> charts(const ChartsQuestion& question);
  /// The answer of units/check to a request in JSON.
  Result<std::string> check(const std::string& request);
  /// The answer of site.
  Result<std::string> site();

 private:
  /// The answer with its body as it was before compression.
  Result<net::ClientResponse> fetch(const std::string& url);
  Result<net::ClientResponse> unpacked(Result<net::ClientResponse> answer);
  /// The body of an answer with status 200 of a path below /api/v1/.
  Result<std::string> body_of(const std::string& path);
  Api(std::string url, std::unique_ptr<net::Client> client, net::Headers headers)
      : url_(std::move(url)), client_(std::move(client)), headers_(std::move(headers)) {}
  Result<std::vector<Record>> ask(std::string_view path,
                                  const Question& question,
                                  const std::vector<std::string>& more_tags);

  std::string url_;
  std::unique_ptr<net::Client> client_;
  net::Headers headers_;
};

}  // namespace ceems::cacct
