#include "ingest/manager/openpbs/openpbs.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_cutter.h"
#include "base/log.h"
#include "base/strings.h"
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
    const std::int64_t asked_ms = clock_.now_ms();
    CEEMS_TRY_IN("output of qstat", listing, list(from, stop));
    CEEMS_TRY(check(listing, stop));
    reading_ = {.asked_ms = asked_ms, .from_ms = from, .jobs = std::move(listing.jobs)};
    return {};
  }

  // In an environment without escapes, a user can write anything, such as whole records. What
  // stands in front of the environment of a job that was asked for alone is true.

  struct Listing {
    std::vector<BatchJob> jobs;
    std::set<std::string> seen;
    std::set<std::string> twice;                ///< ids that more than one record has
    std::map<std::string, std::string> owners;  ///< who submitted a job that another user runs
    bool environments = false;
    bool shows_users = true;  ///< all records that could be read have `euser`
  };

  Result<Listing> list(std::int64_t from, const std::stop_token& stop) {
    rules_.zone = commands_.zone();
    rules_.now_ms = clock_.now_ms();
    Listing listing;
    std::string failed;
    JsonCutter cutter(
        {"Jobs"},
        [&](const JsonCutter::Element& element) -> Result<> {
          const std::string id(element.key);
          if ((!element.damaged || id != failed) && !listing.seen.insert(id).second) {
            listing.twice.insert(id);
          }
          auto found = take(element, from, listing);
          failed = found ? "" : id;
          return found;
        },
        is_job_id);
    // -t lists the elements of job arrays, which are the units; without it only the arrays.
    CEEMS_TRY(commands_.run(
        "qstat", {"-f", "-F", "json", "-x", "-t"},
        [&](std::string_view line) { return cutter.add(line); }, stop));
    CEEMS_TRY(cutter.finish());
    CEEMS_TRY(commands_.note_left_out("qstat", cutter));
    return listing;
  }

  /// Jobs that ended before `from` are left out.
  Result<> take(const JsonCutter::Element& element, std::int64_t from, Listing& listing) {
    const bool environment = has_environment(element.json);
    listing.environments = listing.environments || environment;
    auto found = parse_job(element.key, element.json, rules_);
    if (!found && element.damaged) {
      found = parse_job(element.key, without_environment(element.json), rules_);
    } else if (found && environment && !element.json.contains(R"("euser")")) {
      listing.shows_users = false;
    }
    if (!found) {
      return fail(std::move(found).error());
    }
    std::optional<BatchJob>& job = *found;
    if (job && (job->end_ms == 0 || job->end_ms >= from)) {
      const std::string_view owner = owner_of(element.json);
      if (environment && owner != job->user) {
        listing.owners.emplace(element.key, owner);
      }
      listing.jobs.push_back(*std::move(job));
    }
    return {};
  }

  /// Leaves out records of jobs that the server does not know, and asks again for each job that has
  /// several records.
  Result<> check(Listing& listing, const std::stop_token& stop) {
    if (!listing.environments) {
      return {};
    }
    if (!listing.shows_users) {
      for (BatchJob& found : listing.jobs) {
        const auto owner = listing.owners.find(found.id);
        found.user = owner == listing.owners.end() ? found.user : owner->second;
      }
    }
    CEEMS_TRY(unknown, unknown_ids(listing, stop));
    std::erase_if(listing.jobs, [&](const BatchJob& found) {
      return unknown.contains(found.id) || listing.twice.contains(found.id);
    });
    std::size_t asked = 0;
    for (const std::string& id : listing.twice) {
      if (!unknown.contains(id) && ++asked > kMaxAskedAlone) {
        unknown.insert(id);
      }
      if (unknown.contains(id)) {
        continue;
      }
      CEEMS_TRY_IN("output of qstat", job, ask_alone(id, stop));
      if (job) {
        listing.jobs.push_back(std::move(*job));
      }
    }
    commands_.note_left_out(
        "qselect", unknown.size(),
        unknown.empty() ? std::string()
                        : "job " + *unknown.begin() + ": an environment holds a record of it");
    return {};
  }

  /// The ids of records of jobs that the server does not have, by qselect, whose output has no text
  /// of users in it; none if there is no qselect. It is asked after qstat, so that a new job is not
  /// taken for an invented one.
  Result<std::set<std::string, std::less<>>> unknown_ids(const Listing& listing,
                                                         const std::stop_token& stop) {
    std::set<std::string, std::less<>> unknown(listing.twice.begin(), listing.twice.end());
    for (const BatchJob& found : listing.jobs) {
      unknown.insert(found.id);
    }
    auto done = commands_.run(
        "qselect", {"-x", "-T"},
        [&unknown](std::string_view line) -> Result<> {
          if (const auto known = unknown.find(trim(line)); known != unknown.end()) {
            unknown.erase(known);
          }
          return {};
        },
        stop);
    if (done) {
      return unknown;
    }
    if (done.error().code != ErrorCode::kNotFound) {
      return fail(std::move(done).error().with_context("output of qselect"));
    }
    if (!std::exchange(warned_, true)) {
      log::warn("records of jobs cannot be checked, because qselect is not beside qstat",
                {{"cluster_id", commands_.cluster_id()}});
    }
    return std::set<std::string, std::less<>>();
  }

  /// The first record is that of the job; nothing if it cannot be read or has not started.
  Result<std::optional<BatchJob>> ask_alone(const std::string& id, const std::stop_token& stop) {
    std::optional<BatchJob> job;
    bool first = true;
    JsonCutter cutter(
        {"Jobs"},
        [&](const JsonCutter::Element& element) -> Result<> {
          if (!std::exchange(first, false) || element.key != id) {
            return {};
          }
          auto found = has_environment(element.json)
                           ? parse_job(id, without_environment(element.json), rules_)
                           : parse_job(id, element.json, rules_);
          job = found ? std::move(*found) : std::nullopt;
          return {};
        },
        is_job_id);
    CEEMS_TRY(commands_.run(
        "qstat", {"-f", "-F", "json", "-x", "-t", id},
        [&](std::string_view line) { return cutter.add(line); }, stop));
    static_cast<void>(cutter.finish());  // what follows the first record does not matter
    return job;
  }

  static constexpr std::size_t kMaxAskedAlone = 1000;

  BatchCommands commands_;
  JobRules rules_;
  const Clock& clock_;
  Reading reading_;
  bool warned_ = false;
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
