// cacct: what jobs cost, for those who ran them.

#include <cstdio>
#include <exception>
#include <string>

#include <fmt/format.h>

#include "base/log.h"
#include "cacct/caller.h"
#include "cacct/command.h"
#include "cacct/options.h"
#include "config/flags.h"

namespace {

namespace cacct = ceems::cacct;

constexpr std::string_view kDescription =
    "Shows the energy, emissions and use of CPUs, memory and GPUs of jobs, as sacct shows their "
    "accounting. Without flags it shows your jobs of today; below them, the sums for each account. "
    "Examples: cacct -S yesterday; cacct -j 1234,1235 --long; cacct -S now-1weeks --totals "
    "--human.";

int run(int argc, const char* const* argv) {
  cacct::Options options;
  ceems::config::FlagSet flags("cacct", std::string(kDescription));
  cacct::add_flags(flags, options);
  const auto outcome = flags.parse(argc, argv);
  if (outcome.exit) {
    constexpr std::string_view kError = "cacct: error: ";
    if (*outcome.exit != 0 && outcome.text.starts_with(kError)) {  // as the reference says it
      fmt::print(stderr, "{}failed to parse CLI flags: {}", kError,
                 outcome.text.substr(kError.size()));
    } else {
      fmt::print(*outcome.exit == 0 ? stdout : stderr, "{}", outcome.text);
    }
    return *outcome.exit;
  }
  ceems::log::configure(ceems::log::Level::kError, ceems::log::Format::kLogfmt);
  const auto caller = cacct::find_caller();
  if (!caller) {
    fmt::print(stderr, "cacct: error: {}\n", caller.error().message);
    return 1;
  }
  return cacct::run(options, *caller);
}

}  // namespace

int main(int argc, char** argv) {
  cacct::shed_environment();
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fputs("cacct: error: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
    return 1;
  }
}
