#include "base/text/template.h"

#include <gtest/gtest.h>

namespace ceems {
namespace {

TEST(Template, EscapesTextsUnlessTheTagHasThreeBraces) {
  const TemplateData data{.texts = {{"a", "<b & \"c\">"}}};
  EXPECT_EQ(render_template("x {{a}} {{{a}}} y", data),
            "x &lt;b &amp; &quot;c&quot;&gt; <b & \"c\"> y");
  EXPECT_EQ(render_template("", data), "");
  EXPECT_EQ(render_template("{ } }} {a}", data), "{ } }} {a}");
}

TEST(Template, RepeatsASectionForEachItem) {
  const TemplateData data{.texts = {{"name", "outer"}, {"one", "1"}},
                          .lists = {{"items", {{.texts = {{"name", "a"}}}, {}}}, {"none", {}}}};
  EXPECT_EQ(render_template("{{#items}}[{{name}}{{one}}]{{/items}}", data), "[a1][outer1]");
  EXPECT_EQ(render_template("({{#none}}{{unknown}}{{/none}})", data), "()");
  EXPECT_EQ(render_template("({{^none}}no{{/none}}{{^items}}no{{/items}})", data), "(no)");
}

TEST(Template, ShowsASectionOfATextUnlessItIsEmpty) {
  const TemplateData data{.texts = {{"full", "x"}, {"empty", ""}}};
  EXPECT_EQ(render_template("{{#full}}a{{full}}{{/full}}{{#empty}}b{{/empty}}", data), "ax");
  EXPECT_EQ(render_template("{{^full}}a{{/full}}{{^empty}}b{{/empty}}", data), "b");
}

TEST(Template, NestsSections) {
  const TemplateData data{
      .lists = {{"a",
                 {{.lists = {{"b", {{.texts = {{"c", "1"}}}, {.texts = {{"c", "2"}}}}}}},
                  {.lists = {{"b", {}}}}}}}};
  EXPECT_EQ(render_template("{{#a}}<{{#b}}{{c}}{{/b}}{{^b}}-{{/b}}>{{/a}}", data), "<12><->");
}

TEST(Template, LeavesNoLineForASectionTagAloneOnItsLine) {
  const TemplateData data{.lists = {{"items", {{}, {}}}}};
  EXPECT_EQ(render_template("a\n{{#items}}\nb\n{{/items}}\nc\n", data), "a\nb\nb\nc\n");
  EXPECT_EQ(render_template("a {{#items}}\nb{{/items}}\nc", data), "a \nb\nb\nc");
}

TEST(Template, LeavesBracesOfJsonBeforeATag) {
  const TemplateData data{.texts = {{"a", "\"x\":1"}}, .lists = {{"b", {{}}}}};
  EXPECT_EQ(render_template(R"({"p":{{{{a}}}}})", data), R"({"p":{"x":1}})");
  EXPECT_EQ(render_template(R"({{{#b}}"y":2{{/b}}})", data), R"({"y":2})");
}

TEST(TemplateDeathTest, AbortsOnAMistakeInTheTemplate) {
  const TemplateData data{.texts = {{"a", ""}}, .lists = {}};
  EXPECT_DEATH((void)render_template("{{unknown}}", data), "");
  EXPECT_DEATH((void)render_template("{{#unknown}}{{/unknown}}", data), "");
  EXPECT_DEATH((void)render_template("{{#a}}", data), "");
  EXPECT_DEATH((void)render_template("{{^a}}{{/b}}", data), "");
  EXPECT_DEATH((void)render_template("{{a", data), "");
}

}  // namespace
}  // namespace ceems
