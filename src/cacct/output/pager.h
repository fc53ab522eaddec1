#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::cacct {

/// Shows a text on standard output. If that is a terminal on which the text does not fit, and
/// `paged` is true, /usr/bin/less shows it if that is installed. The pager runs with the rights of
/// this process, so give up privileges first. Returns false if writing failed.
bool show(std::string_view text, bool paged);

/// Shows a text on standard output without a pager, or an error as one line on standard error.
/// Returns the exit status.
int show_or_explain(const Result<std::string>& text);

/// Whether standard output is a terminal that shows bold text, and the user wants such things
/// (https://no-color.org).
bool shows_bold();

}  // namespace ceems::cacct
