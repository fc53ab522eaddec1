#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/strings.h"
#include "exporter/emissions/provider.h"
#include "tool/command.h"
#include "tool/connection.h"
#include "tool/rules/promql.h"

namespace ceems::tool {
namespace {

/// A factor that could apply, and where it comes from.
struct Candidate {
  std::string provider;  ///< as in the label
  std::string origin;    ///< for people
  double grams_per_kwh = 0;
  std::size_t exporters = 0;  ///< that export it; 0: built in
};

/// The row of the built-in table that counts for a country.
struct BuiltIn {
  double grams_per_kwh = 0;
  std::string country;
  std::string year;
  std::string source;
};

std::optional<BuiltIn> built_in(std::string_view code) {
  const auto factors =
      exporter::emissions::parse_country_table(exporter::emissions::kEmissionFactorsCsv);
  if (!factors) {
    return std::nullopt;
  }
  const auto factor = std::ranges::find(*factors, code, &exporter::emissions::Factor::code);
  if (factor == factors->end()) {
    return std::nullopt;
  }
  BuiltIn found{
      .grams_per_kwh = factor->grams_per_kwh, .country = factor->country, .year = {}, .source = {}};
  std::string_view rest = exporter::emissions::kEmissionFactorsCsv;
  while (!rest.empty()) {
    const auto cells = split(take_until(rest, '\n'), ';');
    constexpr std::size_t kCells = 6;
    if (cells.size() == kCells && cells[0] == code && cells[4] >= found.year) {
      found.year = cells[4];
      found.source = cells[5];
    }
  }
  return found;
}

class EmissionsCommand final : public Command {
 public:
  [[nodiscard]] std::string_view words() const override { return "emissions"; }
  [[nodiscard]] std::string_view help() const override {
    return "Show which emission factor applies to a country, and from whom it comes.";
  }
  void add_flags(config::FlagSet& flags) override {
    server_.add(flags, "Prometheus, to look for live factors");
    flags.add("country-code", country_,
              {.help = "ISO 3166-1 alpha-2 code of the country, or zone of a provider.",
               .placeholder = "CODE"});
    flags.add("json", json_, {.help = "Print the factors as JSON to stdout."});
  }
  Result<int> run(Console& console) override;

 private:
  Result<> add_live(std::vector<Candidate>& candidates) const;
  [[nodiscard]] std::string as_json(const std::vector<Candidate>& candidates) const;

  ServerFlags server_;
  std::string country_;
  bool json_ = false;
};

Result<> EmissionsCommand::add_live(std::vector<Candidate>& candidates) const {
  CEEMS_TRY(connection, TsdbConnection::open(server_));
  const auto now = real_clock().now_ms();
  CEEMS_TRY(answer,
            (connection)
                ->client()
                .query({.query = fmt::format("ceems_emissions_gCo2_kWh{{country_code=\"{}\"}}",
                                             rules::escaped(country_)),
                        .time_ms = now}));
  std::map<std::string, Candidate, std::less<>> by_provider;
  for (const tsdb::Series& series : answer.series) {
    const std::string provider(series.labels.get("provider"));
    Candidate& candidate = by_provider[provider];
    candidate.provider = provider;
    candidate.origin = printable(series.labels.get("provider_name"));
    candidate.grams_per_kwh = std::max(candidate.grams_per_kwh, series.samples.front().value);
    ++candidate.exporters;
  }
  for (auto& [provider, candidate] : by_provider) {
    candidates.push_back(std::move(candidate));
  }
  return {};
}

std::string EmissionsCommand::as_json(const std::vector<Candidate>& candidates) const {
  std::string out;
  JsonWriter json(out, JsonEscape::kPlain);
  json.begin_object().member("country_code", country_).key("factors").begin_array();
  const bool live = !candidates.empty() && candidates.front().exporters > 0;
  for (const Candidate& candidate : candidates) {
    json.begin_object()
        .member("provider", candidate.provider)
        .member("origin", candidate.origin)
        .member("grams_per_kwh", candidate.grams_per_kwh)
        .member("exporters", static_cast<std::int64_t>(candidate.exporters))
        .member("applies", !live || candidate.exporters > 0)
        .end_object();
  }
  json.end_array().end_object();
  return out;
}

Result<int> EmissionsCommand::run(Console& console) {
  if (country_.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "required flag --country-code not provided, try --help");
  }
  std::vector<Candidate> candidates;
  if (!server_.url.empty()) {
    CEEMS_TRY(add_live(candidates));
  }
  const bool live = !candidates.empty();
  if (const auto table = built_in(country_)) {
    candidates.push_back(
        {.provider = "owid",
         .origin = fmt::format("built-in table: {}, {}, source {}", table->country,
                               table->year.empty() ? "year unknown" : table->year, table->source),
         .grams_per_kwh = table->grams_per_kwh});
  }
  if (json_) {
    console.print(as_json(candidates) + "\n");
  } else {
    for (const Candidate& candidate : candidates) {
      const std::string state = candidate.exporters > 0
                                    ? fmt::format("live, from {} exporter(s)", candidate.exporters)
                                : live ? std::string("not used, because live factors exist")
                                       : std::string("used by recording rules");
      console.print(fmt::format("{:<8} {:>10.3f} g/kWh  {}  ({})\n", candidate.provider,
                                candidate.grams_per_kwh, candidate.origin, state));
    }
  }
  if (candidates.empty()) {
    console.say(fmt::format(
        "ceems_tool: error: no emission factor for country code '{}' is known; give a constant one "
        "with --emission-factor to 'tsdb create-recording-rules'",
        printable(country_, 20)));
    return 1;
  }
  return 0;
}

}  // namespace

std::unique_ptr<Command> emissions_command() {
  return std::make_unique<EmissionsCommand>();
}

}  // namespace ceems::tool
