#include "ingest/manager/openstack/client.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "base/json.h"
#include "base/strings.h"

namespace ceems::ingest::openstack {
namespace {

using std::chrono::seconds;

constexpr std::size_t kMaxAnswerBytes = 64U << 20U;
// Small enough that a page stays below kMaxAnswerBytes even if each server has 64 KiB of user data.
constexpr std::string_view kPageSize = "500";
constexpr std::size_t kMaxPages = 400;
constexpr std::size_t kMaxFlavors = 20'000;
constexpr seconds kDefaultLifetime{55 * 60};  // Keystone's default is an hour
constexpr seconds kEarly{60};
constexpr std::size_t kMaxTokenBytes = 16384;

class HttpTransport final : public Transport {
 public:
  explicit HttpTransport(std::unique_ptr<net::Client> client) : client_(std::move(client)) {}
  Result<net::ClientResponse> get(const std::string& url, const net::Headers& headers) override {
    return client_->get(url, headers);
  }
  Result<net::ClientResponse> post(const std::string& url,
                                   const std::string& body,
                                   const net::Headers& headers) override {
    return client_->post(url, "application/json", body, headers);
  }
  void cancel() override { client_->cancel(); }

 private:
  std::unique_ptr<net::Client> client_;
};

std::string with_query(const std::string& url,
                       const std::vector<std::pair<std::string, std::string>>& query) {
  std::string full = url;
  char separator = '?';
  for (const auto& [name, value] : query) {
    full += separator;
    full += name + "=" + net::url_encode(value);
    separator = '&';
  }
  return full;
}

/// For messages: "https://host:5000/v3/users", without user info and query.
std::string shown(const std::string& url) {
  std::string text = url.substr(0, url.find('?'));
  const std::size_t host = text.find("://");
  const std::size_t path = host == std::string::npos ? host : text.find('/', host + 3);
  if (const std::size_t at = text.rfind('@', path);
      host != std::string::npos && at != std::string::npos && at > host) {
    text.erase(host + 3, at - host - 2);
  }
  return printable(text, 300);
}

Error status_error(std::string_view method,
                   const std::string& url,
                   const net::ClientResponse& answer) {
  ErrorCode code = ErrorCode::kUnavailable;
  if (answer.status == 401 || answer.status == 403) {
    code = ErrorCode::kPermissionDenied;
  } else if (answer.status == 404) {
    code = ErrorCode::kNotFound;
  }
  std::string text = fmt::format("{} {}: HTTP status {}", method, shown(url), answer.status);
  if (const std::string message = error_message(answer.body); !message.empty()) {
    text += ": " + message;
  }
  return {.code = code, .message = std::move(text)};
}

bool is_token(std::string_view text) {
  return !text.empty() && text.size() <= kMaxTokenBytes &&
         std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace

Result<std::unique_ptr<Transport>> http_transport(net::ClientOptions options,
                                                  std::chrono::milliseconds timeout) {
  options.follow_redirects = false;
  options.timeout = timeout;
  options.max_response_bytes = kMaxAnswerBytes;
  const bool versioned = std::ranges::any_of(options.headers, [](const auto& header) {
    const std::string name = to_lower(header.first);
    return name == "x-openstack-nova-api-version" || name == "openstack-api-version";
  });
  if (!versioned) {
    options.headers["X-OpenStack-Nova-API-Version"].values = {"latest"};
  }
  CEEMS_TRY(client, net::Client::create(std::move(options)));
  return std::make_unique<HttpTransport>(std::move(client));
}

Client::Client(Endpoints endpoints,
               std::string auth,
               std::unique_ptr<Transport> transport,
               const Clock& clock)
    : endpoints_(std::move(endpoints)),
      auth_(std::move(auth)),
      transport_(std::move(transport)),
      clock_(clock) {}

namespace {

std::string token_request(std::string_view auth) {
  std::string text;
  JsonWriter(text, JsonEscape::kPlain).begin_object().raw_member("auth", auth).end_object();
  return text;
}

}  // namespace

Result<Client::Token> Client::request_token() {
  const std::string url = endpoints_.identity + "/v3/auth/tokens";
  const auto asked_at = clock_.steady_now();
  CEEMS_TRY(answer, transport_->post(url, token_request(auth_), {}));
  if (answer.status != 201) {
    return fail(status_error("POST", url, answer));
  }
  const std::string* text = net::find_header(answer.headers, "X-Subject-Token");
  if (text == nullptr || !is_token(*text)) {
    return fail(ErrorCode::kParse, "POST {}: an answer without X-Subject-Token", shown(url));
  }
  const auto now_ms = clock_.now_ms();
  const auto stated = token_lifetime(answer.body, now_ms);
  const seconds lifetime = stated ? seconds(*stated) : kDefaultLifetime;
  // Renewed a little early, so that no token expires while a request is in flight.
  return Token{.text = *text, .good_until = asked_at + lifetime - std::min(kEarly, lifetime / 10)};
}

Result<std::string> Client::token() {
  // Held during the request, so that one thread requests the token and the others wait for it.
  const MutexLock lock(mutex_);
  if (token_.text.empty() || clock_.steady_now() >= token_.good_until) {
    CEEMS_TRY(fresh, request_token());
    token_ = std::move(fresh);
  }
  return token_.text;
}

void Client::forget(const std::string& token) {
  const MutexLock lock(mutex_);
  if (token_.text == token) {
    token_.text.clear();
  }
}

Result<std::string> Client::get(const std::string& url) {
  for (bool again = true;; again = false) {
    CEEMS_TRY(text, token());
    CEEMS_TRY(answer, transport_->get(url, {{"X-Auth-Token", text},
                                            {"Content-Type", "application/json"},
                                            {"Accept", "application/json"}}));
    if (answer.status == 200) {
      return std::move(answer.body);
    }
    if (answer.status != 401 || !again) {
      return fail(status_error("GET", url, answer));
    }
    forget(text);
  }
}

Result<> Client::get_pages(const std::string& url,
                           const Query& query,
                           const std::function<Result<std::string>(std::string_view)>& read) {
  std::set<std::string> seen;
  Query page = query;
  for (std::size_t count = 0; count < kMaxPages; ++count) {
    CEEMS_TRY(body, get(with_query(url, page)));
    CEEMS_TRY_IN("GET " + shown(url), marker, read(body));
    if (marker.empty()) {
      return {};
    }
    if (!seen.insert(marker).second) {
      return fail(ErrorCode::kUnavailable, "GET {}: pages go round in a circle", shown(url));
    }
    page = query;
    page.emplace_back("marker", marker);
  }
  return fail(ErrorCode::kUnavailable, "GET {}: more than {} pages", shown(url), kMaxPages);
}

Result<> Client::add_servers(const std::string& region,
                             const std::string& base,
                             const Query& query,
                             Servers& found,
                             std::map<std::string, std::size_t>& index) {
  return get_pages(base + "/servers/detail", query,
                   [&](std::string_view body) -> Result<std::string> {
                     CEEMS_TRY(page, parse_servers(body));
                     if (found.malformed == 0) {
                       found.first_problem = page.first_problem;
                     }
                     found.malformed += page.malformed;
                     for (auto& server : page.servers) {
                       server.region = region;
                       const auto [place, fresh] = index.emplace(server.id, found.servers.size());
                       if (fresh) {
                         found.servers.push_back(std::move(server));
                       } else {
                         found.servers[place->second] = std::move(server);
                       }
                     }
                     return std::move(page.next_marker);
                   });
}

void Client::add_flavors(const std::string& region, Servers& found) {
  const auto lacks = [&region](const Server& server) {
    return server.region == region && !server.flavor.detailed && !server.flavor.id.empty();
  };
  if (std::ranges::none_of(found.servers, lacks)) {
    return;
  }
  const auto listed = flavors(region);
  if (!listed) {
    found.flavor_problem = listed.error().message;
    return;
  }
  std::map<std::string_view, const Flavor*> by_id;
  for (const Flavor& flavor : *listed) {
    by_id.insert_or_assign(flavor.id, &flavor);
  }
  for (auto& server : found.servers) {
    if (const auto flavor = by_id.find(server.flavor.id); lacks(server) && flavor != by_id.end()) {
      server.flavor = *flavor->second;
    }
  }
}

Result<std::vector<Flavor>> Client::flavors(const std::string& region) {
  std::vector<Flavor> flavors;
  auto done =
      get_pages(endpoints_.compute.at(region) + "/flavors/detail",
                {{"is_public", "None"}, {"limit", std::string(kPageSize)}},
                [&flavors](std::string_view body) -> Result<std::string> {
                  CEEMS_TRY(page, parse_flavors(body));
                  if (flavors.size() + page.flavors.size() > kMaxFlavors) {
                    return fail(ErrorCode::kUnavailable, "more than {} flavors", kMaxFlavors);
                  }
                  std::ranges::move(page.flavors, std::back_inserter(flavors));
                  return std::move(page.next_marker);
                });
  return done ? Result<std::vector<Flavor>>(std::move(flavors)) : fail(std::move(done).error());
}

std::vector<std::string> Client::regions() const {
  std::vector<std::string> names;
  names.reserve(endpoints_.compute.size());
  for (const auto& [region, base] : endpoints_.compute) {
    names.push_back(region);
  }
  return names;
}

Result<Client::Servers> Client::servers(const std::string& since) {
  Servers found;
  std::map<std::string, std::size_t> index;
  const Query live{{"all_tenants", "true"}, {"limit", std::string(kPageSize)}};
  // Without changes-before: a server that was deleted after the window ended is no longer in the
  // list of live servers, but it did exist in the window.
  const Query deleted{{"all_tenants", "true"},
                      {"deleted", "true"},
                      {"changes-since", since},
                      {"limit", std::string(kPageSize)}};
  for (const auto& [region, base] : endpoints_.compute) {
    // Live servers first, so that a server deleted between the two requests is in at least one
    // answer.
    for (const Query* query : {&live, &deleted}) {
      CEEMS_TRY(add_servers(region, base, *query, found, index));
    }
    // Since microversion 2.69, Nova returns servers in a cell that is down with little more than
    // their id.
    const auto bare = std::ranges::count_if(found.servers, [](const Server& server) {
      return server.status == "UNKNOWN" && server.user_id.empty();
    });
    if (bare > 0) {
      return fail(ErrorCode::kUnavailable,
                  "GET {}/servers/detail: no details of {} servers, a cell of Nova is down",
                  shown(base), bare);
    }
    add_flavors(region, found);
  }
  return found;
}

Result<std::vector<Named>> Client::users() {
  std::vector<Named> users;
  CEEMS_TRY(get_pages(endpoints_.identity + "/v3/users", {},
                      [&users](std::string_view body) -> Result<std::string> {
                        CEEMS_TRY(page, parse_named(body, "users"));
                        std::ranges::move(page.items, std::back_inserter(users));
                        return std::move(page.next_marker);
                      }));
  return users;
}

Result<std::vector<Named>> Client::projects_of(const std::string& user_id) {
  std::vector<Named> projects;
  CEEMS_TRY(get_pages(endpoints_.identity + "/v3/users/" + net::url_encode(user_id) + "/projects",
                      {}, [&projects](std::string_view body) -> Result<std::string> {
                        CEEMS_TRY(page, parse_named(body, "projects"));
                        std::ranges::move(page.items, std::back_inserter(projects));
                        return std::move(page.next_marker);
                      }));
  return projects;
}

Result<Named> Client::find(std::string_view kind, const std::string& id) {
  const std::string url =
      fmt::format("{}/v3/{}s/{}", endpoints_.identity, kind, net::url_encode(id));
  CEEMS_TRY(body, get(url));
  CEEMS_TRY_IN("GET " + shown(url), found, parse_one_named(body, kind));
  return found;
}

}  // namespace ceems::ingest::openstack
