#include "config/name_map.h"

#include <gmock/gmock.h>

#include "testing/temp_dir.h"

namespace ceems::config {
namespace {

using ::testing::HasSubstr;

Result<NameMap> map_of(std::string_view yaml, const std::string& directory = "") {
  return NameMap::read(parse_yaml(yaml, "c.yml").value(), directory, "service");
}

TEST(NameMap, ChangesNothingByDefault) {
  for (const char* login : {"Ada", "ada@uni.example", "UNI\\ada", ""}) {
    EXPECT_EQ(NameMap().apply(login), login);
    EXPECT_EQ(map_of("{}")->apply(login), login);
  }
}

TEST(NameMap, StripsOnlyThePartsThatAreNamed) {
  const auto map = map_of("{strip_domain: [uni], strip_mail: [Uni.Example]}").value();
  EXPECT_EQ(map.apply("UNI\\Ada"), "Ada");
  EXPECT_EQ(map.apply("Ada@uni.example"), "Ada");
  EXPECT_EQ(map.apply("uni\\ada@uni.example"), "ada");
  // A user who chooses the part chooses the name.
  for (const char* login :
       {"OTHER\\ada", "ada@evil.example", "ada@x.uni.example", "ada@", "@ada"}) {
    EXPECT_EQ(map.apply(login), login);
  }
  EXPECT_EQ(map.apply("@uni.example"), "@uni.example");  // no name is left
  const auto any = map_of("{strip_domain: ['*'], strip_mail: ['*'], lower_case: true}").value();
  EXPECT_EQ(any.apply("X\\Ada@y.z"), "ada");
  EXPECT_EQ(any.apply(any.apply("X\\Ada@y.z")), "ada");
}

TEST(NameMap, TheTableComesFirst) {
  const ceems::testing::TempDir dir;
  dir.write("names", "# login name\n\nada@uni.example  al0042\nBob\tbob1\n");
  const auto map =
      map_of("{lower_case: true, strip_mail: [uni.example], table: names}", dir.path().string());
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(map->apply("Ada@UNI.example"), "al0042");
  EXPECT_EQ(map->apply("bob"), "bob1");
  EXPECT_EQ(map->apply("Eve@uni.example"), "eve");
}

TEST(NameMap, NoLoginBecomesTheServiceAccount) {
  const ceems::testing::TempDir dir;
  dir.write("names", "eve service\n");
  const auto map =
      map_of("{lower_case: true, strip_mail: ['*'], table: names}", dir.path().string()).value();
  for (const char* login : {"eve", "Service", "service@x"}) {
    EXPECT_EQ(map.apply(login), login);
  }
  EXPECT_EQ(map.apply("service"), "service");
}

TEST(NameMap, BadTablesAreRefused) {
  const ceems::testing::TempDir dir;
  const auto message = [&dir](std::string_view table) {
    dir.write("names", table);
    const auto map = map_of("{table: names}", dir.path().string());
    return map ? "" : map.error().message;
  };
  EXPECT_THAT(message("ada\n"), HasSubstr("names:1: expected a login and a name"));
  EXPECT_THAT(message("\nada b c\n"), HasSubstr("names:2: expected a login and a name"));
  EXPECT_THAT(message("ada b\nada c\n"), HasSubstr("names:2: the login has another name above"));
  EXPECT_EQ(message("ada b\nada b\n"), "");
  // Two programs, one behind the other, would make "c" of it.
  EXPECT_THAT(message("ada b\nb c\n"),
              HasSubstr("names: the name 'b' of 'ada' is mapped again, to 'c'"));
  EXPECT_EQ(message("ada b\nb b\n"), "");
  dir.write("names", "ada Bob\n");
  EXPECT_THAT(map_of("{table: names, lower_case: true}", dir.path().string()).error().message,
              HasSubstr("is mapped again, to 'bob'"));
  EXPECT_THAT(map_of("{table: /no/such}").error().message, HasSubstr("cannot read /no/such"));
  EXPECT_THAT(map_of("{lowercase: true}").error().message, HasSubstr("lower_case"));
}

}  // namespace
}  // namespace ceems::config
