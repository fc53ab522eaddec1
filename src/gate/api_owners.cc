#include "gate/api_owners.h"

#include <algorithm>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "model/protocol.h"

namespace ceems::gate {
namespace {

namespace json = boost::json;

constexpr std::size_t kJsonDepth = 32;
/// Units that do not fit go into another request. Servers accept URLs of some 8 KiB.
constexpr std::size_t kMaxUrlBytes = 4096;
constexpr std::size_t kMaxPageRows = 5000;  // the limit of the API server
constexpr std::size_t kMaxPages = 20;       // an ID may have several rows, one for each life
/// Units that are verified one by one if the server counts rows (may_see_singly()).
constexpr std::size_t kMaxSingleRequests = 100;

std::unexpected<Error> missing_key(std::string_view key) {
  return fail(ErrorCode::kParse, "the API server sent a list without '{}'", key);
}

/// The objects of a list of the API, or of a page of one.
struct Page {
  std::vector<json::object> rows;
  bool whole = true;  ///< false: an element of the list was not an object
  std::string next;   ///< cursor of the next page; empty: there is none
};

Result<Page> parse_page(const net::ClientResponse& response) {
  if (response.status != 200) {
    constexpr int kUnauthorized = 401;
    return fail(ErrorCode::kUnavailable, "the API server answered with status {}{}",
                response.status,
                response.status == kUnauthorized
                    ? "; set ceems_api_server.identity.service_account in both programs"
                    : "");
  }
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = kJsonDepth;
  json::value document = json::parse(response.body, error, {}, options);
  auto* const object = error ? nullptr : document.if_object();
  const json::value* const status = object == nullptr ? nullptr : object->if_contains("status");
  json::value* const data = object == nullptr ? nullptr : object->if_contains("data");
  const bool is_error = status != nullptr && status->is_string() && status->get_string() == "error";
  if (is_error || data == nullptr || !data->is_array()) {
    return fail(ErrorCode::kParse, "the API server did not send a list");
  }
  Page page;
  for (json::value& entry : data->get_array()) {
    if (auto* const row = entry.if_object()) {
      page.rows.push_back(std::move(*row));
    } else {
      page.whole = false;
    }
  }
  if (const json::value* const next = object->if_contains("next"); next && next->is_string()) {
    page.next = next->get_string();
  }
  return page;
}

Result<std::string> text_of(const json::object& row, std::string_view key) {
  const json::value* const value = row.if_contains(key);
  if (value == nullptr || !value->is_string()) {
    return missing_key(key);
  }
  return std::string(value->get_string());
}

/// A missing time is 0.
Result<std::int64_t> time_of_row(const json::object& row, std::string_view key) {
  const json::value* const value = row.if_contains(key);
  if (value != nullptr && !value->is_int64()) {
    return missing_key(key);
  }
  return value == nullptr ? 0 : value->get_int64();
}

/// A unit is in scope if it is the user's own or of one of the projects.
Result<store::UnitLife> life_of(const json::object& row,
                                const std::string& user,
                                const std::vector<std::string>& projects) {
  auto uuid = text_of(row, "uuid");
  const auto owner = text_of(row, "username");
  const auto project = text_of(row, "project");
  const auto created = time_of_row(row, "created_at_ts");
  const auto started = time_of_row(row, "started_at_ts");
  const auto ended = time_of_row(row, "ended_at_ts");
  if (!uuid || !owner || !project || !created || !started || !ended) {
    return missing_key("uuid, username, project and times of units");
  }
  return store::UnitLife{
      .uuid = std::move(*uuid),
      .in_scope = *owner == user || std::ranges::find(projects, *project) != projects.end(),
      .created_ms = *created,
      .started_ms = *started,
      .ended_ms = *ended};
}

net::Headers as_user(std::string_view user) {
  return {{std::string(model::kUserHeader), std::string(user)}};
}

net::Headers as_service(ServiceName service) {
  return service == ServiceName::kOmitted ? net::Headers() : as_user(model::kServiceAccount);
}

class ApiOwners final : public Owners {
 public:
  ApiOwners(std::string url, std::unique_ptr<net::Client> client, ServiceName service)
      : url_(std::move(url)), client_(std::move(client)), as_service_(as_service(service)) {}

  Result<bool> is_admin(const std::string& user) override {
    CEEMS_TRY(answer, ask(url_ + "/api/v1/users/admin?role=admin", as_service_));
    CEEMS_TRY(names, parse_names(answer, "name"));
    return std::ranges::find(names, user) != names.end();
  }

  Result<bool> may_see(const std::string& user,
                       const std::string& cluster,
                       const UnitSet& units) override {
    if (user.empty() || units.empty()) {
      return false;
    }
    const std::string begin = url_ + "/api/v1/units/verify?cluster_id=" + net::url_encode(cluster);
    std::string url = begin;
    std::size_t count = 0;  // of units in `url`
    for (auto unit = units.begin(); unit != units.end();) {
      url += "&uuid=" + net::url_encode(*unit);
      ++count;
      if (++unit == units.end() || url.size() > kMaxUrlBytes) {
        CEEMS_TRY(sees, verify(std::exchange(url, begin), user));
        if (!sees.all) {
          return false;
        }
        if (std::exchange(count, 0) > 1 && !sees.each) {
          return may_see_singly(begin, user, units);
        }
      }
    }
    return true;
  }

  Result<UnitSet> units_of(const std::string& user,
                           const std::string& cluster,
                           const promql::TimeSpan& alive,
                           std::size_t limit) override {
    UnitSet units;
    constexpr std::int64_t kMsPerSecond = 1000;
    const std::int64_t from = std::max<std::int64_t>(alive.from_ms, 0) / kMsPerSecond;
    CEEMS_TRY(for_each_row(fmt::format("units?field=uuid&field=started_at_ts&{}&limit={}",
                                       since(from, cluster), std::min(limit + 1, kMaxPageRows)),
                           as_user(user), [&](const json::object& row) -> Result<bool> {
                             CEEMS_TRY(uuid, text_of(row, "uuid"));
                             CEEMS_TRY(started, time_of_row(row, "started_at_ts"));
                             if (started <= alive.to_ms) {
                               units.insert(std::move(uuid));
                             }
                             return units.size() <= limit;
                           }));
    return units;
  }

  /// Only an admin may ask who else had an ID. Units that the server ignores are not listed.
  Result<SharedIds> shared_ids(const std::string& user,
                               const std::string& cluster,
                               const UnitSet& units) override {
    CEEMS_TRY(answer,
              ask(url_ + "/api/v1/projects?cluster_id=" + net::url_encode(cluster), as_user(user)));
    CEEMS_TRY(projects, parse_names(answer, "name"));
    std::vector<store::UnitLife> lives;
    const auto take = [&](const json::object& row) -> Result<bool> {
      CEEMS_TRY(life, life_of(row, user, projects));
      lives.push_back(std::move(life));
      return true;
    };
    const std::string begin =
        "units/"
        "admin?field=uuid&field=username&field=project&field=created_at_ts&field=started_at_ts"
        "&field=ended_at_ts&" +
        all_times(cluster) + fmt::format("&limit={}", kMaxPageRows);
    std::string path = begin;
    for (auto unit = units.begin(); unit != units.end();) {
      path += "&uuid=" + net::url_encode(*unit);
      if (++unit == units.end() || path.size() > kMaxUrlBytes) {
        CEEMS_TRY(for_each_row(std::exchange(path, begin), as_service_, take));
      }
    }
    return shared_ids_among(std::move(lives));
  }

 private:
  /// A question that breaks off is asked once more: of several servers behind one address, one may
  /// have ended. One that took too long is not.
  Result<net::ClientResponse> ask(const std::string& url, const net::Headers& caller) {
    constexpr int kBadGateway = 502;  // from a proxy whose server ended
    auto answer = client_->get(url, caller);
    const bool broken =
        answer ? answer->status == kBadGateway : answer.error().code == ErrorCode::kUnavailable;
    return broken ? client_->get(url, caller) : std::move(answer);
  }

  static std::string all_times(const std::string& cluster) { return since(0, cluster); }
  static std::string since(std::int64_t seconds, const std::string& cluster) {
    return fmt::format("running&from={}&to=9999999999&cluster_id={}", seconds,
                       net::url_encode(cluster));
  }

  /// Reads a list page by page. A server without paging sends all rows at once, and no `next`.
  /// `take` returns false when it has enough rows.
  template <typename Take>
  Result<> for_each_row(const std::string& path, const net::Headers& caller, const Take& take) {
    const std::string begin = url_ + "/api/v1/" + path;
    std::string url = begin;
    for (std::size_t pages = 0; pages < kMaxPages; ++pages) {
      CEEMS_TRY(answer, ask(url, caller));
      CEEMS_TRY(page, parse_page(answer));
      if (!page.whole) {
        return fail(ErrorCode::kParse,
                    "the API server sent a list with elements that are not objects");
      }
      for (const json::object& row : page.rows) {
        CEEMS_TRY(more, take(row));
        if (!more) {
          return {};
        }
      }
      if (page.next.empty()) {
        return {};
      }
      url = begin + "&cursor=" + net::url_encode(page.next);
    }
    return fail(ErrorCode::kUnavailable, "the API server has more than {} pages of units",
                kMaxPages);
  }

  /// The API server of CEEMS 0.10.2 compares the number of rows with the number of IDs. An ID with
  /// two lives has two rows and so would let another user's unit pass in the same request.
  Result<bool> may_see_singly(const std::string& begin,
                              const std::string& user,
                              const UnitSet& units) {
    if (units.size() > kMaxSingleRequests) {
      return fail(ErrorCode::kUnavailable,
                  "the API server is too old to verify more than {} units in one request",
                  kMaxSingleRequests);
    }
    for (const std::string& unit : units) {
      CEEMS_TRY(sees, verify(begin + "&uuid=" + net::url_encode(unit), user));
      if (!sees.all) {
        return false;
      }
    }
    return true;
  }

  struct Verdict {
    bool all;   ///< the user may see all units
    bool each;  ///< the server checked each unit separately
  };
  Result<Verdict> verify(const std::string& url, const std::string& user) {
    CEEMS_TRY(answer, ask(url, as_user(user)));
    if (answer.status == 200) {
      const std::string* const how = net::find_header(answer.headers, model::kVerifiedHeader);
      return Verdict{.all = true, .each = how != nullptr && *how == model::kVerifiedEach};
    }
    if (answer.status == 403) {
      return Verdict{.all = false, .each = false};
    }
    return fail(ErrorCode::kUnavailable, "the API server answered units/verify with status {}",
                answer.status);
  }

  std::string url_;
  std::unique_ptr<net::Client> client_;
  const net::Headers as_service_;
};

std::string without_slash(std::string url) {
  while (url.ends_with('/')) {
    url.pop_back();
  }
  return url;
}

}  // namespace

Result<std::unique_ptr<Owners>> api_owners(std::string url,
                                           net::ClientOptions options,
                                           ServiceName service) {
  CEEMS_TRY(client, net::Client::create(std::move(options)));
  return std::make_unique<ApiOwners>(without_slash(std::move(url)), std::move(client), service);
}

Result<std::vector<std::string>> api_clusters(const std::string& url,
                                              const net::ClientOptions& options,
                                              ServiceName service) {
  CEEMS_TRY(client, net::Client::create(options));
  CEEMS_TRY(answer,
            client->get(without_slash(url) + "/api/v1/clusters/admin", as_service(service)));
  return parse_names(answer, "id");
}

Result<std::vector<std::string>> parse_names(const net::ClientResponse& response,
                                             std::string_view key) {
  CEEMS_TRY(page, parse_page(response));
  std::vector<std::string> names;
  for (const json::object& row : page.rows) {
    if (auto name = text_of(row, key)) {
      names.push_back(std::move(*name));
    }
  }
  return names;
}

}  // namespace ceems::gate
