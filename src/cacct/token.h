#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "cacct/series/config.h"

namespace ceems::cacct {

/// The personal API token of the caller: the text of $CEEMS_TOKEN, or of the file
/// $CEEMS_TOKEN_FILE, or of `token` in $XDG_CONFIG_HOME/ceems or $HOME/.config/ceems; empty if
/// there is none of these. The file must belong to `uid`, and no other user may have rights on it.
/// Errors (kInvalidArgument) never contain the token. Not for programs with privileges of their
/// own, whose caller controls the environment.
Result<std::string> find_token(uid_t uid);

/// Makes the program ask the API server by the token, in place of the configured credentials and of
/// the user's name. If these are a user and a password, they stay, and the token has its own header
/// (model::kTokenHeader). Nothing else is given the token.
void use_token(std::string token, Config& config);

}  // namespace ceems::cacct
