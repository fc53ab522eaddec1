#include "store/reports.h"

#include <stop_token>

#include "store/reader.h"
#include "store/store.h"

namespace ceems::store {
namespace {

std::unexpected<Error> no_reports() {
  return fail(ErrorCode::kInvalidArgument, "this database keeps no reports");
}

}  // namespace

Result<std::optional<StoredReport>> Reader::stored_report(const ReportKey& /*key*/) {
  return no_reports();
}
Result<std::vector<FamilyRun>> Reader::family_runs(const FamilyQuery& /*query*/) {
  return no_reports();
}
Result<std::vector<DueReport>> Reader::due_reports(std::int64_t /*now_ms*/,
                                                   std::int64_t /*ended_before_ms*/,
                                                   const std::vector<std::string>& /*without*/,
                                                   std::size_t /*limit*/) {
  return no_reports();
}
Result<std::int64_t> Reader::open_reports() {
  return no_reports();
}
Result<std::vector<UnitFinding>> Reader::findings(const FindingQuery& /*query*/) {
  return no_reports();
}

Result<std::size_t> Writer::store_reports(const std::vector<ReportRow>& /*reports*/) {
  return no_reports();
}
Result<> Writer::store_strips(const std::vector<UnitStrip>& /*strips*/) {
  return no_reports();
}
Result<> Writer::postpone_reports(const std::vector<ReportKey>& /*keys*/, std::int64_t /*due_ms*/) {
  return no_reports();
}
Result<> Writer::drop_reports(const std::vector<ReportKey>& /*keys*/) {
  return no_reports();
}
Result<> Writer::purge_reports(std::int64_t /*cutoff_ms*/, const std::stop_token& /*stop*/) {
  return no_reports();
}

}  // namespace ceems::store
