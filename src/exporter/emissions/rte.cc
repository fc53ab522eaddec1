#include <utility>

#include <fmt/format.h>

#include "exporter/emissions/service.h"

namespace ceems::exporter::emissions {
namespace {

constexpr std::string_view kRecords =
    "/api/explore/v2.1/catalog/datasets/eco2mix-national-tr/records";

/// The latest record since yesterday. A range that starts today would be empty after midnight.
std::string query(const Clock& clock) {
  const std::chrono::year_month_day day(
      std::chrono::floor<std::chrono::days>(clock.now() - std::chrono::days(1)));
  const std::string where =
      fmt::format("date_heure in [date'{:04}-{:02}-{:02}' TO now()] and taux_co2 is not null",
                  static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                  static_cast<unsigned>(day.day()));
  return fmt::format(
      "{}?select={}&order_by={}&offset=0&limit=1&timezone={}&include_links=false"
      "&include_app_metas=false&where={}",
      kRecords, net::url_encode("taux_co2,date_heure"), net::url_encode("date_heure desc"),
      net::url_encode("Europe/Paris"), net::url_encode(where));
}

}  // namespace

Result<Fetch> rte_fetch(const ProviderContext& context) {
  CEEMS_TRY(created, Service::create(context, "__RTE_BASE_URL",
                                     "https://reseaux-energies-rte.opendatasoft.com"));
  return Fetch([service = std::move(created),
                clock = context.clock](const std::stop_token& stop) -> Result<Factors> {
    const std::stop_callback cancel(stop, [&service] { service->cancel(); });
    auto text = service->get(query(*clock));
    CEEMS_TRY(value, text ? parse_rte_intensity(*text) : fail(std::move(text).error()));
    return Factors{{"FR", "France", value}};
  });
}

}  // namespace ceems::exporter::emissions
