#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/json_reader.h"
#include "base/strings.h"
#include "cacct/api.h"
#include "cacct/commands.h"
#include "cacct/options.h"
#include "cacct/output/answer.h"
#include "cacct/output/fields.h"
#include "cacct/output/pager.h"
#include "cacct/output/table.h"
#include "cacct/output/terminal.h"
#include "cacct/session.h"

namespace ceems::cacct {
namespace {

constexpr std::size_t kMaxIds = 100;

/// The reports in the answer of the server: the elements of "data" without the brackets, with
/// sorted keys.
Result<std::string> reports_in(std::string_view answer) {
  JsonScanner scanner(answer);
  std::string key;
  std::string data;
  bool valid = scanner.take('{');
  while (valid) {
    std::string other;
    valid =
        scanner.string(key) && scanner.take(':') && scanner.value(key == "data" ? data : other, 1);
    if (!scanner.take(',')) {
      break;
    }
  }
  if (!valid || !scanner.take('}') || !scanner.at_end() || !data.starts_with('[')) {
    return fail(ErrorCode::kParse, "unexpected answer of the API server");
  }
  return data.substr(1, data.size() - 2);
}

class Reporting {
 public:
  Reporting(const ReportOptions& options, const Caller& caller)
      : options_(options), caller_(caller) {}

  /// The error of the whole run. Errors of single reports are printed at once.
  Result<int> run() {
    std::vector<std::string> ids = id_parts(options_.ids);
    CEEMS_TRY(check(ids));
    CEEMS_TRY(session, open_session(caller_));
    const Config& config = session.config;
    cluster_id_ = config.cluster_id;
    if (!options_.cluster.empty() && options_.cluster != config.cluster_id) {
      return fail(ErrorCode::kInvalidArgument, "unknown cluster '{}': this is {}",
                  printable(options_.cluster, 80), config.cluster_id);
    }
    session.log.write(log::Level::kInfo, options_.compare ? "compare" : "report",
                      {{"user", caller_.login},
                       {"uid", caller_.uid},
                       {"gid", caller_.gid},
                       {"jobs", fmt::format("{}", fmt::join(ids, ","))},
                       {"users", options_.all_users ? "all" : ""}});
    CEEMS_TRY(api,
              Api::create(config.api_url, config.api_client, config.user_header, caller_.login));
    ReportQuestion question{
        .cluster_id = config.cluster_id,
        .uuids = ids,
        .format = format(),
        .language = options_.language,
        .width = options_.width > 0 ? options_.width : static_cast<long>(terminal_width()),
        .compare = options_.compare,
        .so_far = options_.so_far,
        .all_findings = options_.all_findings,
        .all_users = options_.all_users};
    if (options_.compare) {
      add(api.report(question), fmt::format("{} and {}", ids[0], ids[1]));
    } else {
      for (const std::string& id : ids) {
        CEEMS_TRY(jobs, jobs_of(api, id));
        for (const Record& job : jobs) {
          question.uuids = {jobs.size() == 1 ? id : std::string(job.text("uuid"))};
          add(api.report(question), question.uuids.front());
        }
        add_sum(jobs, id);
      }
    }
    if (as_list()) {
      output_ = "[" + output_ + "]\n";
    }
    if (!show(output_, false)) {
      return fail(ErrorCode::kUnavailable, "cannot write to standard output");
    }
    return failed_ ? 1 : 0;
  }

 private:
  /// The jobs that an ID means: the tasks of an array, the parts of a heterogeneous job, or one.
  /// One without members if the server need not be asked, or knows none.
  Result<std::vector<Record>> jobs_of(Api& api, const std::string& id) const {
    if (options_.jobstats || (!is_number(id) && !id.ends_with(']') && !id.ends_with('*'))) {
      return std::vector{Record()};
    }
    Question question;
    question.cluster_id = cluster_id_;
    question.uuids = {id};
    question.all_users = options_.all_users;
    question.tags = {"uuid",
                     "allocation",
                     "total_time_seconds",
                     "state",
                     "total_cpu_energy_usage_kwh",
                     "total_gpu_energy_usage_kwh"};
    const auto asked = api.units(question);
    std::vector<Record> jobs = asked ? *asked : std::vector<Record>();
    std::ranges::sort(jobs, {}, [](const Record& job) { return job.whole("uuid"); });
    const auto again =
        std::ranges::unique(jobs, {}, [](const Record& job) { return job.text("uuid"); });
    jobs.erase(again.begin(), again.end());
    if (jobs.size() > kMaxIds) {
      return fail(ErrorCode::kInvalidArgument,
                  "{} is {} jobs, of which at most {} can be reported at a time; cacct -j {} sums "
                  "them",
                  id, jobs.size(), kMaxIds, id);
    }
    return jobs.empty() ? std::vector{Record()} : jobs;
  }

  /// Adds what several jobs that one ID means used together.
  void add_sum(const std::vector<Record>& jobs, const std::string& id) {
    if (jobs.size() < 2 || as_list() || options_.html) {
      return;
    }
    std::map<std::string, std::size_t, std::less<>> states;
    std::optional<double> kwh;
    for (const Record& job : jobs) {
      const std::string_view state = job.text("state");
      states[std::string(state.substr(0, state.find(' ')))] += 1;
      for (const char* tag : {"total_cpu_energy_usage_kwh", "total_gpu_energy_usage_kwh"}) {
        if (const auto* numbers = job.numbers(tag)) {
          for (const auto& [name, value] : *numbers) {
            kwh = name == "total" ? kwh.value_or(0) + value : kwh;
          }
        }
      }
    }
    std::string text;
    for (const auto& [state, count] : states) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
    }
    const auto energy = std::ranges::find(server_fields(), "hostenergy", &Field::name);
    output_ += fmt::format("\n{}: {} jobs ({}){}\n", id, jobs.size(), text,
                           kwh ? ", " + fitting_text(*energy, "total", *kwh) : "");
  }

  [[nodiscard]] Result<> check(const std::vector<std::string>& ids) const {
    if (options_.compare ? ids.size() != 2 : ids.empty()) {
      return fail(ErrorCode::kInvalidArgument, "{}",
                  options_.compare ? "expected the IDs of two jobs" : "expected the ID of a job");
    }
    if (ids.size() > kMaxIds) {
      return fail(ErrorCode::kInvalidArgument, "at most {} jobs at a time", kMaxIds);
    }
    if (options_.compare && ids[0] == ids[1]) {
      return fail(ErrorCode::kInvalidArgument, "expected the IDs of two different jobs");
    }
    if (options_.json + options_.markdown + options_.html + options_.ascii > 1) {
      return fail(ErrorCode::kInvalidArgument,
                  "--json, --markdown, --html and --ascii exclude each other");
    }
    if (options_.width != 0 && (options_.width < kMinTextWidth || options_.width > kMaxTextWidth)) {
      return fail(ErrorCode::kInvalidArgument, "--width: expected a number from {} to {}",
                  kMinTextWidth, kMaxTextWidth);
    }
    return {};
  }

  /// Whether the output is one list of JSON.
  [[nodiscard]] bool as_list() const { return options_.json && !options_.jobstats; }

  [[nodiscard]] std::string format() const {
    if (options_.js1) {
      return "js1";
    }
    if (options_.json && options_.jobstats) {
      return "js1-json";
    }
    if (options_.json) {
      return "json";
    }
    if (options_.markdown) {
      return "markdown";
    }
    if (options_.html) {
      return "html";
    }
    return options_.ascii || lacks_utf8() ? "ascii" : "text";
  }

  /// Adds one answer to the output.
  void add(Result<std::string> answer, std::string_view what) {
    if (answer && as_list()) {
      answer = reports_in(*answer);
    }
    if (!answer) {
      fmt::print(stderr, "cacct: error: job {}: {}\n", printable(what, 80),
                 printable(answer.error().message, 400));
      failed_ = true;
      return;
    }
    if (!output_.empty()) {
      output_ += as_list() ? "," : (options_.jobstats && format() != "text" ? "" : "\n");
    }
    output_ += safe_lines(*answer);
  }

  const ReportOptions& options_;
  const Caller& caller_;
  std::string cluster_id_ = {};
  std::string output_;
  bool failed_ = false;
};

}  // namespace

namespace {

void add_jobstats_flags(config::FlagSet& flags, ReportOptions& options) {
  flags.positionals("ID", options.ids, "IDs of the jobs.");
  flags.add("cluster", options.cluster, {.help = "Cluster of the jobs.", .letter = 'c'});
  flags.add("json", options.json, {.help = "Print the JSON of jobstats.", .letter = 'j'});
  flags.add("base64", options.js1,
            {.help = "Print that JSON as jobstats keeps it: base64 of gzip.", .letter = 'b'});
  flags.add("no-color", options.ignored,
            {.help = "Has no effect: reports have no colours.", .letter = 'n'});
  flags.add("batch-script", options.ignored,
            {.help = "Has no effect: job scripts are not kept.", .letter = 'B'});
  flags.add("force", options.ignored,
            {.help = "Has no effect: reports are made when they are asked for.", .letter = 'f'});
}

}  // namespace

void add_report_flags(config::FlagSet& flags, ReportOptions& options) {
  if (options.jobstats) {
    add_jobstats_flags(flags, options);
    return;
  }
  flags.positionals("ID", options.ids,
                    options.compare ? "IDs of the two jobs." : "IDs of the jobs.");
  flags.add("json", options.json, {.help = "Print JSON, with the same digits."});
  if (!options.compare) {
    flags.add("markdown", options.markdown, {.help = "Print Markdown."});
    flags.add("html", options.html,
              {.help = "Print a page in HTML that needs no other file and prints well."});
  }
  flags.add("ascii", options.ascii,
            {.help = "Print no characters beyond ASCII. The default on terminals without UTF-8."});
  if (!options.compare) {
    flags.add("width", options.width,
              {.help = "Columns of the text, from 60 to 240. The default is the width of the "
                       "terminal, otherwise 80.",
               .placeholder = "COLUMNS"});
    flags.add("all", options.all_findings,
              {.help = "Show all suggestions instead of the first three."});
  }
  flags.add("so-far", options.so_far,
            {.help = "Also report jobs that still run; for instance in the last line of a job "
                     "script."});
  flags.add("allusers", options.all_users,
            {.help = "Report jobs of other users. Only operators may do that.", .letter = 'a'});
  flags.add_enum("lang", options.language, {"en", "de", "fr"}, {.help = "Language of the text."});
}

int run_report(const ReportOptions& options, const Caller& caller) {
  const auto status = Reporting(options, caller).run();
  if (!status) {
    fmt::print(stderr, "cacct: error: {}\n", status.error().message);
    return 1;
  }
  return *status;
}

}  // namespace ceems::cacct
