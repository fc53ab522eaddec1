#include "config/commands.h"

#include <stdlib.h>

#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/command.h"
#include "testing/temp_dir.h"

namespace ceems::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Commands : public ::testing::Test {
 protected:
  Commands() : set_("prog", "Does things.") {
    auto& healthy = set_.add("check api-healthy", "Ask whether the API server is well.");
    healthy.add("url", url_, {.help = "Where it's listening."});
    healthy.add("json", json_, {.help = "Print JSON."});
    auto& files = set_.add("check web-config", "Check files.");
    files.positionals("files", files_, "The files.");
    auto& rules = set_.add("tsdb rules", "Write rules.");
    rules.add("pue", pue_, {.help = "Factor."});
    rules.add_enum("included", included_, {"auto", "yes", "no"}, {.help = "Whether."});
  }

  CommandSet::Outcome parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "prog");
    return set_.parse(static_cast<int>(arguments.size()), arguments.data());
  }
  std::string error(std::vector<const char*> arguments) {
    const auto outcome = parse(std::move(arguments));
    EXPECT_EQ(outcome.flags.exit, 1);
    return outcome.flags.text;
  }
  std::string text(std::vector<const char*> arguments) {
    const auto outcome = parse(std::move(arguments));
    EXPECT_EQ(outcome.flags.exit, 0);
    return outcome.flags.text;
  }

  CommandSet set_;
  std::string url_ = "http://localhost:9020";
  bool json_ = false;
  double pue_ = 1;
  std::string included_ = "auto";
  std::vector<std::string> files_;
};

TEST_F(Commands, ReadTheFlagsOfTheCommand) {
  const auto outcome = parse({"tsdb", "rules", "--pue=1.3", "--included", "no"});
  EXPECT_EQ(outcome.flags.exit, std::nullopt);
  EXPECT_EQ(outcome.command, "tsdb rules");
  EXPECT_EQ(pue_, 1.3);
  EXPECT_EQ(included_, "no");
}

TEST_F(Commands, ReadPositionalArgumentsAfterTheWords) {
  const auto outcome = parse({"check", "web-config", "a.yml", "b.yml"});
  EXPECT_EQ(outcome.command, "check web-config");
  EXPECT_THAT(files_, ElementsAre("a.yml", "b.yml"));
}

TEST_F(Commands, NameTheProgramAloneInErrors) {
  EXPECT_EQ(error({"tsdb", "rules", "--pue=x"}),
            "prog: error: expected a number for '--pue', got 'x', try --help\n");
  EXPECT_EQ(error({"tsdb", "rules", "--pue=inf"}),
            "prog: error: expected a number for '--pue', got 'inf', try --help\n");
  EXPECT_EQ(error({"tsdb", "rules", "--ul=x"}),
            "prog: error: unknown long flag '--ul', try --help\n");
  EXPECT_EQ(error({"tsdb", "rules", "extra"}),
            "prog: error: unexpected argument 'extra', try --help\n");
}

TEST_F(Commands, RefuseWhatIsNotACommand) {
  EXPECT_EQ(error({}), "prog: error: must select a subcommand: check, tsdb, try --help\n");
  EXPECT_EQ(error({"check"}),
            "prog: error: must select a subcommand of 'check': api-healthy, web-config, try "
            "--help\n");
  EXPECT_EQ(error({"chek"}),
            "prog: error: expected command but got 'chek' (did you mean 'check'?), try --help\n");
  EXPECT_EQ(error({"tsdb", "\x1b[31m"}),
            "prog: error: expected command but got '\\x1b[31m', try --help\n");
  EXPECT_EQ(error({"--pue=2", "tsdb", "rules"}),
            "prog: error: unknown flag '--pue=2' before the command, try --help\n");
  EXPECT_EQ(error({"help", "tsdb", "rule"}),
            "prog: error: expected command but got 'rule' (did you mean 'rules'?), try --help\n");
}

TEST_F(Commands, ListThemselvesInTheHelp) {
  ::setenv("COLUMNS", "80", 1);
  const std::string all = text({"--help"});
  EXPECT_EQ(all,
            "usage: prog <command> [<flags>]\n"
            "\n"
            "Does things.\n"
            "\n"
            "\n"
            "Commands:\n"
            "  help [<command>...]\n"
            "      Show the flags of a command.\n"
            "\n"
            "  check api-healthy [<flags>]\n"
            "      Ask whether the API server is well.\n"
            "\n"
            "  check web-config [<flags>] <files>...\n"
            "      Check files.\n"
            "\n"
            "  tsdb rules [<flags>]\n"
            "      Write rules.\n"
            "\n"
            "Flags:\n"
            "  -h, --[no-]help     Show context-sensitive help (also of a command).\n"
            "      --[no-]version  Show application version.\n");
  EXPECT_EQ(text({"help"}), all);
  EXPECT_EQ(text({"-h"}), all);
  const std::string with_flags = text({"--help-long"});
  EXPECT_THAT(with_flags, HasSubstr("  tsdb rules [<flags>]\n"
                                    "      Write rules.\n"
                                    "\n"
                                    "        --pue="));
  EXPECT_THAT(with_flags, HasSubstr("  check web-config [<flags>] <files>...\n"));
  EXPECT_THAT(text({"tsdb", "--help-long"}), Not(HasSubstr("check web-config")));
  const std::string group = text({"check", "--help"});
  EXPECT_THAT(group, HasSubstr("check web-config"));
  EXPECT_THAT(group, Not(HasSubstr("tsdb")));
}

TEST_F(Commands, ShowTheFlagsOfOneCommand) {
  const std::string flags = text({"tsdb", "rules", "--help"});
  EXPECT_THAT(flags, StartsWith("usage: prog tsdb rules [<flags>]\n\nWrite rules.\n"));
  EXPECT_THAT(flags, HasSubstr("  --pue=1 "));
  EXPECT_THAT(flags, Not(HasSubstr("--url")));
  EXPECT_EQ(text({"help", "tsdb", "rules"}), flags);
}

TEST_F(Commands, PrintTheVersionOfTheProgram) {
  EXPECT_THAT(text({"--version"}), StartsWith("prog, version "));
  EXPECT_THAT(text({"tsdb", "rules", "--version"}), StartsWith("prog, version "));
}

TEST_F(Commands, DescribeAllOfThemselvesInTheManPage) {
  const std::string page = text({"--help-man"});
  EXPECT_THAT(page, StartsWith(".TH prog 8 "));
  EXPECT_THAT(page, HasSubstr(".SS check web\\-config [<flags>] [<files>...]\nCheck files.\n"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-pue=1\\fR\nFactor.\n"));
  EXPECT_EQ(text({"tsdb", "rules", "--help-man"}), page);
}

TEST_F(Commands, CompleteTheirWordsAndFlagsInBash) {
  const testing::TempDir dir;
  const std::string script = dir.write("script", text({"--completion-script-bash"})).string();
  const auto completions = [&](const std::string& line) {
    const auto result = os::real_runner().run(
        {.path = "/bin/bash",
         .arguments = {"-c", "source " + script + "; COMP_WORDS=(" + line +
                                 "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _prog; echo "
                                 "\"${COMPREPLY[@]}\""},
         .environment = {}});
    return result ? result->output : result.error().message;
  };
  EXPECT_EQ(completions("prog c"), "check\n");
  EXPECT_EQ(completions("prog check ''"), "api-healthy web-config --help --version\n");
  EXPECT_EQ(completions("prog tsdb rules --p"), "--pue\n");
  EXPECT_EQ(completions("prog check api-healthy --url x --no"), "--no-json\n");
}

TEST_F(Commands, CompleteThemselvesInZshAndFish) {
  const std::string zsh = text({"--completion-script-zsh"});
  EXPECT_THAT(zsh, StartsWith("#compdef prog\n"));
  EXPECT_THAT(zsh, HasSubstr("'tsdb rules:Write rules.'"));
  EXPECT_THAT(zsh, HasSubstr("--included=[Whether.]:value:(auto yes no)"));
  const std::string fish = text({"--completion-script-fish"});
  EXPECT_THAT(fish, HasSubstr("complete -c prog -n '__prog_at' -f -a tsdb\n"));
  EXPECT_THAT(fish,
              HasSubstr("complete -c prog -n '__prog_at tsdb' -f -a rules -d 'Write rules.'\n"));
  EXPECT_THAT(fish, HasSubstr("complete -c prog -n '__prog_at check api-healthy' -l url -r -d "
                              "'Where it\\'s listening.'\n"));
  EXPECT_THAT(fish, HasSubstr("-n '__prog_at tsdb rules' -l included -x -a 'auto yes no'"));
}

}  // namespace
}  // namespace ceems::config
