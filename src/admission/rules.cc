#include "admission/rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::admission {
namespace {

/// The two annotations together.
struct Mark {
  std::string by;
  std::string uid;
  bool operator==(const Mark&) const = default;
};

/// The rule of the reference, which finds the text anywhere.
bool is_account(std::string_view name) {
  return name.contains("system:serviceaccount");
}

std::string value_of(const Annotations& annotations, std::string_view name) {
  const auto found = annotations.find(name);
  return found == annotations.end() ? std::string() : found->second;
}

Mark mark_of(const Annotations& annotations) {
  return {.by = value_of(annotations, kCreatedBy), .uid = value_of(annotations, kCreatedByUid)};
}

Mark mark_of(const Caller& caller) {
  return {.by = caller.name, .uid = caller.uid};
}

void set_mark(Annotations& annotations, const Mark& mark) {
  annotations.insert_or_assign(std::string(kCreatedBy), mark.by);
  annotations.insert_or_assign(std::string(kCreatedByUid), mark.uid);
}

/// The mark that a place gets; nothing: it stays as it is.
using Wanted = std::optional<Mark>;

// The rules of the reference.

Wanted pod_mark(const Review& review, const Object& object) {
  const Mark caller = mark_of(review.caller);
  const auto found = object.top.annotations.find(kCreatedBy);
  if (found == object.top.annotations.end()) {
    const Mark before = mark_of(object.top.old);
    return before.by.empty() ? caller : before;
  }
  return is_account(found->second) && !is_account(caller.by) ? Wanted(caller) : std::nullopt;
}

Wanted template_mark(const Review& review, const Object& object, const Place& place) {
  Mark top = mark_of(object.top.annotations);
  if (!top.by.empty() && !is_account(top.by)) {
    return top;
  }
  const Mark own = mark_of(place.annotations);
  if (!own.by.empty() && !is_account(own.by)) {
    return std::nullopt;
  }
  // The UPDATE has lost the mark, for example because a file was applied that does not have it.
  const Mark before = mark_of(place.old);
  return before.by.empty() || is_account(before.by) ? mark_of(review.caller) : before;
}

// The rules for callers who are not trusted.

/// As in the rules of the reference, a person who changes the template of a program takes it over.
bool takes_over(const Review& review, const Object& object, const Mark& before) {
  return object.kind == Kind::kWorkload && is_account(before.by) && !is_account(review.caller.name);
}

/// The mark of a new object is that of the caller, and later it stays.
Wanted distrusted_mark(const Review& review, const Object& object, const Place& place) {
  const Mark now = mark_of(place.annotations);
  const Mark before = mark_of(place.old);
  const Mark caller = mark_of(review.caller);
  if (object.has_old && !before.by.empty() && !takes_over(review, object, before)) {
    return now == before ? std::nullopt : Wanted(before);
  }
  // Who changes a pod without a mark has not created it.
  if (object.has_old && object.kind == Kind::kPod && now.by.empty()) {
    return std::nullopt;
  }
  return now == caller ? std::nullopt : Wanted(caller);
}

/// The operations that give the places of an object their marks.
class Marking {
 public:
  Marking(const Rules& rules, const Review& review, const Object& object)
      : review_(review),
        object_(object),
        trusted_(is_trusted(rules, review.caller)),
        distrusted_((rules.distrust || rules.enforce) && !trusted_) {}

  std::vector<PatchOperation> operations() {
    if (object_.kind == Kind::kPod) {
      mark(object_.top, distrusted_ ? distrusted_mark(review_, object_, object_.top)
                                    : pod_mark(review_, object_));
      return std::move(operations_);
    }
    if (object_.kind != Kind::kWorkload || (!object_.builtin && object_.controlled && trusted_)) {
      return {};  // the controlling object has the template of this one, with its mark
    }
    if (distrusted_) {
      mark_top(object_.top);
      for (const Place& place : object_.made) {
        mark_top(place);
      }
    }
    for (const Place& place : object_.templates) {
      if (place.changed) {
        mark(place, distrusted_ ? distrusted_mark(review_, object_, place)
                                : template_mark(review_, object_, place));
      }
    }
    return std::move(operations_);
  }

 private:
  void mark(const Place& place, const Wanted& wanted) {
    if (wanted) {
      Annotations annotations = place.annotations;
      set_mark(annotations, *wanted);
      add(place, std::move(annotations));
    }
  }

  /// A mark at the top of a workload names the creator for all its pods, so a user may not write
  /// one for somebody else: neither there nor where the top of a made workload comes from.
  void mark_top(const Place& place) {
    const Mark now = mark_of(place.annotations);
    const Mark before = mark_of(place.old);
    if (now == before || now == mark_of(review_.caller)) {
      return;
    }
    Annotations annotations = place.annotations;
    annotations.erase(std::string(kCreatedBy));
    annotations.erase(std::string(kCreatedByUid));
    if (!before.by.empty()) {
      set_mark(annotations, before);
    }
    add(place, std::move(annotations));
  }

  void add(const Place& place, Annotations annotations) {
    constexpr std::string_view kAnnotations = "/annotations";
    PatchOperation operation{.path = place.path, .annotations = std::move(annotations)};
    // Templates of Kubernetes' own kinds always have metadata.
    if (!place.has_parent && !object_.builtin) {
      operation.wrapped = true;
      operation.path.resize(operation.path.size() - kAnnotations.size());
    }
    operations_.push_back(std::move(operation));
  }

  const Review& review_;
  const Object& object_;
  const bool trusted_;
  const bool distrusted_;
  std::vector<PatchOperation> operations_;
};

/// The error in a mark written by an untrusted caller; empty if there is none.
std::string fault_of(const Review& review, const Object& object, const Place& place) {
  const Mark now = mark_of(place.annotations);
  const Mark before = mark_of(place.old);
  if (object.has_old && !before.by.empty() && now != before &&
      !takes_over(review, object, before)) {
    return fmt::format("{} may not change the annotations {} and {} of an existing object",
                       printable(review.caller.name), kCreatedBy, kCreatedByUid);
  }
  const bool kept = object.has_old && now == before;
  const bool none = now.by.empty() && now.uid.empty();
  if (!none && !kept && now != mark_of(review.caller)) {
    return fmt::format("{} may not set the annotation {} to {}", printable(review.caller.name),
                       kCreatedBy, printable(now.by));
  }
  return {};
}

bool matches(std::string_view pattern, std::string_view name) {
  return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1))
                                : pattern == name;
}

}  // namespace

bool is_trusted(const Rules& rules, const Caller& caller) {
  constexpr std::string_view kSystem = "system:serviceaccount:kube-system:";
  constexpr std::string_view kManager = "system:kube-controller-manager";
  const bool controller = caller.name == kManager || (caller.name.starts_with(kSystem) &&
                                                      caller.name.ends_with("-controller"));
  return controller || std::ranges::any_of(rules.trusted, [&](const std::string& pattern) {
           return matches(pattern, caller.name) ||
                  std::ranges::any_of(caller.groups, [&](const std::string& group) {
                    return matches(pattern, group);
                  });
         });
}

Verdict mutate(const Rules& rules, const Review& review, const Object& object) {
  Verdict verdict;
  verdict.patch = Marking(rules, review, object).operations();
  return verdict;
}

Validation validate(const Rules& rules, const Review& review, const Object& object) {
  Validation validation;
  validation.would_patch = !Marking(rules, review, object).operations().empty();
  if (!rules.enforce || is_trusted(rules, review.caller) || object.kind == Kind::kOther) {
    return validation;
  }
  std::string fault = fault_of(review, object, object.top);
  for (const std::vector<Place>* const places : {&object.made, &object.templates}) {
    for (const Place& place : *places) {
      if (fault.empty() && place.changed) {
        fault = fault_of(review, object, place);
      }
    }
  }
  if (!fault.empty()) {
    validation.verdict.allowed = false;
    validation.verdict.refused = true;
    validation.verdict.message = std::move(fault);
  }
  return validation;
}

}  // namespace ceems::admission
