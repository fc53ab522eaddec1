#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/strings.h"
#include "cacct/api.h"
#include "cacct/commands.h"
#include "cacct/output/answer.h"
#include "cacct/output/check_text.h"
#include "cacct/output/pager.h"
#include "cacct/output/terminal.h"
#include "cacct/session.h"
#include "cacct/time_words.h"
#include "config/flags.h"
#include "jobscript/request.h"

namespace ceems::cacct {
namespace {

using jobscript::Command;
using jobscript::Form;

constexpr std::size_t kMaxScript = std::size_t{1} << 20U;  // bytes; directives stand in front
constexpr long kTimeout = 5000;                            // milliseconds
constexpr long kBriefTimeout = 300;
constexpr long kMaxTimeout = 60'000;

/// A form as the command line, requests and scripts call it.
struct FormName {
  Form form;
  std::string_view flag, program, request, prefix;
};
constexpr std::array<FormName, 4> kForms{{{Form::kSlurm, "slurm", "sbatch", "sbatch", "#SBATCH "},
                                          {Form::kPbs, "pbs", "qsub", "pbs", "#PBS "},
                                          {Form::kLsf, "lsf", "bsub", "lsf", "#BSUB "},
                                          {Form::kK8s, "k8s", "", "k8s", ""}}};

const FormName& name_of(Form form) {
  return *std::ranges::find(kForms, form, &FormName::form);
}

/// The beginning of a script, as much as can matter.
Result<std::string> read_script(const std::string& path) {
  const std::string shown = path == "-" ? "standard input" : printable(path, 200);
  UniqueFd opened;
  if (path != "-") {
    opened = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    struct stat status{};
    if (!opened.valid() || ::fstat(opened.get(), &status) != 0) {
      return fail(errno_error(errno, "cannot read " + shown));
    }
    if (S_ISDIR(status.st_mode)) {
      return fail(ErrorCode::kInvalidArgument, "cannot read {}: it is a directory", shown);
    }
  }
  std::string text(kMaxScript, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(opened.valid() ? opened.get() : STDIN_FILENO, text.data() + size,
                               text.size() - size);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return fail(errno_error(errno, "cannot read " + shown));
    }
    if (got == 0) {
      break;
    }
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  if (text.contains('\0')) {
    return fail(ErrorCode::kInvalidArgument, "{} is not a job script: it holds binary data", shown);
  }
  return text;
}

/// What would be submitted.
struct Job {
  std::optional<Form> form;  ///< nothing if neither the script nor the command says
  jobscript::Request request;
};

/// The command in the form that finds a script in it which exists and has this form. For a command
/// that none of them reads so, that of SLURM.
std::pair<Form, Command> guess(const std::vector<std::string>& words) {
  for (const Form form : {Form::kSlurm, Form::kPbs, Form::kLsf, Form::kK8s}) {
    Command command = split_command(form, words);
    std::error_code none;
    if (!std::filesystem::is_regular_file(command.script, none)) {
      continue;  // a pipe can be read once only
    }
    const auto script = read_script(command.script);
    if (script && jobscript::form_of(*script) == form) {
      return {form, std::move(command)};
    }
  }
  return {Form::kSlurm, split_command(Form::kSlurm, words)};
}

Result<Job> read_job(const CheckOptions& options) {
  if (options.words.empty()) {
    return fail(ErrorCode::kInvalidArgument, "expected a job script, or - for standard input");
  }
  std::vector<std::string> words = options.words;
  const auto* named = std::ranges::find(kForms, options.form, &FormName::flag);
  if (words.size() > 1 && !words.front().empty()) {
    // The whole command, as it is typed to submit.
    const auto* const program = std::ranges::find(kForms, words.front(), &FormName::program);
    if (program != kForms.end()) {
      named = named == kForms.end() ? program : named;
      words.erase(words.begin());
    }
  }
  const bool known = named != kForms.end();
  auto [form, command] =
      known ? std::pair(named->form, split_command(named->form, words)) : guess(words);
  std::string script;
  Job job{.form = known ? std::optional(form) : std::nullopt, .request = {}};
  if (command.script.empty() && form == Form::kK8s) {
    return fail(ErrorCode::kInvalidArgument, "expected a manifest, or - for standard input");
  }
  if (!command.script.empty()) {
    CEEMS_TRY(text, read_script(command.script));
    script = std::move(text);
    if (!known) {
      job.form = jobscript::form_of(script);
      if (job.form && *job.form != form) {
        form = *job.form;  // of standard input: its command is read anew
        command = split_command(form, words);
      }
    }
    if (job.form == Form::kSlurm && !script.starts_with("#!")) {
      return fail(ErrorCode::kInvalidArgument,
                  "{}: sbatch refuses a script whose first line does not begin with #!",
                  printable(command.script, 200));
    }
  } else if (!known) {
    job.form = form;  // there are options of sbatch only
  }
  CEEMS_TRY_IN(printable(command.script, 200), request, read_request(form, command, script));
  job.request = std::move(request);
  return job;
}

/// A moment in the future, in epoch milliseconds. A time of the day that is over is that of
/// tomorrow.
Result<std::int64_t> parse_deadline(std::string_view text) {
  constexpr std::int64_t kDay = 86'400;
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(real_clock().now().time_since_epoch())
          .count();
  CEEMS_TRY_IN("--deadline", today, parse_time(text, now));
  std::int64_t end = today;
  if (end <= now && text.contains(':') && has_only_words(text, ":")) {
    CEEMS_TRY_IN("--deadline", tomorrow, parse_time(text, now + kDay));
    end = tomorrow;
  }
  if (end <= now) {
    return fail(ErrorCode::kInvalidArgument, "--deadline is over");
  }
  return end * 1000;
}

std::string request_body(const std::string& cluster_id,
                         const Job& job,
                         std::optional<std::int64_t> deadline) {
  constexpr std::size_t kMaxText = 256;
  constexpr std::size_t kMaxDirectives = 64;
  const jobscript::Request& request = job.request;
  std::string body;
  JsonWriter json(body);
  json.begin_object().member("cluster_id", cluster_id);
  if (job.form) {
    json.member("form", name_of(*job.form).request);
  }
  json.key("request").begin_object();
  for (const auto& [name, text] :
       {std::pair<std::string_view, const std::string&>("name", request.name),
        {"project", request.project},
        {"partition", request.partition},
        {"executable", request.executable}}) {
    if (!text.empty()) {
      json.member(name, std::string_view(text).substr(0, kMaxText));
    }
  }
  if (request.cpus) {
    json.member("cpus", *request.cpus);
  }
  for (const auto& [name, number] : {std::pair("nodes", request.nodes),
                                     {"gpus", request.gpus},
                                     {"memory_bytes", request.memory_bytes},
                                     {"time_limit_s", request.time_limit_s},
                                     {"array_tasks", request.array_tasks}}) {
    if (number) {
      json.member(name, *number);
    }
  }
  json.end_object().key("directives").begin_array();
  for (const std::string& line :
       std::span(request.directives).first(std::min(request.directives.size(), kMaxDirectives))) {
    json.value(line);
  }
  json.end_array();
  if (deadline) {
    json.member("deadline_ts", *deadline);
  }
  json.end_object();
  return body;
}

/// While it lives, ends the program when the time is over, whatever that waits for: a name service,
/// a file system.
class TimeLimit {
 public:
  explicit TimeLimit(std::chrono::milliseconds time) {
    std::signal(SIGALRM, [](int) { ::_exit(0); });
    set(time);
  }
  ~TimeLimit() { set(std::chrono::milliseconds(0)); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  static void set(std::chrono::milliseconds time) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
    itimerval timer{};
    timer.it_value.tv_sec = seconds.count();
    timer.it_value.tv_usec = std::chrono::microseconds(time - seconds).count();
    static_cast<void>(::setitimer(ITIMER_REAL, &timer, nullptr));
  }
};

class Check {
 public:
  Check(const CheckOptions& options, const Caller& caller) : options_(options), caller_(caller) {}

  /// An error of the command line or the script.
  Result<> read(const Result<Session>& session) {
    if (options_.json && options_.brief) {
      return fail(ErrorCode::kInvalidArgument, "--json and --brief exclude each other");
    }
    CEEMS_TRY(job, read_job(options_));
    if (!options_.deadline.empty()) {
      CEEMS_TRY(deadline, parse_deadline(options_.deadline));
      deadline_ = deadline;
    } else if (!job.request.deadline.empty()) {
      // That of sbatch, which says itself what it cannot read.
      const auto deadline = parse_deadline(job.request.deadline);
      deadline_ = deadline ? std::optional(*deadline) : std::nullopt;
    }
    body_ = request_body(session ? session->config.cluster_id : "", job, deadline_);
    job_ = std::move(job);
    return {};
  }

  /// What the server says.
  Result<std::string> ask(Session& session) {
    const Config& config = session.config;
    session.log.write(log::Level::kInfo, "check",
                      {{"user", caller_.login}, {"uid", caller_.uid}, {"gid", caller_.gid}});
    const std::chrono::milliseconds timeout(time_limit());
    CEEMS_TRY(api, Api::create(config.api_url, config.api_client, config.user_header, caller_.login,
                               timeout));
    CEEMS_TRY(answer, api.check(body_));
    if (options_.json) {
      return safe_lines(answer) + (answer.ends_with('\n') ? "" : "\n");
    }
    const CheckLook look{.name = job_.request.name,
                         .prefix = name_of(job_.form.value_or(Form::kSlurm)).prefix,
                         .width = terminal_width()};
    return options_.brief ? check_line(answer, look) : check_text(answer, look);
  }

  [[nodiscard]] long time_limit() const {
    return options_.timeout > 0 ? options_.timeout : options_.brief ? kBriefTimeout : kTimeout;
  }

 private:
  const CheckOptions& options_;
  const Caller& caller_;
  Job job_ = {};
  std::optional<std::int64_t> deadline_ = {};
  std::string body_ = {};
};

}  // namespace

void add_check_flags(config::FlagSet& flags, CheckOptions& options) {
  flags.positionals("WORD", options.words,
                    "What would follow sbatch, qsub or bsub: options and the script, or the file "
                    "of a manifest. - reads the script from standard input.");
  flags.add("json", options.json, {.help = "Print the answer of the server as it is."});
  flags.add("brief", options.brief,
            {.help = "Print one line, or nothing if anything fails. For hooks at submission."});
  flags.add_enum("form", options.form, {"slurm", "pbs", "lsf", "k8s"},
                 {.help = "How the job asks, if its script has no directives that say it: slurm, "
                          "pbs, lsf or k8s.",
                  .placeholder = "FORM"});
  flags.add("deadline", options.deadline,
            {.help = "Look for the greenest start with which the job has ended by this time: "
                     "HH:MM, tomorrow, now+12hours and other forms of --starttime. The default is "
                     "--deadline of sbatch, otherwise the next 24 hours.",
             .placeholder = "TIME"});
  flags.add("timeout", options.timeout,
            {.help = "How many milliseconds to wait for the server, up to 60000. The default is "
                     "5000, and 300 with --brief.",
             .placeholder = "MS"});
}

std::vector<const char*> check_arguments(std::span<const char* const> arguments) {
  constexpr std::array<std::string_view, 3> kWithValue{"form", "deadline", "timeout"};
  CheckOptions options;
  config::FlagSet flags("cacct check", "");
  add_check_flags(flags, options);
  std::vector<const char*> arranged;
  bool own = true;
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    const std::string_view word = arguments[at];
    if (at > 0 && own) {
      std::string_view name = word.substr(0, word.find('='));
      own = name.starts_with("--") && name.size() > 2;
      name.remove_prefix(own ? 2 : 0);
      const bool negated = name.starts_with("no-") && flags.has(name.substr(3));
      // The standard flags of every program are added when the command line is parsed.
      const bool standard = name == "help" || name == "version" || name.starts_with("help-") ||
                            name.starts_with("completion-");
      own = (own && (negated || standard || flags.has(name))) || word == "-h";
      if (!own && word != "--") {
        arranged.push_back("--");
      } else if (own && !word.contains('=') && at + 1 < arguments.size() &&
                 std::ranges::find(kWithValue, name) != kWithValue.end()) {
        arranged.push_back(arguments[at++]);
      }
    }
    arranged.push_back(arguments[at]);
  }
  return arranged;
}

int run_check(const CheckOptions& options, const Caller& caller) {
  const auto complain = [](const Error& error) {
    constexpr std::size_t kMaxError = 400;
    fmt::print(stderr, "cacct: error: {}\n", printable(error.message, kMaxError));
  };
  Check check(options, caller);
  if (options.timeout < 0 || options.timeout > kMaxTimeout) {
    complain({ErrorCode::kInvalidArgument,
              fmt::format("--timeout: expected a number from 0 to {}", kMaxTimeout)});
    return 1;
  }
  std::optional<TimeLimit> limit;
  if (options.brief) {
    limit.emplace(std::chrono::milliseconds(check.time_limit()));
  }
  auto session = open_session(caller);
  if (const auto read = check.read(session); !read) {
    complain(read.error());
    return 1;
  }
  const auto answer = session ? check.ask(*session) : fail(session.error());
  if (answer) {
    static_cast<void>(show(*answer, false));
    static_cast<void>(std::fflush(stdout));  // within the limit
  } else if (!options.brief) {
    complain(answer.error());
  }
  return 0;  // whatever the server says: the job may be submitted
}

}  // namespace ceems::cacct
