#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "access/policy.h"
#include "advice/rules_in_use.h"
#include "api/accounting/accounting.h"
#include "api/check/job_request.h"
#include "api/site.h"
#include "api/tsdb/fleet.h"
#include "api/tsdb/grid_outlook.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "report/expectation.h"
#include "store/reader.h"

namespace ceems::api {

/// Says what a job would probably use, before it is submitted (docs/check.md). Safe for concurrent
/// use.
class JobCheck {
 public:
  /// All outlive it; `fleet` may be null.
  struct Sources {
    store::Reader* reader = nullptr;
    Fleet* fleet = nullptr;
    const Accounting* accounting = nullptr;
    const advice::RulesInUse* rules = nullptr;
    const SiteOptions* site = nullptr;
    const Clock* clock = nullptr;
    TimeZone zone = {};
  };
  explicit JobCheck(Sources sources) : from_(sources) {}

  /// The answer as a JSON object. It asks no TSDB. kInvalidArgument for a cluster that the site
  /// does not have; passes on errors of the reader.
  [[nodiscard]] Result<std::string> check(const access::Identity& identity,
                                          const JobRequest& request,
                                          std::string_view language) CEEMS_EXCLUDES(mutex_);

  /// Once there was a request: refresh(). Called now and then, so that the next request finds
  /// something new.
  void keep_fresh() CEEMS_EXCLUDES(mutex_);

 private:
  /// The outlook of the grid, and how often ranges held on each cluster.
  struct Background {
    GridOutlook grid = {};
    std::map<std::string, report::Held, std::less<>> held = {};
  };
  /// Reads in the background what answers need beside the rows of the caller, unless that was done
  /// in the last half hour.
  void refresh() CEEMS_EXCLUDES(mutex_);
  [[nodiscard]] Background read_background(std::int64_t now_ms) const;
  [[nodiscard]] std::shared_ptr<const Background> background() CEEMS_EXCLUDES(mutex_);
  /// The manager of the lines to suggest.
  [[nodiscard]] Result<std::string> manager_of(const JobRequest& request) const;

  Sources from_;
  Mutex mutex_;
  std::shared_ptr<const Background> background_ CEEMS_GUARDED_BY(mutex_) =
      std::make_shared<Background>();
  std::optional<Clock::SteadyTime> next_ CEEMS_GUARDED_BY(mutex_);
  bool reading_ CEEMS_GUARDED_BY(mutex_) = false;
  std::jthread reader_ CEEMS_GUARDED_BY(mutex_);  // last, so that it ends before the others
};

}  // namespace ceems::api
