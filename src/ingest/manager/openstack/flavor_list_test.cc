#include "ingest/manager/openstack/flavor_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/manager/openstack/openstack_test_support.h"

namespace ceems::ingest {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kFlavors = "http://nova/v2.1/flavors/detail";

std::string flavor_json(const std::string& id, int vcpus, const std::string& more = "{}") {
  return R"({"id":")" + id + R"(","name":"m1.)" + id + R"(","vcpus":)" + std::to_string(vcpus) +
         R"(,"ram":2048,"disk":20,"swap":"","OS-FLV-EXT-DATA:ephemeral":1,)"
         R"("os-flavor-access:is_public":true,"OS-FLV-DISABLED:disabled":false,"extra_specs":)" +
         more + "}";
}

std::string page(const std::string& flavors, const std::string& marker = "") {
  return R"({"flavors":[)" + flavors + "]" +
         (marker.empty() ? ""
                         : R"(,"flavors_links":[{"rel":"next","href":"http://x/y?marker=)" +
                               marker + R"("}])") +
         "}";
}

/// A round of the manager, and the ids of the flavors that it knows then.
std::string ids_after_round(CloudFixture& f) {
  EXPECT_TRUE(f.manager().fetch_units(kWindow, {}));
  const auto flavors = f.manager().flavors();
  std::string ids = flavors ? "" : "unknown";
  for (const model::Flavor& flavor : flavors.value_or(std::vector<model::Flavor>{})) {
    ids += flavor.region + flavor.id + " ";
  }
  return ids;
}

TEST(OpenstackFlavorList, HasAllPages) {
  CloudFixture f;
  f.cloud.answers[kFlavors] = [](const std::string& url) {
    return url.find("marker=b") == std::string::npos
               ? reply(200, page(flavor_json("a", 1) + "," + flavor_json("b", 2), "b"))
               : reply(200, page(flavor_json("c", 4, R"({"hw:z":"1","hw:a":"2"})")));
  };
  EXPECT_EQ(f.manager().flavors(), std::nullopt);
  EXPECT_EQ(ids_after_round(f), "a b c ");
  EXPECT_EQ(f.cloud.count("flavors/detail?is_public=None"), 2U);
  EXPECT_EQ(f.manager().flavors()->at(2),
            (model::Flavor{.region = "",
                           .id = "c",
                           .name = "m1.c",
                           .vcpus = 4,
                           .ram_mib = 2048,
                           .disk_gb = 20,
                           .ephemeral_gb = 1,
                           .swap_mb = 0,
                           .extra_specs = R"({"hw:a":"2","hw:z":"1"})",
                           .offered = true}));
}

TEST(OpenstackFlavorList, IsReadOnceAnHour) {
  CloudFixture f;
  f.cloud.set(kFlavors, page(flavor_json("a", 1)));
  EXPECT_EQ(ids_after_round(f), "a ");
  f.cloud.set(kFlavors, page(flavor_json("b", 1)));
  f.clock.advance(std::chrono::minutes(59));
  EXPECT_EQ(ids_after_round(f), "a ");
  EXPECT_EQ(f.cloud.count("flavors"), 1U);
  f.clock.advance(std::chrono::minutes(1));
  EXPECT_EQ(ids_after_round(f), "b ");
  EXPECT_EQ(f.cloud.count("flavors"), 2U);
}

TEST(OpenstackFlavorList, StaysAsItWasWhenNovaDoesNotAnswer) {
  CloudFixture f;
  f.live = {server_json("s")};
  ::testing::internal::CaptureStderr();
  f.cloud.set(kFlavors, R"({"forbidden":{"message":"Policy\nsays no"}})", 403);
  EXPECT_EQ(ids_after_round(f), "unknown");
  EXPECT_EQ(f.manager().fetch_units(kWindow, {})->size(), 1U);
  f.clock.advance(std::chrono::hours(1));
  EXPECT_EQ(ids_after_round(f), "unknown");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("cannot read the list of flavors"));
  EXPECT_THAT(log, HasSubstr("HTTP status 403"));
  EXPECT_EQ(log.find("cannot read"), log.rfind("cannot read")) << "one warning only";

  f.cloud.set(kFlavors, page(flavor_json("a", 1)));
  f.clock.advance(std::chrono::hours(1));
  EXPECT_EQ(ids_after_round(f), "a ");
  for (const char* wrong : {"", "{}", R"({"flavors":{}})"}) {
    f.cloud.set(kFlavors, wrong);
    f.clock.advance(std::chrono::hours(1));
    EXPECT_EQ(ids_after_round(f), "a ") << wrong;
  }
}

TEST(OpenstackFlavorList, IsThatOfAllRegionsOrNone) {
  CloudFixture f;
  f.options.endpoints.compute = {{"north", "http://n/v2.1"}, {"south", "http://s/v2.1"}};
  for (const char* host : {"http://n", "http://s"}) {
    f.cloud.set(std::string(host) + "/v2.1/servers/detail", servers_json({}));
  }
  f.cloud.set("http://n/v2.1/flavors/detail", page(flavor_json("a", 1)));
  EXPECT_EQ(ids_after_round(f), "unknown");
  f.cloud.set("http://s/v2.1/flavors/detail", page(flavor_json("a", 2)));
  f.clock.advance(std::chrono::hours(1));
  EXPECT_EQ(ids_after_round(f), "northa southa ");
  f.cloud.set("http://n/v2.1/flavors/detail", "", 500);
  f.cloud.set("http://s/v2.1/flavors/detail", page(""));
  f.clock.advance(std::chrono::hours(1));
  EXPECT_EQ(ids_after_round(f), "northa southa ");
}

TEST(OpenstackFlavorList, LeavesOutFlavorsOfUnknownContent) {
  CloudFixture f;
  f.cloud.set(kFlavors, page(R"({"id":"a","name":"old Nova","vcpus":1,"ram":1,"disk":1})"
                             R"(,{"id":"b","name":"bare"})"));
  EXPECT_EQ(ids_after_round(f), "");
  EXPECT_THAT(*f.manager().flavors(), IsEmpty());
}

}  // namespace
}  // namespace ceems::ingest
