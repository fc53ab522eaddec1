#include "gate/profile_request.h"

#include <gtest/gtest.h>

#include "base/wire_format.h"

namespace ceems::gate {
namespace {

const ProfileRules kProfileRules;
constexpr const char* kService = "/querier.v1.QuerierService/";

std::string only(const std::vector<std::pair<std::uint32_t, std::string>>& texts) {
  std::string out;
  for (const auto& [number, text] : texts) {
    append_wire_field(out, {.number = number, .has_length = true, .bytes = text});
  }
  return out;
}

std::string message(const std::vector<std::pair<std::uint32_t, std::string>>& texts) {
  return only(texts) + "\x18\x96\x01";  // start=3, of LabelNames end=3: a number
}

Checked<ProfileRequest> read(const std::string& method,
                             const std::string& body,
                             std::string_view type = "application/proto") {
  return ProfileRequest::read(
      ParsedRequest(
          {.method = "POST", .target = kService + method, .content_type = type, .body = body}),
      kProfileRules);
}

std::string outcome(const std::string& method,
                    const std::string& body,
                    std::string_view type = "application/proto") {
  auto request = read(method, body, type);
  if (!request) {
    return std::to_string(request.error().status) + " " + std::string(request.error().reason);
  }
  std::string text = request->selection().is_open() ? "open" : "";
  for (const std::string& unit : request->selection().units()) {
    text += "," + unit;
  }
  return text;
}

TEST(ProfileRequest, SelectorsOfEveryCallAreFound) {
  EXPECT_EQ(outcome("SelectMergeStacktraces", message({{2, R"({service_name="own"})"}})), ",own");
  EXPECT_EQ(outcome("SelectSeries", message({{2, R"({service_name=~"a|b"})"}})), ",a,b");
  EXPECT_EQ(outcome("SelectMergeProfile", message({{2, R"({service_name="own"})"}})), ",own");
  EXPECT_EQ(outcome("SelectHeatmap", message({{2, R"({service_name="own"})"}})), ",own");
  EXPECT_EQ(outcome("LabelNames", message({{1, R"({service_name="own"})"}})), ",own");
  EXPECT_EQ(outcome("LabelValues", message({{1, "pod"}, {2, R"({service_name="own"})"}})), ",own");
  EXPECT_EQ(outcome("Series", message({{1, R"({service_name="own"})"}, {2, "x"}})), ",own");
  const std::string left = message({{2, R"({service_name="l"})"}});
  const std::string right = message({{2, R"({service_name="r"})"}});
  EXPECT_EQ(outcome("Diff", only({{1, left}, {2, right}})), ",l,r");
  EXPECT_EQ(outcome("ProfileTypes", ""), "");
}

TEST(ProfileRequest, WhatIsNotConfinedIsOpen) {
  EXPECT_EQ(outcome("SelectMergeStacktraces", message({{2, "{}"}})), "open");
  EXPECT_EQ(outcome("SelectMergeStacktraces", message({})), "open");
  EXPECT_EQ(outcome("SelectMergeStacktraces", message({{2, R"({service_name=~".+",uuid="own"})"}})),
            "open");
  EXPECT_EQ(outcome("LabelNames", message({{1, R"({service_name="own"})"}, {1, "{}"}})),
            "open,own");
  EXPECT_EQ(outcome("LabelNames", message({})), "open");
  EXPECT_EQ(outcome("LabelValues", message({{1, "pod"}})), "open");
}

TEST(ProfileRequest, WhatCanBeReadInTwoWaysIsRefused) {
  const std::string own = R"({service_name="own"})";
  EXPECT_EQ(outcome("SelectMergeStacktraces", message({{2, own}, {2, "{}"}})), "400 syntax");
  EXPECT_EQ(outcome("Diff", only({{1, message({{2, own}})}})), "400 syntax");
  EXPECT_EQ(outcome("SelectMergeStacktraces", "\x10\x01"), "400 syntax");
  EXPECT_EQ(outcome("SelectMergeStacktraces", "garbage"), "400 syntax");
  EXPECT_EQ(outcome("ProfileTypes", "garbage"), "400 syntax");
  EXPECT_EQ(outcome("Diff", only({{1, "garbage"}, {2, message({{2, own}})}})), "400 syntax");
  std::string many;
  for (int i = 0; i < 10'001; ++i) {
    many += "\x18\x01";
  }
  EXPECT_EQ(outcome("LabelNames", many), "400 syntax");
  EXPECT_EQ(outcome("SelectMergeStacktraces", message({{2, own}}), "application/grpc"),
            "415 media_type");
  EXPECT_EQ(outcome("SelectMergeStacktraces", message({{2, own}}), "application/connect+proto"),
            "415 media_type");
  EXPECT_EQ(outcome("SelectMergeSpanProfiles", message({{2, own}})), "403 path");
  EXPECT_EQ(outcome("../push.v1.PusherService/Push", message({{2, own}})), "400 path");
  const auto get = ProfileRequest::read(
      ParsedRequest({.method = "GET",
                     .target = std::string(kService) + "LabelNames?message=x&encoding=json"}),
      {});
  ASSERT_FALSE(get);
  EXPECT_EQ(get.error().status, 403);
}

TEST(ProfileRequest, JsonIsReadAsWell) {
  const auto json = [](const std::string& method, const std::string& body) {
    return outcome(method, body, "application/json; charset=utf-8");
  };
  EXPECT_EQ(
      json("SelectMergeStacktraces", R"({"labelSelector":"{service_name=\"own\"}","start":1})"),
      ",own");
  EXPECT_EQ(json("SelectSeries", R"({"label_selector":"{service_name=\"own\"}"})"), ",own");
  EXPECT_EQ(
      json("SelectSeries", R"({"label_selector":"{}","labelSelector":"{service_name=\"own\"}"})"),
      "400 syntax");
  EXPECT_EQ(json("LabelNames", R"({"matchers":["{service_name=\"a\"}","{service_name=\"b\"}"]})"),
            ",a,b");
  EXPECT_EQ(json("LabelNames", "{}"), "open");
  EXPECT_EQ(json("LabelNames", R"({"matchers":[]})"), "open");
  EXPECT_EQ(json("LabelNames", R"({"matchers":"{}"})"), "400 syntax");
  EXPECT_EQ(json("LabelNames", R"({"matchers":[1]})"), "400 syntax");
  EXPECT_EQ(json("SelectSeries", R"({"labelSelector":7})"), "400 syntax");
  EXPECT_EQ(json("SelectSeries", "[]"), "400 syntax");
  EXPECT_EQ(json("SelectSeries", "{"), "400 syntax");
  EXPECT_EQ(json("Diff", R"({"left":{"labelSelector":"{service_name=\"l\"}"},"right":{}})"),
            "open,l");
  EXPECT_EQ(json("Diff", R"({"left":{}})"), "400 syntax");
}

TEST(ProfileRequest, NoTextOfACallBecomesAnotherSelector) {
  const std::string evil = R"({service_name!="\"} #", service_name="own"})";
  const std::string own = R"({service_name="own"})";
  for (const char* method : {"SelectMergeStacktraces", "SelectMergeProfile",
                             "SelectMergeSpanProfile", "SelectSeries", "SelectHeatmap"}) {
    EXPECT_EQ(outcome(method, message({{2, evil}})), "400 raw_text") << method;
    EXPECT_EQ(outcome(method, only({{1, "cpu:a:b:c:d"}, {2, own}})), ",own") << method;
    EXPECT_EQ(outcome(method, message({{1, "cpu:a:b:c:d\"} #"}, {2, own}})), "400 raw_text")
        << method;
    EXPECT_EQ(outcome(method, message({{2, own}, {1, "cpu:a:b:c:d"}, {1, "\\"}})), "400 raw_text")
        << method;
    EXPECT_EQ(outcome(method, "\x08\x01" + message({{2, own}})), "400 syntax") << method;
  }
  EXPECT_EQ(outcome("LabelNames", message({{1, own}, {1, evil}})), "400 raw_text");
  EXPECT_EQ(outcome("LabelValues", message({{1, "pod"}, {2, evil}})), "400 raw_text");
  EXPECT_EQ(outcome("Series", message({{1, evil}})), "400 raw_text");
  const std::string good = message({{2, own}});
  EXPECT_EQ(outcome("Diff", only({{1, good}, {2, message({{2, evil}})}})), "400 raw_text");
  EXPECT_EQ(outcome("Diff", only({{1, message({{1, "\""}, {2, own}})}, {2, good}})),
            "400 raw_text");
  const auto json = [](const std::string& type) {
    return outcome("SelectSeries", R"({"labelSelector":"{service_name=\"own\"}",)" + type + "}",
                   "application/json");
  };
  EXPECT_EQ(json(R"("profileTypeID":"cpu:a:b:c:d")"), ",own");
  EXPECT_EQ(json(R"("profileTypeID":null)"), ",own");
  EXPECT_EQ(json(R"("profileTypeID":"cpu\"} #")"), "400 raw_text");
  EXPECT_EQ(json(R"("profile_typeID":"cpu\"} #")"), "400 raw_text");
  EXPECT_EQ(json(R"("profileTypeID":7)"), "400 syntax");
}

TEST(ProfileRequest, NoMetricIsEverybodys) {
  EXPECT_EQ(outcome("SelectSeries", message({{2, R"({__name__="ceems_emissions_gCo2_kWh"})"}})),
            "open");
}

TEST(ProfileRequest, GoesOnInCanonicalText) {
  auto request = read("SelectSeries", message({{1, "cpu"}, {2, "{ service_name=~'own' } # x"}}));
  ASSERT_TRUE(request);
  Forward forward = request->forward();
  EXPECT_EQ(forward.path, "/querier.v1.QuerierService/SelectSeries");
  EXPECT_EQ(forward.content_type, "application/proto");
  EXPECT_EQ(forward.body, message({{1, "cpu"}, {2, R"({service_name=~"own"})"}}));

  request = read("LabelNames", R"({"start":5})", "application/json");
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->selection().confine({"own"}));
  forward = request->forward();
  EXPECT_EQ(forward.body, R"({"start":5,"matchers":["{service_name=\"own\"}"]})");

  request = read("Diff", only({{1, message({{2, "{service_name='l'}"}})},
                               {2, message({{2, "{service_name='r'}"}})}}));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->forward().body, only({{1, message({{2, R"({service_name="l"})"}})},
                                           {2, message({{2, R"({service_name="r"})"}})}}));
}

TEST(ProfileRequest, SelectorsAreBounded) {
  const std::string own = R"({service_name="own"})";
  std::vector<std::pair<std::uint32_t, std::string>> texts(100, {1, own});
  EXPECT_EQ(outcome("LabelNames", message(texts)), ",own");
  texts.emplace_back(1, own);
  EXPECT_EQ(outcome("LabelNames", message(texts)), "400 size");
  const std::string longer = "{service_name='own',x='" + std::string(33'000, '!') + "'}";
  EXPECT_EQ(outcome("LabelNames", message({{1, longer}})), ",own");
  EXPECT_EQ(outcome("LabelNames", message({{1, longer}, {1, longer}})), "400 size");
}

TEST(ProfileRequest, ProfileTypesKeepsItsTimeRange) {
  // start=1, end=2: numbers
  const std::string range = "\x08\x96\x01\x10\x97\x01";
  auto request = read("ProfileTypes", range);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->forward().body, range);
  EXPECT_EQ(request->forward().content_type, "application/proto");

  request = read("ProfileTypes", R"({ "start": "150", "end": "151" })", "Application/JSON");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->forward().body, R"({"start":"150","end":"151"})");
  EXPECT_EQ(request->forward().content_type, "application/json");
}

}  // namespace
}  // namespace ceems::gate
