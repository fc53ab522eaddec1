#pragma once

#include <memory>
#include <utility>

#include "exporter/energy/meter/meter.h"

namespace ceems::exporter::energy {

/// A meter that the collector that brings it keeps, too: it goes away with the last of both.
class SharedMeter final : public EnergyMeter {
 public:
  explicit SharedMeter(std::shared_ptr<EnergyMeter> meter) : meter_(std::move(meter)) {}

  [[nodiscard]] const SourceInfo& source() const override { return meter_->source(); }
  Result<Reading> read(const MeterContext& context) override { return meter_->read(context); }

 private:
  std::shared_ptr<EnergyMeter> meter_;
};

}  // namespace ceems::exporter::energy
