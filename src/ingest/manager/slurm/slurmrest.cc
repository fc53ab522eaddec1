#include "ingest/manager/slurm/slurmrest.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json_cutter.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "ingest/manager/slurm/slurmrest_answer.h"
#include "net/http.h"

namespace ceems::ingest {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// Tried in this order. Slurm 22.05 has v0.0.38, 25.05 has v0.0.43.
constexpr std::array<std::string_view, 6> kVersions = {"v0.0.43", "v0.0.42", "v0.0.41",
                                                       "v0.0.40", "v0.0.39", "v0.0.38"};
/// ESLURM_REST_EMPTY_RESULT: an empty list, which older versions report as an error.
constexpr std::int64_t kEmptyResult = 9003;

/// getpwnam_r and getgrnam_r differ only in their types.
template <typename Entry, typename Find, typename Number>
std::optional<std::int64_t> look_up(const std::string& name, Find find, Number number) {
  constexpr std::size_t kMaxBuffer = 1U << 20U;
  std::vector<char> buffer(4096);
  Entry entry{};
  Entry* found = nullptr;
  int error = find(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  while (error == ERANGE && buffer.size() < kMaxBuffer) {
    buffer.resize(buffer.size() * 4);
    error = find(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  }
  return error == 0 && found != nullptr ? std::optional<std::int64_t>(number(*found))
                                        : std::nullopt;
}

/// Caches the numbers of names, including names that have none.
class NumberCache {
 public:
  explicit NumberCache(std::function<std::optional<std::int64_t>(const std::string&)> find)
      : find_(std::move(find)) {}

  std::optional<std::int64_t> of(const std::string& name) {
    if (name.empty() || name.find('\0') != std::string::npos) {
      return std::nullopt;
    }
    const auto known = known_.find(name);
    return known != known_.end() ? known->second : known_.emplace(name, find_(name)).first->second;
  }
  void forget() { known_.clear(); }

 private:
  std::function<std::optional<std::int64_t>(const std::string&)> find_;
  std::map<std::string, std::optional<std::int64_t>> known_;
};

class SlurmRest final : public SlurmSource {
 public:
  SlurmRest(SlurmRestOptions options, RestGet get, AccountNumbers numbers)
      : options_(std::move(options)),
        get_(std::move(get)),
        version_(options_.version),
        uids_(std::move(numbers.uid_of_user)),
        gids_(std::move(numbers.gid_of_group)) {
    while (options_.url.ends_with('/')) {
      options_.url.pop_back();
    }
  }

  Result<> jobs(model::Window window, const JobSink& job, std::stop_token stop) override {
    uids_.forget();
    gids_.forget();
    std::set<std::pair<std::string, std::int64_t>> seen;
    const std::int64_t start = window.start_ms / 1000;
    const std::int64_t end = window.end_ms / 1000;
    const std::int64_t page = std::max<std::int64_t>(options_.page.count() / 1000, 1);
    const bool several = end - start > page;
    const JobSink once = [&seen, &job, several](const SlurmJob& found) {
      if (!several || seen.emplace(found.id, found.start_ms.value_or(0)).second) {
        job(found);
      }
    };
    std::int64_t from = start;
    do {
      const std::int64_t until = std::min(from + page, end);
      CEEMS_TRY(read_jobs({.from = from, .until = until, .id = {}}, once, stop));
      from = until;
    } while (from < end);
    return {};
  }

  /// One request per id, because slurmrestd 22.05 closes the connection when it gets a list.
  Result<> jobs_by_id(const std::vector<std::string>& ids,
                      const JobSink& job,
                      std::stop_token stop) override {
    for (const auto& id : ids) {
      CEEMS_TRY(read_jobs({.from = 0, .until = 0, .id = id}, job, stop));
    }
    return {};
  }

  Result<std::set<Membership>> associations(std::stop_token stop) override {
    std::set<Membership> found;
    bool any = false;
    CEEMS_TRY(read(
        "associations", "associations", {},
        [this, &found, &any](std::string_view json) -> Result<> {
          CEEMS_TRY(association, parse_rest_association(json));
          auto ours = is_ours(association.cluster);
          if (ours && *ours) {
            any = true;
            add_association(association.account, association.user, found);
          }
          return ours ? Result<>() : fail(std::move(ours).error());
        },
        stop));
    if (!any) {
      return no_associations("slurmrestd", options_.slurm_cluster);
    }
    return found;
  }

  Result<ProjectLeads> coordinators(std::stop_token stop) override {
    ProjectLeads found;
    bool any = false;
    auto done = read(
        "accounts", "accounts", {},
        [&](std::string_view json) -> Result<> {
          CEEMS_TRY(account, parse_rest_account(json));
          const std::string name = clean_text(account.name);
          any = any || !name.empty();
          for (const auto& user : account.coordinators) {
            found[name].push_back(clean_text(user));
          }
          return {};
        },
        stop);
    if (done && !any) {
      done = fail(ErrorCode::kNoData, "slurmrestd accounts: no accounts were listed");
    }
    if (!done) {
      return fail(std::move(done).error());
    }
    return found;
  }

 private:
  struct Which {
    std::int64_t from = 0;  ///< epoch seconds
    std::int64_t until = 0;
    std::string id;  ///< the job, instead of a time span
  };
  using Parameters = std::function<std::string(std::string_view version)>;
  using ElementSink = std::function<Result<>(std::string_view json)>;

  /// Before v0.0.40 slurmrestd passes times to SLURM's time parser, which reads "uts" and a number
  /// as an epoch, and it always lists repeated runs of a job.
  [[nodiscard]] std::string job_parameters(const Which& which, std::string_view version) const {
    const bool old = version == "v0.0.38" || version == "v0.0.39";
    std::string text = "skip_steps=true";
    if (!old) {
      text += "&show_duplicates=true&disable_truncate_usage_time=true";
    }
    if (which.id.empty()) {
      const char* unit = old ? "uts" : "";
      text += fmt::format("&start_time={}{}&end_time={}{}", unit, which.from, unit, which.until);
    } else {
      text += "&step=" + net::url_encode(which.id);
    }
    if (!options_.slurm_cluster.empty()) {
      text += "&cluster=" + net::url_encode(options_.slurm_cluster);
    }
    return text;
  }

  Result<> read_jobs(const Which& which, const JobSink& job, const std::stop_token& stop) {
    return read(
        "jobs", "jobs",
        [this, &which](std::string_view version) { return job_parameters(which, version); },
        [&](std::string_view json) -> Result<> {
          CEEMS_TRY(parsed, parse_rest_job(json));
          return take_job(std::move(parsed), job);
        },
        stop);
  }

  Result<> take_job(RestJob found, const JobSink& job) {
    CEEMS_TRY(ours, is_ours(found.cluster));
    if (!ours || found.waiting) {
      return {};
    }
    found.job.uid = uids_.of(found.job.user).value_or(0);
    found.job.gid = gids_.of(found.job.group).value_or(0);
    if (found.job.state == "CANCELLED") {
      if (const auto uid = uids_.of(found.killed_by)) {
        found.job.state += fmt::format(" by {}", *uid);
      }
    }
    job(found.job);
    return {};
  }

  /// Job ids are unique only within one cluster; jobs of two clusters would be mixed up.
  Result<bool> is_ours(const std::string& cluster) {
    if (!options_.slurm_cluster.empty()) {
      return cluster == options_.slurm_cluster;
    }
    if (only_cluster_.empty()) {
      only_cluster_ = cluster;
    }
    if (!cluster.empty() && cluster != only_cluster_) {
      return fail(ErrorCode::kInvalidArgument,
                  "slurmrestd lists jobs or users of the clusters '{}' and '{}': set "
                  "extra_config.slurm_cluster",
                  printable(only_cluster_, 40), printable(cluster, 40));
    }
    return true;
  }

  /// Passes each element of the list to `element`. Detects the version of the API.
  Result<> read(std::string_view endpoint,
                std::string_view list,
                const Parameters& parameters,
                const ElementSink& element,
                const std::stop_token& stop) {
    std::vector<std::string_view> versions(kVersions.begin(), kVersions.end());
    if (!version_.empty()) {
      versions = {version_};
    }
    for (const std::string_view version : versions) {
      const std::string query = parameters ? parameters(version) : std::string();
      CEEMS_TRY_IN(fmt::format("slurmrestd {}", endpoint), there,
                   exchange(fmt::format("{}/slurmdb/{}/{}{}{}", options_.url, version, endpoint,
                                        query.empty() ? "" : "?", query),
                            list, element, stop));
      if (there) {
        version_ = version;
        return {};
      }
    }
    Error missing{ErrorCode::kNotFound,
                  fmt::format("slurmrestd supports none of the versions {} of /slurmdb",
                              fmt::join(versions, ", "))};
    version_ = options_.version;  // after an upgrade the server may have another version
    return fail(std::move(missing));
  }

  /// Returns false if the path does not exist.
  Result<bool> exchange(const std::string& url,
                        std::string_view list,
                        const ElementSink& element,
                        const std::stop_token& stop) {
    std::vector<RestProblem> problems;
    JsonCutter cutter({std::string(list), "errors"},
                      [&](const JsonCutter::Element& found) -> Result<> {
                        if (found.member == list) {
                          return element(found.json);
                        }
                        constexpr std::size_t kMaxProblems = 16;
                        if (problems.size() < kMaxProblems) {
                          problems.push_back(parse_rest_problem(found.json));
                        }
                        return {};
                      });
    const auto deadline = SteadyClock::now() + options_.timeout;
    net::StreamTaker taker;
    taker.part = [&](std::string_view part) -> Result<> {
      if (SteadyClock::now() > deadline) {
        return fail(ErrorCode::kTimeout, "still running after {} ms", options_.timeout.count());
      }
      return cutter.add(part);
    };
    CEEMS_TRY(answer, get_(url, taker, stop));
    if (answer.status == 404) {
      return false;
    }
    if (answer.status < 200 || answer.status > 299) {
      // The body of an error has the same form, or is not JSON at all.
      const bool has_problems = cutter.add(answer.body) && !problems.empty();
      return fail(answer.status == 401 || answer.status == 403 ? ErrorCode::kPermissionDenied
                                                               : ErrorCode::kUnavailable,
                  "HTTP status {}: {}", answer.status,
                  has_problems ? problems.front().text : printable(trim(answer.body), 200));
    }
    const auto real = std::ranges::find_if(
        problems, [](const RestProblem& problem) { return problem.number != kEmptyResult; });
    if (real != problems.end()) {
      return fail(ErrorCode::kUnavailable, "{}", real->text);
    }
    CEEMS_TRY(cutter.finish());
    if (problems.empty() && !cutter.has_list(list)) {
      return fail(ErrorCode::kParse, "answer of slurmrestd: no list {}", list);
    }
    if (cutter.malformed() > 0 && cutter.taken() == 0) {
      return fail(ErrorCode::kParse, "{}", cutter.first_problem());
    }
    note_left_out(std::string(list), cutter);
    return true;
  }

  void note_left_out(const std::string& list, const JsonCutter& cutter) {
    if (cutter.malformed() > 0 && left_out_.insert(list).second) {
      log::warn(list + " of slurmrestd left out",
                {{list, cutter.malformed()}, {"first", cutter.first_problem()}});
    } else if (cutter.malformed() == 0 && left_out_.erase(list) > 0) {
      log::info(list + " of slurmrestd are all readable again");
    }
  }

  SlurmRestOptions options_;
  RestGet get_;
  std::string version_;  ///< empty: not detected yet
  NumberCache uids_;
  NumberCache gids_;
  std::string only_cluster_;
  std::set<std::string> left_out_;  ///< lists of which records were unreadable
};

}  // namespace

AccountNumbers system_accounts() {
  return {.uid_of_user =
              [](const std::string& name) {
                return look_up<passwd>(name, ::getpwnam_r,
                                       [](const passwd& entry) { return entry.pw_uid; });
              },
          .gid_of_group =
              [](const std::string& name) {
                return look_up<group>(name, ::getgrnam_r,
                                      [](const group& entry) { return entry.gr_gid; });
              }};
}

std::unique_ptr<SlurmSource> make_slurm_rest(SlurmRestOptions options,
                                             RestGet get,
                                             AccountNumbers numbers) {
  return std::make_unique<SlurmRest>(std::move(options), std::move(get), std::move(numbers));
}

Result<RestGet> rest_client(net::ClientOptions options,
                            std::chrono::milliseconds timeout,
                            const std::string& unix_socket) {
  options.unix_socket = unix_socket;
  options.timeout = timeout;
  auto client = net::Client::create(std::move(options));
  if (!client) {
    return fail(std::move(client).error());
  }
  return [client = std::shared_ptr<net::Client>(std::move(*client)), timeout](
             const std::string& url, const net::StreamTaker& taker, std::stop_token stop) {
    return client->stream(url, {}, timeout, taker, std::move(stop));
  };
}

}  // namespace ceems::ingest
