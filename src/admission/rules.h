#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "admission/review.h"

namespace ceems::admission {

/// How creators are decided. The zero value is the rules of the reference, with two differences:
/// other annotations stay, and an UPDATE never changes a template that the request leaves alone.
struct Rules {
  /// Only trusted callers may name somebody else as the creator. Marks by others are replaced.
  bool distrust = false;
  /// Names of users and groups, besides the controllers of Kubernetes itself. A '*' at the end
  /// stands for any characters.
  std::vector<std::string> trusted = {};
  /// Validation refuses what mutation would have replaced. Implies `distrust`.
  bool enforce = false;
};

/// Whether the caller may name somebody else: one of `trusted`, or a controller of Kubernetes that
/// creates pods from templates.
bool is_trusted(const Rules& rules, const Caller& caller);

/// The mutation: the annotations to add. Everything is allowed.
Verdict mutate(const Rules& rules, const Review& review, const Object& object);

/// The validation. `would_patch` tells whether the mutation would change something.
struct Validation {
  Verdict verdict;
  bool would_patch = false;
};
Validation validate(const Rules& rules, const Review& review, const Object& object);

}  // namespace ceems::admission
