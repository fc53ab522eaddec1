#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "admission/workloads.h"
#include "base/result.h"

namespace ceems::admission {

// Reviews as the API server of Kubernetes sends them
// (https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/).

using Annotations = std::map<std::string, std::string, std::less<>>;

inline constexpr std::string_view kCreatedBy = "ceems.io/created-by";
inline constexpr std::string_view kCreatedByUid = "ceems.io/created-by-uid";

/// Metadata that can carry a mark: that of the object, or of one of its templates.
struct Place {
  std::string path;        ///< of the annotations, as a JSON pointer (RFC 6901)
  bool has_parent = true;  ///< false: the object that holds the annotations is missing as well
  Annotations annotations = {};
  Annotations old = {};  ///< before an UPDATE
  bool changed = true;   ///< false: the UPDATE does not change this template
};

enum class Kind : std::uint8_t { kPod, kWorkload, kOther };

/// The object of a review.
struct Object {
  Kind kind = Kind::kOther;
  Place top;                          ///< of the object itself
  std::vector<Place> templates = {};  ///< of a workload
  std::vector<Place> made = {};       ///< what will be `top` of the workloads that this one makes
  bool has_old = false;               ///< an UPDATE that came with the object before it
  /// It says that another object controls it and writes its template. The user who sends an object
  /// can write that, so it counts for trusted callers only.
  bool controlled = false;
  bool builtin = true;
};

/// Who sent the request, as the API server has found out.
struct Caller {
  std::string name = {};
  std::string uid = {};
  std::vector<std::string> groups = {};
};

enum class Operation : std::uint8_t { kCreate, kUpdate, kDelete, kConnect, kUnknown };

struct Review {
  std::string api_version = {};  ///< "admission.k8s.io/v1" or "admission.k8s.io/v1beta1"
  std::string uid = {};
  Operation operation = Operation::kUnknown;
  std::string operation_text = {};
  Caller caller = {};
  std::string name_space = {};
  std::string name = {};
  /// Set for kCreate and kUpdate. kParse if it is a pod or workload that cannot be read; objects
  /// of other kinds are not looked at.
  Result<Object> object = Object();
};

/// Parses the body of a request. Bounded in depth; the caller bounds its size. Errors: kParse, with
/// the texts of the reference.
Result<Review> parse_review(std::string_view text, const std::vector<Workload>& workloads);

/// An operation of a JSON patch (RFC 6902), always "add".
struct PatchOperation {
  std::string path;
  bool wrapped =
      false;  ///< `path` is that of the metadata, and the value has the annotations in it
  Annotations annotations;
};

/// The answer to the API server.
struct Verdict {
  bool allowed = true;
  bool refused = false;  ///< by a rule; the user gets 403
  std::string message = {};
  std::vector<PatchOperation> patch = {};
};

/// The JSON document that answers a review, with a line end.
std::string answer_json(std::string_view api_version, std::string_view uid, const Verdict& verdict);

}  // namespace ceems::admission
