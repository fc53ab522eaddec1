#include "redfish_proxy/proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::redfish_proxy {
namespace {

using ::testing::HasSubstr;

/// The requests that a proxy with this configuration would send.
class ProxyTest : public ::testing::Test {
 protected:
  void use(std::string_view text) {
    auto document = config::parse_yaml(text, "p.yml");
    ASSERT_TRUE(document);
    auto config = parse_config(*document, "");
    ASSERT_TRUE(config) << config.error().message;
    auto snapshot = Snapshot::create(std::move(*config));
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    proxy_.publish(std::move(*snapshot));
  }

  static net::Request request_of(const net::Headers& headers = {},
                                 const std::string& path = "/redfish/v1/",
                                 const std::string& method = "GET") {
    net::Request request;
    request.method = method;
    request.path = path;
    request.target = path;
    request.headers = headers;
    request.headers.emplace_back("Host", "proxy:5000");
    request.remote_address = "127.0.0.1";
    return request;
  }

  net::Response ask(const net::Request& request) {
    net::Response response;
    proxy_.handle(request, response);
    return response;
  }

  /// "http://bmc1:80/redfish/v1/", or the status of the answer.
  std::string sent_to(const net::Request& request) {
    const net::Response response = ask(request);
    if (!response.relay) {
      return std::to_string(response.status);
    }
    const net::Relay::Attempt& attempt = response.relay->attempts.at(0);
    return (attempt.upstream->options().use_tls ? "https://" : "http://") +
           attempt.upstream->address() + attempt.target;
  }

  Proxy proxy_;
};

constexpr std::string_view kTargets = R"(
redfish_proxy:
  targets:
    - {host_ip_addrs: [192.0.2.1, "2001:db8::1"], url: "https://bmc1"}
    - {host_ip_addrs: [192.0.2.2], url: "http://10.9.0.2:8080/base?k=v"}
)";

TEST_F(ProxyTest, FindsTheBmcOfANode) {
  use(kTargets);
  EXPECT_EQ(sent_to(request_of({{"X-Real-IP", "192.0.2.1"}})), "https://bmc1:443/redfish/v1/");
  net::Request direct = request_of();
  direct.remote_address = "2001:db8::1";
  EXPECT_EQ(sent_to(direct), "https://bmc1:443/redfish/v1/");
  net::Request query = request_of({{"X-Real-IP", "192.0.2.2"}}, "/redfish/v1/Chassis");
  query.query = "$select=Name";
  EXPECT_EQ(sent_to(query), "http://10.9.0.2:8080/base/redfish/v1/Chassis?k=v&$select=Name");
  EXPECT_EQ(sent_to(request_of({{"X-Real-IP", "192.0.2.3"}})), "400");
  EXPECT_EQ(ask(request_of({{"X-Real-IP", "192.0.2.3"}})).body, "failed to find redfish target");
}

TEST_F(ProxyTest, AClientThatIsNoProxyCannotPoseAsAnother) {
  use(kTargets);
  net::Request request = request_of({{"X-Real-IP", "192.0.2.1"}});
  request.remote_address = "192.0.2.2";
  EXPECT_EQ(sent_to(request), "http://10.9.0.2:8080/base/redfish/v1/?k=v");
  request.remote_address = "192.0.2.9";
  EXPECT_EQ(sent_to(request), "400");
}

TEST_F(ProxyTest, AHeaderNamesOnlyConfiguredTargets) {
  use(kTargets);
  EXPECT_EQ(sent_to(request_of({{"X-Redfish-Url", "https://bmc1:443"}})),
            "https://bmc1:443/redfish/v1/");
  for (const char* const url :
       {"http://bmc1", "https://bmc1:444", "https://bmc3", "http://127.0.0.1:9090",
        "http://169.254.169.254", "https://bmc1/other", "https://u:p@bmc1", "https://bmc1.", ""}) {
    EXPECT_EQ(sent_to(request_of({{"X-Real-IP", "192.0.2.9"}, {"X-Redfish-Url", url}})), "400")
        << url;
  }
  EXPECT_EQ(
      sent_to(request_of({{"X-Redfish-Url", "https://bmc1"}, {"X-Redfish-Url", "https://bmc1"}})),
      "400");
  // The target of the node comes before the header.
  EXPECT_EQ(
      sent_to(request_of({{"X-Real-IP", "192.0.2.1"}, {"X-Redfish-Url", "http://10.9.0.2:8080"}})),
      "https://bmc1:443/redfish/v1/");
}

TEST_F(ProxyTest, WithoutTargetsAHeaderCannotNameSpecialAddresses) {
  use("");
  EXPECT_EQ(sent_to(request_of({{"X-Redfish-Url", "http://127.0.0.1:5001"}})),
            "http://127.0.0.1:5001/redfish/v1/");
  net::Request request = request_of({{"X-Redfish-Url", "http://10.0.0.1"}});
  request.remote_address = "192.0.2.9";
  EXPECT_EQ(sent_to(request), "http://10.0.0.1:80/redfish/v1/");
  for (const char* const url :
       {"http://127.0.0.1:5001", "http://[::1]", "http://2130706433", "http://0x7f.1", "http://0",
        "http://127.1", "http://169.254.169.254", "http://[::ffff:127.0.0.1]", "http://[fe80::1]",
        "http://[fd00:ec2::254]", "http://224.0.0.1"}) {
    request.headers[0].second = url;
    EXPECT_EQ(sent_to(request), "400") << url;
    EXPECT_EQ(sent_to(request), "400") << url << ", again";
  }
}

TEST_F(ProxyTest, RemembersTheBmcThatAClientNamed) {
  use("");
  net::Request first = request_of({{"X-Redfish-Url", "http://10.0.0.1"}});
  first.remote_address = "192.0.2.9";
  net::Request later = request_of();
  later.remote_address = "192.0.2.9";
  net::Request other = request_of();
  other.remote_address = "192.0.2.10";
  EXPECT_EQ(sent_to(later), "400");
  EXPECT_EQ(sent_to(first), "http://10.0.0.1:80/redfish/v1/");
  EXPECT_EQ(sent_to(later), "http://10.0.0.1:80/redfish/v1/");
  EXPECT_EQ(sent_to(other), "400");
  first.headers[0].second = "http://10.0.0.2";
  EXPECT_EQ(sent_to(first), "http://10.0.0.2:80/redfish/v1/") << "the header comes first";
  EXPECT_EQ(sent_to(later), "http://10.0.0.2:80/redfish/v1/");
  use(kTargets);
  EXPECT_EQ(sent_to(later), "400") << "after a reload that does not allow the BMC any more";
  use("redfish_proxy: {remember: 0s}");
  EXPECT_EQ(sent_to(first), "http://10.0.0.2:80/redfish/v1/");
  EXPECT_EQ(sent_to(later), "400");
}

TEST_F(ProxyTest, ASpoofedAddressPoisonsNobody) {
  use("");
  net::Request spoofed =
      request_of({{"X-Real-IP", "192.0.2.9"}, {"X-Redfish-Url", "http://10.6.6.6"}});
  spoofed.remote_address = "192.0.2.66";
  EXPECT_EQ(sent_to(spoofed), "http://10.6.6.6:80/redfish/v1/");
  net::Request victim = request_of();
  victim.remote_address = "192.0.2.9";
  EXPECT_EQ(sent_to(victim), "400");
}

TEST_F(ProxyTest, RefusesOtherPathsAndMethods) {
  use(kTargets);
  const net::Headers node{{"X-Real-IP", "192.0.2.1"}};
  const net::Response refused = ask(request_of(node, "/redfish/v1/Managers"));
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.body, "access to api resource /redfish/v1/Managers is not allowed");
  EXPECT_EQ(*net::find_header(refused.headers, "X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(ask(request_of(node, "/x\n<script>")).body,
            "access to api resource /x\\x0a<script> is not allowed");
  EXPECT_EQ(sent_to(request_of(node, "/redfish/v1/Chassis/1", "PATCH")), "405");
  EXPECT_EQ(sent_to(request_of(node, "/redfish/v1/Sessions", "POST")),
            "https://bmc1:443/redfish/v1/Sessions");
  const net::Response unclean = ask(request_of(node, "/redfish/v1/Chassis/../Managers"));
  EXPECT_EQ(unclean.status, 301);
  EXPECT_EQ(*net::find_header(unclean.headers, "Location"), "/redfish/v1/Managers");
}

TEST_F(ProxyTest, SendsThePathThatWasChecked) {
  use(kTargets);
  net::Request request = request_of({{"X-Real-IP", "192.0.2.1"}}, "/redfish/v1/Chassis/1/Power");
  request.target = "http://evil/redfish/v1/Chassis%2f1/%50ower";
  EXPECT_EQ(sent_to(request), "https://bmc1:443/redfish/v1/Chassis/1/Power");
  EXPECT_EQ(target_for({}, "/a b/\r\nX: y/#?%", ""), "/a%20b/%0D%0AX%3A%20y/%23%3F%25");
}

TEST_F(ProxyTest, PassesTokensOnAndKeepsItsOwnCredentials) {
  use(kTargets);
  net::Request request = request_of({{"X-Real-IP", "192.0.2.1"},
                                     {"Authorization", "Basic c2VjcmV0"},
                                     {"X-Auth-Token", "token"},
                                     {"X-Redfish-Url", "https://bmc1"},
                                     {"X-HTTP-Method-Override", "PATCH"},
                                     {"X-Forwarded-For", "192.0.2.1"},
                                     {"User-Agent", "curl"},
                                     {"Connection", "X-Custom"},
                                     {"X-Custom", "hop"},
                                     {"Content-Length", "4"},
                                     {"OData-Version", "4.0"}},
                                    "/redfish/v1/Sessions", "POST");
  request.body = "{\"a\"";
  const net::Response response = ask(request);
  ASSERT_TRUE(response.relay);
  const net::Relay::Attempt& attempt = response.relay->attempts.at(0);
  const net::Headers expected{{"X-Real-IP", "192.0.2.1"},
                              {"X-Auth-Token", "token"},
                              {"OData-Version", "4.0"},
                              {"X-Forwarded-For", "192.0.2.1, 127.0.0.1"},
                              {"User-Agent", "ceems/redfish_proxy"}};
  EXPECT_EQ(attempt.headers, expected);
  EXPECT_EQ(attempt.host, "bmc1");
  EXPECT_EQ(response.relay->body, "{\"a\"");
  EXPECT_FALSE(response.relay->repeatable);
}

TEST_F(ProxyTest, SendsConfiguredCredentialsToTargetsOnly) {
  use(R"(
redfish_proxy:
  targets: [{host_ip_addrs: [192.0.2.1], url: "http://bmc1"}]
  allowed_targets: [bmc9]
  basic_auth: {username: u, password: p}
)");
  const auto credentials = [this](const net::Headers& headers) {
    const net::Response response = ask(request_of(headers));
    const auto* const found =
        response.relay ? net::find_header(response.relay->attempts.at(0).headers, "Authorization")
                       : nullptr;
    return found == nullptr ? "none" : *found;
  };
  EXPECT_EQ(credentials({{"X-Real-IP", "192.0.2.1"}, {"Authorization", "Basic eDp5"}}),
            "Basic dTpw");
  EXPECT_EQ(credentials({{"X-Redfish-Url", "http://bmc9"}, {"Authorization", "Basic eDp5"}}),
            "none");
}

TEST_F(ProxyTest, BoundsTheRequestsOfAClient) {
  use("redfish_proxy: {max_requests_per_client: 1}");
  const net::Headers headers{{"X-Redfish-Url", "http://127.0.0.1:1"}};
  net::Response first = ask(request_of(headers));
  EXPECT_TRUE(first.relay);
  EXPECT_EQ(sent_to(request_of(headers)), "429");
  EXPECT_THAT(ask(request_of({}, "/metrics")).body,
              HasSubstr("redfish_proxy_requests_in_flight 1\n"));
  first = {};
  EXPECT_EQ(sent_to(request_of(headers)), "http://127.0.0.1:1/redfish/v1/");
}

TEST_F(ProxyTest, KeepsPlacesForTheNodeOfTheBmc) {
  use(kTargets);
  std::vector<net::Response> waiting;
  const auto take = [&](const std::string& address) {
    waiting.push_back(ask(request_of({{"X-Real-IP", address}, {"X-Redfish-Url", "https://bmc1"}})));
    const net::Response& response = waiting.back();
    return response.relay ? 200 : response.status;
  };
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(take("192.0.2.66"), 200) << i;
  }
  EXPECT_EQ(take("192.0.2.66"), 429) << "its share";
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(take("192.0.2." + std::to_string(100 + i)), 200) << i;
  }
  EXPECT_EQ(take("192.0.2.99"), 503) << "the rest is for the node";
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(take("192.0.2.1"), 200) << i;
  }
  EXPECT_EQ(take("192.0.2.1"), 429) << "max_requests_per_client";
  waiting.clear();
  EXPECT_EQ(take("192.0.2.66"), 200);
}

TEST_F(ProxyTest, AFewClientsLeavePlacesForOthers) {
  use("redfish_proxy: {allowed_targets: ['https://bmc1']}");
  std::vector<net::Response> waiting;
  const auto take = [&](const std::string& address) {
    waiting.push_back(ask(request_of({{"X-Real-IP", address}, {"X-Redfish-Url", "https://bmc1"}})));
    const net::Response& response = waiting.back();
    return response.relay ? 200 : response.status;
  };
  int taken = 0;
  for (int round = 0; round < 16; ++round) {
    for (int i = 0; i < 6; ++i) {
      taken += take("192.0.2.10" + std::to_string(i)) == 200 ? 1 : 0;
    }
  }
  EXPECT_EQ(taken, 42) << "seven each";
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(take("192.0.2.1"), 200) << i;
  }
}

TEST_F(ProxyTest, PassesTheQueryOptionsOfTheListOnly) {
  for (const auto& [query, refused] :
       std::vector<std::pair<std::string, std::string>>{{"$select=Name", ""},
                                                        {"%24select=Name&$select=Id", ""},
                                                        {"", ""},
                                                        {"$expand=*($levels=6)", "$expand"},
                                                        {"%24expand=.", "$expand"},
                                                        {"%2524expand=.", "%24expand"},
                                                        {"$select=Name&$expand=.", "$expand"},
                                                        {"$select=Name;$expand=.", "$expand"},
                                                        {"only", "only"},
                                                        {"excerpt=", "excerpt"},
                                                        {"$Expand=.", "$Expand"},
                                                        {"&&$top=1", "$top"},
                                                        {"$select=Id,PowerControl/Name", ""},
                                                        {"$select=Id%26$expand=.", "$select"},
                                                        {"$select=Id%253B$expand=.", "$select"},
                                                        {"$select=Id?$expand=.", "$select"}}) {
    EXPECT_EQ(refused_option(query, {"$select"}).value_or(""), refused) << query;
  }
  use(kTargets);
  net::Request request = request_of({{"X-Real-IP", "192.0.2.1"}});
  request.query = "$expand=*($levels=6)";
  EXPECT_EQ(sent_to(request), "401");
  EXPECT_EQ(ask(request).body, "query option $expand is not allowed");
  use(std::string(kTargets) + "  allowed_query_options: [$expand]\n");
  EXPECT_EQ(sent_to(request), "https://bmc1:443/redfish/v1/?$expand=*($levels=6)");
  request.query = "$select=Name";
  EXPECT_EQ(sent_to(request), "401");
}

TEST_F(ProxyTest, AnswersItsOwnPages) {
  use(kTargets);
  EXPECT_EQ(ask(request_of({}, "/health")).body, "CEEMS Redfish Proxy is healthy\n");
  EXPECT_EQ(ask(request_of({}, "/metrics", "POST")).status, 405);
  sent_to(request_of({}, "/redfish/v1/Managers"));
  const std::string page = ask(request_of({}, "/metrics")).body;
  EXPECT_THAT(page, HasSubstr("redfish_proxy_targets 2\n"));
  EXPECT_THAT(page, HasSubstr("redfish_proxy_requests_total{outcome=\"path_refused\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("redfish_proxy_requests_total{outcome=\"answered\"} 0\n"));
}

TEST(Exposure, IsThatOfListenersBeyondThisMachine) {
  for (const std::string_view local :
       {"127.0.0.1:5000", "127.1.2.3:5000", "[::1]:5000", "unix:/x"}) {
    EXPECT_FALSE(is_exposed(local)) << local;
  }
  for (const std::string_view open : {"[::]:5000", "0.0.0.0:5000", "192.0.2.1:5000", "vsock:2:1"}) {
    EXPECT_TRUE(is_exposed(open)) << open;
  }
}

TEST(RedfishService, IsNoOpenProxy) {
  auto service = Service::create({.listen_addresses = {"0.0.0.0:0"}});
  ASSERT_TRUE(service) << service.error().message;
  auto open = parse_config({}, {});
  const auto applied = (*service)->apply(*open);
  ASSERT_FALSE(applied);
  EXPECT_THAT(applied.error().message, HasSubstr("without targets"));
  auto document = config::parse_yaml(kTargets, "p.yml");
  EXPECT_TRUE((*service)->apply(*parse_config(*document, "")));
  auto local = Service::create({.listen_addresses = {"127.0.0.1:0", "[::1]:0"}});
  if (local) {  // not without IPv6
    EXPECT_TRUE((*local)->apply(*open));
  }
}

TEST(RedfishService, ChecksTlsFilesAtTheStart) {
  auto document = config::parse_yaml(
      "redfish_proxy:\n  targets:\n    - {host_ip_addrs: [192.0.2.1], url: 'https://a', "
      "tls_config: "
      "{ca_file: /nowhere/ca.pem}}\n",
      "p.yml");
  const auto snapshot = Snapshot::create(*parse_config(*document, ""));
  ASSERT_FALSE(snapshot);
  EXPECT_THAT(snapshot.error().message, HasSubstr("targets[0]: "));
  EXPECT_THAT(snapshot.error().message, HasSubstr("/nowhere/ca.pem"));
}

TEST(Bmcs, CheckTheAddressesOfNamesWhenTheyAreLookedUp) {
  auto config = parse_config({}, {});
  auto bmcs = Bmcs::create(*config, [](const std::string& host, const std::string& port) {
    return net::look_up(host == "rebind.example.org" ? "169.254.169.254" : "10.0.0.1", port);
  });
  ASSERT_TRUE(bmcs);
  const auto addresses = [&](const std::string& url) -> std::string {
    auto bmc = (*bmcs)->named(*parse_bmc_url(url), true);
    if (!bmc) {
      return bmc.error().message;
    }
    bmc->upstream->addresses().get();
    for (int i = 0; i < 6000; ++i) {
      const auto known = bmc->upstream->addresses().known();
      if (!known.looking) {
        return known.list->empty() ? known.error : known.list->front().numeric();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return "no end";
  };
  EXPECT_EQ(addresses("http://fine.example.org"), "10.0.0.1");
  EXPECT_THAT(addresses("http://rebind.example.org"), HasSubstr("clients may not name"));
}

}  // namespace
}  // namespace ceems::redfish_proxy
