#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.h"
#include "base/strings.h"
#include "base/version.h"
#include "config/duration.h"
#include "crypto/signature.h"
#include "host/paths.h"
#include "os/file.h"
#include "os/signals.h"
#include "tool/command.h"
#include "tool/connection.h"
#include "tool/validate/check.h"
#include "tool/validate/real_node.h"

namespace ceems::tool {
namespace {

constexpr std::chrono::seconds kPageTimeout{20};
constexpr std::size_t kMaxKeyFile = 10'000;
constexpr double kQuickSeconds = 120;
constexpr double kMilliseconds = 1000;

/// "2026-01-31" in UTC.
std::string date_of(const Clock& clock) {
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(clock.now()));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

Result<double> seconds_of(std::string_view flag, const std::string& text) {
  CEEMS_TRY_IN(flag, duration, config::parse_flag_duration(text));
  return std::chrono::duration<double>(duration).count();
}

std::string minutes_text(double seconds) {
  return seconds < 90 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.0f} min", seconds / 60);
}

class ValidateEnergy final : public Command {
 public:
  ValidateEnergy() { exporter_.url = "http://localhost:9010"; }
  [[nodiscard]] std::string_view words() const override { return "validate energy"; }
  [[nodiscard]] std::string_view help() const override {
    return "Run loads on this node, compare the energy that ceems_exporter charges to them with a "
           "meter, and write a report and a signed result file.";
  }
  void add_flags(config::FlagSet& flags) override;
  Result<int> run(Console& console) override;

 private:
  /// What is fixed before the first load runs.
  struct Setup {
    std::unique_ptr<validate::RealNode> node;
    validate::Record record;
    std::vector<validate::Loads> plan;
    validate::Times times;
  };

  Result<> ask_for_meter(Console& console);
  Result<> ask_to_start(Console& console) const;
  [[nodiscard]] Result<validate::MeterOptions> meter_options() const;
  [[nodiscard]] Result<std::string> page_url() const;
  [[nodiscard]] Result<validate::Times> times(std::size_t loads) const;
  Result<Setup> set_up();
  void show_plan(Console& console, const Setup& setup) const;
  Result<> measure(Console& console, Setup& setup) const;
  [[nodiscard]] Result<std::string> signing_key(Console& console) const;
  Result<int> write(Console& console, validate::Record record) const;

  ServerFlags exporter_;
  ServerFlags meter_server_;
  std::string meter_;
  std::string meter_query_;
  std::string meter_model_;
  double csv_offset_ = 0;
  std::string duration_ = "20m";
  std::string settle_;
  bool quick_ = false;
  bool allow_busy_ = false;
  bool guided_ = false;
  std::string key_file_;
  std::string output_ = "energy-validation.json";
  std::string report_ = "energy-validation.md";
  bool json_ = false;
};

void ValidateEnergy::add_flags(config::FlagSet& flags) {
  exporter_.add(flags, "ceems_exporter, which must show the cgroups /ceems_validate/NAME");
  flags.add("meter", meter_,
            {.help = "Meter of the whole node: ipmi, redfish, hwmon[:FILE] (ACPI power meter, in "
                     "microwatts), psys (RAPL), csv:FILE (lines 'time,watts' of a wattmeter, read "
                     "at the end) or prometheus. Without it, the command asks.",
             .placeholder = "METER"});
  meter_server_.add(flags, "the resource of Redfish, or of Prometheus", "meter.");
  flags.add("meter.query", meter_query_,
            {.help = "Query of Prometheus whose only series is the power of this node in watts.",
             .placeholder = "PROMQL"});
  flags.add("meter.model", meter_model_,
            {.help = "Model of the meter, for the result file.", .placeholder = "TEXT"});
  flags.add("meter.csv-offset", csv_offset_, {.help = "Seconds to add to the times of csv:FILE."});
  flags.add("duration", duration_, {.help = "How long all of it takes."});
  flags.add("settle", settle_,
            {.help = "Time that is left out after each change; by default a fifth of the time of a "
                     "load. Use 1m or more, and a longer --duration, with a BMC that averages.",
             .placeholder = "DURATION"});
  flags.add("quick", quick_,
            {.help = "Take two minutes, to try the command. The result is not evidence."});
  flags.add("allow-busy", allow_busy_,
            {.help = "Measure on a node that is not idle. The result is not evidence."});
  flags.add("key", key_file_,
            {.help = "File with an Ed25519 key in PEM, which is made if it does not exist. Without "
                     "it, a key is made for this file only.",
             .placeholder = "FILE"});
  flags.add("output", output_, {.help = "Result file to write."});
  flags.add("report", report_, {.help = "Report to write, in Markdown."});
  flags.add("json", json_, {.help = "Print the result file to stdout as well."});
}

Result<> ValidateEnergy::ask_for_meter(Console& console) {
  const auto found = validate::meters_of_node({});
  console.say(fmt::format("Meters of this node that can be read: {}.",
                          found.empty() ? "none" : fmt::format("{}", fmt::join(found, ", "))));
  console.say(
      "The meter should not be the one that the exporter reads. Others: redfish and prometheus "
      "(with "
      "--meter.url), csv:FILE.");
  console.say("Which meter?");
  const auto answer = console.read_line();
  if (!answer || trim(*answer).empty()) {
    return fail(ErrorCode::kInvalidArgument, "required flag --meter not provided, try --help");
  }
  meter_ = trim(*answer);
  guided_ = true;
  return {};
}

Result<> ValidateEnergy::ask_to_start(Console& console) const {
  if (!guided_) {
    return {};
  }
  console.say("Start? [Y/n]");
  const std::string answer = to_lower(trim(console.read_line().value_or("n")));
  if (!answer.empty() && !answer.starts_with('y')) {
    return fail(ErrorCode::kInvalidArgument, "not started");
  }
  return {};
}

Result<validate::MeterOptions> ValidateEnergy::meter_options() const {
  validate::MeterOptions options;
  options.meter = meter_;
  if (!meter_server_.url.empty()) {
    CEEMS_TRY_IN("--meter.url", address, meter_server_.address());
    CEEMS_TRY_IN("--meter.url", client, meter_server_.options());
    options.url = std::move(address);
    options.client = std::move(client);
  }
  options.query = meter_query_;
  options.csv_offset = csv_offset_;
  return options;
}

Result<std::string> ValidateEnergy::page_url() const {
  CEEMS_TRY(address, exporter_.address());
  return address.ends_with("/metrics") ? address : address + "/metrics";
}

Result<validate::Times> ValidateEnergy::times(std::size_t loads) const {
  CEEMS_TRY(duration, seconds_of("--duration", duration_));
  double settle = -1;
  if (!settle_.empty()) {
    CEEMS_TRY(given, seconds_of("--settle", settle_));
    settle = given;
  }
  CEEMS_TRY_IN("--duration", times,
               validate::divide(quick_ ? kQuickSeconds : duration, loads, settle));
  return times;
}

Result<ValidateEnergy::Setup> ValidateEnergy::set_up() {
  const host::Paths paths;
  Setup setup;
  const auto cores = validate::usable_cores(paths);
  if (cores.empty()) {
    return fail(ErrorCode::kUnavailable, "the kernel does not tell which CPUs there are");
  }
  setup.plan = validate::plan_loads(cores);
  CEEMS_TRY(divided, times(setup.plan.size()));
  setup.times = divided;
  CEEMS_TRY(options, meter_options());
  CEEMS_TRY(meter, validate::open_meter(options, real_clock()));
  CEEMS_TRY(roots, validate::cgroup_roots(paths.cgroup.string()));
  CEEMS_TRY(url, page_url());
  CEEMS_TRY(client, exporter_.client(kPageTimeout));
  const auto sleep = [](double seconds) {
    return !os::wait_for_signal(
        std::chrono::milliseconds(static_cast<std::int64_t>(seconds * kMilliseconds)));
  };
  setup.node = std::make_unique<validate::RealNode>(url, std::move(client), std::move(meter),
                                                    std::move(roots), sleep, paths);
  CEEMS_TRY(page, setup.node->page());
  validate::Record& record = setup.record;
  record.date = date_of(real_clock());
  record.tool_version = version().version;
  record.exporter_version = page.version;
  record.node = validate::kind_of_node(paths);
  record.node.gpus = page.gpus;
  record.meter = validate::kind_of_meter(meter_);
  record.meter_model = printable(meter_model_);
  record.independent = validate::is_independent(meter_, page.sources);
  record.sources = page.sources;
  record.settle_seconds = setup.times.settle_seconds;
  return setup;
}

void ValidateEnergy::show_plan(Console& console, const Setup& setup) const {
  const validate::Times& times = setup.times;
  console.say(fmt::format(
      "{} loads, each for {:.0f} s, with {:.0f} s of idle time between them and {:.0f} s to settle "
      "after each change: {} in all. Nothing else should run on this node.",
      setup.plan.size(), times.load_seconds, times.idle_seconds, times.settle_seconds,
      minutes_text(times.total(setup.plan.size()))));
  if (!setup.record.independent) {
    console.say(
        "The exporter has the energy of the node from this meter as well, so only the "
        "split among loads is checked.");
  }
}

Result<> ValidateEnergy::measure(Console& console, Setup& setup) const {
  const std::size_t windows = 2 * setup.plan.size() + 1;
  const double total = setup.times.total(setup.plan.size());
  const auto begin = real_clock().steady_now();
  validate::RunOptions options;
  options.times = setup.times;
  options.prefix = fmt::format("load-{}", ::getpid());
  options.max_busy = allow_busy_ ? 1.0 : options.max_busy;
  options.progress = [&](std::size_t window, const std::string& name) {
    const std::chrono::duration<double> passed = real_clock().steady_now() - begin;
    console.say(fmt::format("{:>3} of {}  {:<45} {} left", window + 1, windows, name,
                            minutes_text(std::max(0.0, total - passed.count()))));
  };
  CEEMS_TRY(measured,
            validate::run_loads(*setup.node, setup.plan, setup.record.node.cpus, options));
  setup.record.windows = std::move(measured);
  return {};
}

Result<std::string> ValidateEnergy::signing_key(Console& console) const {
  std::error_code ignored;
  if (!key_file_.empty() && std::filesystem::exists(key_file_, ignored)) {
    CEEMS_TRY(key, os::read_regular_file(key_file_, kMaxKeyFile));
    return key;
  }
  CEEMS_TRY(key, crypto::make_signing_key());
  if (!key_file_.empty()) {
    CEEMS_TRY(os::replace_file(key_file_, key));
    console.say(fmt::format("wrote a new key to {}; keep it private", printable(key_file_)));
  }
  return key;
}

Result<int> ValidateEnergy::write(Console& console, validate::Record record) const {
  CEEMS_TRY(key, signing_key(console));
  CEEMS_TRY(file, validate::sign_record(std::move(record), key));
  const std::string text = validate::file_text(file);
  CEEMS_TRY(checked, validate::check_record(text));
  constexpr mode_t kReadable = 0644;
  CEEMS_TRY(os::replace_file(output_, text, kReadable));
  CEEMS_TRY(os::replace_file(report_, validate::report_text(checked), kReadable));
  console.say(validate::summary_text(checked));
  console.say(fmt::format("wrote {} and {}", printable(output_), printable(report_)));
  console.say(
      "The result file names no host, user or address. docs/energy-validation.md says how to "
      "share it.");
  if (json_) {
    console.print(text);
  }
  return 0;
}

Result<int> ValidateEnergy::run(Console& console) {
  os::block_signals();  // so that loads and cgroups are removed after one
  if (meter_.empty()) {
    CEEMS_TRY(ask_for_meter(console));
  }
  CEEMS_TRY(setup, set_up());
  show_plan(console, setup);
  CEEMS_TRY(ask_to_start(console));
  CEEMS_TRY(measure(console, setup));
  return write(console, std::move(setup.record));
}

}  // namespace

std::unique_ptr<Command> validate_energy_command() {
  return std::make_unique<ValidateEnergy>();
}

}  // namespace ceems::tool
