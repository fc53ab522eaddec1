#include "api/report/final_report.h"

#include <utility>

#include "api/report/month.h"
#include "base/log.h"
#include "base/strings.h"
#include "report/stored.h"

namespace ceems::api {

Result<std::optional<FinalReport>> read_final_report(store::Reader& reader,
                                                     const store::ReportKey& key,
                                                     const std::string& project,
                                                     const store::Scope& members) {
  CEEMS_TRY(stored, reader.stored_report(key));
  const store::StoredReport known = stored.value_or(store::StoredReport{});
  if (!known.final || known.version != report::kStoredVersion) {
    return std::nullopt;
  }
  auto report = report::from_stored(known.body);
  if (!report) {
    log::error("a stored report is malformed; it is made anew",
               {{"uuid", printable(key.uuid)}, {"err", report.error().message}});
    return std::nullopt;
  }
  // It was made for everybody: the caller need not be one of those who see the project's usage.
  CEEMS_TRY(member, sees_project(reader, members, key.cluster_id, project));
  if (!member) {
    report->compared.project_month_share.reset();
  }
  return FinalReport{.report = std::move(*report), .made_ms = known.made_ms, .member = member};
}

}  // namespace ceems::api
