#include "ingest/manager/openpbs/openpbs.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json_cutter.h"
#include "config/section.h"

namespace ceems::ingest::openpbs {
namespace {

class OpenpbsSource final : public BatchSource {
 public:
  OpenpbsSource(BatchCommands commands, JobRules rules, const Clock& clock)
      : commands_(std::move(commands)), rules_(std::move(rules)), clock_(clock) {}

  Result<> jobs(model::Window window, const JobSink& job, std::stop_token stop) override {
    const std::int64_t from = window.start_ms - std::chrono::milliseconds(kBatchOverlap).count();
    if (window.end_ms > reading_.asked_ms || from < reading_.from_ms) {
      CEEMS_TRY(read(from, stop));
    }
    std::erase_if(reading_.jobs, [from](const BatchJob& known) {
      return known.end_ms != 0 && known.end_ms < from;
    });
    reading_.from_ms = from;
    for (const BatchJob& known : reading_.jobs) {
      job(known);
    }
    return {};
  }

  Result<> jobs_by_id(const std::vector<std::string>& /*ids*/,
                      const JobSink& /*job*/,
                      std::stop_token /*stop*/) override {
    return {};  // jobs() has listed all that the server knows
  }

 private:
  /// What qstat printed. It prints the whole history, so windows that had ended by then share it:
  /// an update that has many windows to catch up with asks once.
  struct Reading {
    std::int64_t asked_ms = 0;   ///< it has what happened until then; 0: nothing
    std::int64_t from_ms = 0;    ///< jobs that ended before are left out
    std::vector<BatchJob> jobs;  ///< each as it stood at `asked_ms`
  };

  Result<> read(std::int64_t from, const std::stop_token& stop) {
    reading_ = {};
    Reading reading{.asked_ms = clock_.now_ms(), .from_ms = from, .jobs = {}};
    auto done = qstat(
        [&](BatchJob found) {
          if (found.end_ms == 0 || found.end_ms >= from) {
            reading.jobs.push_back(std::move(found));
          }
        },
        stop);
    if (done) {
      reading_ = std::move(reading);
    }
    return done;
  }

  Result<> qstat(const JobSink& job, const std::stop_token& stop) {
    rules_.zone = commands_.zone();
    rules_.now_ms = clock_.now_ms();
    std::set<std::string> seen;
    JsonCutter cutter(
        {"Jobs"},
        [&](const JsonCutter::Element& element) -> Result<> {
          auto found = parse_job(element.key, element.json, rules_);
          if (!found && element.damaged) {
            found = parse_job(element.key, without_environment(element.json), rules_);
          }
          if (!found) {
            return fail(std::move(found).error());
          }
          if (!found->has_value()) {
            return {};
          }
          // In an environment without escapes, a user can write a record. The true one of the same
          // job is in front of its environment.
          if (!seen.insert((*found)->id).second) {
            return fail(ErrorCode::kParse, "job {}: it is listed twice", element.key);
          }
          job(std::move(**found));
          return {};
        },
        is_job_id);
    // -t lists the elements of job arrays, which are the units; without it only the arrays.
    auto done = commands_.run(
        "qstat", {"-f", "-F", "json", "-x", "-t"},
        [&](std::string_view line) { return cutter.add(line); }, stop);
    if (done) {
      done = cutter.finish();
    }
    if (!done) {
      return fail(std::move(done).error().with_context("output of qstat"));
    }
    return commands_.note_left_out("qstat", cutter);
  }

  BatchCommands commands_;
  JobRules rules_;
  const Clock& clock_;
  Reading reading_;
};

}  // namespace

std::unique_ptr<BatchSource> make_source(BatchCommands commands,
                                         JobRules rules,
                                         const Clock& clock) {
  return std::make_unique<OpenpbsSource>(std::move(commands), std::move(rules), clock);
}

}  // namespace ceems::ingest::openpbs

namespace ceems::ingest {
namespace {

Result<std::vector<openpbs::ProjectSource>> read_projects(const config::Node& extra) {
  std::vector<std::string> names;
  std::vector<openpbs::ProjectSource> projects;
  config::Section section(extra);
  section.list("project_from", names);
  for (const std::string& name : names) {
    if (name == "project") {
      projects.push_back(openpbs::ProjectSource::kProject);
    } else if (name == "account") {
      projects.push_back(openpbs::ProjectSource::kAccount);
    } else if (name == "group") {
      projects.push_back(openpbs::ProjectSource::kGroup);
    } else {
      section.refuse(true, "project_from", "expected a list of project, account and group");
    }
  }
  CEEMS_TRY(section.done());
  return names.empty() ? openpbs::JobRules{}.projects : projects;
}

Result<std::unique_ptr<ResourceManager>> create_openpbs(const ClusterConfig& config,
                                                        const ManagerContext& context) {
  BatchOptions options;
  CEEMS_TRY(read_batch_options(config.extra, options));
  CEEMS_TRY(projects, read_projects(config.extra));
  CEEMS_TRY(commands, BatchCommands::create(config, options, "qstat", {}, *context.runner));
  openpbs::JobRules rules;
  rules.projects = std::move(projects);
  return make_batch_manager(
      config.cluster.id,
      openpbs::make_source(std::move(commands), std::move(rules), *context.clock), context.zone,
      options.members);
}

}  // namespace

/// clusters[].manager: openpbs, for OpenPBS and PBS Professional.
ManagerSpec openpbs_manager() {
  return {.name = "openpbs",
          .units = "jobs",
          .source = "`qstat` with job history",
          .reads_cli = true,
          .extra_keys = {"command_timeout", "time_zone", "members", "project_from"},
          .create = create_openpbs};
}

}  // namespace ceems::ingest
