#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/report/maker.h"
#include "base/clock.h"
#include "mail/sender.h"
#include "store/reader.h"

namespace ceems::api {

/// Reports for mails: as the user of the job may see them, from the database and the TSDB.
class MailReports final : public mail::ReportSource {
 public:
  /// All outlive the object. `measured` says whether a cluster has a TSDB, whose samples may come
  /// late.
  MailReports(store::Reader& reader,
              const ReportMaker& maker,
              std::function<bool(const std::string&)> measured,
              const Clock& clock)
      : reader_(reader), maker_(maker), measured_(std::move(measured)), clock_(clock) {}

  Result<std::optional<mail::KnownReport>> report(const std::string& cluster_id,
                                                  const std::string& user,
                                                  const std::string& job,
                                                  std::int64_t ended_after_ms) override;
  Result<> add_energy(const std::string& cluster_id,
                      const std::string& user,
                      const std::vector<std::string>& jobs,
                      mail::ArraySums& sums) override;

 private:
  store::Reader& reader_;
  const ReportMaker& maker_;
  std::function<bool(const std::string&)> measured_;
  const Clock& clock_;
};

}  // namespace ceems::api
