#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "exporter/emissions/provider.h"
#include "net/client/client.h"

namespace ceems::exporter::emissions {

/// The HTTP client of one emission service. Safe for concurrent use.
class Service {
 public:
  /// `base_variable` is the environment variable that replaces the base URL.
  static Result<std::shared_ptr<Service>> create(const ProviderContext& context,
                                                 const char* base_variable,
                                                 std::string base_url);

  /// Body of `base URL + path` if the status is 200. kPermissionDenied for 401 and 403,
  /// kUnavailable for others. Errors name the path without its query.
  Result<std::string> get(const std::string& path, const net::Headers& headers = {});
  /// Ends calls in progress and makes later ones fail. For shutdown.
  void cancel() { client_->cancel(); }

 private:
  Service(std::string base_url, std::unique_ptr<net::Client> client)
      : base_url_(std::move(base_url)), client_(std::move(client)) {}

  std::string base_url_;
  std::unique_ptr<net::Client> client_;
};

/// Parsers of the answers of emission services. Errors are kParse and say what was expected.
/// Numbers may be integers or fractions and must be finite.

/// A zone of Electricity Maps: its key and its label (country name and zone name, if they exist).
using Zone = std::pair<std::string, std::string>;
/// An object of zones by key. Members of other types are ignored. More than 2000 zones are an
/// error.
Result<std::vector<Zone>> parse_emaps_zones(std::string_view text);
/// The member `carbonIntensity`, in grams per kWh.
Result<double> parse_emaps_intensity(std::string_view text);

/// `taux_co2` of the first of `results`, in grams per kWh.
Result<double> parse_rte_intensity(std::string_view text);

/// The member `token`, which must not be empty and must be valid in an HTTP header.
Result<std::string> parse_watttime_token(std::string_view text);
/// `value` of the last of `data` in grams per kWh, converted from pounds per MWh. kNoData with the
/// warnings of the service if `data` is empty.
Result<double> parse_watttime_intensity(std::string_view text);

}  // namespace ceems::exporter::emissions
