#include "gate/profile_fields.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gate/profile_request.h"

namespace ceems::gate {
namespace {

enum class Verdict : std::uint8_t { kAllowed, kRewritten, kRefused };

struct Published {
  std::string_view message;
  std::uint32_t number;
  std::string_view proto_name;
  std::string_view json_name;
  std::string_view type;
  Verdict verdict;
};

constexpr auto kAllowed = Verdict::kAllowed;
constexpr auto kRewritten = Verdict::kRewritten;
constexpr auto kRefused = Verdict::kRefused;

/// Every field of the requests in api/querier/v1/querier.proto and api/types/v1/types.proto of
/// github.com/grafana/pyroscope/api 1.6.0, the newest published definitions.
constexpr Published kPublished[] = {
    {"ProfileTypes", 1, "start", "start", "int", kAllowed},
    {"ProfileTypes", 2, "end", "end", "int", kAllowed},
    {"LabelValues", 1, "name", "name", "string", kAllowed},
    {"LabelValues", 2, "matchers", "matchers", "strings", kRewritten},
    {"LabelValues", 3, "start", "start", "int", kAllowed},
    {"LabelValues", 4, "end", "end", "int", kAllowed},
    {"LabelNames", 1, "matchers", "matchers", "strings", kRewritten},
    {"LabelNames", 2, "start", "start", "int", kAllowed},
    {"LabelNames", 3, "end", "end", "int", kAllowed},
    {"Series", 1, "matchers", "matchers", "strings", kRewritten},
    {"Series", 2, "label_names", "labelNames", "strings", kAllowed},
    {"Series", 3, "start", "start", "int", kAllowed},
    {"Series", 4, "end", "end", "int", kAllowed},
    {"SelectMergeStacktraces", 1, "profile_typeID", "profileTypeID", "string", kAllowed},
    {"SelectMergeStacktraces", 2, "label_selector", "labelSelector", "string", kRewritten},
    {"SelectMergeStacktraces", 3, "start", "start", "int", kAllowed},
    {"SelectMergeStacktraces", 4, "end", "end", "int", kAllowed},
    {"SelectMergeStacktraces", 5, "max_nodes", "maxNodes", "int", kAllowed},
    {"SelectMergeStacktraces", 6, "format", "format", "int", kAllowed},
    {"SelectMergeStacktraces", 7, "stack_trace_selector", "stackTraceSelector", "stack", kAllowed},
    {"SelectMergeStacktraces", 8, "profile_id_selector", "profileIdSelector", "strings", kAllowed},
    {"SelectMergeStacktraces", 9, "async", "async", "async", kRefused},
    {"SelectMergeStacktraces", 10, "trace_id_selector", "traceIdSelector", "strings", kAllowed},
    {"SelectMergeStacktraces", 11, "span_selector", "spanSelector", "strings", kAllowed},
    {"SelectMergeSpanProfile", 1, "profile_typeID", "profileTypeID", "string", kAllowed},
    {"SelectMergeSpanProfile", 2, "label_selector", "labelSelector", "string", kRewritten},
    {"SelectMergeSpanProfile", 3, "span_selector", "spanSelector", "strings", kAllowed},
    {"SelectMergeSpanProfile", 4, "start", "start", "int", kAllowed},
    {"SelectMergeSpanProfile", 5, "end", "end", "int", kAllowed},
    {"SelectMergeSpanProfile", 6, "max_nodes", "maxNodes", "int", kAllowed},
    {"SelectMergeSpanProfile", 7, "format", "format", "int", kAllowed},
    {"SelectMergeProfile", 1, "profile_typeID", "profileTypeID", "string", kAllowed},
    {"SelectMergeProfile", 2, "label_selector", "labelSelector", "string", kRewritten},
    {"SelectMergeProfile", 3, "start", "start", "int", kAllowed},
    {"SelectMergeProfile", 4, "end", "end", "int", kAllowed},
    {"SelectMergeProfile", 5, "max_nodes", "maxNodes", "int", kAllowed},
    {"SelectMergeProfile", 6, "stack_trace_selector", "stackTraceSelector", "stack", kAllowed},
    {"SelectMergeProfile", 7, "profile_id_selector", "profileIdSelector", "strings", kAllowed},
    {"SelectMergeProfile", 8, "trace_id_selector", "traceIdSelector", "strings", kAllowed},
    {"SelectSeries", 1, "profile_typeID", "profileTypeID", "string", kAllowed},
    {"SelectSeries", 2, "label_selector", "labelSelector", "string", kRewritten},
    {"SelectSeries", 3, "start", "start", "int", kAllowed},
    {"SelectSeries", 4, "end", "end", "int", kAllowed},
    {"SelectSeries", 5, "group_by", "groupBy", "strings", kAllowed},
    {"SelectSeries", 6, "step", "step", "double", kAllowed},
    {"SelectSeries", 7, "aggregation", "aggregation", "int", kAllowed},
    {"SelectSeries", 8, "stack_trace_selector", "stackTraceSelector", "stack", kAllowed},
    {"SelectSeries", 9, "limit", "limit", "int", kAllowed},
    {"SelectSeries", 10, "exemplar_type", "exemplarType", "int", kAllowed},
    {"SelectHeatmap", 1, "profile_typeID", "profileTypeID", "string", kAllowed},
    {"SelectHeatmap", 2, "label_selector", "labelSelector", "string", kRewritten},
    {"SelectHeatmap", 3, "start", "start", "int", kAllowed},
    {"SelectHeatmap", 4, "end", "end", "int", kAllowed},
    {"SelectHeatmap", 5, "step", "step", "double", kAllowed},
    {"SelectHeatmap", 6, "group_by", "groupBy", "strings", kAllowed},
    {"SelectHeatmap", 7, "query_type", "queryType", "int", kAllowed},
    {"SelectHeatmap", 8, "exemplar_type", "exemplarType", "int", kAllowed},
    {"SelectHeatmap", 9, "limit", "limit", "int", kAllowed},
    {"StackTraceSelector", 1, "call_site", "callSite", "location", kAllowed},
    {"StackTraceSelector", 2, "go_pgo", "goPgo", "pgo", kAllowed},
    {"Location", 1, "name", "name", "string", kAllowed},
    {"GoPGO", 1, "keep_locations", "keepLocations", "int", kAllowed},
    {"GoPGO", 2, "aggregate_callees", "aggregateCallees", "bool", kAllowed},
    {"AsyncQueryRequest", 1, "request_id", "requestId", "string", kRefused},
    {"AsyncQueryRequest", 2, "type", "type", "int", kRefused},
};
// DiffRequest has `left` and `right`, each a request of SelectMergeStacktraces: see below.

constexpr std::string_view kOwn = R"({service_name="own"})";
constexpr std::string_view kLoose = R"({ service_name = 'own' })";

std::string wire(std::uint32_t number, std::string_view bytes) {
  std::string out;
  append_wire_field(out, {.number = number, .has_length = true, .bytes = bytes});
  return out;
}

std::string key(std::uint32_t number, unsigned wire_type) {
  return {static_cast<char>((number << 3U) | wire_type)};
}

/// A value of the type, in protocol buffers and in JSON.
std::pair<std::string, std::string> sample(const Published& field) {
  if (field.verdict == kRewritten) {
    const bool list = field.type == "strings";
    return {wire(field.number, kLoose),
            list ? fmt::format(R"(["{}"])", kLoose) : fmt::format(R"("{}")", kLoose)};
  }
  if (field.type == "string") {
    return {wire(field.number, "a"), R"("a")"};
  }
  if (field.type == "strings") {
    return {wire(field.number, "a") + wire(field.number, "b"), R"(["a","b"])"};
  }
  if (field.type == "int" || field.type == "bool") {
    return {key(field.number, 0) + "\x01", field.type == "int" ? R"("1")" : "true"};
  }
  if (field.type == "double") {
    return {key(field.number, 1) + "\x01\x01\x01\x01\x01\x01\x01\x01", "1.5"};
  }
  if (field.type == "stack") {
    return {wire(field.number, wire(1, wire(1, "main"))), R"({"callSite":[{"name":"main"}]})"};
  }
  if (field.type == "location") {
    return {wire(field.number, wire(1, "main")), R"([{"name":"main"}])"};
  }
  return {wire(field.number, wire(1, "x")), R"({"requestId":"x"})"};
}

std::string field_outcome(std::string_view method, const std::string& body, std::string_view type) {
  static const ProfileRules kRules;
  const std::string target = "/querier.v1.QuerierService/" + std::string(method);
  auto request = ProfileRequest::read(
      ParsedRequest({.method = "POST", .target = target, .content_type = type, .body = body}),
      kRules);
  return request ? request->forward().body : std::string(request.error().reason);
}

/// The selector that a call needs, unless `field` is the selector.
std::string proto_call(const Published& field, const std::string& value) {
  const std::string_view call = field.message;
  if (field.verdict == kRewritten || call == "ProfileTypes") {
    return value;
  }
  return wire(call == "LabelNames" || call == "Series" ? 1 : 2, kOwn) + value;
}

TEST(ProfileFields, EveryPublishedFieldIsAllowedRewrittenOrRefused) {
  for (const Published& field : kPublished) {
    if (fields_of_call(field.message).empty()) {
      continue;  // an inner message
    }
    const auto [proto, json] = sample(field);
    const std::string in_proto =
        field_outcome(field.message, proto_call(field, proto), "application/proto");
    const std::string in_json = field_outcome(
        field.message, fmt::format(R"({{"{}":{}}})", field.json_name, json), "application/json");
    const std::string in_other_json = field_outcome(
        field.message, fmt::format(R"({{"{}":{}}})", field.proto_name, json), "application/json");
    const std::string name = fmt::format("{}.{}", field.message, field.proto_name);
    switch (field.verdict) {
      case kAllowed:
        EXPECT_TRUE(in_proto.ends_with(proto)) << name << in_proto;
        EXPECT_NE(in_json.find(std::string(field.json_name)), std::string::npos) << name;
        EXPECT_NE(in_other_json.find(std::string(field.proto_name)), std::string::npos) << name;
        break;
      case kRewritten:
        EXPECT_EQ(in_proto, wire(field.number, kOwn)) << name;
        EXPECT_NE(in_json.find(R"(service_name=\"own\")"), std::string::npos) << name << in_json;
        EXPECT_NE(in_other_json.find(R"(service_name=\"own\")"), std::string::npos) << name;
        break;
      case kRefused:
        EXPECT_EQ(in_proto, "field") << name;
        EXPECT_EQ(in_json, "field") << name;
        EXPECT_EQ(in_other_json, "field") << name;
        break;
    }
  }
}

TEST(ProfileFields, TheListHasNoFieldThatIsNotPublished) {
  const auto compare = [](std::string_view message, ProfileFields fields) {
    for (const ProfileField& field : fields) {
      const auto* const found = std::ranges::find_if(kPublished, [&](const Published& published) {
        return published.message == message && published.number == field.number;
      });
      ASSERT_NE(found, std::end(kPublished)) << message << field.number;
      EXPECT_EQ(found->proto_name, field.proto_name);
      EXPECT_EQ(found->json_name, field.json_name);
      EXPECT_NE(found->verdict, kRefused);
    }
  };
  for (const std::string_view method :
       {"ProfileTypes", "LabelNames", "LabelValues", "Series", "SelectMergeStacktraces",
        "SelectMergeSpanProfile", "SelectMergeProfile", "SelectSeries", "SelectHeatmap"}) {
    compare(method, fields_of_call(method));
  }
  for (const ProfileField& side : fields_of_call("Diff")) {
    compare("SelectMergeStacktraces", side.inner);
  }
  const ProfileFields stack = fields_of_call("SelectSeries")[7].inner;
  compare("StackTraceSelector", stack);
  compare("Location", stack[0].inner);
  compare("GoPGO", stack[1].inner);
}

TEST(ProfileFields, AnswersToEarlierRequestsCannotBeFetched) {
  const std::string selector = wire(2, kOwn);
  const std::string async = wire(9, wire(1, "0a1b"));
  EXPECT_EQ(field_outcome("SelectMergeStacktraces", selector + async, "application/proto"),
            "field");
  EXPECT_EQ(
      field_outcome("Diff", wire(1, selector + async) + wire(2, selector), "application/proto"),
      "field");
  EXPECT_EQ(field_outcome("Diff", R"({"left":{},"right":{"async":{"requestId":"0a1b"}}})",
                          "application/json"),
            "field");
}

TEST(ProfileFields, UnknownOnesAreRefusedAtEveryDepth) {
  const std::string selector = wire(2, kOwn);
  for (const std::uint32_t number : {12U, 15U, 100U, 536'870'911U}) {
    EXPECT_EQ(field_outcome("SelectSeries", selector + wire(number, "x"), "application/proto"),
              "field")
        << number;
  }
  EXPECT_EQ(field_outcome("Diff", wire(1, selector) + wire(2, selector) + wire(3, "x"),
                          "application/proto"),
            "field");
  EXPECT_EQ(field_outcome("SelectSeries", selector + wire(8, wire(3, "x")), "application/proto"),
            "field");
  EXPECT_EQ(
      field_outcome("SelectSeries", selector + wire(8, wire(1, wire(2, "x"))), "application/proto"),
      "field");
  EXPECT_EQ(field_outcome("SelectSeries", selector + wire(8, "garbage"), "application/proto"),
            "field");
  for (const char* json :
       {R"({"Start":1})", R"({"other":null})", R"({"stackTraceSelector":{"x":1}})",
        R"({"stackTraceSelector":{"callSite":[{"x":1}]}})", R"({"groupBy":"pod"})",
        R"({"groupBy":[1]})", R"({"start":{}})", R"({"groupBy":[],"group_by":[]})",
        R"({"stackTraceSelector":[]})", R"({"stackTraceSelector":{"callSite":["x"]}})"}) {
    EXPECT_EQ(field_outcome("SelectSeries", json, "application/json"), "field") << json;
  }
  // A wrong wire type is an unknown field for the server.
  EXPECT_EQ(field_outcome("SelectSeries", selector + wire(3, "x"), "application/proto"), "field");
  EXPECT_EQ(field_outcome("SelectSeries", selector + key(6, 0) + "\x01", "application/proto"),
            "field");
}

}  // namespace
}  // namespace ceems::gate
