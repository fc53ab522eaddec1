#include "redfish_proxy/clients.h"

#include <gtest/gtest.h>

namespace ceems::redfish_proxy {
namespace {

Client from(const std::string& peer, const net::Headers& headers) {
  net::Request request;
  request.remote_address = peer;
  request.headers = headers;
  return client_of(request, {.ranges = {*net::Cidr::parse("10.0.0.0/24")}});
}

TEST(ClientOf, BelievesXRealIpOfTrustedProxiesOnly) {
  EXPECT_EQ(from("10.0.0.1", {{"x-real-ip", " 192.0.2.7 "}}).address, "192.0.2.7");
  EXPECT_EQ(from("unix", {{"X-Real-IP", "192.0.2.7"}}).address, "192.0.2.7");
  EXPECT_EQ(from("10.0.1.1", {{"X-Real-IP", "192.0.2.7"}}).address, "10.0.1.1");
  EXPECT_EQ(from("10.0.0.1", {}).address, "10.0.0.1");
  EXPECT_EQ(from("10.0.0.1", {{"X-Real-IP", "::ffff:192.0.2.7"}}).address, "192.0.2.7");
}

TEST(ClientOf, TakesTheValueThatTheProxyHasAdded) {
  EXPECT_EQ(from("10.0.0.1", {{"X-Real-IP", "192.0.2.66"}, {"X-Real-IP", "192.0.2.7"}}).address,
            "192.0.2.7");
  EXPECT_EQ(from("10.0.0.1", {{"X-Real-IP", "192.0.2.66"}, {"X-Real-IP", "me"}}).address, "");
}

TEST(ClientOf, KnowsClientsOfThisMachine) {
  EXPECT_TRUE(from("127.0.0.1", {}).loopback);
  EXPECT_TRUE(from("::1", {}).loopback);
  EXPECT_TRUE(from("unix", {}).loopback);
  EXPECT_FALSE(from("10.0.0.1", {}).loopback);
  EXPECT_FALSE(from("unix", {{"X-Real-IP", "192.0.2.7"}}).loopback);
  EXPECT_FALSE(from("unix", {{"X-Real-IP", "me"}}).loopback);
}

TEST(ClientSlots, BoundEachClientAndAreGivenBack) {
  ClientSlots slots;
  auto one = slots.take("a", 2);
  auto two = slots.take("a", 2);
  EXPECT_TRUE(one && two);
  EXPECT_FALSE(slots.take("a", 2));
  EXPECT_TRUE(slots.take("b", 2));
  EXPECT_EQ(slots.in_use(), 2U);
  two.reset();
  EXPECT_TRUE(slots.take("a", 2));
  one.reset();
  EXPECT_EQ(slots.in_use(), 0U);
}

TEST(NamedByClients, ForgetsAfterAWhile) {
  NamedByClients named;
  const NamedByClients::Clock::time_point start;
  const auto bmc = parse_bmc_url("http://bmc1");
  named.remember("192.0.2.7", *bmc, start);
  EXPECT_FALSE(named.find("192.0.2.8", std::chrono::hours(1), start));
  const auto found = named.find("192.0.2.7", std::chrono::hours(1), start + std::chrono::hours(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->origin(), "http://bmc1:80");
  EXPECT_FALSE(named.find("192.0.2.7", std::chrono::hours(1), start + std::chrono::minutes(61)));
}

}  // namespace
}  // namespace ceems::redfish_proxy
