#pragma once

#include <string>

#include "exporter/energy/account/account.h"
#include "metrics/desc.h"
#include "metrics/sink.h"

namespace ceems::exporter {

/// How units used what they had reserved: their idle energy and the families that follow from
/// energy::UnitUse. A value that is not known yields no series. Not thread-safe.
class UnitUseMetrics {
 public:
  explicit UnitUseMetrics(std::string hostname);

  /// `account` is the one that the unit belongs to.
  void add(const energy::UnitEntry& unit,
           const energy::Account& account,
           metrics::Sink& sink) const;

 private:
  std::string hostname_;

  metrics::Desc idle_joules_;
  metrics::Desc shmem_;
  metrics::Desc memory_peak_;
  metrics::Desc cpu_max_;
  metrics::Desc idle_seconds_;
  metrics::Desc gpu_busy_;
  metrics::Desc gpu_sms_;
  metrics::Desc gpu_memory_peak_;
};

}  // namespace ceems::exporter
