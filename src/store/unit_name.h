#pragma once

#include <string>
#include <string_view>

namespace ceems::store {

/// The name with each number as '#': "train_7 (12)" becomes "train_# (#)". Jobs of one family have
/// the same.
std::string normal_name(std::string_view name);

}  // namespace ceems::store
