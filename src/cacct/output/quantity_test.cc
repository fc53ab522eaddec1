#include "cacct/output/quantity.h"

#include <gtest/gtest.h>

namespace ceems::cacct {
namespace {

TEST(Quantity, HasTheLargestUnitOfWhichThereIsOne) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1024), "1.00 KiB");
  EXPECT_EQ(bytes_text(1024.0 * 1024), "1.00 MiB");
  EXPECT_EQ(bytes_text(1.5 * 1024 * 1024 * 1024), "1.50 GiB");
  EXPECT_EQ(bytes_text(1024.0 * 1024 * 1024 * 1024), "1.00 TiB");
  EXPECT_EQ(bytes_text(5000.0 * 1024 * 1024 * 1024 * 1024), "5000 TiB");
  EXPECT_EQ(power_text(999.4), "999 W");
  EXPECT_EQ(power_text(1000), "1.00 kW");
  EXPECT_EQ(power_text(2.5e6), "2.50 MW");
  EXPECT_EQ(power_text(1e9), "1.00 GW");
  EXPECT_EQ(emissions_text(0.001), "1.00 mg");
  EXPECT_EQ(emissions_text(1), "1.00 g");
  EXPECT_EQ(emissions_text(-1500), "-1.50 kg");
  EXPECT_EQ(emissions_text(1e6), "1.00 t");
  EXPECT_EQ(energy_text(1e6), "1.00 GWh");
}

TEST(Quantity, HasThreeDigits) {
  EXPECT_EQ(power_text(9.994), "9.99 W");
  EXPECT_EQ(power_text(9.995), "10.0 W");
  EXPECT_EQ(power_text(99.94), "99.9 W");
  EXPECT_EQ(power_text(99.95), "100 W");
  EXPECT_EQ(power_text(999.6), "1.00 kW");
}

}  // namespace
}  // namespace ceems::cacct
