#include <gtest/gtest.h>

#include "redfish_proxy/config.h"

namespace ceems::redfish_proxy {
namespace {

using Verdict = ResourcePolicy::Verdict;

Verdict verdict(std::string_view method,
                std::string_view path,
                const std::vector<std::string>& resources = {}) {
  const auto policy = ResourcePolicy::create(resources);
  EXPECT_TRUE(policy);
  return (*policy)->check(method, path);
}

TEST(ResourcePolicy, AllowsPowerAndSessionsByDefault) {
  for (const std::string_view path :
       {"/redfish/v1/", "/redfish/v1/Sessions", "/redfish/v1/Sessions/12",
        "/redfish/v1/SessionService/Sessions", "/redfish/v1/SessionService/Sessions/a-b_9",
        "/redfish/v1/Chassis", "/redfish/v1/Chassis/", "/redfish/v1/Chassis/System.Embedded.1",
        "/redfish/v1/Chassis/1/Power", "/redfish/v1/Chassis/1/Power/", "/redfish/v1/Sessions/",
        "/redfish/v1/Chassis/1/EnvironmentMetrics", "/redfish/v1/Chassis/1/PowerSubsystem",
        "/redfish/v1/Chassis/1/PowerSubsystem/PowerSupplies/PSU.1/Metrics",
        "/redfish/v1/Chassis/1/Sensors/SystemBoardPwrConsumption"}) {
    EXPECT_EQ(verdict("GET", path), Verdict::kAllowed) << path;
    EXPECT_EQ(verdict("HEAD", path), Verdict::kAllowed) << path;
  }
  for (const std::string_view path :
       {"/", "/redfish", "/redfish/v1", "/redfish/v1/Systems", "/redfish/v1/Managers/1",
        "/redfish/v1/Chassis/1/Power/2", "/redfish/v1/Chassis/1/Powers",
        "/redfish/v1/Chassis/1/Thermal", "/metrics/redfish/v1/", "/redfish/v1/\n",
        "/redfish/v1/Chassis/1\n", "/redfish/v1/Chassis/a b",
        "/redfish/v1/Chassis/1/Power/Actions/Chassis.Reset"}) {
    EXPECT_EQ(verdict("GET", path), Verdict::kPathRefused) << path;
  }
}

TEST(ResourcePolicy, ChangesNothingButSessions) {
  EXPECT_EQ(verdict("POST", "/redfish/v1/SessionService/Sessions"), Verdict::kAllowed);
  EXPECT_EQ(verdict("POST", "/redfish/v1/Sessions"), Verdict::kAllowed);
  EXPECT_EQ(verdict("DELETE", "/redfish/v1/SessionService/Sessions/3"), Verdict::kAllowed);
  EXPECT_EQ(verdict("POST", "/redfish/v1/SessionService/Sessions/3"), Verdict::kMethodRefused);
  EXPECT_EQ(verdict("DELETE", "/redfish/v1/SessionService/Sessions"), Verdict::kMethodRefused);
  EXPECT_EQ(verdict("DELETE", "/redfish/v1/SessionService/Sessions/"), Verdict::kMethodRefused);
  const std::vector<std::string> everything{".*"};
  for (const std::string_view method : {"POST", "PATCH", "PUT", "DELETE", "CONNECT", "get", ""}) {
    EXPECT_EQ(verdict(method, "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", everything),
              Verdict::kMethodRefused)
        << method;
  }
  EXPECT_EQ(verdict("GET", "/redfish/v1/Systems/1", everything), Verdict::kAllowed);
}

TEST(ResourcePolicy, SearchesTheExpressionsOfTheConfiguration) {
  const std::vector<std::string> some{"^/redfish/v1/Managers$", "Thermal"};
  EXPECT_EQ(verdict("GET", "/redfish/v1/Managers", some), Verdict::kAllowed);
  EXPECT_EQ(verdict("GET", "/redfish/v1/Chassis/1/Thermal/x", some), Verdict::kAllowed);
  EXPECT_EQ(verdict("GET", "/redfish/v1/", some), Verdict::kPathRefused);
  const auto bad = ResourcePolicy::create({"("});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "invalid regular expression '(': missing ): (");
}

}  // namespace
}  // namespace ceems::redfish_proxy
