#include "config/flags.h"

#include <stdlib.h>

#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void set_env(const char* name, const char* value) {
  ::setenv(name, value, 1);
}

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

TEST(ShortFlags, MayBeJoinedAndTakeValues) {
  const auto read = [](std::vector<const char*> words) {
    FlagSet set("prog", "Does things.");
    bool all = false;
    bool bare = false;
    std::string format;
    set.add("all", all, {.help = "Show all.", .letter = 'a'});
    set.add("bare", bare, {.help = "Show no header.", .letter = 'n'});
    set.add("format", format, {.help = "Columns.", .letter = 'o'});
    words.insert(words.begin(), "prog");
    const FlagOutcome outcome = set.parse(static_cast<int>(words.size()), words.data());
    return outcome.exit ? outcome.text : fmt::format("{} {} '{}'", all, bare, format);
  };
  EXPECT_EQ(read({"-a"}), "true false ''");
  EXPECT_EQ(read({"-na"}), "true true ''");
  EXPECT_EQ(read({"-nox,y"}), "false true 'x,y'");
  EXPECT_EQ(read({"-o", "x", "-n"}), "false true 'x'");
  EXPECT_EQ(read({"-ax"}), "prog: error: unknown short flag '-x', try --help\n");
  EXPECT_EQ(read({"-o"}), "prog: error: expected argument for flag '-o', try --help\n");
  EXPECT_EQ(read({"-o", "-n"}), "prog: error: expected argument for flag '-o', try --help\n");
  EXPECT_EQ(read({"-a", "--all"}), "prog: error: flag 'all' cannot be repeated, try --help\n");
  EXPECT_THAT(read({"-h"}), ::testing::HasSubstr("  -o, --format=FORMAT"));
}

TEST_F(Flags, CollectRepeatableOnesInOrder) {
  EXPECT_EQ(parse({"--listen=a", "--listen", "b"}).exit, std::nullopt);
  EXPECT_THAT(listen_, ElementsAre("a", "b"));
}

TEST_F(Flags, RefuseWhatTheGrammarRefuses) {
  const auto expect = [&](std::vector<const char*> arguments, const std::string& message) {
    EXPECT_EQ(error(std::move(arguments)), "prog: error: " + message + ", try --help\n");
  };
  expect({"--collector.cpu=false"},
         "unexpected argument '=false' for boolean flag '--collector.cpu'; use --collector.cpu or "
         "--no-collector.cpu");
  expect({"--path=a", "--path=b"}, "flag 'path' cannot be repeated");
  expect({"--collector.cpu", "--no-collector.cpu"}, "flag 'collector.cpu' cannot be repeated");
  expect({"--no-path"}, "unknown long flag '--no-path'");
  expect({"--quite-different"}, "unknown long flag '--quite-different'");
  expect({"--colector.cpu"},
         "unknown long flag '--colector.cpu' (did you mean '--collector.cpu'?)");
  expect({"-x"}, "unknown short flag '-x'");
  expect({"word"}, "unexpected argument 'word'");
  expect({"-"}, "unexpected argument '-'");
  expect({"--", "--path=x"}, "unexpected argument '--path=x'");
  expect({"--number=many"}, "expected a number for '--number', got 'many'");
  expect({"--number=nan"}, "expected a number for '--number', got 'nan'");
  expect({"--number="}, "expected a number for '--number', got ''");
  expect({"--kind=c"}, "enum value of '--kind' must be one of a,b, got 'c'");
  expect({"--kind=A"}, "enum value of '--kind' must be one of a,b, got 'A'");
  expect({"--path"}, "expected argument for flag '--path'");
  expect({"--path", "--number=1"}, "expected argument for flag '--path'");
  expect({"--help", "--nonsense"}, "unknown long flag '--nonsense'");
  expect({"--\x1b[2J"}, "unknown long flag '--\\x1b[2J'");
  EXPECT_EQ(parse({"--"}).exit, std::nullopt);
}

TEST_F(Flags, ReadNumbersAsTheReferenceDoes) {
  for (const auto& [text, value] : std::vector<std::pair<const char*, long>>{
           {"--number=1e2", 100}, {"--number=1.9", 1}, {"--number=+7", 7}, {"--number=-0.5", 0}}) {
    EXPECT_EQ(parse({text}).exit, std::nullopt) << text;
    EXPECT_EQ(number_, value) << text;
  }
}

TEST_F(Flags, CollectPositionalsWhereTheyAreAllowed) {
  std::vector<std::string> files;
  set_.positionals("file", files, "Files to check.");
  EXPECT_EQ(parse({"a", "--path=/x", "b", "--", "--path=y", "--", "@z"}).exit, std::nullopt);
  EXPECT_THAT(files, ElementsAre("a", "b", "--path=y", "--", "@z"));
  EXPECT_EQ(path_, "/x");
  EXPECT_THAT(parse({"--help"}).text, HasSubstr("usage: prog [<flags>] [<file>...]\n"));
  EXPECT_THAT(parse({"--help"}).text, HasSubstr("\nArgs:\n  [<file>]"));
}

TEST_F(Flags, KeepTheDefaultListOnlyWhenTheFlagIsAbsent) {
  std::vector<std::string> kinds{"a", "b"};
  set_.add_enums("kinds", kinds, {"a", "b", "c"}, {.help = "Kinds."});
  EXPECT_EQ(parse({"--kinds=c"}).exit, std::nullopt);
  EXPECT_THAT(kinds, ElementsAre("c"));
  EXPECT_EQ(error({"--kinds=c", "--kinds=d"}),
            "prog: error: enum value of '--kinds' must be one of a,b,c, got 'd', try --help\n");
}

TEST_F(Flags, TakeTheEnvironmentUnlessGiven) {
  set_env("CEEMS_TEST_FLAG_PATH", "/env");
  EXPECT_EQ(parse({}).exit, std::nullopt);
  EXPECT_EQ(path_, "/env");
  EXPECT_EQ(parse({"--path=/flag"}).exit, std::nullopt);
  EXPECT_EQ(path_, "/flag");
  set_env("CEEMS_TEST_FLAG_PATH", "");
  path_ = "/default";
  EXPECT_EQ(parse({}).exit, std::nullopt);
  EXPECT_EQ(path_, "/default");
  set_env("CEEMS_TEST_FLAG_PATH", "");
}

TEST_F(Flags, NameTheVariableThatHoldsAWrongValue) {
  long threads = 1;
  bool on = false;
  set_.add("threads", threads, {.help = "Threads.", .env = "CEEMS_TEST_FLAG_THREADS"});
  set_.add("on", on, {.help = "On.", .env = "CEEMS_TEST_FLAG_ON"});
  set_env("CEEMS_TEST_FLAG_THREADS", "many");
  EXPECT_EQ(error({}),
            "prog: error: $CEEMS_TEST_FLAG_THREADS: expected a number for '--threads', got 'many', "
            "try --help\n");
  set_env("CEEMS_TEST_FLAG_THREADS", "4");
  set_env("CEEMS_TEST_FLAG_ON", "1");
  EXPECT_EQ(error({}),
            "prog: error: expected true or false in $CEEMS_TEST_FLAG_ON, got '1', try --help\n");
  set_env("CEEMS_TEST_FLAG_ON", "true");
  EXPECT_EQ(parse({}).exit, std::nullopt);
  EXPECT_EQ(threads, 4);
  EXPECT_TRUE(on);
  set_env("CEEMS_TEST_FLAG_THREADS", "");
  set_env("CEEMS_TEST_FLAG_ON", "");
}

TEST_F(Flags, ReadArgumentFiles) {
  const ceems::testing::TempDir dir;
  const std::string at =
      "@" + dir.write("args", "# comment\n\n--path=/file\n--number\n7\n").string();
  EXPECT_EQ(parse({at.c_str()}).exit, std::nullopt);
  EXPECT_EQ(path_, "/file");
  EXPECT_EQ(number_, 7);
  EXPECT_EQ(error({"@/nonexistent"}),
            "prog: error: open /nonexistent: No such file or directory, try --help\n");
  EXPECT_EQ(error({"@/"}), "prog: error: read /: Is a directory, try --help\n");
  EXPECT_EQ(error({"@/dev/zero"}), "prog: error: /dev/zero: not a list of arguments, try --help\n");
  const std::string itself = (dir.path() / "itself").string();
  dir.write("itself", "@" + itself + "\n");
  EXPECT_EQ(error({("@" + itself).c_str()}),
            "prog: error: more than 16 argument files, try --help\n");
}

TEST_F(Flags, FollowAliases) {
  set_.alias("old-path", "path");
  EXPECT_EQ(parse({"--old-path=/x"}).exit, std::nullopt);
  EXPECT_EQ(path_, "/x");
  EXPECT_TRUE(set_.given("path"));
}

TEST_F(Flags, MayBeGivenUnderSeveralNames) {
  set_.alias("old-path", "path");
  set_.alias("cpu", "collector.cpu");
  set_.alias("web.listen", "listen");
  EXPECT_EQ(parse({"--old-path=/old", "--path=/x", "--no-cpu", "--collector.cpu", "--listen=a",
                   "--web.listen=b"})
                .exit,
            std::nullopt);
  EXPECT_EQ(path_, "/old") << "the alias decides";
  EXPECT_TRUE(cpu_) << "one of them is true";
  EXPECT_THAT(listen_, ElementsAre("a", "b"));
  EXPECT_EQ(set_.spelling("path"), "path") << "the last one";
  EXPECT_EQ(set_.spelling("number"), "");
  EXPECT_EQ(set_.spelling("nonsense"), "");
  EXPECT_THAT(set_.given_names(),
              ElementsAre("cpu", "collector.cpu", "old-path", "path", "listen", "web.listen"));
  EXPECT_EQ(parse({"--no-cpu", "--no-collector.cpu"}).exit, std::nullopt);
  EXPECT_FALSE(cpu_);
  EXPECT_EQ(error({"--old-path=a", "--path=c", "--old-path=b"}),
            "prog: error: flag 'old-path' cannot be repeated, try --help\n");
  EXPECT_EQ(
      error({"--old-pth=a"}),
      "prog: error: unknown long flag '--old-pth' (did you mean '--old-path'?), try --help\n");
  EXPECT_TRUE(set_.has("old-path"));
  EXPECT_FALSE(set_.has("old-pth"));
}

TEST_F(Flags, TakeTheVariableOfAnAliasBeforeTheirOwn) {
  set_.alias("old-path", "path", "CEEMS_TEST_FLAG_OLD_PATH");
  set_env("CEEMS_TEST_FLAG_PATH", "/env");
  set_env("CEEMS_TEST_FLAG_OLD_PATH", "/old");
  EXPECT_EQ(parse({}).exit, std::nullopt);
  EXPECT_EQ(path_, "/old");
  EXPECT_EQ(parse({"--path=/flag"}).exit, std::nullopt);
  EXPECT_EQ(path_, "/flag");
  set_env("CEEMS_TEST_FLAG_OLD_PATH", "");
  EXPECT_EQ(parse({}).exit, std::nullopt);
  EXPECT_EQ(path_, "/env");
  set_env("CEEMS_TEST_FLAG_PATH", "");
}

TEST_F(Flags, PrintHelpInTwoColumns) {
  set_env("COLUMNS", "60");
  const FlagOutcome outcome = parse({"-h"});
  set_env("COLUMNS", "");
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

TEST_F(Flags, PutTheHelpOfLongFlagsOnTheNextLine) {
  std::string long_one;
  set_.add("a.flag.with.quite.a.long.name", long_one, {.help = "One two three four five six."});
  set_env("COLUMNS", "60");
  const std::string text = parse({"--help"}).text;
  set_env("COLUMNS", "");
  EXPECT_THAT(text, HasSubstr("\n  --a.flag.with.quite.a.long.name=A.FLAG.WITH.QUITE.A.LONG.NAME\n"
                              "                          One two three four five six.\n"));
}

TEST_F(Flags, PrintVersionBeforeHelpWhenItComesFirst) {
  EXPECT_THAT(parse({"--version"}).text, HasSubstr("prog, version "));
  EXPECT_EQ(parse({"--version", "--help"}).text.substr(0, 5), "prog,");
  EXPECT_EQ(parse({"--no-help", "--version"}).text.substr(0, 6), "usage:");
  EXPECT_EQ(parse({"--no-version"}).exit, 0);
}

TEST_F(Flags, PrintAManPage) {
  const std::string text = parse({"--help-man"}).text;
  EXPECT_THAT(text, HasSubstr(".TH prog 8"));
  EXPECT_THAT(text, HasSubstr("\n.SH DESCRIPTION\nDoes things.\n"));
  EXPECT_THAT(text, HasSubstr(".TP\n\\fB\\-\\-[no\\-]collector.cpu\\fR\nCPU.\n"));
}

TEST_F(Flags, PrintCompletionScripts) {
  const FlagOutcome bash = parse({"--completion-script-bash"});
  EXPECT_EQ(bash.exit, 0);
  EXPECT_THAT(bash.text, HasSubstr("complete -F _prog prog\n"));
  EXPECT_THAT(bash.text, HasSubstr(" --collector.cpu --no-collector.cpu --path "));
  const FlagOutcome zsh = parse({"--completion-script-zsh"});
  EXPECT_EQ(zsh.exit, 0);
  EXPECT_THAT(zsh.text, HasSubstr("#compdef prog\n"));
  EXPECT_THAT(zsh.text, HasSubstr("  '(--collector.cpu)--no-collector.cpu[CPU.]' \\\n"));
  EXPECT_THAT(zsh.text, HasSubstr("  '--kind=[A kind.]:value:(a b)' \\\n"));
  EXPECT_EQ(zsh.text.find("secret"), std::string::npos);
  const FlagOutcome fish = parse({"--completion-script-fish"});
  EXPECT_EQ(fish.exit, 0);
  EXPECT_THAT(fish.text, HasSubstr("complete -c prog -l no-collector.cpu -d 'CPU.'\n"));
  EXPECT_THAT(fish.text, HasSubstr("complete -c prog -l kind -x -a 'a b' -d 'A kind.'\n"));
  EXPECT_EQ(fish.text.find("secret"), std::string::npos);
  EXPECT_EQ(parse({"--completion-bash"}).exit, std::nullopt);
  EXPECT_EQ(parse({"--help-long"}).text, parse({"--help"}).text);
}

TEST_F(Flags, ListTheirNames) {
  EXPECT_THAT(set_.names(), ElementsAre("collector.cpu", "path", "number", "listen", "kind"));
}

}  // namespace
}  // namespace ceems::config
