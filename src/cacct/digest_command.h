#pragma once

#include <string>

#include "cacct/caller.h"
#include "config/flags.h"

namespace ceems::cacct {

/// The command line of `cacct digest`.
struct DigestOptions {
  std::string month{};    ///< "2026-11"; empty: this one
  std::string project{};  ///< empty: the caller's own month
  bool all_clusters = false;
  bool json = false;
  bool markdown = false;
  bool html = false;
  bool ascii = false;
  long width = 0;  ///< 0: that of the terminal
  std::string language = "en";
};

void add_digest_flags(config::FlagSet& flags, DigestOptions& options);

/// Prints the digest and returns the exit status.
int run_digest(const DigestOptions& options, const Caller& caller);

}  // namespace ceems::cacct
