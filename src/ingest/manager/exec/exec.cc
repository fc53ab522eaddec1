#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/strings.h"
#include "config/section.h"
#include "ingest/manager/complaint.h"
#include "ingest/manager/exec/lines.h"
#include "ingest/manager/manager.h"

namespace ceems::ingest {
namespace {

constexpr std::size_t kMaxLineBytes = 1U << 20U;
// Longer lines are cut after one byte more, so that they are known to be too long.
constexpr std::size_t kMaxReadBytes = kMaxLineBytes + 1;

struct ExecOptions {
  std::vector<std::string> command;  ///< the program and its arguments
  std::string file;                  ///< instead of a command
  std::chrono::milliseconds timeout{std::chrono::minutes(5)};
};

class ExecManager final : public ResourceManager {
 public:
  ExecManager(ExecOptions options, const ClusterConfig& config, const ManagerContext& context)
      : options_(std::move(options)),
        cluster_(config.cluster.id),
        environment_(config.cli_environment),
        runner_(context.runner),
        zone_(context.zone) {}

  Result<std::vector<model::Unit>> fetch_units(model::Window window,
                                               std::stop_token stop) override {
    lines_.reset();
    CEEMS_TRY(lines, read(window, stop));
    std::vector<model::Unit> units;
    for (const ExecUnit& line : lines.units) {
      if (auto unit = unit_of(line, window, zone_)) {
        units.push_back(std::move(*unit));
      }
    }
    lines.units = {};
    lines_ = std::move(lines);
    window_end_ms_ = window.end_ms;
    return units;
  }

  /// Uses what the units of the same window came with, so that the command runs once.
  Result<UsersAndProjects> fetch_users_projects(model::Window window,
                                                std::stop_token stop) override {
    if (!lines_ || window_end_ms_ != window.end_ms) {
      CEEMS_TRY(lines, read(window, stop));
      lines_ = std::move(lines);
      window_end_ms_ = window.end_ms;
    }
    return users_and_projects(lines_->members);
  }

  Result<ProjectLeads> fetch_leads(const std::stop_token& stop) override {
    if (!lines_) {
      CEEMS_TRY(lines, read({}, stop));
      lines_ = std::move(lines);
    }
    return lines_->leads;
  }

 private:
  /// A bad line is left out. If there is no good one, it is an error.
  Result<ExecLines> read(model::Window window, const std::stop_token& stop) {
    ExecLines lines;
    int number = 0;
    int good = 0;
    std::size_t bad = 0;
    std::string first;
    const auto take = [&](std::string_view line) -> Result<> {
      ++number;
      auto read = line.size() > kMaxLineBytes
                      ? fail(ErrorCode::kParse, "more than {} bytes", kMaxLineBytes)
                      : read_line(line, lines);
      if (read) {
        good += trim(line).empty() || trim(line).starts_with('#') ? 0 : 1;
      } else if (bad++ == 0) {
        first = fmt::format("{}: line {}: {}", source(), number, read.error().message);
      }
      return {};
    };
    CEEMS_TRY(options_.file.empty() ? run(window, take, stop) : read_file(take, stop));
    if (bad > 0 && good == 0) {
      return fail(ErrorCode::kParse, "{}", first);
    }
    note_left_out(bad, first);
    return lines;
  }

  /// Logs when lines begin to be left out, and when all are readable again.
  void note_left_out(std::size_t lines, const std::string& first) {
    if (lines > 0 && !std::exchange(left_out_, true)) {
      log::warn("lines left out", {{"cluster_id", cluster_}, {"lines", lines}, {"first", first}});
    } else if (lines == 0 && std::exchange(left_out_, false)) {
      log::info("lines are all readable again", {{"cluster_id", cluster_}});
    }
  }

  [[nodiscard]] const std::string& source() const {
    return options_.file.empty() ? options_.command.front() : options_.file;
  }

  template <typename Take>
  Result<> run(model::Window window, const Take& take, const std::stop_token& stop) {
    os::Command command{.path = options_.command.front(),
                        .arguments = {options_.command.begin() + 1, options_.command.end()},
                        .environment = environment_,
                        .timeout = options_.timeout,
                        .max_output_bytes = kMaxReadBytes,
                        .cut_lines = true};
    command.environment.try_emplace("PATH", "/usr/bin:/bin");
    command.environment["CEEMS_CLUSTER"] = cluster_;
    command.environment["CEEMS_START"] = std::to_string(window.start_ms / 1000);
    command.environment["CEEMS_END"] = std::to_string(window.end_ms / 1000);
    CEEMS_TRY(result, runner_->run_lines(command, take, stop));
    if (result.exit_status != 0 || complains(result.error_text, {}, {})) {
      return fail(ErrorCode::kUnavailable, "{}: exit status {}: {}", source(), result.exit_status,
                  printable(trim(result.error_text), 400));
    }
    if (!trim(result.error_text).empty()) {
      log::warn("the command of a cluster wrote to standard error",
                {{"cluster", cluster_},
                 {"command", source()},
                 {"stderr", printable(trim(result.error_text), 400)}});
    }
    return {};
  }

  template <typename Take>
  [[nodiscard]] Result<> read_file(const Take& take, const std::stop_token& stop) const {
    std::ifstream file(options_.file);
    if (!file) {
      return fail(errno_error(errno, options_.file));
    }
    std::vector<char> buffer(kMaxReadBytes + 1);
    while (file.peek() != std::ifstream::traits_type::eof()) {
      if (stop.stop_requested()) {
        return fail(ErrorCode::kUnavailable, "stopped");
      }
      file.getline(buffer.data(), static_cast<std::streamsize>(buffer.size()));
      auto size = static_cast<std::size_t>(file.gcount());
      if (file.fail() && !file.bad()) {  // the line is longer than the buffer
        file.clear();
        file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
      } else if (!file.eof()) {
        --size;  // without the line end
      }
      CEEMS_TRY(take(std::string_view(buffer.data(), std::min(size, kMaxReadBytes))));
    }
    return file.bad() ? fail(errno_error(EIO, options_.file)) : Result<>();
  }

  const ExecOptions options_;
  const std::string cluster_;
  const std::map<std::string, std::string> environment_;
  os::CommandRunner* const runner_;
  const TimeZone zone_;
  std::optional<ExecLines> lines_;  // of the last run, without its units
  std::int64_t window_end_ms_ = 0;
  bool left_out_ = false;
};

Result<std::unique_ptr<ResourceManager>> create_exec(const ClusterConfig& config,
                                                     const ManagerContext& context) {
  ExecOptions options;
  config::Section section(config.extra);
  section.list("command", options.command)
      .text("file", options.file)
      .duration("timeout", options.timeout)
      .refuse(options.command.empty() == options.file.empty(), "command",
              "expected either command (a list: program and arguments) or file")
      .refuse(!options.command.empty() && !options.command.front().starts_with('/'), "command",
              "expected the absolute path of a program first")
      .refuse(!options.file.empty() && !options.file.starts_with('/'), "file",
              "expected an absolute path")
      .refuse(options.timeout.count() <= 0, "timeout", "must be more than 0s");
  CEEMS_TRY(section.done());
  return std::make_unique<ExecManager>(std::move(options), config, context);
}

}  // namespace

/// clusters[].manager: exec, for sites with a scheduler that no other manager knows.
ManagerSpec exec_manager() {
  return {.name = "exec",
          .units = "anything",
          .source = "JSON lines of a command or a file",
          .reads_cli = true,
          .extra_keys = {"command", "file", "timeout"},
          .create = create_exec};
}

}  // namespace ceems::ingest
