#include "exporter/redfish/reader.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "crypto/base64.h"
#include "exporter/ipmi/dcmi.h"
#include "metrics/desc.h"
#include "net/client/transfer.h"

namespace ceems::exporter::redfish {
namespace {

constexpr int kMaxRedirects = 5;
constexpr std::chrono::milliseconds kLogoutTimeout{2000};

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// Whether it is the same host, by the same protocol or by https instead of http.
bool is_same_host(const net::Url& from, const net::Url& to) {
  return from.origin() == to.origin() ||
         (from.host == to.host && from.scheme == "http" && to.scheme == "https");
}

Result<net::ClientResponse> check_status(net::ClientResponse response, std::string_view place) {
  switch (response.status) {
    case 200:
    case 201:
    case 202:
    case 204:
      return response;
    case 401:
    case 403:
      return fail(ErrorCode::kPermissionDenied, "{}: status {}", place, response.status);
    case 404:
      return fail(ErrorCode::kNotFound, "{}: status 404", place);
    default:
      return fail(ErrorCode::kInternal, "{}: status {}", place, response.status);
  }
}

using std::chrono::minutes;
using std::chrono::seconds;

constexpr const char* kRoot = "/redfish/v1/";
constexpr std::size_t kMaxSaid = 2000;  // of a message
constexpr seconds kEnergyPause{15};
constexpr seconds kFirstPause{5};
constexpr seconds kMaxPause{60};
constexpr seconds kFirstRefusalPause{60};
constexpr seconds kMaxRefusalPause{600};
constexpr minutes kListAgain{10};
constexpr minutes kListAgainSoon{1};
constexpr int kMaxSilences = 2;  // unanswered chassis after which the others are skipped

bool is_refusal(const Error& error) {
  return error.code == ErrorCode::kPermissionDenied;
}

/// Whether there was no answer at all. Further requests would probably take as long again.
bool is_silence(const Error& error) {
  return error.code == ErrorCode::kTimeout || error.code == ErrorCode::kUnavailable;
}

}  // namespace

Result<std::unique_ptr<Session>> Session::create(Config config) {
  CEEMS_TRY(net::parse_url(config.base_url()));
  net::ClientOptions options = config.http;
  options.follow_redirects = false;
  options.user_agent = "ceems_exporter";
  options.max_response_bytes = kMaxBody;
  options.timeout = config.timeout;
  options.connect_timeout = std::min(options.connect_timeout, config.timeout);
  CEEMS_TRY(client, net::Client::create(options));
  options.timeout = std::min(config.timeout, kLogoutTimeout);
  CEEMS_TRY(last_client, net::Client::create(options));
  return std::unique_ptr<Session>(
      new Session(std::move(config), std::move(client), std::move(last_client)));
}

Session::Session(Config config,
                 std::unique_ptr<net::Client> client,
                 std::unique_ptr<net::Client> last_client)
    : config_(std::move(config)),
      client_(std::move(client)),
      last_client_(std::move(last_client)) {}

Session::~Session() {
  log_out(*last_client_);
}

bool Session::wants_token() const {
  return config_.use_session_token && !config_.username.empty();
}

net::Headers Session::headers() const {
  net::Headers all{{"Accept", "application/json"}, {"X-Redfish-Url", config_.bmc_url()}};
  if (!token_.empty()) {
    all.emplace_back("X-Auth-Token", token_);
  }
  if (!config_.use_session_token && !config_.username.empty() && !config_.password.empty()) {
    all.emplace_back("Authorization",
                     "Basic " + crypto::base64_encode(config_.username + ":" + config_.password));
  }
  return all;
}

Result<net::ClientResponse> Session::send(bool post,
                                          const std::string& url,
                                          std::string_view body) {
  return post ? client_->post(url, "application/json", body, headers())
              : client_->get(url, headers());
}

Result<net::ClientResponse> Session::request(bool post,
                                             std::string_view path,
                                             std::string_view body) {
  const std::string place = printable(path, 300);
  std::string url = config_.base_url() + std::string(path);
  auto here = net::parse_url(url);
  if (!here) {
    return fail(std::move(here).error().with_context(place));
  }
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    CEEMS_TRY(response, send(post, url, body));
    const std::string* location = net::find_header(response.headers, "Location");
    if (!is_redirect(response.status) || location == nullptr || !config_.http.follow_redirects) {
      return check_status(std::move(response), place);
    }
    if (post && response.status <= 303) {
      return fail(ErrorCode::kInternal,
                  "{}: the login is redirected (status {}); correct the protocol "
                  "and port in the configuration",
                  place, response.status);
    }
    auto next = net::resolve_url(*here, *location);
    if (!next) {
      return fail(ErrorCode::kInternal, "{}: redirect to a {}", place, next.error().message);
    }
    if (!is_same_host(*here, *next)) {
      return fail(ErrorCode::kInternal, "{}: redirect to another host is not followed", place);
    }
    here = std::move(next);
    url = here->full;
  }
  return fail(ErrorCode::kInternal, "{}: more than {} redirects", place, kMaxRedirects);
}

Result<std::string> Session::get(std::string_view path) {
  CEEMS_TRY(response, request(false, path, {}));
  return std::move(response.body);
}

Result<> Session::log_in(std::string_view sessions) {
  log_out(*client_);
  const std::string body = boost::json::serialize(
      boost::json::object{{"UserName", config_.username}, {"Password", config_.password}});
  CEEMS_TRY_IN("login", response, request(true, sessions, body));
  const std::string* token = net::find_header(response.headers, "X-Auth-Token");
  if (token == nullptr || token->empty()) {
    return fail(ErrorCode::kInternal, "login: the answer has no X-Auth-Token");
  }
  token_ = *token;
  const std::string* location = net::find_header(response.headers, "Location");
  session_ = location == nullptr ? std::string() : link_path(*location);
  return {};
}

void Session::log_out(net::Client& client) {
  if (!token_.empty() && !session_.empty()) {
    // Best effort, because the service ends idle sessions itself.
    static_cast<void>(client.send_delete(config_.base_url() + session_, headers()).has_value());
  }
  token_.clear();
  session_.clear();
}

Result<std::string> find_bmc_address(ipmi::Port& port, std::chrono::milliseconds timeout) {
  CEEMS_TRY(answer, ipmi::Conversation(port).ask(ipmi::lan_address_request(), timeout));
  return ipmi::decode_lan_address(answer);
}

std::string bmc_name(const std::string& address, const NameOf& name_of) {
  const auto found = name_of(address);
  std::string name = found ? *found : std::string();
  while (name.ends_with('.')) {
    name.pop_back();
  }
  return name.empty() ? address : name;
}

Result<std::string> name_by_dns(const std::string& address) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  if (::inet_pton(AF_INET, address.c_str(), &place.sin_addr) != 1) {
    return fail(ErrorCode::kInvalidArgument, "expected an IPv4 address, got {}", address);
  }
  // The resolver's state belongs to this thread. Without these settings a silent server costs 10 s.
  if (::res_init() == 0) {
    _res.retrans = 1;
    _res.retry = 1;
  }
  std::array<char, NI_MAXHOST> name{};
  const int error = ::getnameinfo(reinterpret_cast<const sockaddr*>(&place), sizeof(place),
                                  name.data(), name.size(), nullptr, 0, NI_NAMEREQD);
  if (error != 0) {
    return fail(ErrorCode::kNotFound, "{}: {}", address, ::gai_strerror(error));
  }
  return std::string(name.data());
}

Reader::Reader(std::unique_ptr<Session> session, ReaderOptions options, const Clock& clock)
    : session_(std::move(session)), options_(std::move(options)), clock_(clock) {}

Result<Readings> Reader::read(const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] { session_->cancel(); });
  const auto now = clock_.steady_now();
  renewed_ = false;
  if (!connected_) {
    if (last_error_ && now < next_attempt_) {
      return fail(*last_error_);
    }
    if (auto done = connect(); !done) {
      back_off(done.error());
      return fail(std::move(done).error().with_context("connecting"));
    }
    connected_ = true;
  } else if (now - listed_ > kListAgain ||
             ((chassis_gone_ || chassis_.empty()) && now - listed_ > kListAgainSoon)) {
    if (auto done = list_chassis(root_.chassis); !done) {
      connected_ = false;  // also after a refused token, because connecting logs in
      return fail(std::move(done).error().with_context("listing chassis"));
    }
  }
  return read_all();
}

Result<> Reader::connect() {
  CEEMS_TRY(text, session_->get(kRoot));
  CEEMS_TRY_IN(kRoot, root, parse_service_root(text));
  root_ = std::move(root);
  if (session_->wants_token()) {
    if (root_.sessions.empty()) {
      return fail(ErrorCode::kParse, "{}: no link to the sessions, so login is not possible",
                  kRoot);
    }
    CEEMS_TRY(session_->log_in(root_.sessions));
  }
  return list_chassis(root_.chassis);
}

Result<> Reader::list_chassis(std::string_view collection) {
  std::vector<Known> found;
  std::set<std::string, std::less<>> seen;  // pages may form a cycle
  std::string page(collection);
  for (std::size_t pages = 0; !page.empty() && pages < kMaxPages; ++pages) {
    if (!seen.insert(page).second) {
      log::warn("the pages of the list of chassis form a cycle", {{"collector", "redfish"}});
      break;
    }
    CEEMS_TRY(text, session_->get(page));
    CEEMS_TRY_IN(printable(page, 300), members, parse_collection(text));
    for (const std::string& link : members.members) {
      if (found.size() >= kMaxChassis) {
        log::warn("too many chassis; the rest is not read",
                  {{"collector", "redfish"}, {"limit", kMaxChassis}});
        break;
      }
      if (!seen.insert(link).second) {
        continue;
      }
      CEEMS_TRY(add_chassis(link, found));
    }
    page = found.size() >= kMaxChassis ? std::string() : std::move(members.next);
  }
  chassis_ = std::move(found);
  chassis_gone_ = false;
  listed_ = clock_.steady_now();
  return {};
}

/// A chassis that cannot be read is left out. A missing answer and a refused token are errors.
Result<> Reader::add_chassis(const std::string& link, std::vector<Known>& found) {
  const auto text = session_->get(link);
  if (!text) {
    if (is_silence(text.error()) || is_refusal(text.error())) {
      return fail(text.error());
    }
    log::debug("chassis left out", {{"collector", "redfish"}, {"err", text.error().message}});
    return {};
  }
  auto chassis = parse_chassis(*text, link);
  if (!chassis) {
    log::debug(
        "chassis left out",
        {{"collector", "redfish"}, {"chassis", printable(link)}, {"err", chassis.error().message}});
    return {};
  }
  if (chassis->power.empty() && chassis->environment.empty() && chassis->power_subsystem.empty() &&
      chassis->sensors.empty()) {
    return {};
  }
  const std::string stem = metrics::sanitize_name(chassis->id);
  std::string label = stem;
  const auto is_taken = [&](const Known& known) { return known.label == label; };
  for (int number = 2; std::ranges::any_of(found, is_taken); ++number) {
    label = fmt::format("{}_{}", stem, number);
  }
  ChassisReading last;
  bool was_read = false;
  std::optional<PowerPlace> place;
  EnergyScale scale;
  for (const Known& known : chassis_) {
    if (known.label == label) {
      last = known.last;
      was_read = known.was_read;
      place = known.place;
      scale = known.scale;
    }
  }
  found.push_back({.chassis = *std::move(chassis),
                   .label = std::move(label),
                   .last = std::move(last),
                   .was_read = was_read,
                   .place = place,
                   .scale = scale});
  return {};
}

Result<Readings> Reader::read_all() {
  std::size_t good = 0;
  int silences = 0;
  std::optional<Error> first;
  std::string nothing;  // of the chassis without power
  bool refused = false;
  for (Known& known : chassis_) {
    known.fresh = false;
  }
  for (Known& known : chassis_) {
    auto watts = read_power(known);
    if (watts) {
      known.last =
          ChassisReading{.label = known.label, .watts = *watts, .time = clock_.steady_now()};
      known.was_read = true;
      known.fresh = true;
      correct(known);
      ++good;
      continue;
    }
    if (watts.error().code == ErrorCode::kNoData) {
      known.was_read = false;  // the last reading would be served for minutes
      nothing += fmt::format("{}chassis {}: {}", nothing.empty() ? "" : "; ", known.label,
                             watts.error().message);
      continue;
    }
    chassis_gone_ = chassis_gone_ || watts.error().code == ErrorCode::kNotFound;
    refused = refused || is_refusal(watts.error());
    silences += is_silence(watts.error()) ? 1 : 0;
    if (!first) {
      first = std::move(watts).error().with_context("chassis " + known.label);
    }
    if (silences >= kMaxSilences) {
      break;
    }
  }
  if (good == 0 && first) {
    if (silences > 0 || refused) {
      connected_ = false;
      back_off(*first);
    }
    return fail(*std::move(first));
  }
  if (good == 0) {
    return fail(ErrorCode::kNoData, "the service reports no power: {}",
                nothing.empty() ? "no chassis has a resource for it" : nothing.substr(0, kMaxSaid));
  }
  pause_ = seconds(0);
  last_error_.reset();
  report_partial(first);
  return collect_readings();
}

/// Sets the power of the node's energy by the counter of energy, if the chassis has one.
void Reader::correct(Known& known) {
  std::optional<EnergyCounter> counter;
  const auto now = clock_.steady_now();
  if (may_fall_back(known) && now >= known.next_energy) {
    known.next_energy = now + kEnergyPause;
    counter = read_energy(known);
  }
  const double before = known.scale.factor();
  known.corrected_watts = known.scale.correct(known.last.watts.current, counter, known.last.time);
  if ((before == 1) != (known.scale.factor() == 1)) {
    log::info(before == 1 ? "power is scaled to the BMC's counter of energy"
                          : "power is not scaled to the BMC's counter of energy any more",
              {{"collector", "redfish"}, {"chassis", known.label}});
  }
}

/// Reads a resource and logs in again if the token is refused.
Result<std::string> Reader::get_renewing(const std::string& path) {
  auto text = session_->get(path);
  if (!text && is_refusal(text.error()) && session_->wants_token() && !renewed_ &&
      clock_.steady_now() >= next_renewal_) {
    renewed_ = true;
    CEEMS_TRY(renew());
    text = session_->get(path);
    if (!text && is_refusal(text.error())) {
      next_renewal_ = clock_.steady_now() + kMaxPause;  // a new token did not help
    }
  }
  return text;
}

Result<Watts> Reader::read_power(Known& known) {
  if (known.nothing && clock_.steady_now() < known.next_search) {
    return fail(*known.nothing);
  }
  if (known.place) {
    auto watts = read_place(known.chassis, *known.place);
    if (watts || watts.error().code != ErrorCode::kNoData) {
      return watts;
    }
  }
  auto watts = search_power(known);
  known.nothing.reset();
  if (!watts && watts.error().code == ErrorCode::kNoData) {
    known.nothing = watts.error();
    known.next_search = clock_.steady_now() + kListAgainSoon;
  }
  return watts;
}

/// Tries all places. A failure counts only if no other place has the power.
Result<Watts> Reader::search_power(Known& known) {
  constexpr std::array kPlaces{
      std::pair(PowerPlace::kPower, &Chassis::power),
      std::pair(PowerPlace::kEnvironment, &Chassis::environment),
      std::pair(PowerPlace::kSupplies, &Chassis::power_subsystem),
      std::pair(PowerPlace::kSensors, &Chassis::sensors),
  };
  known.place.reset();
  std::optional<Error> failure;
  std::string seen;
  for (const auto& [place, link] : kPlaces) {
    const std::string& path = known.chassis.*link;
    if (path.empty() || (place != PowerPlace::kPower && !may_fall_back(known))) {
      continue;
    }
    auto watts = read_place(known.chassis, place);
    if (watts) {
      known.place = place;
      return watts;
    }
    if (is_silence(watts.error()) || is_refusal(watts.error())) {
      return watts;
    }
    if (watts.error().code == ErrorCode::kNoData) {
      seen +=
          fmt::format("{}{}: {}", seen.empty() ? "" : "; ", printable(path), watts.error().message);
    } else if (!failure) {
      failure = std::move(watts).error();
    }
  }
  if (failure) {
    return fail(*std::move(failure));
  }
  return fail(ErrorCode::kNoData, "no power in {}", seen.empty() ? "any resource" : seen);
}

Result<> Reader::renew() {
  log::debug("the token was refused; logging in again", {{"collector", "redfish"}});
  return session_->log_in(root_.sessions);
}

void Reader::back_off(const Error& error) {
  const bool refused = is_refusal(error);
  const seconds min_pause = refused ? kFirstRefusalPause : kFirstPause;
  const seconds max_pause = refused ? kMaxRefusalPause : kMaxPause;
  pause_ = std::clamp(pause_ * 2, min_pause, max_pause);
  last_error_ = error;
  next_attempt_ = clock_.steady_now() + pause_;
}

/// Logs one line when some of the chassis cannot be read and one when all can be read again.
void Reader::report_partial(const std::optional<Error>& error) {
  if (error && !partial_) {
    log::error("some chassis cannot be read", {{"collector", "redfish"}, {"err", error->message}});
  } else if (!error && partial_) {
    log::info("all chassis can be read again", {{"collector", "redfish"}});
  }
  partial_ = error.has_value();
}

Readings Reader::collect_readings() {
  Readings readings;
  const auto now = clock_.steady_now();
  for (const Known& known : chassis_) {
    if (known.was_read && now - known.last.time <= options_.max_age) {
      readings.chassis.push_back(known.last);
    }
  }
  readings.node_watts = node_watts();
  return readings;
}

std::optional<double> Reader::node_watts() {
  double sum = 0;
  if (!options_.node_chassis.empty()) {
    for (const std::string& name : options_.node_chassis) {
      const auto known = std::ranges::find_if(chassis_, [&](const Known& candidate) {
        return candidate.chassis.id == name || candidate.label == name;
      });
      if (known == chassis_.end() || !known->fresh) {
        return std::nullopt;
      }
      sum += known->corrected_watts;
    }
    return sum > 0 ? std::optional(sum) : std::nullopt;
  }
  if (std::ranges::all_of(chassis_, [](const Known& k) { return k.fresh || k.nothing; })) {
    const Known* best = nullptr;
    for (const Known& known : chassis_) {
      const auto key = [](const Known& k) {
        return std::pair(k.chassis.has_system, k.last.watts.current);
      };
      if (known.fresh && known.last.watts.current > 0 &&
          (best == nullptr || key(known) > key(*best))) {
        best = &known;
      }
    }
    node_ = best == nullptr ? std::string() : best->label;
  }
  const auto chosen = std::ranges::find(chassis_, node_, &Known::label);
  return chosen != chassis_.end() && chosen->fresh && chosen->last.watts.current > 0
             ? std::optional(chosen->corrected_watts)
             : std::nullopt;
}

}  // namespace ceems::exporter::redfish
