#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "ingest/manager/slurm/slurm.h"
#include "testing/fake_clock.h"

namespace ceems::ingest {

/// A SLURM whose answers the test sets, and which notes what it was asked. Scripts come in the form
/// of sacct.
class FakeSlurmSource final : public SlurmSource {
 public:
  using Ids = std::vector<std::string>;

  Result<> jobs(model::Window /*window*/, const JobSink& job, std::stop_token /*stop*/) override {
    std::ranges::for_each(in_window, job);
    return ok ? Result<>() : fail(ErrorCode::kUnavailable, "away");
  }
  Result<> jobs_by_id(const Ids& ids, const JobSink& job, std::stop_token /*stop*/) override {
    asked.push_back(ids);
    std::ranges::for_each(by_id, job);
    return ids_ok ? Result<>() : fail(ErrorCode::kUnavailable, "away");
  }
  Result<std::set<Membership>> associations(std::stop_token /*stop*/) override {
    return std::set<Membership>();
  }
  Result<ProjectLeads> coordinators(std::stop_token /*stop*/) override { return ProjectLeads(); }
  Result<> scripts(const Ids& ids,
                   std::chrono::milliseconds timeout,
                   const std::function<void(std::string_view)>& line,
                   const std::stop_token& /*stop*/) override {
    asked_scripts.push_back(ids);
    clock.advance(std::min(script_takes, timeout));
    if (script_takes > timeout || std::ranges::any_of(ids, [this](const std::string& id) {
          return broken_scripts.contains(id) || broken_scripts.contains("all");
        })) {
      return fail(ErrorCode::kTimeout, "hangs");
    }
    for (const std::string& id : ids) {
      line("Batch Script for " + id);
      line(std::string(80, '-'));
      line("#!/bin/sh");
      const std::string& text = script_of.try_emplace(id, "#SBATCH -n1").first->second;
      for (std::string_view rest = text; !rest.empty();) {
        line(take_until(rest, '\n'));
      }
    }
    return {};
  }
  Result<std::optional<PartitionLimits>> limits(const std::stop_token& /*stop*/) override {
    ++asked_limits;
    return limits_ok ? Result<std::optional<PartitionLimits>>(partitions)
                     : fail(ErrorCode::kTimeout, "hangs");
  }
  Result<std::optional<AccountLimits>> account_limits(const std::string& cluster,
                                                      const std::stop_token& /*stop*/) override {
    asked_accounts.push_back(cluster);
    return accounts_ok ? Result<std::optional<AccountLimits>>(accounts)
                       : fail(ErrorCode::kTimeout, "hangs");
  }

  testing::FakeClock clock;
  std::vector<SlurmJob> in_window;
  std::vector<SlurmJob> by_id;
  bool ok = true;
  bool ids_ok = true;
  std::vector<Ids> asked;  ///< by id

  std::map<std::string, std::string> script_of;
  std::set<std::string> broken_scripts;  ///< or "all"
  std::chrono::milliseconds script_takes{10};
  std::vector<Ids> asked_scripts;

  std::optional<PartitionLimits> partitions;
  bool limits_ok = true;
  int asked_limits = 0;
  std::optional<AccountLimits> accounts;
  bool accounts_ok = true;
  std::vector<std::string> asked_accounts;  ///< names of clusters
};

}  // namespace ceems::ingest
