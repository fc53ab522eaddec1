#include "exporter/energy/account/known_set.h"

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

TEST(KnownSet, HasWhatDeliversEnergy) {
  KnownSet set;
  const auto package = set.add(Domain::kPackage, "rapl-package-0");
  const auto gpu = set.add(Domain::kGpu, "GPU-a");
  set.see(package);
  EXPECT_TRUE(set.advance(1, true));
  EXPECT_EQ(set.names(), "rapl-package-0");
  set.see(package);
  set.see(gpu);
  EXPECT_TRUE(set.advance(1, true));
  EXPECT_EQ(set.names(), "GPU-a,rapl-package-0");
  set.see(package);
  EXPECT_FALSE(set.advance(6, true));
  EXPECT_TRUE(set.missing(gpu));  // bridged
  set.see(package);
  EXPECT_TRUE(set.advance(1, false));
  EXPECT_EQ(set.names(), "rapl-package-0");
}

}  // namespace
}  // namespace ceems::exporter::energy
