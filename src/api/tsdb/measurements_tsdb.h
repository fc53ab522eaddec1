#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/report/measurements.h"
#include "api/tsdb/series_tsdb.h"

namespace ceems::api {

/// Reads measurements from the TSDB of each cluster by instant queries: the values that counters of
/// a unit have reached at its end are what they counted, because they begin with the unit.
class TsdbMeasurementSource final : public MeasurementSource {
 public:
  explicit TsdbMeasurementSource(ClusterTsdbs tsdbs) : tsdbs_(std::move(tsdbs)) {}

  [[nodiscard]] bool measures(std::string_view cluster_id) const override {
    return tsdbs_.contains(cluster_id);
  }
  void cancel() override {
    for (const auto& [id, tsdb] : tsdbs_) {
      tsdb.client->cancel();
    }
  }
  Result<UnitMeasurements> measure(const std::string& cluster_id, const UnitRun& run) override;
  Result<std::vector<UnitMeasurements>> measure_all(const std::string& cluster_id,
                                                    const std::vector<UnitRun>& runs) override;
  Result<std::vector<RunMeasurements>> measure_runs(const std::string& cluster_id,
                                                    const std::vector<UnitRun>& runs) override;
  Result<store::Strip> strip(const std::string& cluster_id, const UnitRun& run) override;
  Result<std::vector<UnitMarks>> marks(const std::string& cluster_id,
                                       const std::vector<UnitRun>& runs) override;

 private:
  ClusterTsdbs tsdbs_;
};

}  // namespace ceems::api
