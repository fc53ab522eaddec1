#include "exporter/emissions/service.h"

#include <algorithm>
#include <cmath>

#include <boost/json.hpp>

#include "base/strings.h"

namespace ceems::exporter::emissions {
namespace {

constexpr std::chrono::seconds kTimeout{30};
constexpr std::size_t kMaxResponse = std::size_t{4} << 20U;

namespace json = boost::json;

constexpr std::size_t kMaxZones = 2000;
constexpr std::size_t kMaxText = 256;
constexpr std::size_t kMaxToken = 8192;
constexpr double kGramsPerKwhOfPoundsPerMwh = 0.453592;

Result<json::value> parse(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse(json::string_view(text.data(), text.size()), error);
  if (error) {
    return fail(ErrorCode::kParse, "expected JSON: {}", error.message());
  }
  return value;
}

const json::value* member(const json::value* value, std::string_view name) {
  const json::object* object = value != nullptr ? value->if_object() : nullptr;
  return object != nullptr ? object->if_contains(json::string_view(name.data(), name.size()))
                           : nullptr;
}

const json::array* list(const json::value* value) {
  return value != nullptr ? value->if_array() : nullptr;
}

std::string_view text_of(const json::value* value) {
  const json::string* text = value != nullptr ? value->if_string() : nullptr;
  return text != nullptr ? std::string_view(text->data(), text->size()) : std::string_view();
}

Result<double> number(const json::value* value, std::string_view name) {
  boost::system::error_code error;
  const double result =
      value != nullptr && value->is_number() ? value->to_number<double>(error) : std::nan("");
  if (error || !std::isfinite(result)) {
    return fail(ErrorCode::kParse, "expected a number in '{}'", name);
  }
  return result;
}

}  // namespace

Result<std::shared_ptr<Service>> Service::create(const ProviderContext& context,
                                                 const char* base_variable,
                                                 std::string base_url) {
  if (auto other = context.environment(base_variable); other && !other->empty()) {
    base_url = *std::move(other);
  }
  while (base_url.ends_with('/')) {
    base_url.pop_back();
  }
  net::ClientOptions options;
  options.proxy_from_environment = true;
  options.timeout = kTimeout;
  options.max_response_bytes = kMaxResponse;
  options.user_agent = "ceems_exporter";
  CEEMS_TRY(client, net::Client::create(std::move(options)));
  return std::shared_ptr<Service>(new Service(std::move(base_url), std::move(client)));
}

Result<std::string> Service::get(const std::string& path, const net::Headers& headers) {
  CEEMS_TRY(answer, client_->get(base_url_ + path, headers));
  if (answer.status != 200) {
    const bool refused = answer.status == 401 || answer.status == 403;
    return fail(refused ? ErrorCode::kPermissionDenied : ErrorCode::kUnavailable,
                "GET {}: status {}", path.substr(0, path.find('?')), answer.status);
  }
  return std::move(answer.body);
}

Result<std::vector<Zone>> parse_emaps_zones(std::string_view text) {
  CEEMS_TRY(value, parse(text));
  const json::object* object = value.if_object();
  if (object == nullptr || object->size() > kMaxZones) {
    return fail(ErrorCode::kParse, "expected an object of at most {} zones", kMaxZones);
  }
  std::vector<Zone> zones;
  for (const auto& [key, zone] : *object) {
    if (!zone.is_object() || key.empty() || key.size() > kMaxText) {
      continue;
    }
    std::string label(text_of(member(&zone, "countryName")).substr(0, kMaxText));
    label.append(" ").append(text_of(member(&zone, "zoneName")).substr(0, kMaxText));
    zones.emplace_back(std::string(key.data(), key.size()), trim(label));
  }
  if (zones.empty()) {
    return fail(ErrorCode::kParse, "expected zones, got none");
  }
  return zones;
}

Result<double> parse_emaps_intensity(std::string_view text) {
  CEEMS_TRY(value, parse(text));
  return number(member(&value, "carbonIntensity"), "carbonIntensity");
}

Result<double> parse_rte_intensity(std::string_view text) {
  CEEMS_TRY(value, parse(text));
  const json::array* results = list(member(&value, "results"));
  if (results == nullptr || results->empty()) {
    return fail(ErrorCode::kParse, "expected a non-empty list 'results'");
  }
  return number(member(&results->front(), "taux_co2"), "taux_co2");
}

Result<std::string> parse_watttime_token(std::string_view text) {
  CEEMS_TRY(value, parse(text));
  const std::string_view token = text_of(member(&value, "token"));
  if (token.empty() || token.size() > kMaxToken ||
      !std::ranges::all_of(token, [](char c) { return c > ' ' && c < '\x7f'; })) {
    return fail(ErrorCode::kParse, "expected a string 'token'");
  }
  return std::string(token);
}

Result<double> parse_watttime_intensity(std::string_view text) {
  CEEMS_TRY(value, parse(text));
  const json::array* data = list(member(&value, "data"));
  if (data == nullptr) {
    return fail(ErrorCode::kParse, "expected a list 'data'");
  }
  if (data->empty()) {
    std::string warnings;
    if (const json::array* all = list(member(member(&value, "meta"), "warnings"))) {
      for (const json::value& warning : *all) {
        const std::string_view message = text_of(member(&warning, "message"));
        if (!message.empty() && warnings.size() < kMaxText) {
          warnings.append(warnings.empty() ? ": " : "; ").append(printable(message));
        }
      }
    }
    return fail(ErrorCode::kNoData, "no data for the region{}", warnings);
  }
  CEEMS_TRY(pounds, number(member(&data->back(), "value"), "value"));
  return pounds * kGramsPerKwhOfPoundsPerMwh;
}

}  // namespace ceems::exporter::emissions
