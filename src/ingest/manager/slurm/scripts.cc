#include "ingest/manager/slurm/scripts.h"

#include <algorithm>
#include <array>
#include <deque>
#include <initializer_list>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace ceems::ingest {
namespace {

/// Reports make no suggestions for shorter runs.
constexpr std::int64_t kShortestAdvisedMs = std::int64_t{5} * 60'000;
constexpr int kMaxScriptFailures = 3;
/// How long a job is remembered that is not listed; a window that failed is fetched again.
constexpr std::uint64_t kKeptFetches = 3;

/// The id by which sacct lists a job and its script; a raw id would be that of a whole array.
std::string shown_id(const SlurmJob& job) {
  const SlurmDetails& details = job.details;
  return details.array_job && details.array_task
             ? fmt::format("{}_{}", *details.array_job, *details.array_task)
             : job.id;
}

/// All tasks of an array have one script.
std::string script_id(const SlurmJob& job) {
  return job.details.array_job ? fmt::format("{}", *job.details.array_job) : job.id;
}

/// Whether the command alone says how the job asked.
bool says_all(const jobscript::SubmitOptions& options, const SlurmJob& job) {
  const auto any = [&options](std::initializer_list<std::string_view> names) {
    return std::ranges::any_of(names,
                               [&options](std::string_view name) { return options.has(name); });
  };
  return any({"mem", "mem-per-cpu", "mem-per-gpu"}) && any({"ntasks", "ntasks-per-node"}) &&
         options.has("cpus-per-task") &&
         (job.allocation.gpus == 0 ||
          any({"gres", "gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"}));
}

}  // namespace

ScriptOutput::ScriptOutput(std::vector<std::string> ids) : ids_(std::move(ids)) {
  std::ranges::sort(ids_);
}

void ScriptOutput::add_line(std::string_view line) {
  constexpr std::string_view kHeading = "Batch Script for ";
  constexpr std::size_t kDashes = 80;
  const bool only_one = ids_.size() == 1 && !id_.empty();
  if (!heading_.empty()) {
    const std::string heading = std::exchange(heading_, {});
    if (line.size() == kDashes && line.find_first_not_of('-') == std::string_view::npos) {
      finish();
      id_ = heading.substr(kHeading.size());
      directives_ = {};
      return;
    }
    add_text(heading);
  }
  if (!only_one && line.starts_with(kHeading) &&
      std::ranges::binary_search(ids_, line.substr(kHeading.size()))) {
    heading_ = line;
    return;
  }
  add_text(line);
}

void ScriptOutput::add_text(std::string_view line) {
  if (!id_.empty()) {
    directives_.add_line(line);
  }
}

std::map<std::string, ScriptOutput::Found> ScriptOutput::finish() {
  if (!id_.empty()) {
    const auto [known, first] = found_.try_emplace(std::exchange(id_, {}));
    known->second.doubtful = !first;
    known->second.directives = first ? directives_.text() : std::nullopt;
  }
  return found_;
}

void ScriptReader::begin() {
  ++fetch_;
  std::erase_if(known_,
                [this](const auto& entry) { return entry.second.fetch + kKeptFetches < fetch_; });
}

std::string ScriptReader::directives_of(const SlurmJob& job) {
  const auto known = known_.find(script_id(job));
  if (known == known_.end()) {
    return {};
  }
  known->second.fetch = fetch_;
  return known->second.directives;
}

bool ScriptReader::wants(const SlurmJob& job, model::Window window) const {
  const std::string& line = job.details.submit_line;
  const std::int64_t end = std::min(job.end_ms.value_or(window.end_ms), window.end_ms);
  if (line.empty() || line.size() > kMaxDetailBytes || job.details.het_job || !job.start_ms ||
      end - *job.start_ms < kShortestAdvisedMs) {
    return false;
  }
  const auto known = known_.find(script_id(job));
  if (known != known_.end() && known->second.asked) {
    return false;
  }
  const jobscript::SubmitOptions options = jobscript::read_submit_options(line);
  return options.script && !options.several && !says_all(options, job);
}

void ScriptReader::read(std::span<const SlurmJob> jobs,
                        SlurmSource& source,
                        const std::stop_token& stop) {
  using std::chrono::milliseconds;
  const auto now = clock_.steady_now();
  if (!period_ || now - *period_ >= kPeriod) {
    period_ = now;
    spent_ = milliseconds(0);
  }
  if (jobs.empty()) {
    return;
  }
  if (spent_ >= kPeriodTime) {
    note(false, fmt::format("sacct --batch-script took {} s within {} minutes",
                            std::chrono::duration_cast<std::chrono::seconds>(kPeriodTime).count(),
                            kPeriod.count()));
    return;
  }
  read_until(now + std::min(kFetchTime, kPeriodTime - spent_), jobs, source, stop);
  spent_ += std::chrono::ceil<milliseconds>(clock_.steady_now() - now);
}

void ScriptReader::read_until(Clock::SteadyTime deadline,
                              std::span<const SlurmJob> jobs,
                              SlurmSource& source,
                              const std::stop_token& stop) {
  // Ended jobs first, because they are not listed again; what failed before, last.
  std::array<Ids, 3> ids;
  std::set<std::string> listed;
  job_of_.clear();
  for (const SlurmJob& job : jobs) {
    std::string key = script_id(job);
    Known& known = known_[key];
    known.fetch = fetch_;
    if (listed.insert(key).second) {
      const std::size_t place = known.failures > 0 ? 2 : job.end_ms ? 0 : 1;
      job_of_[ids.at(place).emplace_back(shown_id(job))] = std::move(key);
    }
  }
  Ids all;
  for (Ids& some : ids) {
    std::ranges::move(some, std::back_inserter(all));
  }
  std::deque<Ids> calls;
  for (std::size_t at = 0; at < all.size(); at += kJobsAtOnce) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(at);
    calls.emplace_back(first,
                       first + static_cast<std::ptrdiff_t>(std::min(kJobsAtOnce, all.size() - at)));
  }
  bool any_worked = false;
  for (int count = 0; count < kMaxCalls && !calls.empty() && !stop.stop_requested(); ++count) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock_.steady_now());
    if (left.count() <= 0) {
      return;
    }
    const Ids some = std::move(calls.front());
    calls.pop_front();
    ScriptOutput output(some);
    const auto done = source.scripts(
        some, std::min(kCallTime, left),
        [&output](std::string_view line) { output.add_line(line); }, stop);
    if (done) {
      any_worked = true;
      auto found = output.finish();
      for (const std::string& id : some) {
        if (some.size() > 1 && found[id].doubtful) {
          calls.push_back({id});
        }
      }
      take(some, std::move(found));
    } else if (some.size() > 1) {
      // One of them may be to blame.
      const auto middle = some.begin() + static_cast<std::ptrdiff_t>(some.size() / 2);
      calls.emplace_front(middle, some.end());
      calls.emplace_front(some.begin(), middle);
    } else {
      Known& known = known_[job_of_[some.front()]];
      known.asked = ++known.failures >= kMaxScriptFailures;
      if (!any_worked) {
        note(false, done.error().message);
        return;
      }
    }
  }
  if (any_worked) {
    note(true, {});
  }
}

void ScriptReader::take(const Ids& ids, std::map<std::string, ScriptOutput::Found> found) {
  for (const std::string& id : ids) {
    const ScriptOutput::Found& script = found[id];
    Known& known = known_[job_of_[id]];
    known.asked = !script.doubtful || ids.size() == 1;
    known.directives = script.directives.value_or("");
    has_scripts_ = has_scripts_ || script.directives;
  }
}

void ScriptReader::note(bool works, const std::string& error) {
  if (!works && !std::exchange(fails_, true)) {
    log::warn("cannot read the directives of jobs; advice goes by their commands alone",
              {{"cluster_id", cluster_id_}, {"error", error}});
  } else if (works && std::exchange(fails_, false)) {
    log::info("the directives of jobs can be read again", {{"cluster_id", cluster_id_}});
  }
  if (works && !has_scripts_ && !std::exchange(said_none_, true)) {
    log::warn("SLURM has none of the scripts asked for; is AccountingStoreFlags=job_script set?",
              {{"cluster_id", cluster_id_}});
  }
}

}  // namespace ceems::ingest
