#include "ingest/manager/openpbs/openpbs.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "config/section.h"
#include "ingest/manager/batch/text.h"

namespace ceems::ingest::openpbs {
namespace {

class OpenpbsSource final : public BatchSource {
 public:
  OpenpbsSource(BatchCommands commands, JobRules rules, const Clock& clock)
      : commands_(std::move(commands)), rules_(std::move(rules)), clock_(clock) {}

  Result<> jobs(model::Window window, const JobSink& job, std::stop_token stop) override {
    const std::int64_t from = window.start_ms - std::chrono::milliseconds(kBatchOverlap).count();
    // The history has jobs of many days; those that ended long ago have been reported.
    return qstat(
        [&](BatchJob found) {
          if (found.end_ms == 0 || found.end_ms >= from) {
            job(std::move(found));
          }
        },
        stop);
  }

  Result<> jobs_by_id(const std::vector<std::string>& /*ids*/,
                      const JobSink& /*job*/,
                      std::stop_token /*stop*/) override {
    return {};  // jobs() has listed all that the server knows
  }

 private:
  Result<> qstat(const JobSink& job, const std::stop_token& stop) {
    rules_.zone = commands_.zone();
    rules_.now_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(clock_.now().time_since_epoch())
            .count();
    std::size_t malformed = 0;
    std::string first;
    JsonCutter cutter("Jobs", [&](std::string_view id, std::string_view text) -> Result<> {
      auto found = parse_job(id, text, rules_);
      if (!found) {
        if (malformed++ == 0) {
          first = found.error().message;
        }
      } else if (found->has_value()) {
        job(std::move(**found));
      }
      return {};
    });
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
    note_malformed(malformed, first);
    return {};
  }

  void note_malformed(std::size_t count, const std::string& first) {
    if (count > 0 && !std::exchange(malformed_, true)) {
      log::warn("jobs of qstat left out",
                {{"cluster_id", commands_.cluster_id()}, {"jobs", count}, {"first", first}});
    } else if (count == 0 && std::exchange(malformed_, false)) {
      log::info("jobs of qstat are all readable again", {{"cluster_id", commands_.cluster_id()}});
    }
  }

  BatchCommands commands_;
  JobRules rules_;
  const Clock& clock_;
  bool malformed_ = false;
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
  if (auto done = section.done(); !done) {
    return fail(std::move(done).error());
  }
  return names.empty() ? openpbs::JobRules{}.projects : projects;
}

Result<std::unique_ptr<ResourceManager>> create_openpbs(const ClusterConfig& config,
                                                        const ManagerContext& context) {
  BatchOptions options;
  if (auto done = read_batch_options(config.extra, options); !done) {
    return fail(std::move(done).error());
  }
  auto projects = read_projects(config.extra);
  if (!projects) {
    return fail(std::move(projects).error());
  }
  auto commands = BatchCommands::create(config, options, "qstat", {}, *context.runner);
  if (!commands) {
    return fail(std::move(commands).error());
  }
  openpbs::JobRules rules;
  rules.projects = *std::move(projects);
  return make_batch_manager(
      config.cluster.id,
      openpbs::make_source(*std::move(commands), std::move(rules), *context.clock), context.zone,
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
