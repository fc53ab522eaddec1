#include "gate/api_owners.h"

#include <algorithm>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace ceems::gate {
namespace {

namespace json = boost::json;

constexpr std::string_view kServiceAccount = "ceems-int-svc";
constexpr std::size_t kJsonDepth = 32;
/// Units that do not fit are asked for in another request: servers take some 8 KiB.
constexpr std::size_t kLongUrl = 4096;
constexpr std::size_t kLongestPage = 5000;  // the server takes no more
constexpr std::size_t kMostPages = 20;      // a unit's id may fill several rows

/// A list of the API, or a page of one.
struct Page {
  std::vector<std::string> names;
  std::string next;  ///< cursor of the page behind it; empty: there is none
};
Result<Page> parse_page(const net::ClientResponse& response, std::string_view key);

net::Headers as_user(std::string_view user) {
  return {{"X-Grafana-User", std::string(user)}};
}

class ApiOwners final : public Owners {
 public:
  ApiOwners(std::string url, std::unique_ptr<net::Client> client)
      : url_(std::move(url)), client_(std::move(client)) {}

  Result<bool> is_admin(const std::string& user) override {
    const auto answer =
        client_->get(url_ + "/api/v1/users/admin?role=admin", as_user(kServiceAccount));
    if (!answer) {
      return fail(Error(answer.error()));
    }
    const auto names = parse_names(*answer, "name");
    if (!names) {
      return fail(Error(names.error()));
    }
    return std::ranges::find(*names, user) != names->end();
  }

  Result<bool> may_see(const std::string& user,
                       const std::string& cluster,
                       const UnitSet& units) override {
    if (user.empty() || units.empty()) {
      return false;
    }
    const std::string begin = url_ + "/api/v1/units/verify?cluster_id=" + net::url_encode(cluster);
    std::string url = begin;
    for (auto unit = units.begin(); unit != units.end();) {
      url += "&uuid=" + net::url_encode(*unit);
      if (++unit == units.end() || url.size() > kLongUrl) {
        auto sees = verify(std::exchange(url, begin), user);
        if (!sees || !*sees) {
          return sees;
        }
      }
    }
    return true;
  }

  Result<UnitSet> units_of(const std::string& user,
                           const std::string& cluster,
                           std::size_t most) override {
    // In pages, where the server has them; one that does not gives all rows, and no `next`.
    const std::string begin = fmt::format(
        "{}/api/v1/units?field=uuid&running&from=0&to=9999999999&cluster_id={}&limit={}", url_,
        net::url_encode(cluster), std::min(most + 1, kLongestPage));
    UnitSet units;
    std::string url = begin;
    for (std::size_t pages = 0; pages < kMostPages; ++pages) {
      const auto answer = client_->get(url, as_user(user));
      if (!answer) {
        return fail(Error(answer.error()));
      }
      const auto page = parse_page(*answer, "uuid");
      if (!page) {
        return fail(Error(page.error()));
      }
      for (auto unit = page->names.begin(); unit != page->names.end() && units.size() <= most;
           ++unit) {
        units.insert(*unit);
      }
      if (units.size() > most || page->next.empty()) {
        return units;
      }
      url = begin + "&cursor=" + net::url_encode(page->next);
    }
    return fail(ErrorCode::kUnavailable, "the API server has more than {} pages of units",
                kMostPages);
  }

 private:
  Result<bool> verify(const std::string& url, const std::string& user) {
    const auto answer = client_->get(url, as_user(user));
    if (!answer) {
      return fail(Error(answer.error()));
    }
    if (answer->status == 200) {
      return true;
    }
    if (answer->status == 403) {
      return false;
    }
    return fail(ErrorCode::kUnavailable, "the API server answers {} to units/verify",
                answer->status);
  }

  std::string url_;
  std::unique_ptr<net::Client> client_;
};

std::string without_slash(std::string url) {
  while (url.ends_with('/')) {
    url.pop_back();
  }
  return url;
}

}  // namespace

Result<std::unique_ptr<Owners>> api_owners(std::string url, net::ClientOptions options) {
  auto client = net::Client::create(std::move(options));
  if (!client) {
    return fail(std::move(client).error());
  }
  return std::make_unique<ApiOwners>(without_slash(std::move(url)), std::move(*client));
}

Result<std::vector<std::string>> api_clusters(const std::string& url,
                                              const net::ClientOptions& options) {
  auto client = net::Client::create(options);
  if (!client) {
    return fail(std::move(client).error());
  }
  const auto answer =
      (*client)->get(without_slash(url) + "/api/v1/clusters/admin", as_user(kServiceAccount));
  if (!answer) {
    return fail(Error(answer.error()));
  }
  return parse_names(*answer, "id");
}

namespace {

Result<Page> parse_page(const net::ClientResponse& response, std::string_view key) {
  if (response.status != 200) {
    return fail(ErrorCode::kUnavailable, "the API server answers {}", response.status);
  }
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = kJsonDepth;
  const json::value document = json::parse(response.body, error, {}, options);
  const auto* const object = error ? nullptr : document.if_object();
  const json::value* const status = object == nullptr ? nullptr : object->if_contains("status");
  const json::value* const data = object == nullptr ? nullptr : object->if_contains("data");
  if (status == nullptr || data == nullptr || !status->is_string() || !data->is_array() ||
      status->get_string() != "success") {
    return fail(ErrorCode::kParse, "the API server answers what is no list");
  }
  Page page;
  for (const json::value& entry : data->get_array()) {
    const auto* const fields = entry.if_object();
    const json::value* const name = fields == nullptr ? nullptr : fields->if_contains(key);
    if (name == nullptr || !name->is_string()) {
      return fail(ErrorCode::kParse, "the API server answers a list without '{}'", key);
    }
    page.names.emplace_back(name->get_string());
  }
  const json::value* const next = object->if_contains("next");
  if (next != nullptr && next->is_string()) {
    page.next = next->get_string();
  }
  return page;
}

}  // namespace

Result<std::vector<std::string>> parse_names(const net::ClientResponse& response,
                                             std::string_view key) {
  auto page = parse_page(response, key);
  if (!page) {
    return fail(std::move(page).error());
  }
  return std::move(page->names);
}

}  // namespace ceems::gate
