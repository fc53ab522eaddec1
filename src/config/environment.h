#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::config {

/// Replaces $NAME and ${NAME} in a text with what `lookup` returns for NAME, and $$ with a single
/// $. The rules follow Go's os.Expand (https://pkg.go.dev/os#Expand), which CEEMS 0.10.2 uses: a
/// name is a run of letters, digits and '_', or a single digit, or one of *#$@!?-; "${}" and an
/// unclosed "${" are removed; any other '$' is kept. The whole text is expanded, including
/// comments. Returns kInvalidArgument when the text contains [[{$}]], which CEEMS 0.10.2 rejects.
Result<std::string> expand_environment(
    std::string_view text, const std::function<std::string(const std::string&)>& lookup);

}  // namespace ceems::config
