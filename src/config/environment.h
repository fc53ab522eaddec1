#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::config {

/// Replaces $NAME and ${NAME} in a text by what `lookup` returns for NAME, and $$ by one $. The
/// rules are those of os.Expand of Go (https://pkg.go.dev/os#Expand), which CEEMS 0.10.2 uses:
/// a name is letters, digits and '_', or one of *#$@!?- or a digit; "${}" and an unclosed "${"
/// vanish; any other '$' stays. Every part of the text counts, comments too.
/// kInvalidArgument when the text holds [[{$}]], which CEEMS 0.10.2 refuses.
Result<std::string> expand_environment(
    std::string_view text, const std::function<std::string(const std::string&)>& lookup);

}  // namespace ceems::config
