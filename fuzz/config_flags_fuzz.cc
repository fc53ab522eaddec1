// A command line of any words, one per line, gives values or a one-line error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "config/flags.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> words{"program"};
  for (const std::string_view word : ceems::split(text, '\n')) {
    if (!word.starts_with('@')) {  // those would read files
      words.emplace_back(word.substr(0, word.find('\0')));
    }
  }
  std::vector<const char*> arguments;
  arguments.reserve(words.size());
  for (const std::string& word : words) {
    arguments.push_back(word.c_str());
  }
  bool on = true;
  long number = 1;
  std::string path = "/sys";
  std::string kind;
  std::vector<std::string> addresses{":9010"};
  std::vector<std::string> positionals;
  ceems::config::FlagSet flags("program", "Description.");
  flags.add("collector.cpu", on, {.help = "CPU."});
  flags.add("web.max-requests", number, {.help = "Requests."});
  flags.add("path.sysfs", path, {.help = "Path."});
  flags.add_enum("kind", kind, {"a", "b"}, {.help = "Kind."});
  flags.add("web.listen-address", addresses, {.help = "Addresses."});
  flags.alias("path", "path.sysfs");
  if (size % 2 == 0) {
    flags.positionals("file", positionals, "Files.");
  }
  const auto outcome = flags.parse(static_cast<int>(arguments.size()), arguments.data());
  const bool failed = outcome.exit && *outcome.exit != 0;
  if (failed && (outcome.text.find('\n') != outcome.text.size() - 1)) {
    std::abort();
  }
  if (!failed && (addresses.empty() || !(kind.empty() || kind == "a" || kind == "b"))) {
    std::abort();
  }
  return 0;
}
