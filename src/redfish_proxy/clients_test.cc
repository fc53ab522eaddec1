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

TEST(ClientRates, BoundTheAverageOfTenSecondsOfEachClient) {
  using Verdict = ClientRates::Verdict;
  using std::chrono::milliseconds;
  ClientRates rates;
  ClientRates::Clock::time_point now{std::chrono::hours(1)};
  const auto pass = [&](const std::string& client, std::int64_t rate) {
    int count = 0;
    while (count < 1000 && rates.count(client, rate, now) == Verdict::kWithin) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(pass("a", 4), 40);
  EXPECT_EQ(pass("b", 4), 40) << "each client has its own";
  now += milliseconds(500);
  EXPECT_EQ(pass("a", 4), 2);
  now += milliseconds(100);
  EXPECT_EQ(pass("a", 4), 0);
  now += milliseconds(150);
  EXPECT_EQ(pass("a", 4), 1) << "parts of a request add up";
  now += std::chrono::hours(1);
  EXPECT_EQ(pass("a", 4), 40) << "no more than those of ten seconds";
  EXPECT_EQ(pass("c", 1), 10);
  now -= milliseconds(1);
  EXPECT_EQ(pass("c", 1), 0) << "time that goes back gives nothing";
}

TEST(ClientRates, ReportTheFirstRefusalOfEachBurst) {
  using Verdict = ClientRates::Verdict;
  ClientRates rates;
  ClientRates::Clock::time_point now{std::chrono::hours(1)};
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(rates.count("a", 1, now), Verdict::kWithin);
  }
  EXPECT_EQ(rates.count("a", 1, now), Verdict::kFirstBeyond);
  EXPECT_EQ(rates.count("a", 1, now), Verdict::kBeyond);
  now += std::chrono::seconds(1);
  EXPECT_EQ(rates.count("a", 1, now), Verdict::kWithin);
  EXPECT_EQ(rates.count("a", 1, now), Verdict::kBeyond) << "it has not been quiet";
  now += ClientRates::kWindow;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(rates.count("a", 1, now), Verdict::kWithin);
  }
  EXPECT_EQ(rates.count("a", 1, now), Verdict::kFirstBeyond);
}

TEST(ClientRates, ForgetQuietClientsAndRememberBusyOnes) {
  using Verdict = ClientRates::Verdict;
  ClientRates rates;
  ClientRates::Clock::time_point now{std::chrono::hours(1)};
  for (int i = 0; i < 16'000; ++i) {
    rates.count(std::to_string(i), 1, now);
  }
  now += std::chrono::seconds(9);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(rates.count("busy", 1, now), Verdict::kWithin);
  }
  now += std::chrono::seconds(2);
  for (int i = 0; i < 500; ++i) {
    rates.count("later " + std::to_string(i), 1, now);
  }
  EXPECT_EQ(rates.count("busy", 1, now), Verdict::kWithin);
  EXPECT_EQ(rates.count("busy", 1, now), Verdict::kWithin);
  EXPECT_EQ(rates.count("busy", 1, now), Verdict::kFirstBeyond);
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
