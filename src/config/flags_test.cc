#include "config/flags.h"

#include <stdlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Flags : public ::testing::Test {
 protected:
  Flags() : set_("prog", "Does things.") {
    set_.add("collector.cpu", cpu_, {.help = "CPU."});
    set_.add("path", path_, {.help = "A path.", .env = "CEEMS_TEST_FLAG_PATH"});
    set_.add("number", number_, {.help = "A number."});
    set_.add("listen", listen_, {.help = "Addresses."});
    set_.add_enum("kind", kind_, {"a", "b"}, {.help = "A kind.", .placeholder = "KIND"});
    set_.add("secret", secret_, {.help = "Hidden.", .hidden = true});
  }

  FlagOutcome parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "prog");
    return set_.parse(static_cast<int>(arguments.size()), arguments.data());
  }
  std::string error(std::vector<const char*> arguments) {
    const FlagOutcome outcome = parse(std::move(arguments));
    EXPECT_EQ(outcome.exit, 1);
    return outcome.text;
  }

  FlagSet set_;
  bool cpu_ = true;
  std::string path_ = "/sys";
  long number_ = 40;
  std::vector<std::string> listen_{":9010"};
  std::string kind_;
  bool secret_ = false;
};

TEST_F(Flags, KeepDefaults) {
  EXPECT_EQ(parse({}).exit, std::nullopt);
  EXPECT_TRUE(cpu_);
  EXPECT_EQ(path_, "/sys");
  EXPECT_EQ(number_, 40);
  EXPECT_THAT(listen_, ElementsAre(":9010"));
  EXPECT_FALSE(set_.given("path"));
}

TEST_F(Flags, ReadBothForms) {
  EXPECT_EQ(parse({"--no-collector.cpu", "--path=/x", "--number", "1e2", "--secret"}).exit,
            std::nullopt);
  EXPECT_FALSE(cpu_);
  EXPECT_EQ(path_, "/x");
  EXPECT_EQ(number_, 100);
  EXPECT_TRUE(secret_);
  EXPECT_TRUE(set_.given("collector.cpu"));
}

TEST_F(Flags, TakeAValueWithADashOnlyBehindAnEqualsSign) {
  EXPECT_EQ(parse({"--number=-5", "--path=--odd"}).exit, std::nullopt);
  EXPECT_EQ(number_, -5);
  EXPECT_EQ(path_, "--odd");
  EXPECT_EQ(error({"--number", "-5"}),
            "prog: error: expected argument for flag '--number', try --help\n");
}

TEST_F(Flags, TakeEmptyValues) {
  EXPECT_EQ(parse({"--path="}).exit, std::nullopt);
  EXPECT_EQ(path_, "");
}

TEST_F(Flags, CollectRepeatableOnesInOrder) {
  EXPECT_EQ(parse({"--listen=a", "--listen", "b"}).exit, std::nullopt);
  EXPECT_THAT(listen_, ElementsAre("a", "b"));
}

TEST_F(Flags, RefuseWhatTheGrammarRefuses) {
  EXPECT_THAT(error({"--collector.cpu=false"}), HasSubstr("boolean flag '--collector.cpu'"));
  EXPECT_EQ(error({"--path=a", "--path=b"}),
            "prog: error: flag 'path' cannot be repeated, try --help\n");
  EXPECT_THAT(error({"--collector.cpu", "--no-collector.cpu"}), HasSubstr("cannot be repeated"));
  EXPECT_THAT(error({"--no-path"}), HasSubstr("unknown long flag '--no-path'"));
  EXPECT_EQ(error({"--colector.cpu"}),
            "prog: error: unknown long flag '--colector.cpu' (did you mean '--collector.cpu'?), "
            "try --help\n");
  EXPECT_THAT(error({"-x"}), HasSubstr("unknown short flag '-x'"));
  EXPECT_THAT(error({"word"}), HasSubstr("unexpected argument 'word'"));
  EXPECT_THAT(error({"--", "word"}), HasSubstr("word"));
  EXPECT_THAT(error({"--number=many"}), HasSubstr("expected a number for '--number', got 'many'"));
  EXPECT_THAT(error({"--kind=c"}), HasSubstr("must be one of a,b, got 'c'"));
  EXPECT_THAT(error({"--path"}), HasSubstr("expected argument"));
  EXPECT_THAT(error({"--help", "--nonsense"}), HasSubstr("unknown long flag"));
}

TEST_F(Flags, TakeTheEnvironmentUnlessGiven) {
  ::setenv("CEEMS_TEST_FLAG_PATH", "/env", 1);
  EXPECT_EQ(parse({}).exit, std::nullopt);
  EXPECT_EQ(path_, "/env");
  EXPECT_EQ(parse({"--path=/flag"}).exit, std::nullopt);
  EXPECT_EQ(path_, "/flag");
  ::unsetenv("CEEMS_TEST_FLAG_PATH");
}

TEST_F(Flags, ReadArgumentFiles) {
  const ceems::testing::TempDir dir;
  const std::string at =
      "@" + dir.write("args", "# comment\n\n--path=/file\n--number\n7\n").string();
  EXPECT_EQ(parse({at.c_str()}).exit, std::nullopt);
  EXPECT_EQ(path_, "/file");
  EXPECT_EQ(number_, 7);
  EXPECT_THAT(error({"@/nonexistent"}), HasSubstr("open /nonexistent"));
}

TEST_F(Flags, FollowAliases) {
  set_.alias("old-path", "path");
  EXPECT_EQ(parse({"--old-path=/x"}).exit, std::nullopt);
  EXPECT_EQ(path_, "/x");
  EXPECT_TRUE(set_.given("path"));
}

TEST_F(Flags, PrintHelpInTwoColumns) {
  ::setenv("COLUMNS", "60", 1);
  const FlagOutcome outcome = parse({"-h"});
  ::unsetenv("COLUMNS");
  EXPECT_EQ(outcome.exit, 0);
  EXPECT_EQ(outcome.text,
            "usage: prog [<flags>]\n"
            "\n"
            "Does things.\n"
            "\n"
            "\n"
            "Flags:\n"
            "  -h, --[no-]help         Show context-sensitive help.\n"
            "  --[no-]collector.cpu    CPU.\n"
            "  --path=\"/sys\"           A path. ($CEEMS_TEST_FLAG_PATH)\n"
            "  --number=40             A number.\n"
            "  --listen=\":9010\" ...    Addresses.\n"
            "  --kind=KIND             A kind.\n"
            "  --[no-]version          Show application version.\n");
}

TEST_F(Flags, PrintVersionManPageAndCompletions) {
  EXPECT_THAT(parse({"--version"}).text, HasSubstr("prog, version "));
  EXPECT_EQ(parse({"--version", "--help"}).text.substr(0, 5), "prog,");
  EXPECT_THAT(parse({"--help-man"}).text, HasSubstr(".TH prog 8"));
  EXPECT_THAT(parse({"--completion-script-bash"}).text, HasSubstr("complete -F _prog prog"));
  EXPECT_THAT(parse({"--completion-script-zsh"}).text, HasSubstr("#compdef prog"));
  EXPECT_EQ(parse({"--completion-bash"}).exit, std::nullopt);
}

TEST_F(Flags, ListTheirNames) {
  EXPECT_THAT(set_.names(), ElementsAre("collector.cpu", "path", "number", "listen", "kind"));
}

}  // namespace
}  // namespace ceems::config
