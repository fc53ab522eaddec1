#include "ingest/grafana_admins.h"

#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "net/http.h"

namespace ceems::ingest {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxOrgsBytes = 8U << 20U;
constexpr std::size_t kMaxMembers = 20'000;
constexpr std::size_t kMaxLoginBytes = 255;

}  // namespace

Result<std::set<std::string>> parse_team_members(std::string_view text) {
  boost::system::error_code error;
  const json::value document = json::parse(json::string_view(text.data(), text.size()), error);
  const json::array* list = error ? nullptr : document.if_array();
  if (list == nullptr) {
    return fail(ErrorCode::kParse, "expected a JSON list of members");
  }
  if (list->size() > kMaxMembers) {
    return fail(ErrorCode::kParse, "more than {} members", kMaxMembers);
  }
  std::set<std::string> logins;
  for (const json::value& member : *list) {
    const json::object* object = member.if_object();
    const json::value* login = object != nullptr ? object->if_contains("login") : nullptr;
    if (login == nullptr || !login->is_string() || login->get_string().size() > kMaxLoginBytes) {
      return fail(ErrorCode::kParse, "a member without login");
    }
    std::string name = clean_text({login->get_string().data(), login->get_string().size()});
    if (!name.empty()) {
      logins.insert(std::move(name));
    }
  }
  return logins;
}

GrafanaAdmins::GrafanaAdmins(std::string url,
                             std::vector<std::string> teams,
                             Get get,
                             config::NameMap names)
    : url_(std::move(url)),
      teams_(std::move(teams)),
      get_(std::move(get)),
      names_(std::move(names)) {
  while (url_.ends_with('/')) {
    url_.pop_back();
  }
}

Result<std::set<std::string>> GrafanaAdmins::members(const std::string& team,
                                                     const std::stop_token& stop) const {
  CEEMS_TRY(answer,
            get_(fmt::format("{}/api/teams/{}/members", url_, net::url_encode(team)), stop));
  if (answer.status != 200) {
    return fail(ErrorCode::kUnavailable, "HTTP status {}", answer.status);
  }
  return parse_team_members(answer.body);
}

Result<AdminNames> GrafanaAdmins::fetch(const std::stop_token& stop) {
  Error first_error;
  std::string failed_team;
  for (const auto& team : teams_) {
    if (stop.stop_requested()) {
      return fail(ErrorCode::kUnavailable, "stopped");
    }
    auto found = members(team, stop);
    if (found) {
      members_.insert_or_assign(team, std::move(*found));
      continue;
    }
    if (failed_team.empty()) {
      failed_team = team;
      first_error = std::move(found).error().with_context("team " + printable(team, 64));
    }
  }
  const bool partial = !failed_team.empty();
  if (partial && members_.empty()) {
    return fail(std::move(first_error));
  }
  std::set<std::string> admins;
  for (const auto& [team, names] : members_) {
    for (const std::string& login : names) {
      admins.insert(names_.apply(login));
    }
  }
  if (partial && !partial_) {
    log::warn("cannot read a Grafana team; no administrator is removed",
              {{"err", first_error.message}});
  } else if (!partial && partial_) {
    log::info("all Grafana teams can be read again");
  }
  partial_ = partial;
  return AdminNames{.names = {admins.begin(), admins.end()}, .all = !partial};
}

Result<std::shared_ptr<AdminSource>> grafana_admins(const std::string& url,
                                                    std::vector<std::string> teams,
                                                    net::ClientOptions options,
                                                    config::NameMap names) {
  options.max_response_bytes = kMaxOrgsBytes;
  CEEMS_TRY_IN("admin.grafana", client, net::Client::create(std::move(options)));
  const std::shared_ptr<net::Client> shared = std::move(client);
  return std::make_shared<GrafanaAdmins>(
      url, std::move(teams),
      [shared](const std::string& address,
               const std::stop_token& stop) -> Result<net::ClientResponse> {
        const std::stop_callback cancel(stop, [&shared] { shared->cancel(); });
        return shared->get(address, {{"Content-Type", "application/json"}});
      },
      std::move(names));
}

}  // namespace ceems::ingest
