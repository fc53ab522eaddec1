#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "access/policy.h"
#include "api/accounting/accounting.h"
#include "api/report/digest_maker.h"
#include "api/report/maker.h"
#include "base/clock.h"
#include "base/time/time_zone.h"
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
    TimeZone zone = {};                      ///< of months
    const Accounting* accounting = nullptr;  ///< budgets; null: none
    access::Roles roles = {};                ///< with project leads of the configuration
  };
  /// All outlive the object.
  MailReports(store::Reader& reader,
              const ReportMaker& maker,
              const DigestMaker& digests,
              Setup setup,
              const Clock& clock)
      : reader_(reader),
        maker_(maker),
        digests_(digests),
        setup_(std::move(setup)),
        clock_(clock) {}

  Result<std::optional<mail::KnownReport>> report(const std::string& cluster_id,
                                                  const std::string& user,
                                                  const std::string& job,
                                                  std::int64_t ended_after_ms) override;
  Result<> add_energy(const std::string& cluster_id,
                      const std::string& user,
                      const std::vector<std::string>& jobs,
                      mail::ArraySums& sums) override;
  Result<std::vector<mail::ArrayTask>> tasks_of(const std::string& cluster_id,
                                                const std::string& user,
                                                const std::string& prefix) override;
  Result<std::string> worst_of(const std::string& cluster_id,
                               const std::string& user,
                               const std::vector<std::string>& jobs) override;
  [[nodiscard]] mail::EndedMonth last_month() const override;
  Result<std::vector<std::string>> users_of(const std::string& month) override;
  Result<std::optional<report::Digest>> digest(const std::string& user,
                                               const std::string& month,
                                               const std::vector<std::string>& without) override;
  Result<std::vector<mail::PassedBudget>> passed_budgets() override;

 private:
  store::Reader& reader_;
  const ReportMaker& maker_;
  const DigestMaker& digests_;
  const Setup setup_;
  const Clock& clock_;
};

}  // namespace ceems::api
