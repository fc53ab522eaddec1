#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/strings.h"
#include "config/duration.h"
#include "exporter/emissions/provider.h"
#include "os/file.h"
#include "tool/command.h"
#include "tool/connection.h"
#include "tool/rules/groups.h"
#include "tool/rules/plan.h"
#include "tool/rules/render.h"
#include "tool/web/directory.h"

namespace ceems::tool {
namespace {

struct WrittenFile {
  std::string job;
  std::string name;
  std::size_t records = 0;
};

class RecordingRules final : public Command {
 public:
  RecordingRules() { server_.url = "http://localhost:9090"; }
  [[nodiscard]] std::string_view words() const override { return "tsdb create-recording-rules"; }
  [[nodiscard]] std::string_view help() const override {
    return "Write recording rules of Prometheus for the power, use and emissions of units, for the "
           "exporters that Prometheus scrapes.";
  }
  void add_flags(config::FlagSet& flags) override;
  Result<int> run(Console& console) override;

 private:
  [[nodiscard]] Result<> check_flags() const;
  Result<rules::Emissions> emissions(const rules::Site& site, Console& console) const;
  /// Decides for each host whether its meter includes its GPUs.
  Result<> decide_inclusion(tsdb::Client& client,
                            rules::TimeRange range,
                            rules::Plan& plan,
                            Console& console) const;
  Result<> write(const std::string& job,
                 const std::string& name,
                 const std::vector<rules::Group>& groups);
  Result<> write_all(const rules::Plan& plan, const rules::Common& common, Console& console);
  [[nodiscard]] std::string report(const rules::Plan& plan) const;

  ServerFlags server_;
  RangeFlags range_;
  double pue_ = 1;
  double factor_ = 0;
  std::string country_;
  std::string interval_ = "0s";
  std::string directory_ = "rules";
  bool disable_providers_ = false;
  std::string included_ = "auto";
  std::string names_ = "auto";
  rules::Choices choices_;
  bool json_ = false;
  std::vector<WrittenFile> written_;
};

void RecordingRules::add_flags(config::FlagSet& flags) {
  server_.add(flags, "Prometheus");
  range_.add(flags);
  flags.add("pue", pue_,
            {.help = "Power usage effectiveness of the site, by which all power is multiplied."});
  flags.add("emission-factor", factor_,
            {.help = "Constant emission factor in grams of CO2 equivalent per kWh."});
  flags.add("country-code", country_,
            {.help = "ISO 3166-1 alpha-2 code of the country, or zone of a provider, whose "
                     "emission factors are used: the live ones that Prometheus has, otherwise the "
                     "built-in one.",
             .placeholder = "CODE"});
  flags.add("eval-interval", interval_,
            {.help = "Interval at which the records of units are evaluated. 0s is the evaluation "
                     "interval of Prometheus."});
  flags.add("output-dir", directory_, {.help = "Directory of the files."});
  flags.add("redfish.chassis", choices_.chassis,
            {.help = "Chassis whose power is that of the whole node, for all jobs or as "
                     "JOB=CHASSIS (repeatable). Without it, the command asks if there are several.",
             .placeholder = "CHASSIS"});
  flags.add("hwmon.chip", choices_.chips,
            {.help = "Chip of hwmon whose power is that of the whole node, for all jobs or as "
                     "JOB=CHIP (repeatable).",
             .placeholder = "CHIP"});
  flags.add_enum("gpu-power-included", included_, {"auto", "yes", "no"},
                 {.help = "Whether the power of the node that Redfish, IPMI or hwmon reports "
                          "includes its GPUs. 'auto' compares the two."});
  flags.add_enum(
      "record-names", names_, {"auto", "0.10", "0.11", "both"},
      {.help = "Release of CEEMS after which records are named where releases differ. "
               "'auto' is both if exporters of 0.11 or later are found, otherwise 0.10."});
  flags.add("skip-energy-counters", choices_.skip_counted,
            {.help = "Leave out jobs whose exporters count the energy of units themselves."});
  flags.add("json", json_, {.help = "Print a report of the jobs and files as JSON to stdout."});
  flags.add("disable-providers", disable_providers_,
            {.help = "Ignore live emission factors.", .hidden = true});
}

Result<> RecordingRules::check_flags() const {
  if (!country_.empty() && factor_ > 0) {
    return fail(ErrorCode::kInvalidArgument,
                "--country-code and --emission-factor cannot be used together. Set atmost one.");
  }
  if (!(pue_ > 0)) {
    return fail(ErrorCode::kInvalidArgument, "--pue: expected a positive number, got {}", pue_);
  }
  if (factor_ < 0) {
    return fail(ErrorCode::kInvalidArgument,
                "--emission-factor: expected a number that is not negative, got {}", factor_);
  }
  return {};
}

Result<rules::Emissions> RecordingRules::emissions(const rules::Site& site,
                                                   Console& console) const {
  rules::Emissions emissions;
  emissions.country_code = country_;
  if (factor_ > 0) {
    emissions.grams_per_kwh = factor_;
    return emissions;
  }
  if (!disable_providers_ && !site.providers.empty()) {
    emissions.providers = site.providers;
    return emissions;
  }
  CEEMS_TRY(factors, exporter::emissions::country_factors());
  const auto found = std::ranges::find(factors, country_, &exporter::emissions::Factor::code);
  if (found != factors.end()) {
    emissions.provider = "owid";
    emissions.grams_per_kwh = found->grams_per_kwh;
    console.say(fmt::format("static emission factor {} g/kWh from OWID data will be used",
                            emissions.grams_per_kwh));
  } else {
    console.say(
        fmt::format("no emission factor for country code '{}' is known: no rules of "
                    "emissions are written",
                    printable(country_, 20)));
  }
  return emissions;
}

Result<> RecordingRules::decide_inclusion(tsdb::Client& client,
                                          rules::TimeRange range,
                                          rules::Plan& plan,
                                          Console& console) const {
  for (rules::HostPlan& host : plan.hosts) {
    const bool comparable =
        host.family != rules::Family::kCray && host.family != rules::Family::kRapl;
    if (host.gpus.empty() || !comparable) {
      continue;
    }
    if (included_ != "auto") {
      host.gpus_included = included_ == "yes";
      continue;
    }
    const auto minutes = std::max<std::int64_t>(1, (range.end_ms - range.start_ms) / 60'000);
    const auto answer =
        client.query({.query = fmt::format("avg_over_time(({})[{}m:])",
                                           rules::host_minus_gpu_watts(host), minutes),
                      .time_ms = range.end_ms});
    if (!answer) {
      console.say(
          fmt::format("warning: job '{}': cannot compare the power of hosts and GPUs, so it "
                      "is taken not to include the GPUs: {}",
                      host.job->name, answer.error().message));
      continue;
    }
    std::vector<double> watts;
    for (const tsdb::Series& series : answer->series) {
      if (std::isfinite(series.samples.front().value)) {
        watts.push_back(series.samples.front().value);
      }
    }
    if (watts.empty()) {
      console.say(
          fmt::format("warning: job '{}': no host has both its own power and that of GPUs, "
                      "so it is taken not to include the GPUs",
                      host.job->name));
      continue;
    }
    const auto positive = std::ranges::count_if(watts, [](double value) { return value > 0; });
    host.gpus_included = 2 * positive > static_cast<std::ptrdiff_t>(watts.size());
    const auto [least, most] = std::ranges::minmax(watts);
    console.say(fmt::format(
        "job '{}': host power minus GPU power is {:.1f} to {:.1f} W on average, positive on {} of "
        "{} hosts: {}. If that is wrong, use --gpu-power-included",
        host.job->name, least, most, positive, watts.size(),
        host.gpus_included ? "the GPUs are included in it" : "the GPUs are not included in it"));
  }
  return {};
}

Result<> RecordingRules::write(const std::string& job,
                               const std::string& name,
                               const std::vector<rules::Group>& groups) {
  const std::string path = (std::filesystem::path(directory_) / name).string();
  CEEMS_TRY(os::replace_file(path, rules::rule_file(groups)));
  std::size_t records = 0;
  for (const rules::Group& group : groups) {
    records += group.rules.size();
  }
  written_.push_back({.job = job, .name = name, .records = records});
  return {};
}

Result<> RecordingRules::write_all(const rules::Plan& plan,
                                   const rules::Common& common,
                                   Console& console) {
  rules::FileNames names;
  for (const rules::HostPlan& host : plan.hosts) {
    const std::string file = names.name(host.job->name, ".rules");
    console.say(fmt::format("generating recording rules for job {} in file {}",
                            printable(host.job->name), file));
    CEEMS_TRY(write(host.job->name, file, rules::host_groups(host, common)));
  }
  for (const rules::GpuPlan& gpus : plan.gpus) {
    const std::string file = names.name(gpus.job->name, "-gpu.rules");
    console.say(fmt::format("generating recording rules for GPU for job {} in file {}",
                            printable(gpus.job->name), file));
    CEEMS_TRY(write(gpus.job->name, file, rules::gpu_groups(gpus, common)));
  }
  return {};
}

std::string RecordingRules::report(const rules::Plan& plan) const {
  std::string out;
  JsonWriter json(out, JsonEscape::kPlain);
  json.begin_object().member("directory", directory_).key("files").begin_array();
  for (const WrittenFile& file : written_) {
    json.begin_object()
        .member("job", file.job)
        .member("file", file.name)
        .member("records", static_cast<std::int64_t>(file.records))
        .end_object();
  }
  json.end_array().key("hosts").begin_array();
  for (const rules::HostPlan& host : plan.hosts) {
    json.begin_object()
        .member("job", host.job->name)
        .member("power", rules::to_string(host.family))
        .member("gpus_included", host.gpus_included);
    json.key("gpu_jobs").begin_array();
    for (const rules::GpuPlan* gpus : host.gpus) {
      json.value(gpus->job->name);
    }
    json.end_array().end_object();
  }
  json.end_array();
  for (const auto& [key, lines] :
       {std::pair("remarks", &plan.remarks), std::pair("errors", &plan.errors)}) {
    json.key(key).begin_array();
    for (const std::string& line : *lines) {
      json.value(line);
    }
    json.end_array();
  }
  json.end_object();
  return out;
}

/// Asks for one of several values by its number.
Result<std::size_t> ask_number(Console& console,
                               std::string_view question,
                               const std::vector<std::string>& options) {
  console.say(question);
  for (std::size_t i = 0; i < options.size(); ++i) {
    console.say(fmt::format("[{}]: {}", i, printable(options[i])));
  }
  const auto line = console.read_line();
  const auto number = line ? parse_int<std::int64_t>(trim(*line)) : std::nullopt;
  if (!number) {
    return fail(ErrorCode::kInvalidArgument,
                "invalid user input: expected a number; or use the flag --redfish.chassis or "
                "--hwmon.chip");
  }
  if (*number < 0 || static_cast<std::size_t>(*number) >= options.size()) {
    return fail(ErrorCode::kInvalidArgument, "user input out of range: {}", *number);
  }
  return static_cast<std::size_t>(*number);
}

Result<int> RecordingRules::run(Console& console) {
  CEEMS_TRY(check_flags());
  CEEMS_TRY(range, range_.range(real_clock()));
  CEEMS_TRY_IN("--eval-interval", interval, config::parse_flag_duration(interval_));
  CEEMS_TRY(connection, TsdbConnection::open(server_));
  tsdb::Client& client = connection->client();
  std::vector<std::string> remarks;
  CEEMS_TRY(site, rules::discover(client, range, country_, remarks));
  CEEMS_TRY(emissions, this->emissions(site, console));
  rules::Plan plan = rules::make_plan(
      site, choices_, [&](std::string_view question, const std::vector<std::string>& options) {
        return ask_number(console, question, options);
      });
  plan.remarks.insert(plan.remarks.begin(), remarks.begin(), remarks.end());
  for (const std::string& remark : plan.remarks) {
    console.say(remark);
  }
  CEEMS_TRY(decide_inclusion(client, range, plan, console));
  const bool later = names_ == "auto" && rules::has_later_names(site);
  const rules::Common common{.pue = pue_,
                             .emissions = std::move(emissions),
                             .names = names_ == "0.11"            ? rules::RecordNames::kLater
                                      : names_ == "both" || later ? rules::RecordNames::kBoth
                                                                  : rules::RecordNames::kOld,
                             .interval = config::prometheus_duration(
                                 interval.count() > 0 ? interval : site.evaluation_interval)};
  CEEMS_TRY(make_directory(directory_));
  CEEMS_TRY(write_all(plan, common, console));
  for (const std::string& error : plan.errors) {
    console.say(fmt::format("error: {}", error));
  }
  if (plan.hosts.empty() && plan.errors.empty()) {
    console.say("no job of CEEMS exporters with power was found in this time: nothing is written");
  }
  if (json_) {
    console.print(report(plan) + "\n");
  }
  return plan.errors.empty() ? 0 : 1;
}

}  // namespace

std::unique_ptr<Command> recording_rules_command() {
  return std::make_unique<RecordingRules>();
}

}  // namespace ceems::tool
