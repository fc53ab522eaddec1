#include "api/routes.h"

#include <array>

namespace ceems::api {
namespace {

constexpr ParamSet kUnitParams{
    Param::kClusterId, Param::kProject,   Param::kUuid,  Param::kFrom,
    Param::kTo,        Param::kRunning,   Param::kField, Param::kTimeZone,
    Param::kLimit,     Param::kCursor,    Param::kSort,  Param::kOrder,
    Param::kMatch,     Param::kPartition, Param::kQos,   Param::kQueue};
constexpr ParamSet kCurrentParams{
    Param::kClusterId, Param::kProject,      Param::kFrom,       Param::kTo,    Param::kField,
    Param::kGroupBy,   Param::kExperimental, Param::kTerminated, Param::kMatch, Param::kPartition,
    Param::kQos,       Param::kQueue,        Param::kLimit,      Param::kCursor};
constexpr ParamSet kGlobalParams{Param::kClusterId, Param::kProject, Param::kField,
                                 Param::kLimit,     Param::kCursor,  Param::kMatch};
constexpr ParamSet kPeopleParams{Param::kClusterId, Param::kProject, Param::kLimit, Param::kCursor};

constexpr ParamSet kReportParams{Param::kClusterId, Param::kProject, Param::kUuid,
                                 Param::kStart,     Param::kSoFar,   Param::kLanguage,
                                 Param::kFormat,    Param::kWidth,   Param::kAllFindings};
constexpr ParamSet kFindingParams{Param::kClusterId, Param::kProject, Param::kUser,
                                  Param::kUuid,      Param::kFrom,    Param::kTo,
                                  Param::kRule,      Param::kSeverity};
constexpr ParamSet kFilterParams{
    Param::kClusterId, Param::kProject, Param::kUser,  Param::kUuid,  Param::kFrom,
    Param::kTo,        Param::kRunning, Param::kWords, Param::kState, Param::kPartitionName,
    Param::kAdvice,    Param::kCpu,     Param::kMem,   Param::kGpu,   Param::kGpuMem,
    Param::kKwh,       Param::kUnused,  Param::kGrams, Param::kWall};
constexpr ParamSet kListParams = kFilterParams.with(Param::kSort)
                                     .with(Param::kOrder)
                                     .with(Param::kLimit)
                                     .with(Param::kCursor)
                                     .with(Param::kColumns)
                                     .with(Param::kFormat);
constexpr ParamSet kSummaryParams =
    kFilterParams.with(Param::kFacets).with(Param::kHeat).with(Param::kBins);
constexpr ParamSet kUsageSeriesParams{
    Param::kClusterId, Param::kProject, Param::kUser, Param::kFrom, Param::kTo,
    Param::kField,     Param::kStep,    Param::kBy,   Param::kTop,  Param::kPrevious};

constexpr ParamSet kIdleParams{Param::kClusterId, Param::kProject, Param::kFrom, Param::kTo,
                               Param::kBy};

constexpr ParamSet kDigestParams{Param::kClusterId, Param::kProject,  Param::kMonth,
                                 Param::kFormat,    Param::kLanguage, Param::kWidth};

constexpr std::size_t kUnitKey = 3;    // cluster, id, start
constexpr std::size_t kPersonKey = 2;  // cluster, name
constexpr std::size_t kUsageKey = 3;   // cluster, user, project
constexpr std::size_t kGroupKey = 5;   // the same, group name and resource manager

constexpr std::array kRoutes = {
    Route{.path = "clusters/admin",
          .caller = Caller::kAdmin,
          .handler = get_clusters,
          .shape = Shape::kClusters,
          .audited = false,
          .summary = "Clusters that have units."},
    Route{.path = "demo/units",
          .caller = Caller::kAnyone,
          .handler = get_demo_units,
          .shape = Shape::kUnits,
          .tagged = false,
          .summary = "Random units, for developing dashboards."},
    Route{.path = "demo/usage",
          .caller = Caller::kAnyone,
          .handler = get_demo_usage,
          .shape = Shape::kUsage,
          .tagged = false,
          .summary = "Random usage, for developing dashboards."},
    Route{.path = "gpus",
          .caller = Caller::kUser,
          .handler = get_gpus,
          .shape = Shape::kGpuBoard,
          .params = {Param::kClusterId},
          .tagged = false,
          .summary = "GPUs in the last 70 minutes, with the use by the caller's units."},
    Route{.path = "gpus/admin",
          .caller = Caller::kAdmin,
          .handler = get_gpus,
          .shape = Shape::kGpuBoard,
          .params = {Param::kClusterId},
          .tagged = false,
          .summary = "GPUs in the last 70 minutes, with their use by all units."},
    Route{.path = "grid",
          .caller = Caller::kUser,
          .handler = get_grid,
          .shape = Shape::kGrid,
          .params = {Param::kFrom, Param::kTo},
          .window = WindowKind::kOwn,
          .tagged = false,
          .audited = false,
          .summary = "Carbon intensity of the grid."},
    Route{.path = "insight/bill/admin",
          .caller = Caller::kAdmin,
          .handler = get_bill,
          .shape = Shape::kBill,
          .params = {Param::kClusterId, Param::kMonth},
          .tagged = false,
          .audited = false,
          .summary = "The energy of a month by what it was used for, against the utility's meter."},
    Route{.path = "insight/budgets",
          .caller = Caller::kUser,
          .handler = get_budgets,
          .shape = Shape::kBudgets,
          .params = {Param::kClusterId, Param::kProject, Param::kFormat},
          .tagged = false,
          .audited = false,
          .summary = "What projects used of their budgets, and will have used at the end."},
    Route{.path = "insight/idle",
          .caller = Caller::kUser,
          .handler = get_idle,
          .shape = Shape::kIdle,
          .params = kIdleParams.with(Param::kScope),
          .window = WindowKind::kOwn,
          .tagged = false,
          .summary = "The caller's units that do nothing now, or energy that was not used."},
    Route{.path = "insight/idle/admin",
          .caller = Caller::kAdmin,
          .handler = get_idle,
          .shape = Shape::kIdle,
          .params = kIdleParams,
          .window = WindowKind::kOwn,
          .tagged = false,
          .summary = "Everybody's units that do nothing now, or energy that was not used."},
    Route{.path = "nodes/admin",
          .caller = Caller::kAdmin,
          .handler = get_nodes,
          .shape = Shape::kNodeTable,
          .params = {Param::kClusterId, Param::kHost, Param::kWords, Param::kState, Param::kSort,
                     Param::kOrder, Param::kLimit, Param::kCursor, Param::kColumns, Param::kFormat},
          .table = true,
          .tagged = false,
          .audited = false,
          .summary = "Nodes and what they do now."},
    Route{.path = "nodes/series/admin",
          .caller = Caller::kAdmin,
          .handler = get_node_series,
          .shape = Shape::kSeries,
          .params = {Param::kClusterId, Param::kHost, Param::kMetric, Param::kFrom, Param::kTo},
          .window = WindowKind::kOwn,
          .tagged = false,
          .audited = false,
          .summary = "CPU, memory, GPU, power and units of a node over time."},
    Route{.path = "projects",
          .caller = Caller::kUser,
          .handler = get_projects,
          .shape = Shape::kProjects,
          .params = kPeopleParams.with(Param::kScope),
          .page_key = kPersonKey,
          .summary = "Projects that have the caller as a member."},
    Route{.path = "projects/admin",
          .caller = Caller::kAdmin,
          .handler = get_projects,
          .shape = Shape::kProjects,
          .params = kPeopleParams,
          .page_key = kPersonKey,
          .summary = "All projects that have members."},
    Route{.path = "site",
          .caller = Caller::kUser,
          .handler = get_site,
          .shape = Shape::kSite,
          .tagged = false,
          .audited = false,
          .summary = "What the web page shows of this site."},
    Route{.path = "stats/current/admin",
          .caller = Caller::kAdmin,
          .handler = get_current_stats,
          .shape = Shape::kStats,
          .params = {Param::kClusterId, Param::kFrom, Param::kTo},
          .window = WindowKind::kEnded,
          .audited = false,
          .summary = "Number of units per cluster that ended in the window or are running."},
    Route{.path = "stats/global/admin",
          .caller = Caller::kAdmin,
          .handler = get_global_stats,
          .shape = Shape::kStats,
          .params = {Param::kClusterId},
          .audited = false,
          .summary = "Number of units per cluster."},
    Route{.path = "units",
          .caller = Caller::kUser,
          .handler = get_units,
          .shape = Shape::kUnits,
          .params = kUnitParams.with(Param::kScope),
          .window = WindowKind::kEnded,
          .page_key = kUnitKey,
          .summary = "The caller's units that ended in the window."},
    Route{.path = "units/admin",
          .caller = Caller::kAdmin,
          .handler = get_units,
          .shape = Shape::kUnits,
          .params = kUnitParams.with(Param::kUser),
          .window = WindowKind::kEnded,
          .page_key = kUnitKey,
          .summary = "All units that ended in the window."},
    Route{.path = "units/compare",
          .caller = Caller::kUser,
          .handler = compare_units,
          .shape = Shape::kReports,
          .params = kReportParams,
          .tagged = false,
          .summary = "Two of the caller's units, compared."},
    Route{.path = "units/compare/admin",
          .caller = Caller::kAdmin,
          .handler = compare_units,
          .shape = Shape::kReports,
          .params = kReportParams,
          .tagged = false,
          .summary = "Two units, compared."},
    Route{.path = "units/findings",
          .caller = Caller::kUser,
          .handler = get_findings,
          .shape = Shape::kFindings,
          .params = kFindingParams.with(Param::kScope),
          .window = WindowKind::kEnded,
          .summary = "What the reports of the caller's units suggest."},
    Route{.path = "units/findings/admin",
          .caller = Caller::kAdmin,
          .handler = get_findings,
          .shape = Shape::kFindings,
          .params = kFindingParams,
          .window = WindowKind::kEnded,
          .summary = "What the reports of everybody's units suggest."},
    Route{.path = "units/list",
          .caller = Caller::kUser,
          .handler = get_unit_list,
          .shape = Shape::kUnitTable,
          .params = kListParams.with(Param::kScope),
          .window = WindowKind::kListed,
          .table = true,
          .summary = "The caller's units: filtered, sorted and in pages; or all as CSV."},
    Route{.path = "units/list/admin",
          .caller = Caller::kAdmin,
          .handler = get_unit_list,
          .shape = Shape::kUnitTable,
          .params = kListParams,
          .window = WindowKind::kListed,
          .table = true,
          .summary = "Everybody's units: filtered, sorted and in pages; or all as CSV."},
    Route{.path = "units/on-node/admin",
          .caller = Caller::kAdmin,
          .handler = get_units_on_node,
          .shape = Shape::kNodeUnits,
          .params = {Param::kClusterId, Param::kHost, Param::kFrom, Param::kTo},
          .window = WindowKind::kOwn,
          .tagged = false,
          .summary = "Units that ran on a node."},
    Route{.path = "units/report",
          .caller = Caller::kUser,
          .handler = get_report,
          .shape = Shape::kReports,
          .params = kReportParams,
          .tagged = false,
          .summary = "What one of the caller's units used and cost, and what would help."},
    Route{.path = "units/report/admin",
          .caller = Caller::kAdmin,
          .handler = get_report,
          .shape = Shape::kReports,
          .params = kReportParams,
          .tagged = false,
          .summary = "What a unit used and cost, and what would help."},
    Route{.path = "units/series",
          .caller = Caller::kUser,
          .handler = get_unit_series,
          .shape = Shape::kSeries,
          .params = {Param::kClusterId, Param::kProject, Param::kUuid, Param::kFrom, Param::kTo},
          .window = WindowKind::kOwn,
          .tagged = false,
          .summary = "CPU, memory and power of one of the caller's units over time."},
    Route{.path = "units/summary",
          .caller = Caller::kUser,
          .handler = get_unit_summary,
          .shape = Shape::kUnitSums,
          .params = kSummaryParams.with(Param::kScope),
          .window = WindowKind::kListed,
          .summary = "Sums over the caller's units, and how many there are of each kind."},
    Route{.path = "units/summary/admin",
          .caller = Caller::kAdmin,
          .handler = get_unit_summary,
          .shape = Shape::kUnitSums,
          .params = kSummaryParams,
          .window = WindowKind::kListed,
          .summary = "Sums over everybody's units, and how many there are of each kind."},
    Route{.path = "units/verify",
          .caller = Caller::kUser,
          .handler = verify_units,
          .shape = Shape::kNothing,
          .params = {Param::kClusterId, Param::kUuid},
          .summary = "Whether the caller may see the metrics of all these units: 200 or 403."},
    Route{.path = "usage/current",
          .caller = Caller::kUser,
          .handler = get_current_usage,
          .shape = Shape::kUsage,
          .params = kCurrentParams.with(Param::kScope),
          .window = WindowKind::kRounded,
          .page_key = kGroupKey,
          .summary = "Usage by the members of the caller's projects in the window."},
    Route{.path = "usage/current/admin",
          .caller = Caller::kAdmin,
          .handler = get_current_usage,
          .shape = Shape::kUsage,
          .params = kCurrentParams.with(Param::kUser),
          .window = WindowKind::kRounded,
          .page_key = kGroupKey,
          .summary = "Usage by all users in the window."},
    Route{.path = "usage/digest",
          .caller = Caller::kUser,
          .handler = get_digest,
          .shape = Shape::kDigest,
          .params = kDigestParams,
          .tagged = false,
          .summary = "The month of the caller or of a project against the months before."},
    Route{.path = "usage/global",
          .caller = Caller::kUser,
          .handler = get_global_usage,
          .shape = Shape::kUsage,
          .params = kGlobalParams.with(Param::kScope),
          .page_key = kUsageKey,
          .summary = "Usage by the members of the caller's projects so far."},
    Route{.path = "usage/global/admin",
          .caller = Caller::kAdmin,
          .handler = get_global_usage,
          .shape = Shape::kUsage,
          .params = kGlobalParams.with(Param::kUser),
          .page_key = kUsageKey,
          .summary = "Usage by all users so far."},
    Route{.path = "usage/series",
          .caller = Caller::kUser,
          .handler = get_usage_series,
          .shape = Shape::kUsageSeries,
          .params = kUsageSeriesParams.with(Param::kScope),
          .window = WindowKind::kOwn,
          .summary = "Usage by the members of the caller's projects, by hour, day or month."},
    Route{.path = "usage/series/admin",
          .caller = Caller::kAdmin,
          .handler = get_usage_series,
          .shape = Shape::kUsageSeries,
          .params = kUsageSeriesParams,
          .window = WindowKind::kOwn,
          .summary = "Usage by all users, by hour, day or month."},
    Route{.path = "users",
          .caller = Caller::kUser,
          .handler = get_users,
          .shape = Shape::kUsers,
          .params = kPeopleParams,
          .page_key = kPersonKey,
          .summary = "The caller and the projects they are a member of."},
    Route{.path = "users/admin",
          .caller = Caller::kAdmin,
          .handler = get_users,
          .shape = Shape::kUsers,
          .params = kPeopleParams.with(Param::kUser).with(Param::kRole),
          .page_key = kPersonKey,
          .summary = "All users, or the administrators."},
    Route{.path = "whoami",
          .caller = Caller::kUser,
          .handler = get_whoami,
          .shape = Shape::kIdentity,
          .params = {Param::kAnonymous},
          .tagged = false,
          .summary = "The identity and the role of the caller."},
};

}  // namespace

std::span<const store::Field> fields_of(Shape shape) {
  switch (shape) {
    case Shape::kUnits:
      return store::unit_fields();
    case Shape::kUsage:
      return store::usage_fields();
    case Shape::kUsers:
      return store::user_fields();
    case Shape::kProjects:
      return store::project_fields();
    case Shape::kClusters:
      return store::cluster_fields();
    case Shape::kStats:
      return store::stat_fields();
    case Shape::kSeries:
    case Shape::kIdentity:
    case Shape::kSite:
    case Shape::kReports:
    case Shape::kIdle:
    case Shape::kBudgets:
    case Shape::kBill:
    case Shape::kUnitTable:
    case Shape::kUnitSums:
    case Shape::kUsageSeries:
    case Shape::kNodeTable:
    case Shape::kNodeUnits:
    case Shape::kGrid:
    case Shape::kFindings:
    case Shape::kGpuBoard:
    case Shape::kDigest:
    case Shape::kNothing:
      break;
  }
  return {};
}

std::span<const Route> all_routes() {
  return kRoutes;
}

const Route* find_route(std::string_view path) {
  for (const Route& route : kRoutes) {
    if (route.path == path) {
      return &route;
    }
  }
  return nullptr;
}

}  // namespace ceems::api
