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

/// Reports for mails, as the user of the job may see them: the final report that is stored, as on
/// the page and in `cacct report`; until there is one, what is known.
class MailReports final : public mail::ReportSource {
 public:
  struct Setup {
    bool stored = true;  ///< a finisher stores final reports; otherwise those made here are final
    /// Whether a cluster has a TSDB, whose samples may come late. Without a finisher only.
    std::function<bool(const std::string&)> measured = {};
  };
  /// All outlive the object.
  MailReports(store::Reader& reader, const ReportMaker& maker, Setup setup, const Clock& clock)
      : reader_(reader), maker_(maker), setup_(std::move(setup)), clock_(clock) {}

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
  const Setup setup_;
  const Clock& clock_;
};

}  // namespace ceems::api
